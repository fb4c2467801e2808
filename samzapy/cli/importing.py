"""A command that has only so much time imports the user's code: if that does not come back, the command ends all the same, and says where it is.

The import stays on the main thread, where modules expect to be (signal handlers, for example), so it cannot be given up from there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from samzapy.api.errors import ConfigurationError
from samzapy.cli.time_limit import MORE_S
from samzapy.clock import if_longer_than
from samzapy.config.user_import import ended_by, under_way
from samzapy.printable import printable_lines


@contextmanager
def ends_within(timeout_s: float, what_is_known: str) -> Iterator[None]:
    """The block loads a job file. After `timeout_s` and `MORE_S` seconds the process ends, with a sentence, and the exit code of a wrong job file."""
    seconds = timeout_s + MORE_S
    with if_longer_than(seconds, lambda: _give_up(seconds, what_is_known)):
        yield


def _give_up(seconds: float, what_is_known: str) -> NoReturn:
    where = under_way() or "the job file is still being read"
    remedy = "An import must end: move the code that waits there into `init`."
    os.write(2, printable_lines(f"error[{ConfigurationError.code}]: {what_is_known} after {seconds:.0f} s: {where}.\n  {remedy}\n").encode())
    ended_by(ConfigurationError.exit_code)
