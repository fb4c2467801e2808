"""When windows give their panes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Emit:
    """When a window gives panes. `each`: after every record, besides that of its end."""

    each: bool = False

    def __str__(self) -> str:
        return "updates" if self.each else "final"


FINAL = Emit()  # one pane when time passes the end; with allowed_lateness one for each late record after it


def updates() -> Emit:
    """A pane after each record, and one when time passes the end: what comes last for a window and key replaces what came before."""
    return Emit(each=True)
