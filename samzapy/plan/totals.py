"""Records and commits of a run, added up over all the processes that its containers had. Pure: reports in, sums out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OF_TASKS = ("processed", "skipped", "dead_letters", "too_late")


@dataclass(slots=True)
class Totals:
    """Sums over reports.

    Counted is what containers have committed. A container counts from its own start, so a number that is smaller than before is that of a new
    process. What a process did after its last report is not in it.
    """

    counts: dict[str, int] = field(default_factory=dict)
    _seen: dict[tuple[str, str], int] = field(default_factory=dict)

    def take(self, reports: Mapping[int, Mapping[str, Any]]) -> None:
        """The newest report of each container, by its number."""
        for number, report in reports.items():
            of = f"container {number}"
            self._add(of, "commits", int(report.get("commits", 0)))
            committed = report.get("committed")
            if committed is not None:  # what was aborted comes again, and would count twice
                for name in ("sent", *OF_TASKS):
                    self._add(of, name, int(committed.get(name, 0)))
                continue
            self._add(of, "sent", sum(report.get("sent", {}).values()))
            for task in report.get("tasks", ()):
                for name in OF_TASKS:
                    self._add(f"{of} {task['name']}", name, int(task.get(name, 0)))

    def of(self, name: str) -> int:
        """commits, sent, processed, skipped, dead_letters or too_late (for a window)."""
        return self.counts.get(name, 0)

    def _add(self, of: str, name: str, now: int) -> None:
        before = self._seen.get((of, name), 0)
        self._seen[of, name] = now
        self.counts[name] = self.counts.get(name, 0) + (now - before if now >= before else now)
