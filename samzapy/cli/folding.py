"""Sentences for a terminal: folded at words to its width. A command in backticks stays whole, so that it can be copied; so does a line that is
the user's own text. For other programs nothing is folded."""

from __future__ import annotations

import os
import re
from typing import TextIO

from samzapy.cli.output import unescaped

NARROWEST = 40
QUOTED = "    "  # a job file's error: lines that begin so show what the user wrote
_PIECE = re.compile(r"(?:`[^`]*`|[^\s`])+")


def width_of(stream: TextIO) -> int | None:
    """How many columns this stream's terminal has; None: it is none, or does not tell."""
    stream = unescaped(stream)
    if not stream.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    try:
        width = int(given) if given.isdigit() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # it has no file descriptor
        return None
    return max(NARROWEST, width) if width else None


def folded(text: str, stream: TextIO, kept: str | None = None) -> str:
    """This text as it is written to this stream. `kept`: lines that begin so are left as they are."""
    width = width_of(stream)
    if width is None:
        return text
    return "\n".join(line if kept is not None and line.startswith(kept) else _folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    lines, current = list[str](), ""
    for piece in _PIECE.findall(line):
        if current and len(indent) + len(current) + 1 + len(piece) > width:
            lines.append(indent + current)
            current = piece
        else:
            current = f"{current} {piece}" if current else piece
    return "\n".join([*lines, indent + current])
