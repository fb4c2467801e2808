"""What the run loop has to do by the clock, as a table: name, what, how often, when next.

`run` walks the table in order. It is called between two records, so it must cost nothing while nothing is due: the loop only compares the time
with `next_at`. At each walk, and at least every LOOK_S seconds, the rows without an interval of their own are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from samzapy.container.facts import OTHER, LoopTime
from samzapy.ports import Clock

LOOK_S = 0.1
NEVER = float("inf")


def _no() -> bool:
    return False


@dataclass(slots=True)
class Duty:
    """One row.

    Attributes:
        interval_s: seconds between two times; 0: at each walk; NEVER: not by the clock. With `before`, how long before that.
        is_wanted: whether it is due before its time.
        before: a row, further up, of which this one is done once before each time.
        keeps_pace: a time that comes late does not move the later ones.
        keeps_time: `reset` does not put it off.
        rest: it is not done again before this many times the time that it took has passed: so much is left for records.
        phase: what of the loop's time it takes.
        next_at: when it is due, in monotonic seconds.
    """

    name: str
    do: Callable[[], None]
    interval_s: float = 0.0
    is_wanted: Callable[[], bool] = _no
    before: str = ""
    keeps_pace: bool = False
    keeps_time: bool = False
    rest: float = 0.0
    phase: str = OTHER
    next_at: float = 0.0


class Schedule:
    """The table of a container's duties.

    Attributes:
        next_at: when something is due again, in monotonic seconds.
        spent_s: by row, the seconds that it has taken.
    """

    def __init__(self, clock: Clock, loop: LoopTime) -> None:
        self._clock = clock
        self._loop = loop
        self._rows: dict[str, Duty] = {}
        self.spent_s: dict[str, float] = {}
        self.next_at = 0.0

    def set(self, duties: Iterable[Duty]) -> None:
        """The table, in the order in which it is walked; each row's first time is an interval from now."""
        self._rows = {duty.name: duty for duty in duties}
        for name in self._rows:
            self.put_off(name)

    def reset(self) -> float:
        """The tasks start again: every duty is an interval away, and the table is walked as soon as possible. Returns the time now."""
        for duty in self._rows.values():
            if not duty.keeps_time:
                self.put_off(duty.name)
        self.next_at = self._clock.monotonic()
        return self.next_at

    def put_off(self, name: str) -> None:
        """Its next time is an interval from now."""
        duty = self._rows[name]
        if not duty.before:
            duty.next_at = self._clock.monotonic() + duty.interval_s
            self._set_before(name)

    def done_since(self, name: str, began: float) -> None:
        """It was done from then until now: its next time is an interval after it began; but it is not done again before as much time has passed as it
        took, or an interval."""
        duty, now = self._rows[name], self._clock.monotonic()
        duty.next_at = max(began + duty.interval_s, now + min(now - began, duty.interval_s))
        self._set_before(name)

    def _set_before(self, name: str) -> None:
        """It has another time, and so have the rows that are done before it."""
        for duty in self._rows.values():
            if duty.before == name:
                duty.next_at = self._rows[name].next_at - duty.interval_s

    def is_over(self, name: str) -> bool:
        """Whether its interval has passed."""
        return self._clock.monotonic() >= self._rows[name].next_at

    def bring_forward(self, name: str) -> None:
        """It is due now."""
        self._rows[name].next_at = self.next_at = self._clock.monotonic()

    def run(self) -> None:
        """Do what is due, in the table's order."""
        now = self._clock.monotonic()
        for duty in self._rows.values():
            if now >= duty.next_at or duty.is_wanted():
                was_due_at, began = duty.next_at, self._clock.monotonic()
                before = self._loop.to(duty.phase)
                try:
                    duty.do()
                finally:
                    self._loop.to(before)
                # `do` may have put the row off itself, from a later now: a commit takes its time
                duty.next_at = max(was_due_at + duty.interval_s, now) if duty.keeps_pace else max(duty.next_at, now + duty.interval_s)
                ended = self._clock.monotonic()
                self.spent_s[duty.name] = self.spent_s.get(duty.name, 0.0) + ended - began
                if duty.rest:
                    duty.next_at = max(duty.next_at, ended + duty.rest * (ended - began))
                if duty.before:
                    duty.next_at = NEVER  # once: the row that it is done before sets its next time
        self.next_at = min([self._clock.monotonic() + LOOK_S, *(duty.next_at for duty in self._rows.values() if duty.interval_s)])
