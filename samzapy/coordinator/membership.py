"""What the coordinator knows of each container, and the job's state that follows from it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from samzapy.model.process_end import ProcessEnd
from samzapy.model.states import ContainerState, JobState, TaskState
from samzapy.plan.container_phases import Phase
from samzapy.plan.moves import Holder
from samzapy.ports import ContainerHandle

MAX_SLOW, MAX_ENDS = 700, 500
UNDER_WAY = (ContainerState.STARTING, ContainerState.RUNNING, ContainerState.STOPPING, ContainerState.STOPPED)  # it says of itself what it does


@dataclass(frozen=True, slots=True)
class Death:
    """How a container's process ended: monotonic seconds, milliseconds since 1970, where, and why.

    Attributes:
        counts: against the restart budget; not where it brought the search for a record nearer to its end.
        records: what it was processing; "" where that is not known.
        place: where its code was; "" where that is not known.
        is_unexplained: it reported no error; a record may have ended it.
        said: it said why it ends its process.
    """

    at_s: float
    at_ms: int
    where: str
    why: str
    counts: bool = True
    records: str = ""
    place: str = ""
    is_unexplained: bool = False
    said: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"at_ms": self.at_ms, "process": self.where, "reason": self.why}

    def __str__(self) -> str:
        more = (f", while it processed {self.records}" if self.records else "") + (f", at {self.place}" if self.place else "")
        return f"{time.strftime('%H:%M:%S', time.gmtime(self.at_ms / 1000))} UTC, {self.where}: {self.why}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """When a container was first to be launched, and the earliest time to do it; monotonic seconds."""

    since: float = 0.0
    not_before: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launched process.

    Attributes:
        id: a container registers with it, once.
        host: where it was launched; None: anywhere.
        handle: of its process or Spark task.
        knows: tasks that it was told of.
        oom_kills: how many processes the kernel had killed for lack of memory before.
    """

    id: str = ""
    host: str | None = None
    handle: ContainerHandle | None = None
    knows: frozenset[str] = frozenset()
    oom_kills: int = 0


