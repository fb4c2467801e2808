"""Windows of event time, and the panes that they give. A window contains the times from its start up to, and without, its end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

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
        start, end: of the window, in milliseconds since 1970; `end` itself is not in the window.
        value: the result.
        kind: "on_time": given when the watermark passed the end. "late": given later, corrected by a late record. "early": given before.
        index: the number of the pane among those of its window and key, from 0. With FINAL each late pane has the index 1; with
            `updates()` the first pane of a window that gets only late records has it. If the program is
            changed from `updates()` to FINAL while a window is open, its next pane has the index 0.
    """

    start: int
    end: int
    value: A
    kind: PaneKind
    index: int

    if not TYPE_CHECKING:  # of which type checkers know nothing

        def __getitem__(self, entry):
            raise TypeError(f"a Pane is no dict: the window's result is `pane.value`, and an entry of an aggregate's `pane.value[{entry!r}]`")


class _Unfrozen(Generic[A]):
    """A Pane while it is made: setting the attributes of a frozen dataclass takes three times as long."""

    __slots__ = ("end", "index", "kind", "start", "value")

    def __init__(self, start: int, end: int, value: A, kind: PaneKind, index: int) -> None:
        self.start, self.end, self.value, self.kind, self.index = start, end, value, kind, index


def pane(start: int, end: int, value: A, kind: PaneKind, index: int) -> Pane[A]:
    """A Pane of these."""
    made: Any = _Unfrozen(start, end, value, kind, index)
    made.__class__ = Pane
    return made  # type: ignore[no-any-return]


PANE = Kind(JSON, Pane)


@dataclass(frozen=True, slots=True)
class Window:
    """Tumbling or hopping windows; `tumbling` and `hopping` make them.

    Attributes:
        size_ms: the length of each, in milliseconds.
        every_ms: one begins every so many milliseconds.
        offset_ms: one begins so many milliseconds after 1970-01-01, 00:00 UTC.
    """

    size_ms: int
    every_ms: int
    offset_ms: int = 0

    def __str__(self) -> str:
        moved = f", offset {format_duration(self.offset_ms)}" if self.offset_ms else ""
        if self.size_ms == self.every_ms:
            return f"tumbling {format_duration(self.size_ms)}{moved}"
        return f"hopping {format_duration(self.size_ms)} every {format_duration(self.every_ms)}{moved}"


def tumbling(size: Duration, *, offset: Duration = "0s") -> Window:
    """Windows of one length, side by side: each time is in exactly one. `tumbling("1h")` begins one at each full hour.

    Args:
        size: the length, as text ("500ms", "10s", "5m", "1h", "7d") or timedelta.
        offset: windows begin at multiples of `size` since 1970, in UTC, plus this.

    Raises:
        ConfigurationError: an argument is no duration.
    """
    return _window(milliseconds(size, "tumbling(size)"), None, milliseconds(offset, "tumbling(offset=…)", least=0))


def hopping(size: Duration, *, every: Duration, offset: Duration = "0s") -> Window:
    """Windows of one length that overlap: each time is in `size` / `every` of them.

    Args:
        size: the length, as for `tumbling`; a multiple of `every`.
        every: one window begins every so long.
        offset: as for `tumbling`, with multiples of `every`.

    Raises:
        ConfigurationError: an argument is no duration, `size` is not a multiple of `every`, or more than 10,000 windows would overlap.
    """
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
    """A duration in milliseconds. `given`: text as in the job file, or a timedelta; `what`: the argument, for the message.

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
