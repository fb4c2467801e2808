"""What the coordinator knows of each container, and what the job's state follows from that."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samzapy.plan.moves import Holder
from samzapy.ports import ContainerHandle

STARTING, RUNNING, STOPPING, STOPPED, LOST, FAILED = "STARTING", "RUNNING", "STOPPING", "STOPPED", "LOST", "FAILED"
DEGRADED, FINISHED, FENCED = "DEGRADED", "FINISHED", "FENCED"
WAITING = "WAITING"


@dataclass(frozen=True, slots=True)
class Death:
    """How a container's process ended: monotonic seconds, milliseconds since 1970, where, and why.

    Attributes:
        counts: against the restart budget; not where it brought the search for a record nearer to its end.
        records: what it was processing; "" where that is not known.
        place: where its code was; "" where that is not known.
    """

    at_s: float
    at_ms: int
    where: str
    why: str
    counts: bool = True
    records: str = ""
    place: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"at_ms": self.at_ms, "process": self.where, "reason": self.why}

    def __str__(self) -> str:
        more = (f", while it processed {self.records}" if self.records else "") + (f", at {self.place}" if self.place else "")
        return f"{time.strftime('%H:%M:%S', time.gmtime(self.at_ms / 1000))} UTC, {self.where}: {self.why}{more}"


@dataclass(slots=True)
class Member:
    """One container. Times are monotonic seconds.

    Attributes:
        tasks: those that the coordinator topic gives to `incarnation`.
        epoch: of that record.
        launch_id: of the newest launch; a container registers with it, once.
        applicant: (incarnation, facts) of one that asks to be named and has not been yet.
        wanted_since: since when it is to be launched; None while it is launched, done, or parked.
        launch_at: not before then.
        is_parked: there was no slot for it; its tasks run elsewhere until there is.
        memory_bytes: what it had when it was last heard of.
        oom_kills: how many processes the kernel had killed for want of memory when this one was launched.
        refused_at: when Kafka did not let it in, or not do what it must; of the last `containers.restart_window`.
        ending: why it is being ended by force; "" otherwise.
        stop_wanted: it is to stop by itself: for a restart, or because it is not needed any more.
        done: it ended in an orderly way and is not started again.
        releasing: what it was told to release, and since when.
        standby: what it is to keep warm copies of.
        knows: tasks that it was told of at its launch.
        report: its last one; `hear` sets it, and with it `reports_of_tasks`.
        last_word: what it said when it ended: {"outcome", "error"}.
        stop_reason: why `stop_wanted` was set.
        last_restart: the end after which it was last started again, whether it died or was asked to stop.
    """

    number: int
    preferred_host: str | None = None
    tasks: tuple[str, ...] = ()
    epoch: int = 0
    launch_id: str = ""
    wanted_since: float | None = 0.0
    launch_at: float = 0.0
    is_parked: bool = False
    handle: ContainerHandle | None = None
    launched_on: str | None = None
    applicant: tuple[str, Mapping[str, Any]] | None = None
    incarnation: str = ""
    registered: bool = False
    heard_at: float = 0.0
    state: str = WAITING
    reason: str = ""
    host: str | None = None
    pid: int | None = None
    hits: int = 0
    misses: int = 0
    affinity: str = ""
    restarts: int = 0
    deaths: list[Death] = field(default_factory=list)
    last_restart: Death | None = None
    memory_bytes: int | None = None
    oom_kills: int = 0
    refused_at: list[float] = field(default_factory=list)
    ending: str = ""
    stop_wanted: bool = False
    stop_reason: str = ""
    done: bool = False
    releasing: dict[str, float] = field(default_factory=dict)
    standby: tuple[str, ...] = ()
    knows: frozenset[str] = frozenset()
    report: Mapping[str, Any] = field(default_factory=dict)
    reports_of_tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    last_word: Mapping[str, Any] | None = None
    last_error: str = ""

    @property
    def is_live(self) -> bool:
        """Named in the coordinator topic, and not being ended."""
        return self.registered and not self.ending

    @property
    def is_ready(self) -> bool:
        return self.is_live and self.state == RUNNING and not self.stop_wanted and not self.done

    def holder(self) -> Holder:
        """As the decision on moves sees it. What it says it released counts only under its newest record."""
        current = self.report.get("epoch") == self.epoch
        released = frozenset(self.report.get("released", ())) if current else frozenset()
        copies = {c["task"]: c.get("lag") for c in self.report.get("standbys", ()) if not c.get("reason")}
        return Holder(self.tasks, self.host or "", self.is_ready, frozenset(self.releasing), released & set(self.tasks), copies)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.number, "state": self.state, "host": self.host, "preferred_host": self.preferred_host, "pid": self.pid,
            "restarts": self.restarts, "tasks": list(self.tasks), "reason": self.reason, "last_error": self.last_error or None,
            "memory_bytes": self.memory_bytes,
            "last_restart": None if self.last_restart is None else self.last_restart.to_json(),
            "affinity": {"hits": self.hits, "misses": self.misses, "reason": self.affinity},
            "standby": {c["task"]: c.get("lag") for c in self.report.get("standbys", ())},
        }  # fmt: skip

    def hear(self, report: Mapping[str, Any]) -> None:
        """Keep a report, by task too: status and the coordinator's turns look tasks up, and there may be thousands."""
        self.report = report
        self.reports_of_tasks = {t["name"]: t for t in report.get("tasks", ()) if isinstance(t, dict) and "name" in t}

    def report_of(self, task: str) -> Mapping[str, Any]:
        """What it last reported of one of its tasks since it runs; empty before the first report."""
        return self.reports_of_tasks.get(task, {}) if self.state in (RUNNING, STARTING, STOPPING, STOPPED) else {}


def task_json(
    name: str, container: int | None, report: Mapping[str, Any], waits_for: str, copies: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """One task of the status document."""
    return {
        "name": name,
        "state": report.get("state", WAITING),
        "container": container,
        "partitions": report.get("partitions", []),
        "lag": report.get("lag"),
        "processed": report.get("processed", 0),
        "skipped": report.get("skipped", 0),
        "dead_letters": report.get("dead_letters", 0),
        "positions": report.get("positions", {}),
        "sequence": report.get("sequence", -1),
        "reason": report.get("reason") or waits_for,
        "stores": report.get("stores", {}),
        "standby": list(copies),
        "metrics": report.get("metrics", {}),
    }


def job_state(task_states: Sequence[str], members: Sequence[Member], stopping: bool, was_running: bool) -> str:
    """STARTING until every task runs for the first time; then RUNNING while every task runs, DEGRADED while one does not."""
    if stopping:
        return STOPPING
    at_work = all(m.state in (RUNNING, STOPPED) or m.is_parked or not m.tasks for m in members)
    if task_states and at_work and all(s in (RUNNING, STOPPED) for s in task_states):
        return RUNNING
    return DEGRADED if was_running else STARTING