@dataclass(frozen=True, slots=True)
class Applicant:
    """An incarnation that asks to be named and has not been yet."""

    incarnation: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The incarnation that the coordinator topic names. After it was ended, host and epoch are the last ones.

    Attributes:
        incarnation: "" where it names nobody.
        tasks: what it gives to this incarnation.
        epoch: of that record.
    """

    incarnation: str = ""
    tasks: tuple[str, ...] = ()
    epoch: int = 0
    host: str | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class FinalReport:
    """A container's final report."""

    outcome: str
    error: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A container's last report.

    Attributes:
        at: when, or when it was launched; monotonic seconds.
        by_task: its report by task: status and the coordinator's turns look tasks up, and there may be thousands.
        memory_bytes: what it had.
    """

    at: float = 0.0
    report: Mapping[str, Any] = field(default_factory=dict, hash=False)
    by_task: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    final: FinalReport | None = None
    memory_bytes: int | None = None

    @property
    def ends(self) -> str:
        """Why it said that it ends its process; "" if it did not."""
        return str(self.report.get("ends") or "")[:MAX_ENDS]

    def with_report(self, report: Mapping[str, Any]) -> Heard:
        by_task = {t["name"]: t for t in report.get("tasks", ()) if isinstance(t, dict) and "name" in t}
        return replace(self, report=report, by_task=by_task)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why it is being ended. `end`: how its process did; `is_asked`: it stopped because it was asked to; `restart_reason`: why it was asked."""

    end: ProcessEnd
    is_asked: bool = False
    restart_reason: str = ""

    @property
    def why(self) -> str:
        return str(self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    """How often it ran on its preferred host, how often not, and how it was the last time."""

    hits: int = 0
    misses: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Its history so far.

    Attributes:
        restarts: after deaths.
        last_restart: the end after which it was last started again, whether it died or was asked to stop.
        last_error: what it last failed of.
        refused_at: when Kafka did not let it in, or not do what it must; the last few, monotonic seconds.
    """

    restarts: int = 0
    deaths: tuple[Death, ...] = ()
    last_restart: Death | None = None
    last_error: str = ""
    refused_at: tuple[float, ...] = ()


@dataclass(kw_only=True, slots=True)
class Member:
    """One container. Only `coordinator/members.py` changes it (a house test checks that), and the table of plan/container_phases.py says how.

    Attributes:
        state: as status shows it: its own word while it is live.
        reason: what it waits for.
        releasing: tasks that it was told to release, and since when.
        standby: what it is to keep warm copies of.
        stop_reason: why it was asked to stop.
    """

    number: int
    phase: Phase = Phase.WANTED
    state: str = ContainerState.WAITING
    reason: str = ""
    preferred_host: str | None = None
    wanted: Wanted = Wanted()
    launch: Launch = Launch()
    applicant: Applicant | None = None
    owner: Owner = Owner()
    heard: Heard = field(default_factory=Heard)
    releasing: Mapping[str, float] = field(default_factory=dict)
    standby: tuple[str, ...] = ()
    stop_reason: str = ""
    ending: Ending | None = None
    affinity: Affinity = Affinity()
    history: History = History()

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.owner.tasks

    @property
    def host(self) -> str | None:
        return self.owner.host

    @property
    def is_done(self) -> bool:
        return self.phase is Phase.DONE

    @property
    def is_named(self) -> bool:
        """The coordinator topic names it."""
        return bool(self.owner.incarnation)

    @property
    def is_live(self) -> bool:
        """Named in the coordinator topic, and not being ended."""
        return self.is_named and self.phase is not Phase.ENDING

    @property
    def is_ready(self) -> bool:
        return self.phase is Phase.LIVE and self.state == ContainerState.RUNNING

    def is_at_work(self, task: str) -> bool:
        """Whether one of its tasks processes records, or has ended. While it is paused, so is one that only waits to read its tables first."""
        state = self.report_of(task).get("state")
        return state in (TaskState.RUNNING, TaskState.STOPPED) or (state == TaskState.BOOTSTRAPPING and self.is_paused)

    @property
    def is_paused(self) -> bool:
        return self.heard.report.get("paused") is True

    def holder(self) -> Holder:
        """The container as an input of `decide_moves`. A release that it reports counts only under its newest record."""
        report = self.heard.report
        released = frozenset(report.get("released", ())) if report.get("epoch") == self.owner.epoch else frozenset()
        copies = {c["task"]: c.get("lag") for c in report.get("standbys", ()) if not c.get("reason")}
        return Holder(self.tasks, self.host or "", self.is_ready, frozenset(self.releasing), released & set(self.tasks), copies)

    def to_json(self) -> dict[str, Any]:
        past = self.history
        return {
            "id": self.number, "state": self.state, "host": self.host, "preferred_host": self.preferred_host, "pid": self.owner.pid,
            "restarts": past.restarts, "tasks": list(self.tasks), "reason": self._reason(), "last_error": past.last_error or None,
            "memory_bytes": self.heard.memory_bytes, "paused": self.is_paused, "ordered": self.heard.report.get("ordered", 0),
            "now": self.heard.report.get("now"),
            "last_restart": None if past.last_restart is None else past.last_restart.to_json(),
            "affinity": {"hits": self.affinity.hits, "misses": self.affinity.misses, "reason": self.affinity.reason},
            "standby": {c["task"]: c.get("lag") for c in self.heard.report.get("standbys", ())},
        }  # fmt: skip

    def _reason(self) -> str:
        return self.reason or self._why_it_ended() or str(self.heard.report.get("slow", ""))[:MAX_SLOW]

    def _why_it_ended(self) -> str:
        final = self.heard.final
        if final is not None and final.error:
            return f"{final.error.get('code', '')}: {final.error.get('message', '')}"
        return self.ending.why if self.ending is not None else ""

    def report_of(self, task: str) -> Mapping[str, Any]:
        """What it last reported of one of its tasks since it runs; empty before the first report."""
        return self.heard.by_task.get(task, {}) if self.state in UNDER_WAY else {}

    @property
    def where(self) -> str:
        """Its process, as log lines and status name it."""
        return process_named(self.owner.pid, self.host) if self.is_named else "before it registered"


def process_named(pid: object, host: object) -> str:
    """A process, as log lines, status and deaths name it."""
    return f"process {pid} on {host}"


def task_json(
    name: str, container: int | None, report: Mapping[str, Any], waits_for: str, copies: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """One task of the status document."""
    return {
        "name": name,
        "state": report.get("state", TaskState.WAITING),
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
        **{key: report[key] for key in ("time", "operators") if key in report},
    }


def job_state(are_tasks_at_work: Sequence[bool], members: Sequence[Member], stopping: bool, was_running: bool) -> str:
    """STARTING until every task runs for the first time; then RUNNING while every task runs, DEGRADED while one does not."""
    if stopping:
        return JobState.STOPPING
    at_work = all(m.state in (ContainerState.RUNNING, ContainerState.STOPPED) or m.phase is Phase.PARKED or not m.tasks for m in members)
    if are_tasks_at_work and at_work and all(are_tasks_at_work):
        return JobState.RUNNING
    return JobState.DEGRADED if was_running else JobState.STARTING
