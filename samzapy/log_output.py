"""What a run writes to standard output and error, written by a thread of its own: whoever reads it may stop reading, and the run goes on.

A terminal after Ctrl-S, a `less` that is left alone or a blocked `docker logs` take nothing for as long as they like, and a write waits for
them. Nothing that a job needs may wait so: neither what answers heartbeats, nor what reads the pipes of containers. So whoever writes puts
bytes in a queue, and one thread for each file writes them in order. When too much is waiting the oldest half is dropped, and one line says
how many lines are missing where they would have stood. At the end of the process what is waiting is written, as long as the reader takes it.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO, cast

LIMIT_BYTES = 4 << 20  # of what waits to be written
PIECE_BYTES = 64 << 10  # of what is written at once
OVERHEAD_BYTES = 64  # of a line that waits, beside its text
MOMENT_S = 0.25  # a reader that takes a piece within this time is worth waiting for
BLOCKED_S = 2.0  # a write that takes longer is told of
ERASE = b"\r\x1b[K"  # what stands in the line
LAST_S = 10.0  # for all that is left at the end

_outputs: list[QueuedOutput] = []  # of this process


@contextmanager
def queued_output() -> Iterator[None]:
    """Within it, what is written to `sys.stdout` and `sys.stderr` never waits for its reader. When the block is left, what is still waiting is
    written, if the reader takes it; that ends when the reader has taken nothing for `BLOCKED_S` seconds, and after `LAST_S` at most.
    """
    before = sys.stdout, sys.stderr
    with contextlib.suppress(OSError, ValueError):  # what cannot be written now could not be written at the end either
        sys.stdout.flush()
        sys.stderr.flush()
    errors = _queued(sys.stderr, "standard error")
    output = _queued(sys.stdout, "standard output")
    sys.stdout, sys.stderr = output or sys.stdout, errors or sys.stderr
    try:
        yield
    finally:
        for stream in filter(None, (output, errors)):
            stream.flush()  # the beginning of a line
        sys.stdout, sys.stderr = before
        while _outputs:
            _outputs.pop().close()


def notes() -> list[str]:
    """A sentence for each output of this process that is not read, or of which lines were lost."""
    return [note for output in list(_outputs) if (note := output.note())]


def show_line(text: str) -> None:
    """Show a line below all that is written to standard error, if that is a terminal and queued; "" takes it away."""
    for output in list(_outputs):
        if os.isatty(output.fd):
            output.show_line(text)


def wait_for_room() -> None:
    """For threads that may wait a moment and write as much as a container prints: a reader that is slower than they, but reads, loses nothing."""
    for output in list(_outputs):
        output.wait_for_room()


class QueuedOutput:
    """Bytes for a file, which a thread writes in the order they came in. Any thread may write, and signal handlers.

    Args:
        fd: the file's descriptor.
        name: the file's, for people.
        limit_bytes: how much may wait. Beyond it the oldest half is dropped.
    """

    def __init__(self, fd: int, name: str, limit_bytes: int = LIMIT_BYTES, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.fd = fd
        self._name = name
        self._limit_bytes = limit_bytes
        self._monotonic = monotonic
        self._changed = threading.Condition(threading.RLock())  # a signal's handler may interrupt the holder, and write
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._missing = 0  # lines that were dropped before the first that waits
        self._lost = 0  # lines, in all
        self._lost_at = ""
        self._failure = ""  # why the last of them could not be written; "" if they were dropped
        self._write_began: float | None = None
        self._line = self._shown_line = b""  # to be shown below everything, and what is shown
        self._is_within = False  # what was written last ends within a line
        self._is_closed = False
        self._writer = threading.Thread(target=self._write_all, name=f"{name.replace(' ', '-')}-output", daemon=True)
        self._writer.start()

    def write(self, data: bytes) -> None:
        """Put it in the queue. Where no thread writes, in a forked copy of the process or after the end, it is written at once.

        Raises:
            OSError: it was to be written at once, and cannot be.
        """
        if not self._writer.is_alive():
            _write(self.fd, data)
            return
        with self._changed:
            self._waiting.append(data)
            self._waiting_bytes += len(data) + OVERHEAD_BYTES
            if self._waiting_bytes > self._limit_bytes:
                self._drop(self._limit_bytes // 2)
            self._changed.notify_all()

    def show_line(self, text: str) -> None:
        """Draw this line, without its end, below what is written, in place of the last one; "": none."""
        with self._changed:
            self._line = text.encode(errors="replace")
            self._changed.notify_all()

    def wait_for_room(self) -> None:
        """Until less than half of the room is taken, or the reader has taken nothing for a moment."""
        with self._changed:
            while self._waiting_bytes > self._limit_bytes // 2 and self._is_moving(MOMENT_S):
                self._changed.wait(MOMENT_S)

    def note(self) -> str:
        """A sentence for people; "" while all is well."""
        with self._changed:
            lost = f"log lines lost so far: {self._lost}"
            if self._write_began is not None and not self._is_moving(BLOCKED_S):
                seconds = self._monotonic() - self._write_began
                return f"{self._name} has not been read for {seconds:.0f} s (Ctrl-S, or a pager or pipe that waits?); the job goes on; {lost}"
            return f"{lost}, the last at {self._lost_at}: {self._why()}" if self._lost else ""

    def close(self) -> None:
        """Write what is waiting, as long as the reader takes it; what is written from now on is not queued."""
        began = self._monotonic()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            while self._writer.is_alive() and (self._waiting or self._write_began is not None):
                now = self._monotonic()
                if now - max(began, self._write_began or began) > BLOCKED_S or now - began > LAST_S:
                    return
                self._changed.wait(MOMENT_S)
        self._writer.join(MOMENT_S)

    def _is_moving(self, within_s: float) -> bool:
        return self._write_began is None or self._monotonic() - self._write_began < within_s

    def _why(self) -> str:
        return f"{self._name} could not be written: {self._failure}" if self._failure else f"{self._name} was read too slowly, or not at all"

    def _lose(self, lines: int, failure: str) -> None:
        self._lost += lines
        self._missing += lines
        self._failure = failure
        self._lost_at = time.strftime("%H:%M:%S")

    def _drop(self, leave_bytes: int) -> None:
        dropped = 0
        while self._waiting and self._waiting_bytes > leave_bytes:
            data = self._waiting.popleft()
            self._waiting_bytes -= len(data) + OVERHEAD_BYTES
            dropped += _lines(data)
        self._lose(dropped, "")

    # -- the thread that writes --------------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        while piece := self._next_piece():
            try:
                _write(self.fd, piece, self._begin_write)
            except OSError as error:
                self._end_write(error.strerror or str(error), _lines(piece))
            else:
                self._end_write("", 0)

    def _next_piece(self) -> bytes:
        """What is to be written next, waited for; nothing at the end."""
        with self._changed:
            while not self._waiting and (self._is_within or self._line == self._shown_line):
                if self._is_closed:
                    return b""
                self._changed.wait()
            piece = [self._waiting.popleft() if self._waiting else b""]
            size = len(piece[0])
            while self._waiting and size + len(self._waiting[0]) <= PIECE_BYTES:
                piece.append(self._waiting.popleft())
                size += len(piece[-1])
            self._waiting_bytes = self._waiting_bytes - size - OVERHEAD_BYTES * (len(piece) - (size == 0)) if self._waiting else 0
            if self._missing:
                line = f"{time.strftime('%H:%M:%S')} WARNING lines missing here: {self._missing}, because {self._why()}\n"
                piece.insert(0, line.encode())
                self._missing = 0
            self._write_began = self._monotonic()
            return self._with_line(b"".join(piece))

    def _with_line(self, data: bytes) -> bytes:
        """The old line erased, the data, the new line; which waits while the data ends within a line."""
        self._is_within = not data.endswith(b"\n") if data else self._is_within
        before, self._shown_line = self._shown_line, b"" if self._is_within else self._line
        return b"".join((ERASE if before else b"", data, self._shown_line))

    def _begin_write(self) -> None:
        with self._changed:
            self._write_began = self._monotonic()

    def _end_write(self, failure: str, lost: int) -> None:
        with self._changed:
            self._write_began = None
            if failure:
                self._lose(lost, failure)
            self._changed.notify_all()


class _Bytes(io.BufferedIOBase):
    """The binary side of a stream that is queued."""

    def __init__(self, output: QueuedOutput) -> None:
        self._output = output

    def write(self, data: Any, /) -> int:
        self._output.write(bytes(data))
        return len(data)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._output.fd

    def isatty(self) -> bool:
        return os.isatty(self._output.fd)


def _queued(stream: TextIO, name: str) -> TextIO | None:
    """A stream for the same file, through its queue; None where there is no file."""
    try:
        fd = stream.fileno()
        status = os.fstat(fd)
    except (OSError, ValueError):
        return None
    output = next((o for o in _outputs if os.path.samestat(os.fstat(o.fd), status)), None)  # one queue, so that lines keep their order
    if output is None:
        output = QueuedOutput(fd, name)
        _outputs.append(output)
    return io.TextIOWrapper(cast(BinaryIO, _Bytes(output)), stream.encoding, stream.errors, line_buffering=True)


def _write(fd: int, data: bytes, before_each: Callable[[], None] = lambda: None) -> None:
    """All of it, also where others have made the file one that does not wait."""
    left = memoryview(data)
    while left:
        before_each()
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            select.select([], [fd], [])


def _lines(data: bytes) -> int:
    return data.count(b"\n") or 1
