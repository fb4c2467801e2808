"""What a task counts of its own, and what the operators of its program do: plain numbers that the hot loop can afford; read by the heartbeat, exported by
the coordinator."""

from __future__ import annotations

import re

from samzapy.api.context import Counter, Gauge, Timer

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")


class CounterValue:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self, amount: int = 1) -> None:
        self.value += amount


class GaugeValue:
    """A number that is set."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def set(self, value: float) -> None:
        self.value = value


class TimerValue:
    """Durations in seconds."""

    __slots__ = ("count", "max", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.max = 0.0

    def update(self, seconds: float) -> None:
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


class TaskMetrics:
    """A task's own metrics by name. The same name gives the same metric; they live as long as the container's process."""

    def __init__(self) -> None:
        self._counters: dict[str, CounterValue] = {}
        self._gauges: dict[str, GaugeValue] = {}
        self._timers: dict[str, TimerValue] = {}

    def counter(self, name: str) -> Counter:
        return self._counters.setdefault(_checked(name), CounterValue())

    def gauge(self, name: str) -> Gauge:
        return self._gauges.setdefault(_checked(name), GaugeValue())

    def timer(self, name: str) -> Timer:
        return self._timers.setdefault(_checked(name), TimerValue())

    def snapshot(self) -> dict[str, dict[str, object]]:
        """{"counters": {name: n}, "gauges": {name: x}, "timers": {name: {"count", "sum", "max"}}}, seconds."""
        return {
            "counters": {n: c.value for n, c in list(self._counters.items())},
            "gauges": {n: g.value for n, g in list(self._gauges.items())},
            "timers": {n: {"count": t.count, "sum": t.sum, "max": t.max} for n, t in list(self._timers.items())},
        }


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(f"metric name {name!r}: letters, digits, '_', '.' and '-' only, at most 100")
    return name
