"""Standard output and error that show what others wrote as text only (`samzapy.printable`), and standard output whose failures are told as
what they are: the disk that it goes to is full, not samzapy at fault.

A pipe that nobody reads any more is `ReaderGone`: that is how `samzapy tail … | head` ends, with exit code 0. (A `BrokenPipeError` would be click's
to handle, which makes exit code 1 of it.) Where standard error cannot be written, there is nowhere to say so, and the command continues.

What the terminal's encoding does not have, as under LC_ALL=C, is shown as JSON escapes it, `\\u00e9`: so that a document stays one.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from samzapy.api.errors import OutputFailed
from samzapy.printable import printable_lines

ESCAPE = "samzapy-escape"


def _escape(error: UnicodeError) -> tuple[str, int]:
    """For an encoding that does not have some characters: as JSON has them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high << 8 | low:04x}" for high, low in zip(units[::2], units[1::2], strict=True)), error.end


codecs.register_error(ESCAPE, _escape)


@contextmanager
def checked_output() -> Iterator[None]:
    """Within it, what is written to `sys.stdout` is written, or an error of its own; all of it when the block is left. Nothing in what is
    written to it or to `sys.stderr` does anything to a terminal.

    Raises:
        OutputFailed: it cannot be written.
    """
    before, errors = sys.stdout, sys.stderr
    if hasattr(before, "reconfigure"):
        before.reconfigure(errors=ESCAPE)
    output = cast(TextIO, _Output(before))
    sys.stdout, sys.stderr = output, cast(TextIO, Errors(errors))
    try:
        yield
        output.flush()
    finally:
        sys.stderr = errors
        sys.stdout = before if _is_written(before) else open(os.devnull, "w")  # noqa: SIM115  else Python would try, and complain, at its exit


def unescaped(stream: TextIO) -> TextIO:
    """The stream itself, for what is samzapy's own doing at a terminal."""
    return stream.stream if isinstance(stream, Escaped) else stream


def write_own(stream: TextIO, text: str) -> None:
    """Write what samzapy itself made for a terminal, with what others wrote in it made printable already."""
    if isinstance(stream, Escaped):
        stream.write_own(text)
    else:
        stream.write(text)


class Escaped:
    """A text stream, otherwise as it was."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(printable_lines(text))
        return len(text)

    def write_own(self, text: str) -> None:
        self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class ReaderGone(Exception):
    """Nobody reads the standard output any more."""


class Errors(Escaped):
    """Standard error: what cannot be written is left out."""

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):  # ValueError: it is closed
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self.stream.flush()


class _Output(Escaped):
    """One whose failures are told."""

    def write(self, text: str) -> int:
        with _told():
            return super().write(text)

    def write_own(self, text: str) -> None:
        with _told():
            self.stream.write(text)

    def flush(self) -> None:
        with _told():
            self.stream.flush()


def _is_written(stream: TextIO) -> bool:
    try:
        stream.flush()
    except OSError:
        return False  # told already, or by an error that came before it
    return True


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise OutputFailed(
            f"the output could not be written: {error.strerror}.", "Free some space, or redirect the output; what was written is incomplete."
        ) from error
