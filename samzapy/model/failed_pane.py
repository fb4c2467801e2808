"""A pane that could not be made, or on which what follows its window raised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FailedPane:
    """A pane of a window. Times in milliseconds since 1970.

    Attributes:
        window: its name, which is that of the store.
        key: as bytes; `shown`: as people read it.
        value: the pane as JSON; b"": it could not be made, or JSON does not hold it.
    """

    window: str
    key: bytes
    shown: str
    start: int
    end: int
    value: bytes = b""

    def __str__(self) -> str:
        return f"the result of window {self.window!r} for key {self.shown}, {self.start} to {self.end} (ms since 1970)"
