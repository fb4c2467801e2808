"""A hook that calls `os.fork()`: the child is a copy of the whole container, and must never run its loop.

Where the child's hook returns or raises, the child ends, with the code that `sys.exit()` gave. Nothing is done for that per record: after a
fork the child finds a request pending, as if its hook had asked for something.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import traceback
import weakref
from typing import NoReturn

from samzapy.container.requests import Requests

_watched: weakref.WeakSet[Requests] = weakref.WeakSet()


def watch(requests: Requests) -> None:
    """From now on the container whose hooks are given `requests` notices that it is a forked copy."""
    _watched.add(requests)


def _in_child() -> None:
    if _watched:
        faulthandler.disable()  # its crash is not the container's, and the file is
    for requests in _watched:
        requests.is_forked = requests.pending = True


os.register_at_fork(after_in_child=_in_child)


def end_child(error: BaseException | None) -> NoReturn:
    """End a forked copy: its hook's exception becomes the exit code, as in any Python program."""
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if code and not isinstance(error.code, int):
            sys.stderr.write(f"{error.code}\n")
    elif error is not None:
        code = 1
        traceback.print_exception(error)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 0xFF)
