"""Hints: every ten seconds the facts of the job are looked at, and what lasts is told, in status, `top`, the page and the timeline."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from samzapy.coordinator.events import JOB, Events
from samzapy.model.offsets import TopicPartition
from samzapy.plan.finding import Finding
from samzapy.plan.hint_rules import diagnose
from samzapy.plan.hint_trends import DEATHS_MS, GROWTH_S, is_dying, memory_growth_mib
from samzapy.plan.job_facts import ContainerFacts, JobFacts, TaskFacts
from samzapy.plan.lasting_hints import LOOK_S, Hints, hint_json
from samzapy.plan.late_records_hint import WindowCounts
from samzapy.ports import Clock

RECENT_MS, DECIDED_MS = 20_000, 60_000
HELD_MS = 20_000  # what is told of it lasts a minute longer


class Diagnosing:
    """Callers hold the roster's lock."""

    def __init__(self, clock: Clock, events: Events) -> None:
        self.budget_bytes = 0  # `containers.memory`: what overlays and caches of a container may take
        self.hang_s = 60.0  # `commit.timeout`
        self._certificate: tuple[int, Finding] | None = None  # since when
        self._clock = clock
        self._events = events
        self._hints = Hints()
        self._windows = WindowCounts()
        self._next_at = clock.monotonic() + LOOK_S
        self._memory: dict[tuple[int, int], deque[tuple[float, int]]] = {}  # of each process: when, and how much
        self._failed: tuple[float, tuple[int, int]] | None = None  # when this was last looked at, and how many records had been set aside, and skipped

    @property
    def is_due(self) -> bool:
        return self._clock.monotonic() >= self._next_at

    def look(self, status: Mapping[str, Any], reports: Mapping[int, Mapping[str, Any]]) -> None:
        """Look at the job as it is now."""
        now, now_ms = self._clock.monotonic(), self._clock.now_ms()
        self._next_at = max(self._next_at + LOOK_S, now + LOOK_S / 2)  # by the clock: counted from a look that came late, half an hour grew longer
        facts = job_facts(
            status, reports, self._events.commits(), self._events.since(), now_ms, self._failed_since(status), self._growing(status), self.hang_s,
            self._windows.look(status["tasks"]),
        )  # fmt: skip
        for finding in self._hints.look(diagnose(facts), now_ms):
            self._events.add(JOB, "hint", finding.sentence, code=finding.code)

    def set_certificate(self, finding: Finding | None) -> None:
        """What is known of the client certificate, by whoever watches it. It is shown whether or not the coordinator comes to its next look: that may be
        waiting for Kafka."""
        before, now_ms = self._certificate, self._clock.now_ms()
        is_new = finding is not None and (before is None or before[1].severity != finding.severity)
        if finding is not None and is_new:
            self._events.add(JOB, "hint", finding.sentence, code=finding.code)
        self._certificate = None if finding is None else (now_ms if is_new or before is None else before[0], finding)

    def _failed_since(self, status: Mapping[str, Any]) -> tuple[float, float]:
        """Records that are set aside, and skipped, in a second."""
        now, tasks = self._clock.monotonic(), status["tasks"]
        failed = sum(t["dead_letters"] for t in tasks), sum(t["skipped"] for t in tasks)
        (then, before), self._failed = self._failed or (now, failed), (now, failed)
        if now <= then:
            return 0.0, 0.0
        return max(0, failed[0] - before[0]) / (now - then), max(0, failed[1] - before[1]) / (now - then)

    def _growing(self, status: Mapping[str, Any]) -> dict[int, float]:
        """By how many MiB a minute the memory of a container's process grew over the last ten minutes, if it did so all the time; or just now,
        if that is far more than its caches explain."""
        now, known, found = self._clock.monotonic(), dict[tuple[int, int], deque[tuple[float, int]]](), dict[int, float]()
        for c in status["containers"]:
            if c["pid"] and c["memory_bytes"]:
                marks = known[c["id"], c["pid"]] = self._memory.get((c["id"], c["pid"]), deque())
                marks.append((now, c["memory_bytes"]))
                while len(marks) > 2 and now - marks[1][0] >= GROWTH_S:
                    marks.popleft()
                found[c["id"]] = memory_growth_mib(marks, self.budget_bytes)
        self._memory = known
        return found

    def to_json(self) -> list[dict[str, Any]]:
        own = [] if self._certificate is None else [hint_json(self._certificate[1], self._certificate[0])]
        return own + self._hints.to_json()


