"""Lines that other processes write, passed on: each is bounded, and a reader that fails does not stop them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

LONGEST = 64 << 10  # bytes of a line that are passed on


def bounded_lines(stream: IO[bytes], longest: int = LONGEST) -> Iterator[bytes]:
    """The stream's lines, without their ends. Of one that is longer the first bytes, and then a line that says how many were left out."""
    while line := stream.readline(longest):
        yield line.removesuffix(b"\n")
        if len(line) < longest or line.endswith(b"\n"):
            continue
        left_out = 0
        while more := stream.readline(longest):
            left_out += len(more.removesuffix(b"\n"))
            if more.endswith(b"\n"):
                break
        if left_out:
            yield b"... %d more bytes of this line are left out" % left_out
