"""Hints: every ten seconds the facts of the job are looked at, and what lasts is told, in status, `top`, the page and the timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from samzapy.coordinator.events import JOB, Events
from samzapy.plan.diagnosis import ContainerFacts, JobFacts, TaskFacts, diagnose
from samzapy.plan.hints import LOOK_S, Hints
from samzapy.ports import Clock

DEATHS_MS = 600_000
RECENT_MS = 60_000
HOLD_WHEN_PAUSED = ("flapping", "stuck-hook", "interpreter-held")


class Diagnosing:
    """Callers hold the roster's lock."""

    def __init__(self, clock: Clock, events: Events) -> None:
        self._clock = clock
        self._events = events
        self._hints = Hints()
        self._next_at = clock.monotonic() + LOOK_S
        self._failed: tuple[float, int] | None = None  # when this was last looked at, and how many records had failed

    @property
    def is_due(self) -> bool:
        return self._clock.monotonic() >= self._next_at

    def look(self, status: Mapping[str, Any], reports: Mapping[int, Mapping[str, Any]]) -> None:
        """Look at the job as it is now."""
        self._next_at = self._clock.monotonic() + LOOK_S
        now_ms = self._clock.now_ms()
        facts = job_facts(status, reports, self._events.commits(), self._events.since(), now_ms, self._failing(status))
        found = diagnose(facts)
        if status.get("paused"):  # it stands because people want it to
            found = [finding for finding in found if finding.code in HOLD_WHEN_PAUSED]
        for finding in self._hints.look(found, now_ms):
            self._events.add(JOB, "hint", finding.sentence, code=finding.code)

    def _failing(self, status: Mapping[str, Any]) -> float:
        """Records that fail in a second."""
        now, failed = self._clock.monotonic(), sum(t["dead_letters"] + t["skipped"] for t in status["tasks"])
        before, self._failed = self._failed, (now, failed)
        return 0.0 if before is None or now <= before[0] else max(0, failed - before[1]) / (now - before[0])

    def to_json(self) -> list[dict[str, Any]]:
        return self._hints.to_json()


def job_facts(
    status: Mapping[str, Any],
    reports: Mapping[int, Mapping[str, Any]],
    commits: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    now_ms: int,
    set_aside_s: float = 0.0,
) -> JobFacts:
    """The facts that the rules want, from a status document and what is kept beside it."""
    tasks = [
        TaskFacts(
            name=t["name"], container=t["container"], lag=t["lag"], rate=t["rate"], arriving=t["arriving"], us=t["us"], reason=t["reason"] or ""
        )
        for t in status["tasks"]
    ]
    containers = []
    for c in status["containers"]:
        number, report = c["id"], reports.get(c["id"], {})
        died = [e for e in events if e["what"] == "died" and e["container"] == number and e["at_ms"] >= now_ms - DEATHS_MS]
        took = sorted(x["parts"]["decide"] for x in commits if x["container"] == number and x["at_ms"] >= now_ms - RECENT_MS and "decide" in x["parts"])
        now = report.get("now") or {}
        containers.append(
            ContainerFacts(
                number=number, host=c["host"] or "", tasks=len(c["tasks"]), loop=c["loop"], deaths=len(died),
                why=died[-1]["text"].partition(" died: ")[2] if died else "", silent_s=float(now.get("silent_s", 0.0)), at=str(now.get("at", "")),
                record=str(now.get("record", "")), is_searching=report.get("under_way") is not None,
                decide_s=took[min(len(took) - 1, int(0.95 * len(took)))] if took else None,
            )
        )  # fmt: skip
    rates = status["rates"]
    return JobFacts(
        tasks=tasks, containers=containers, lag=rates["lag"], lag_rate=rates["lag_rate"], behind_s=rates["behind_s"], set_aside_s=set_aside_s
    )
