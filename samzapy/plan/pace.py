"""How fast a task or a container gets on, from two of its reports and the times at which they came. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SPAN_S = 10.0  # rates are over about this long
BUSY, HELD_BACK, IDLE = 0.85, 0.1, 0.95  # shares of a container's time; the page's graph draws by the first two (web/page/lib/graph.js)
LOOP = ("process", "commit", "wait_input", "wait_output", "restore", "other")


@dataclass(frozen=True, slots=True)
class Seen:
    """Counters at a time (monotonic seconds)."""

    at_s: float
    counters: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Pace:
    """Counters as they were about SPAN_S ago, and now.

    Attributes:
        rates: by counter, how much it grows in a second; empty while there is only one report.
    """

    marks: tuple[Seen, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)

    def with_report(self, at_s: float, counters: Mapping[str, float]) -> Pace:
        """After one more report. A counter that went back (its process is a new one) begins anew."""
        if self.marks and any(counters.get(name, 0.0) < value for name, value in self.marks[-1].counters.items()):
            return Pace((Seen(at_s, counters),))
        marks = (*self.marks, Seen(at_s, counters))
        while len(marks) > 2 and at_s - marks[1].at_s >= SPAN_S:
            marks = marks[1:]
        first, passed_s = marks[0], at_s - marks[0].at_s
        if passed_s <= 0.0:
            return Pace(marks, self.rates)
        return Pace(marks, {name: (value - first.counters.get(name, 0.0)) / passed_s for name, value in counters.items()})


def shares(rates: Mapping[str, float]) -> dict[str, float]:
    """The loop's time by what it did, as shares of the whole; empty while that is not known."""
    seconds = {name: max(0.0, rates.get(name, 0.0)) for name in LOOP}
    whole = sum(seconds.values())
    return {name: round(value / whole, 4) for name, value in seconds.items()} if whole > 0.0 else {}


def badge(of_loop: Mapping[str, float]) -> str:
    """One word for a container's loop; "" while nothing is known."""
    if not of_loop:
        return ""
    if of_loop["wait_output"] >= HELD_BACK:
        return "HELD BACK"
    if of_loop["process"] + of_loop["commit"] >= BUSY:
        return "BUSY"
    return "IDLE" if of_loop["wait_input"] >= IDLE else "OK"


def behind_s(lag: int | None, event_ms: int, now_ms: int) -> float | None:
    """How old the last processed record is while records wait, in seconds; 0.0 while none do; None: not known."""
    if lag is None or (lag and event_ms <= 0):
        return None
    return max(0.0, (now_ms - event_ms) / 1000) if lag else 0.0


def caught_up_in_s(lag: int | None, lag_rate: float) -> float | None:
    """In how many seconds no record waits any more if all goes on like this; None: never, or not known."""
    if lag is None:
        return None
    if not lag:
        return 0.0
    return lag / -lag_rate if lag_rate < 0.0 else None


def eta_s(restore: Mapping[str, Any]) -> float | None:
    """When a restore that is under way is done, in seconds; None: not known yet."""
    needed, remaining, seconds = (float(restore.get(name) or 0) for name in ("needed", "remaining", "seconds"))
    done = needed - remaining
    return round(remaining * seconds / done, 1) if done > 0 and seconds > 0 else None
