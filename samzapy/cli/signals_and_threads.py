"""The end of a command. Python waits at its end for threads that are no daemons; one that the user's module has started would keep the command for ever.
And the process ends at once after what Python has to do at its end: a Kafka client that an error still refers to has threads of its own. While a broker
refuses its certificate they go on calling OpenSSL, which the C library's exit has taken down by then: the command would end by SIGSEGV.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

from samzapy.printable import printable_lines

PATIENCE_S = 1.0
MAX_NAMED = 5


def clean_up_when_told() -> None:
    """From now on SIGTERM, and SIGHUP unless `nohup` has it ignored, end the command as Ctrl-C does, with what it has to clean up. Ctrl-C itself may
    be ignored: a shell does that for what it starts in its background."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def end(code: int) -> NoReturn:
    """Exit with this code, without the threads that still run after a second."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)
    deadline = time.monotonic() + PATIENCE_S
    threads = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    left = [thread.name for thread in threads if thread.is_alive()]
    if left:
        names = ", ".join(left[:MAX_NAMED])
        text = f"threads that the job's code had started were still running when this command ended, and ended with it: {len(left)} ({names}). "
        text += "Start threads in `init`, with daemon=True.\n"
        sys.stderr.write(printable_lines(text))
    atexit._run_exitfuncs()
    sys.stdout.flush()
    with contextlib.suppress(OSError):  # nobody reads it any more
        sys.stderr.flush()
    os._exit(code)
