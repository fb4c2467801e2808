"""Windows of event time: spans that a program cuts its streams into, and the panes that they give. A window holds its start, not its end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Literal, TypeVar

from samzapy.config.units import format_duration, parse_duration
from samzapy.streams.kinds import JSON, Kind
from samzapy.streams.places import place, refused

A = TypeVar("A")
Duration = str | timedelta
PaneKind = Literal["early", "on_time", "late"]
MAX_SLICES = 10_000  # of one window


@dataclass(frozen=True, slots=True)
class Pane(Generic[A]):
    """A window's result for one key.

    Attributes:
        start, end: of the window, in milliseconds since 1970; `end` is not in it.
        value: the result.
        kind: "on_time", when the watermark has passed the end; "late", a corrected one after that; "early", before.
        index: counts a window's panes, from 0; of a window with FINAL it is 1 for each late pane.
    """

    start: int
    end: int
    value: A
    kind: PaneKind
    index: int


PANE = Kind(JSON, Pane)


@dataclass(frozen=True, slots=True)
class Window:
    """A tumbling or hopping window: spans of `size_ms`, one beginning every `every_ms`. `offset_ms`: where they begin, from 1970 on."""

    size_ms: int
    every_ms: int
    offset_ms: int = 0

    def __str__(self) -> str:
        moved = f", offset {format_duration(self.offset_ms)}" if self.offset_ms else ""
        if self.size_ms == self.every_ms:
            return f"tumbling {format_duration(self.size_ms)}{moved}"
        return f"hopping {format_duration(self.size_ms)} every {format_duration(self.every_ms)}{moved}"

    def first_end(self, time: int) -> int:
        """The end of the first window that has this time; the others end `every_ms` after each other."""
        return (time - self.offset_ms) // self.every_ms * self.every_ms + self.offset_ms + self.every_ms


def tumbling(size: Duration, *, offset: Duration = "0s") -> Window:
    """Windows of one length, side by side. They begin at whole multiples of it since 1970, in UTC; `offset` moves them."""
    return _window(milliseconds(size, "tumbling(size)"), None, milliseconds(offset, "tumbling(offset=…)", least=0))


def hopping(size: Duration, *, every: Duration, offset: Duration = "0s") -> Window:
    """Windows of one length that overlap: one begins every `every`. The size is a multiple of it."""
    return _window(
        milliseconds(size, "hopping(size)"), milliseconds(every, "hopping(every=…)"), milliseconds(offset, "hopping(offset=…)", least=0)
    )


def _window(size: int, every: int | None, offset: int) -> Window:
    every = size if every is None else every
    if size % every:
        raise refused(f"hopping: {format_duration(size)} is no multiple of {format_duration(every)}", "Choose a size that is.", place())
    if size // every > MAX_SLICES:
        raise refused(f"hopping: {size // every} windows would overlap, at most {MAX_SLICES} may", "Choose a longer `every`.", place())
    return Window(size, every, offset % every)


def milliseconds(given: Any, what: str, least: int = 1) -> int:
    """A duration: text as in the job file, or a timedelta.

    Raises:
        ConfigurationError: it is neither, or shorter than `least`.
    """
    found: int | None = None
    if isinstance(given, timedelta):
        found = given // timedelta(milliseconds=1)
    elif isinstance(given, str):
        found = parse_duration(given)
    if found is None or found < least:
        raise refused(f"{what}: {given!r} is no duration", "Write text such as '500ms', '10s', '5m', '1h', '7d', or a timedelta.", place())
    return found
