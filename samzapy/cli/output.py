"""Standard output whose failures are told as what they are: the disk that it goes to is full, not samzapy at fault.

A pipe that nobody reads any more stays `BrokenPipeError`: that is how `samzapy tail … | head` ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from samzapy.api.errors import OutputFailed


@contextmanager
def checked_output() -> Iterator[None]:
    """Within it, what is written to `sys.stdout` is written, or an error of its own; all of it when the block is left.

    Raises:
        OutputFailed: it cannot be written.
    """
    before = sys.stdout
    output = cast(TextIO, _Output(before))
    sys.stdout = output
    try:
        yield
        output.flush()
    finally:
        sys.stdout = before if _is_written(before) else open(os.devnull, "w")  # noqa: SIM115  else Python would try, and complain, at its exit


class _Output:
    """A text stream, otherwise as it was."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _told():
            return self._stream.write(text)

    def flush(self) -> None:
        with _told():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


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
        raise
    except OSError as error:
        raise OutputFailed(
            f"the output could not be written: {error.strerror}.", "Make room, or send it elsewhere; what was written of it is not all."
        ) from error