def job_facts(
    status: Mapping[str, Any],
    reports: Mapping[int, Mapping[str, Any]],
    commits: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    now_ms: int,
    failed_s: tuple[float, float] = (0.0, 0.0),
    growing: Mapping[int, float] | None = None,
    hang_s: float = 60.0,
    windows: Mapping[str, Mapping[str, tuple[int, int]]] | None = None,
) -> JobFacts:
    """The facts that the rules want, from a status document and what is kept beside it."""
    rebuilt = _rebuilt_s(events, now_ms)
    told = [(number, t) for number, report in reports.items() for t in report.get("tasks", ())]
    hottest = {t["name"]: float(t.get("hottest", 0.0)) for _, t in told}
    unread = {t["name"]: t["unread_deletions"] for _, t in told if t.get("unread_deletions")}
    strangers = {(number, t["name"], t["reason"]): TopicPartition(*t["strangers"]) for number, t in told if t.get("strangers")}
    tasks = [
        TaskFacts(
            name=t["name"], container=t["container"], lag=t["lag"], rate=t["rate"], arriving=t["arriving"], us=t["us"], reason=t["reason"] or "",
            strangers=strangers.get((t["container"], t["name"], t["reason"])),
            hottest=hottest.get(t["name"], 0.0), rebuilt_s=rebuilt.get(t["name"], 0.0), unread_deletions=unread.get(t["name"], ()),
            windows=(windows or {}).get(t["name"], {}),
            watermarks={name: stage["watermark"] for name, stage in (t.get("time") or {}).items() if stage["watermark"] is not None},
            **_of_copies(t["standby"]),
        )
        for t in status["tasks"]
    ]
    containers = []
    for c in status["containers"]:
        number, report = c["id"], reports.get(c["id"], {})
        died = [e for e in events if e["what"] == "died" and e["container"] == number and e["at_ms"] >= now_ms - DEATHS_MS]
        took = _took_to_decide(commits, number, now_ms)
        now = report.get("now") or {}
        held = [e for e in events if e["what"] == "held" and e["container"] == number and e["at_ms"] >= now_ms - HELD_MS and e.get("at")]
        containers.append(
            ContainerFacts(
                number=number, host=c["host"] or "", tasks=len(c["tasks"]), loop=c["loop"],
                deaths=len(died), dying_s=(now_ms - died[0]["at_ms"]) / 1000 if died else 0.0, is_dying=is_dying([e["at_ms"] for e in died], now_ms),
                **(died[-1]["end"] if died else {"why": (c["last_restart"] or {}).get("reason", "")}),
                silent_s=float(now.get("silent_s", 0.0)), at=str(now.get("at", "")),
                record=str(now.get("record", "")), is_searching=report.get("under_way") is not None,
                decide_s=took,
                held_s=float(held[-1].get("seconds", 0.0)) if held else 0.0, held_at=str(held[-1]["at"]) if held else "",
                memory_mib=(c["memory_bytes"] or 0) / 2**20, grows_mib=(growing or {}).get(number, 0.0),
            )
        )  # fmt: skip
    rates = status["rates"]
    return JobFacts(
        tasks=tasks, containers=containers, lag=rates["lag"], lag_rate=rates["lag_rate"], behind_s=rates["behind_s"],
        set_aside_s=failed_s[0], skipped_s=failed_s[1], hang_s=hang_s, is_paused=bool(status.get("paused")),
    )  # fmt: skip


def _took_to_decide(commits: Sequence[Mapping[str, Any]], container: int, now_ms: int) -> float | None:
    """What 95 of 100 of a container's last commits took the brokers at most, in seconds: of those of the last RECENT_MS, or of the last one."""
    own = [(c["at_ms"], c["parts"]["decide"]) for c in commits if c["container"] == container and "decide" in c["parts"]]
    last_ms = max((at for at, _ in own if at >= now_ms - DECIDED_MS), default=None)
    if last_ms is None:
        return None
    took = sorted(seconds for at, seconds in own if at >= min(last_ms, now_ms - RECENT_MS))
    return float(took[min(len(took) - 1, int(0.95 * len(took)))])


def _of_copies(copies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    worst = max(copies, key=lambda copy: copy["lag"] or 0, default=None)
    return {"copy_lag": worst["lag"] or 0, "copy_host": worst["host"] or ""} if worst else {}


def _rebuilt_s(events: Sequence[Mapping[str, Any]], now_ms: int) -> dict[str, float]:
    """By task, how long its stores took to be read from their changelogs since the first death of the last ten minutes."""
    recent = [e for e in events if e["at_ms"] >= now_ms - DEATHS_MS]
    first = next((n for n, e in enumerate(recent) if e["what"] == "died"), len(recent))
    found: dict[str, float] = {}
    for restore in [e["restore"] for e in recent[first:] if e["what"] == "restored"]:
        if restore.get("source") == "changelog" and restore.get("records"):
            found[restore["task"]] = found.get(restore["task"], 0.0) + float(restore.get("seconds", 0.0))
    return found
