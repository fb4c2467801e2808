"""The hint for partitions whose records almost all come too late for a window, and are counted nowhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from samzapy.plan.finding import LOOK, Finding, also
from samzapy.plan.job_facts import JobFacts

LOOKS, LEAST_RECORDS, ALMOST_ALL = 6, 20, 0.9
REMEDY = (
    "If the records are right, raise the input's `watermark_delay` or the window's `allowed_lateness`; if one record's time was far ahead of the others, "
    "see `max_ahead`. The topic that the window's `.late.to(…)` names gets these records."
)
Counts = tuple[int, int]  # records that came to a window; those of them that were too late


class WindowCounts:
    """What windows of each task got in the last minute, and how much of it was too late. `look` is called every ten seconds. A process counts from 0, so
    what it counted before the first look at it counts, too: a backlog is often read in less than ten seconds."""

    def __init__(self) -> None:
        self._marks: dict[tuple[str, str], deque[Counts]] = {}

    def look(self, tasks: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Counts]]:
        """By task and window. `tasks`: as status has them."""
        counts: dict[str, dict[str, Counts]] = {}
        for task in tasks:
            for window, counted in (task.get("operators") or {}).items():
                if "late" not in counted:
                    continue
                place = (task["name"], window)
                seen = self._marks.setdefault(place, deque([(0, 0)], maxlen=LOOKS + 1))
                now = (counted["in"], counted["late"])
                if now[0] < seen[-1][0] or now[1] < seen[-1][1]:  # another process counts
                    seen.clear()
                    seen.append((0, 0))
                seen.append(now)
                counts.setdefault(task["name"], {})[window] = now[0] - seen[0][0], now[1] - seen[0][1]
        return counts


def too_late(job: JobFacts) -> Iterator[Finding]:
    """One finding for each window, of its worst task."""
    by_window: dict[str, list[tuple[int, int, str]]] = {}
    for task in job.tasks:
        for window, (came, late) in task.windows.items():
            if came >= LEAST_RECORDS and late > ALMOST_ALL * came:
                by_window.setdefault(window, []).append((late, came, task.name))
    for window, found in by_window.items():
        late, came, name = max(found)
        others = also("The same happened to most records of", len(found) - 1)
        which = f"{100 * late / came:.0f} % of the records that {name} got for {window} in the last minute"
        evidence = {"too_late": late, "records": came, "tasks": len(found)}
        yield Finding("too-late", LOOK, f"{which} were too late, and are not counted.{others}", evidence, REMEDY, window)
