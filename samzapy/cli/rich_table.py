"""A table for a terminal, as `rich` lays it out: as wide as asked, long cells folded, states in colour."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from samzapy.cli.tables import GAP

GOOD, BAD, WAITS = "green", "bold red", "yellow"
STYLES = {
    **dict.fromkeys(("RUNNING", "FINISHED", "ok", "agrees", "kept", "restored"), GOOD),
    **dict.fromkeys(("FAILED", "LOST", "missing", "differs", "refused", "orphaned", "cut off"), BAD),
    **dict.fromkeys(("STARTING", "RESTORING", "BOOTSTRAPPING", "PARKED", "WAITING", "ENDING", "NOT ANSWERING"), WAITS),
}


def rendered(names: Sequence[str], lines: Sequence[Sequence[str]], numbers: Sequence[bool], width: int | None, colour: bool) -> str:
    """The table's lines. Cells are text: nothing in them is markup.

    Args:
        numbers: of each column, whether it is aligned to the right.
        width: at most so many characters a line; None: as many as it takes.
    """
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold" if colour else "none")
    for name, is_number, columns in zip(names, numbers, _widths(names, lines, width), strict=True):
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold", width=columns)
    for line in lines:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in line))
    widest = sum(max(len(line[at]) for line in [names, *lines]) + GAP for at in range(len(names)))
    console = Console(
        file=StringIO(), width=width or widest, force_terminal=colour, no_color=not colour, color_system="standard" if colour else None,
        legacy_windows=False, highlight=False,
    )  # fmt: skip
    with console.capture() as capture:
        console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _widths(names: Sequence[str], lines: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """How wide each column is: as its widest cell, or where there is no room for all, as its longest word at least, so that words stay whole; if
    there is no room for that either, the longest words are broken."""
    cells = [[cell_len(line[at]) for line in [names, *lines]] for at in range(len(names))]
    most = [max(column) for column in cells]
    if width is None or sum(most) + GAP * (len(names) - 1) <= width:
        return most
    room = max(len(names), width - GAP * (len(names) - 1))
    words = [max((cell_len(word) for line in [names, *lines] for word in line[at].split()), default=1) for at in range(len(names))]
    cut = next(cut for cut in range(max(words), 0, -1) if cut == 1 or sum(min(count, cut) for count in words) <= room)
    widths = [min(count, cut) for count in words]
    while sum(widths) < room and widths != most:
        for at in sorted(range(len(names)), key=lambda at: widths[at]):
            if widths[at] < most[at] and sum(widths) < room:
                widths[at] += 1
    return widths
