"""Where a container's code was when its process could not report it: native code that crashed, or that held the interpreter's lock, or a hook that
called `os._exit()`.

Python's faulthandler needs no lock: it writes the stacks of all threads into a file when the process crashes, or when the heartbeat's thread
has not run for half of the lease. Heard again, the process says so itself; else the driver reads the file, if it is on its host. The next container
on this host reads the file, says what is in it, and removes it. For `os._exit()`, which nothing notices, the stack is written before it is called:
Spark does not tell with which code a process ended. That may be long after: so the file begins with its process's id, and where a
container died elsewhere meanwhile, nobody takes an old stack for that death's.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import re
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from samzapy.api.errors import ConfigurationError
from samzapy.container.stuck_hook import CALLERS, of_users, user_frames
from samzapy.model import lease_times
from samzapy.model.process_end import WATCHDOG
from samzapy.printable import printable
from samzapy.private_files import private_directory, read_private

LOG = logging.getLogger("samzapy.container")
MAX_BYTES = 256 << 10
MAX_FRAMES, MAX_DEPTH = 5, 100
MAX_DIGITS = 20
CUT = "..."
_OF = re.compile(r"process (\d+)\n")
MAX_HELD = 5
_FRAME = re.compile(r'\s+File "(?P<path>[^"\n]*)", line (?P<line>\d+) in (?P<name>.*)')


class Trace:
    """The file of one container on one host.

    Attributes:
        held: the last times that no other thread could run, for the container's reports: number, milliseconds since 1970, seconds at least, place.

    `predecessor_at`: where the process stood that wrote the file before, when it ended; "" where that is not known. `predecessor_pid`: its id; or 0.

    Every directory from `base` (`state.dir`) down is a private one of this user's. If one is not, or the file is not, nothing is read, written
    or removed there: that is logged, and the process goes on without.
    """

    def __init__(self, path: Path, lease_s: float, base: Path | None = None) -> None:
        self._path = path = path.expanduser().absolute()
        self._after_s = lease_s * lease_times.WRITE
        self.held: list[dict[str, Any]] = []
        self._times = 0
        self._file: int | None = None
        self._exit = os._exit
        self._head = f"process {os.getpid()}\n".encode()
        self.predecessor_at, self.predecessor_pid = "", 0
        try:
            private_directory(path.parent, base or path.parent)
            text = _taken(path)
            is_ours = is_of_watchdog(text)
            self.predecessor_at, self.predecessor_pid = "" if is_ours else printable(place_in(text)), _process_of(text)
            if is_ours:
                LOG.warning("%s crashed in %s: no record was the cause", _previous(self.predecessor_pid), WATCHDOG)
            if self.predecessor_at:
                LOG.warning("%s ended while its code was at %s", _previous(self.predecessor_pid), self.predecessor_at)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.write(self._file, self._head)
            faulthandler.enable(self._file)
            os._exit = self._leave
        except ConfigurationError as error:
            LOG.warning("if this process crashes, nothing will show at which line of the code: %s", error)
        except OSError as error:
            LOG.warning("if this process crashes, nothing will show at which line of the code: %s cannot be written: %s", path, error.strerror)

    def arm(self) -> None:
        """From now on the stacks are written if this is not called again for half of the lease."""
        if self._file is None:
            return
        faulthandler.cancel_dump_traceback_later()
        if os.fstat(self._file).st_size > len(self._head):
            text = os.pread(self._file, MAX_BYTES, 0).decode("utf-8", "replace")
            os.ftruncate(self._file, len(self._head))
            os.lseek(self._file, 0, os.SEEK_END)
            place = place_in(text)
            self._times += 1
            self.held.append({"n": self._times, "at_ms": time.time_ns() // 1_000_000, "seconds": self._after_s, "at": printable(place)})
            del self.held[:-MAX_HELD]
            LOG.warning(
                "for more than %.1f s no other thread of this process could run: the job's code held the interpreter's lock, or the machine was "
                "busy or suspended. Where the job's code was: %s", self._after_s, place or "in no hook",
            )  # fmt: skip
        faulthandler.dump_traceback_later(self._after_s, file=self._file)

    def close(self) -> None:
        """The process ends in an orderly way: no trace is needed."""
        if self._file is not None:
            os._exit = self._exit
            faulthandler.cancel_dump_traceback_later()
            faulthandler.disable()
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._file), os.lstat(self._path)):  # else it is the successor's by now
                    self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def _leave(self, status: int) -> NoReturn:
        """os._exit(); a hook that calls it leaves its stack, as a crash does. A forked copy of this process, and samzapy itself, leave none."""
        is_ours = self._file is not None and f"process {os.getpid()}\n".encode() == self._head
        if self._file is not None and is_ours and user_frames(threading.get_ident())[0]:
            os.write(self._file, _stack(sys._getframe(1)).encode(errors="replace")[:MAX_BYTES])
        self._exit(status)


def _stack(frame: FrameType | None) -> str:
    """As faulthandler writes it, innermost first."""
    lines = ["Current thread (most recent call first):"]
    while frame is not None and len(lines) <= MAX_DEPTH:
        lines.append(f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_name}')
        frame = frame.f_back
    return "\n".join([*lines, f"  {CUT}"] if frame is not None else lines) + "\n"


def left_by(path: Path, pid: int) -> str:
    """Where that process stood when it wrote the file, or WATCHDOG; "": the file does not say. The file stays, for the process that comes after it."""
    try:
        text = read_private(path.expanduser().absolute(), is_ours=True, limit_bytes=MAX_BYTES)
    except (OSError, ConfigurationError):
        return ""
    if not pid or _process_of(text) != pid:
        return ""
    return WATCHDOG if is_of_watchdog(text) else printable(place_in(text))


def _previous(process: int) -> str:
    return f"process {process}, the previous process of this container on this host,"


def _taken(path: Path) -> str:
    """The file's content. The file is removed, so that a process that still has it open does not write into the new one."""
    try:
        text = read_private(path, is_ours=True, limit_bytes=MAX_BYTES)
    except FileNotFoundError:
        return ""
    path.unlink()
    return text


