"""The end of a command. Python waits at its end for threads that are no daemons; one that the user's module has started would keep the command for ever."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import NoReturn

from samzapy.printable import printable_lines

PATIENCE_S = 1.0
MAX_NAMED = 5


def end(code: int) -> NoReturn:
    """Exit with this code: in the usual way, or without the threads that still run after a second."""
    deadline = time.monotonic() + PATIENCE_S
    threads = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    left = [thread.name for thread in threads if thread.is_alive()]
    if not left:
        sys.exit(code)
    names = ", ".join(left[:MAX_NAMED])
    text = f"{len(left)} threads that the job's code has started still ran, and ended with this command: {names}. Start threads in `init`, with daemon=True.\n"
    sys.stderr.write(printable_lines(text))
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
