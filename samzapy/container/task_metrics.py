"""What a task counts of its own, and what the operators of its program do: plain numbers that the hot loop can afford; read by the heartbeat, exported by
the coordinator."""

from __future__ import annotations

import math
import re
from operator import index

from samzapy.api.context import Counter, Gauge, Timer

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
ILLEGAL = re.compile(r"[^a-zA-Z0-9_]")
MOST = (1 << 63) - 1
MOST_METRICS, MOST_OF_CONTAINER = 1000, 20_000


class CounterValue:
    """A number that only grows."""

    __slots__ = ("name", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.value = 0

    def inc(self, amount: float = 1) -> None:
        if type(amount) is not int:
            amount = index(amount) if hasattr(amount, "__index__") else _number(self, amount)
        total = self.value + amount
        if amount < 0 or not total <= MOST:
            raise ValueError(f"counter {self.name!r} cannot grow by {amount!r:.80}: it only grows, up to 2**63 - 1")
        self.value = total  # type: ignore[assignment]  # halves are added, if somebody wants to


class GaugeValue:
    """A number that is set."""

    __slots__ = ("name", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.value = 0.0

    def set(self, value: float) -> None:
        self.value = _number(self, value)

    @property
    def shown(self) -> float | None:
        """None: it is no finite number, for which JSON has no place."""
        return self.value if math.isfinite(self.value) else None


class TimerValue:
    """Durations in seconds."""

    __slots__ = ("count", "max", "name", "sum")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.sum = 0.0
        self.max = 0.0

    def update(self, seconds: float) -> None:
        seconds = _number(self, seconds)
        if not math.isfinite(seconds):
            raise ValueError(f"timer {self.name!r} takes seconds, not {seconds}")
        self.count += 1
        self.sum += seconds
        if seconds > self.max:
            self.max = seconds


class OperatorCounts:
    """What the operators of a program count, by their numbers. It is taken back with the records that were counted."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._committed: list[int] = []

    def of(self, operators: int) -> list[int]:
        """The counts of so many operators: one list, for whichever task object counts in it."""
        if len(self._numbers) != operators:
            self._numbers, self._committed = [0] * operators, [0] * operators
        return self._numbers

    def stand(self) -> None:
        """What was counted is committed."""
        self._committed = list(self._numbers)

    def go_back(self) -> None:
        """What was counted since the last commit was undone, and will be counted again."""
        self._numbers[:] = self._committed


class Room:
    """How many metrics the tasks of a container may still make."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_OF_CONTAINER


class TaskMetrics:
    """A task's own metrics by name. The same name gives the same metric; they live as long as the container's process. `room`: of its container."""

    def __init__(self, room: Room | None = None) -> None:
        self._room = room or Room()
        self._counters: dict[str, CounterValue] = {}
        self._gauges: dict[str, GaugeValue] = {}
        self._timers: dict[str, TimerValue] = {}
        self._shown: dict[str, str] = {}  # by name in /metrics

    def counter(self, name: str) -> Counter:
        found = self._counters.get(name)
        if found is None:
            self._take(name, "counter", "_total")
            found = self._counters[name] = CounterValue(name)
        return found

    def gauge(self, name: str) -> Gauge:
        found = self._gauges.get(name)
        if found is None:
            self._take(name, "gauge", "")
            found = self._gauges[name] = GaugeValue(name)
        return found

    def timer(self, name: str) -> Timer:
        found = self._timers.get(name)
        if found is None:
            self._take(name, "timer", "_seconds", "_seconds_count", "_seconds_sum")
            found = self._timers[name] = TimerValue(name)
        return found

    def _take(self, name: str, kind: str, *ends: str) -> None:
        """Its names in `/metrics`, which no other may have: a scrape with one name twice is refused as a whole."""
        if not NAME.fullmatch(name):
            raise ValueError(f"metric name {name!r}: letters, digits, '_', '.' and '-' only, at most 100")
        if len(self._counters) + len(self._gauges) + len(self._timers) >= MOST_METRICS or self._room.left <= 0:
            raise ValueError(
                f"{kind} {name!r}: a task has at most {MOST_METRICS} metrics, all tasks of a container {MOST_OF_CONTAINER}, because all of them go into every "
                "report. Count by key in a store"
            )
        shown = [shown_name(name) + end for end in ends]
        for one in shown:
            if one in self._shown:
                raise ValueError(f"{kind} {name!r} and {self._shown[one]} would both be {one} in /metrics: give one of them another name")
        self._shown.update(dict.fromkeys(shown, f"{kind} {name!r}"))
        self._room.left -= 1

    def snapshot(self) -> dict[str, dict[str, object]]:
        """{"counters": {name: n}, "gauges": {name: x}, "timers": {name: {"count", "sum", "max"}}}, seconds."""
        return {
            "counters": {n: c.value for n, c in list(self._counters.items())},
            "gauges": {n: g.shown for n, g in list(self._gauges.items())},
            "timers": {n: {"count": t.count, "sum": t.sum, "max": t.max} for n, t in list(self._timers.items())},
        }


def shown_name(name: str) -> str:
    """What a metric's name begins with in `/metrics`."""
    return f"samzapy_user_{ILLEGAL.sub('_', name)}"


def _number(metric: CounterValue | GaugeValue | TimerValue, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # that is what is tried
    except (TypeError, ValueError, OverflowError):
        kind = type(metric).__name__.removesuffix("Value").lower()
        raise TypeError(f"{kind} {metric.name!r} takes a number, not {value!r:.80}") from None
