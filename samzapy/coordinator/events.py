"""What happened to the job and its containers, newest last: the timeline that people see. Kept in memory for the length of the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import takewhile
from typing import Any

from samzapy.ports import Clock

MAX_EVENTS = 2000
MAX_OF_TASKS = 1000  # restores and moves
MAX_COMMITS = 256
MAX_GROUPS = 500
MAX_TEXT = 2000
# What an event is of.
JOB, CONTAINER, TASK, RESTORE, PEOPLE = "job", "container", "task", "restore", "people"
OF_TASKS = (TASK, RESTORE)  # a job with many tasks has so many of these at once that they would push all others out


class Events:
    """Events, commits and groups of errors of a run. Callers hold the roster's lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._number = 0
        self._events: deque[dict[str, Any]] = deque(maxlen=MAX_EVENTS)
        self._of_tasks: deque[dict[str, Any]] = deque(maxlen=MAX_OF_TASKS)
        self._commits: deque[dict[str, Any]] = deque(maxlen=MAX_COMMITS)
        self._errors: dict[tuple[str, str], dict[str, Any]] = {}
        self._told: dict[str, int] = {}  # by incarnation
        self._counted: dict[tuple[str, str, str], int] = {}  # by incarnation and group: how many it had told of

    @property
    def last(self) -> int:
        """The newest event's number; 0: there is none."""
        return self._number

    def add(self, kind: str, what: str, text: str, *, container: int | None = None, at_ms: int | None = None, **more: Any) -> None:
        """`what`: a word for machines. `text`: a sentence for people."""
        self._number += 1
        event = {"n": self._number, "at_ms": self._clock.now_ms() if at_ms is None else at_ms, "kind": kind, "what": what}
        (self._of_tasks if kind in OF_TASKS else self._events).append({**event, "container": container, "text": text[:MAX_TEXT], **more})

    def since(self, number: int = 0) -> list[dict[str, Any]]:
        """The events after the one of that number, oldest first. Numbers are missing where events are no longer kept."""

        def newest_first(events: deque[dict[str, Any]]) -> Iterator[dict[str, Any]]:
            return takewhile(lambda event: event["n"] > number, reversed(events))

        return [*merge(newest_first(self._events), newest_first(self._of_tasks), key=lambda event: int(event["n"]), reverse=True)][::-1]

    def commits(self) -> list[dict[str, Any]]:
        """The last commits of all containers, oldest first."""
        return list(self._commits)

    def errors(self) -> list[dict[str, Any]]:
        """Groups of errors, those that occurred last first."""
        return sorted(self._errors.values(), key=lambda group: -int(group["last_ms"]))

    def told_by(self, incarnation: str) -> int:
        """The number of the newest news that this incarnation of a container has told."""
        return self._told.get(incarnation, 0)

    def take(self, container: int, incarnation: str, news: Sequence[Mapping[str, Any]]) -> None:
        """What a container tells of in a report, in its order."""
        for item in news:
            self._told[incarnation] = int(item["n"])
            self._take(container, incarnation, item)
        while len(self._told) > MAX_GROUPS:
            del self._told[next(iter(self._told))]

    def take_held(self, container: int, incarnation: str, held: Sequence[Mapping[str, Any]]) -> None:
        """The times that a container could not be heard because its code kept the interpreter; it repeats them."""
        for one in held:
            number = int(one["n"])
            if number > self._told.get(f"{incarnation} held", 0):
                self._told[f"{incarnation} held"] = number
                place, seconds = str(one.get("at", "")), float(one.get("seconds", 0.0))
                where = f"its code was at {place}" if place else "none of its hooks ran: the machine was busy, or suspended"
                text = f"container {container} could not be heard for more than {seconds:.1f} s: {where}"
                self.add(CONTAINER, "held", text, container=container, at_ms=int(one["at_ms"]), at=place, seconds=seconds)

    def _take(self, container: int, incarnation: str, item: Mapping[str, Any]) -> None:
        facts = {name: value for name, value in item.items() if name not in ("n", "kind")}
        match item.get("kind"):
            case "commit":
                self._commits.append({**facts, "container": container})
            case "restore":
                text = (
                    f"{facts.get('task')}: store {facts.get('store')!r} restored from {facts.get('source')}, {int(facts.get('records', 0)):,} records "
                    f"in {float(facts.get('seconds', 0.0)):.2f} s ({facts.get('reason')})"
                )
                at_ms = int(facts.pop("at_ms", self._clock.now_ms()))
                self.add(RESTORE, "restored", text, container=container, at_ms=at_ms, restore=facts)
            case "error":
                self._add_error(container, incarnation, facts)
            case _:
                pass  # a container of a later version may tell more

    def _add_error(self, container: int, incarnation: str, facts: Mapping[str, Any]) -> None:
        key = str(facts.get("type", "")), str(facts.get("place", ""))
        group = self._errors.get(key)
        if group is None:
            if len(self._errors) >= MAX_GROUPS:
                oldest = min(self._errors, key=lambda k: self._errors[k]["last_ms"])
                del self._errors[oldest]
            group = self._errors[key] = {"type": key[0], "place": key[1], "count": 0, "first_ms": int(facts["first_ms"]), "tasks": []}
        counted, count = (incarnation, *key), int(facts["count"])
        group["count"] += max(0, count - self._counted.get(counted, 0))
        self._counted[counted] = count
        if len(self._counted) > 4 * MAX_GROUPS:
            del self._counted[next(iter(self._counted))]
        group["tasks"] = sorted({*group["tasks"], *(str(task) for task in facts.get("tasks", ()))})[:100]
        group.update({name: facts.get(name) for name in ("last_ms", "record", "text", "action", "stack")}, container=container)