def _process_of(text: str) -> int:
    found = _OF.match(text)
    return int(found[1]) if found and len(found[1]) < MAX_DIGITS else 0


def is_of_watchdog(text: str) -> bool:
    r"""Whether the process crashed while the stacks of its threads were written. That happens where it had been stopped (SIGSTOP, a paused container)
    or starved: the time is over, and the threads run again. No thread of Python's was the current one then.

    >>> is_of_watchdog("Timeout (0:00:05)!\nFatal Python error: Aborted\n\nThread 0x1 (most recent call first):")
    True
    >>> is_of_watchdog("Timeout (0:00:05)!\nFatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):")
    False
    """
    before, fatal, after = text.partition("Fatal Python error")
    return bool(fatal) and "Timeout (" in before and "Current thread " not in after


def place_in(text: str) -> str:
    """The lines of a hook's code, outermost first, in what faulthandler wrote; "" where no hook was running.

    >>> place_in("")
    ''
    """
    inner: list[re.Match[str]] = []  # of one thread, innermost first
    for line in text.splitlines():
        frame = _FRAME.fullmatch(line)
        if line.strip() == CUT and inner:  # too deep to be shown whole: the innermost frames say where
            return " > ".join(_shown(f) for f in reversed(inner[:MAX_FRAMES]))
        if frame is None:
            inner = []
        elif frame["path"] not in CALLERS:
            inner.append(frame)
        elif count := of_users([f["path"] for f in inner]):
            return " > ".join(_shown(f) for f in reversed(inner[:count][-MAX_FRAMES:]))
        else:
            inner = []
    return ""


def _shown(frame: re.Match[str]) -> str:
    path = Path(frame["path"])
    name = path.name if path.name != "__init__.py" else f"{path.parent.name}/{path.name}"
    return f"{name}:{frame['line']} in {frame['name']}"
