"""Tables for people: at a terminal as wide as that, long cells folded, in colour; elsewhere plain columns, a line a row, for grep and awk.

`NO_COLOR` (set to anything) takes the colour away, `FORCE_COLOR` brings it where the output is no
terminal; `COLUMNS`, if set, is then the width, as it is at a terminal.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

from samzapy.cli import folding
from samzapy.cli.common import as_called
from samzapy.cli.output import unescaped, write_own
from samzapy.printable import printable

GAP = 2


def print_table(header: Iterable[str], rows: Iterable[Iterable[object]], spare: Sequence[str] = ()) -> None:
    """Columns; numbers to the right. `spare`: columns that are left out, in this order, where a terminal is too narrow for all."""
    names = [str(name) for name in header]
    lines = [[printable(_cell(cell)) for cell in row] for row in rows]
    width = columns()
    if width is None and not has_colour():
        _print_plain(names, lines)
    else:
        names, lines = fitting(names, lines, spare, width)
        rendered = import_module("samzapy.cli.rich_table").rendered  # which takes a while, and not every command shows a table
        write_own(sys.stdout, rendered(names, lines, numeric(lines, len(names)), width, has_colour()))


def is_terminal() -> bool:
    """Whether a person sees the standard output as it is written."""
    return unescaped(sys.stdout).isatty()


def columns() -> int | None:
    """How wide a table may be; None: as wide as it is."""
    if is_terminal() or (os.environ.get("FORCE_COLOR") and os.environ.get("COLUMNS", "").isdigit()):
        return max(folding.NARROWEST, shutil.get_terminal_size().columns)
    return None


def has_colour() -> bool:
    """Whether to write colours: at a terminal that has them, unless NO_COLOR; with FORCE_COLOR anywhere."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (is_terminal() and os.environ.get("TERM") != "dumb")


def fitting(names: list[str], lines: list[list[str]], spare: Sequence[str], width: int | None) -> tuple[list[str], list[list[str]]]:
    """The columns that are shown in this width: all but those of `spare` that have to go."""
    for name in spare:
        if width is None or sum(max(len(line[at]) for line in [names, *lines]) + GAP for at in range(len(names))) - GAP <= width:
            break
        at = names.index(name)
        names, lines = [*names[:at], *names[at + 1 :]], [[*line[:at], *line[at + 1 :]] for line in lines]
    return names, lines


def _print_plain(names: list[str], rows: list[list[str]]) -> None:
    lines = [names, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    numbers = numeric(rows, len(names))
    for line in lines:
        cells = [c.rjust(w) if number else c.ljust(w) for c, w, number in zip(line, widths, numbers, strict=True)]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def numeric(lines: Sequence[Sequence[str]], count: int) -> list[bool]:
    """Of each column, whether it holds numbers only."""
    return [all(line[at].lstrip("-").isdigit() for line in lines) for at in range(count)]


def _cell(value: object) -> str:
    return "-" if value is None else as_called(str(value))
