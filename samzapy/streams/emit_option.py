"""The option `emit` of a window: panes once, when it ends, or updates as well. When it fires is decided in operators/window_firing.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Emit:
    """When a window gives panes: at its end, and if `each` is true, also after every record."""

    each: bool = False

    def __str__(self) -> str:
        return "updates" if self.each else "final"


FINAL = Emit()  # one pane when time passes the end; with allowed_lateness one for each late record after it


def updates() -> Emit:
    """A pane after each record, and one when event time passes the window's end. A later pane of the same window and key replaces the earlier ones."""
    return Emit(each=True)
