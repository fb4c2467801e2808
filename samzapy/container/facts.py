"""What a container tells of itself beside the state of its tasks: where its loop's time goes, and what happened since it was last heard.

Nothing here is done per record. The loop says at its turning points what it does from now on, a commit says how long its parts took, and
errors are counted by where they were raised. Only the loop's thread writes; the heartbeat reads copies.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from samzapy.model.durations import BUCKETS_S
from samzapy.ports import Clock

PROCESS, COMMIT, WAIT_INPUT, WAIT_OUTPUT, RESTORE, OTHER = "process", "commit", "wait_input", "wait_output", "restore", "other"
PHASES = (PROCESS, COMMIT, WAIT_INPUT, WAIT_OUTPUT, RESTORE, OTHER)
T = TypeVar("T")
MAX_NEWS = 256
MAX_GROUPS = 50
MAX_NAMED = 10
MAX_STACK = 4000
AGAIN_S = 1.0  # a group of errors that grows is told once in this time
COMMITTED, RESTORED, FAILED = "commit", "restore", "error"


class LoopTime:
    """The loop's time by what it did; the shares of it add up to the whole."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._phase = OTHER
        self._since = clock.monotonic()
        self._spent = dict.fromkeys(PHASES, 0.0)

    def to(self, phase: str) -> str:
        """From now on the loop does this; returns what it did before."""
        now, before = self._clock.monotonic(), self._phase
        self._spent[before] += now - self._since
        self._phase, self._since = phase, now
        return before

    def doing(self) -> tuple[str, float]:
        """What it does, and for how many seconds as far as this was told; on any thread."""
        return self._phase, self._clock.monotonic() - self._since

    def waited(self, seconds: float) -> None:
        """So much of what is going on was waiting for room in the producer's queue."""
        self._spent[self._phase] -= seconds
        self._spent[WAIT_OUTPUT] += seconds

    def apart(self, call: Callable[[T], None]) -> Callable[[T], None]:
        """The same call; what it takes is neither the records' nor a commit's."""

        def called(given: T) -> None:
            before = self.to(OTHER)
            try:
                call(given)
            finally:
                self.to(before)

        return called

    def spent(self) -> dict[str, float]:
        """Seconds by phase since the container was made; the one that is going on included."""
        self.to(self._phase)
        return {phase: round(seconds, 4) for phase, seconds in self._spent.items()}


class Histogram:
    """How often a duration was in each of the buckets of BUCKETS_S, or above all of them."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS_S) + 1)
        self._sum_s = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BUCKETS_S, seconds)] += 1
        self._sum_s += seconds

    def to_json(self) -> dict[str, Any]:
        return {"counts": list(self._counts), "sum": round(self._sum_s, 4)}


class Errors:
    """Errors of records, by the exception's class and where it was raised (`failure.place_of`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._groups: dict[tuple[str, str], dict[str, Any]] = {}
        self._untold: dict[tuple[str, str], float] = {}  # since when

    def add(self, kind: str, place: str, told: Callable[[], Mapping[str, Any]], task: str) -> None:
        """One record failed for good. `place`: where. `told`: its record, text, stack and what became of it; asked for at most once
        in AGAIN_S, because many records may fail in that time."""
        group = self._groups.get((kind, place))
        now_ms = self._clock.now_ms()
        if group is None:
            if len(self._groups) >= MAX_GROUPS:
                kind, place = "other errors", f"of more than {MAX_GROUPS} kinds"
            group = self._groups.setdefault((kind, place), {"type": kind, "place": place, "count": 0, "first_ms": now_ms, "tasks": []})
        group.update(count=group["count"] + 1, last_ms=now_ms)
        if (kind, place) not in self._untold:
            group.update(told())
            group["stack"] = group["stack"][-MAX_STACK:]
        if task not in group["tasks"] and len(group["tasks"]) < MAX_NAMED:
            group["tasks"].append(task)
        self._untold.setdefault((kind, place), self._clock.monotonic())

    def untold(self) -> list[dict[str, Any]]:
        """The groups to tell of now: new ones at once, those that grow once in AGAIN_S."""
        now = self._clock.monotonic()
        due = [key for key, since in self._untold.items() if now - since >= AGAIN_S or not self._groups[key].get("is_told")]
        for key in due:
            del self._untold[key]
            self._groups[key]["is_told"] = True
        return [{name: value for name, value in self._groups[key].items() if name != "is_told"} for key in due]


class Facts:
    """Attributes:
    loop: its time.
    errors: those of records.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.loop = LoopTime(clock)
        self.errors = Errors(clock)
        self._news: deque[dict[str, Any]] = deque(maxlen=MAX_NEWS)
        self._number = 0
        self._commits = {part: Histogram() for part in ("send", "decide", "apply")}
        self._why: dict[str, int] = {}
        self._end_to_end = Histogram()

    def tell(self, kind: str, **what: Any) -> None:
        """Something happened; the coordinator hears of it with the next report."""
        self._number += 1
        self._news.append({"n": self._number, "kind": kind, "at_ms": self._clock.now_ms(), **what})

    def committed(self, why: str, parts: Mapping[str, float], changes: int, tasks: int, ages_s: Sequence[float]) -> None:
        """A commit was decided. `parts`: its seconds by part. `ages_s`: how old records were that became visible with it, the newest and the
        oldest of each task."""
        for part, seconds in parts.items():
            self._commits[part].add(seconds)
        for age_s in ages_s:
            self._end_to_end.add(age_s)
        self._why[why] = self._why.get(why, 0) + 1
        rounded = {part: round(seconds, 4) for part, seconds in parts.items()}
        ages = {"newest_s": round(min(ages_s), 3), "oldest_s": round(max(ages_s), 3)} if ages_s else {}
        self.tell(COMMITTED, why=why, seconds=round(sum(parts.values()), 4), parts=rounded, changes=changes, tasks=tasks, **ages)

    def to_json(self) -> dict[str, Any]:
        """The part of the container's report that is made of these."""
        for group in self.errors.untold():
            self.tell(FAILED, **group)
        return {
            "loop": self.loop.spent(),
            "commit_parts": {part: histogram.to_json() for part, histogram in self._commits.items()},
            "commit_why": dict(self._why),
            "end_to_end": self._end_to_end.to_json(),
            "news": list(self._news),
        }
