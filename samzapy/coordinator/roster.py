"""The containers of a run by their last reports: requests of containers and of people are answered from here.

Requests come on the listeners' threads and take turns with the coordinator's loop by one lock, which nobody holds while Kafka or Spark
is asked. A request decides nothing: it leaves what it has to say and takes away what was decided. So an answer is never late because
something else is being waited for, and a container never loses its lease for that.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from samzapy.api.errors import ConfigurationError, Superseded
from samzapy.coordinator.diagnosing import Diagnosing
from samzapy.coordinator.events import JOB, Events
from samzapy.coordinator.members import Members
from samzapy.coordinator.membership import Member, process_named, task_json
from samzapy.coordinator.observed import Observed
from samzapy.coordinator.orders import Orders
from samzapy.model.caution import Caution
from samzapy.model.job_model import JobModel, TaskModel
from samzapy.model.names import Job
from samzapy.model.states import JobState, TaskState
from samzapy.plan.container_phases import STARTED, Phase
from samzapy.plan.deadly_record_search import with_place
from samzapy.plan.totals import Totals
from samzapy.ports import Assignment, Clock

LOG = logging.getLogger("samzapy.coordinator")
WAITS_TO_WRITE = "waits until the coordinator topic can be written"
HURRY_S = 0.1  # between heartbeats while something is changing
MAX_PLACE = 500


class Roster:
    """Members by number, and what was decided about them.

    Attributes:
        desired: by task, the container where it should run.
        waiting: by task that is to move, what it waits for.
        warm: by container, tasks that will move there.
        is_stopping: every container is to stop.
        target: how many containers there should be.
        must_plan: containers came or went, or a change was requested: decide again which container runs which tasks.
        finished: tasks that have ended by themselves.
        left: tasks that nobody runs just now: who had them, and since when; `moved` tells of the last time.
        stop_asked_by: who asked for the stop; "": nobody did, or an error.
        orders: what people have ordered of all containers: to pause, to commit.
        totals: records and commits of all processes of this run so far.
        failure: the container (-1: none) and the error that ended the job.
        unwritable: why the coordinator topic cannot be written; "" if it can.
        caution: what is known of records that end containers; every container is told at its start.
    """

    def __init__(
        self, job: Job, run_id: str, tasks: Mapping[str, TaskModel], target: int, ends: Mapping[str, int] | None, clock: Clock
    ) -> None:
        self.job = job
        self.run_id = run_id
        self.tasks = dict(tasks)
        self.target = target
        self.ends = ends
        self.lock = threading.RLock()
        self.events = Events(clock)
        self.observed = Observed(clock)
        self.diagnosing = Diagnosing(clock, self.events)
        self.members = Members(clock, self.events)
        self.desired: dict[str, int] = {}
        self.waiting: Mapping[str, str] = {}
        self.warm: Mapping[int, Sequence[str]] = {}
        self.moved: dict[str, dict[str, Any]] = {}
        self.unsafe = ""  # settings of the job's own topics under which state could be lost
        self.unread = ""  # partitions of the inputs that no task reads in this run, and why
        self._state: str = JobState.STARTING
        self.is_stopping = False
        self.is_changing = False
        self.any_commit = False
        self.must_plan = False
        self.finished: set[str] = set()
        self.left: dict[str, tuple[int, float]] = {}
        self.failure: tuple[int, Mapping[str, Any]] | None = None
        self.stop_asked_at: float | None = None
        self.stop_asked_by = ""
        self.totals = Totals()
        self.orders = Orders(clock)
        self.ends_at_once = False  # without final commits
        self.url = ""
        self.unwritable = ""
        self.caution = Caution()
        self._clock = clock

    @property
    def state(self) -> str:
        """The job's state; each change of it is an event."""
        return self._state

    @state.setter
    def state(self, state: str) -> None:
        before, self._state = self._state, state
        if state != before:
            self.events.add(JOB, "state", f"the job is {state}", state=state)

    # -- what containers ask -------------------------------------------------------------------------------------------------------------

    def register(self, container: int, launch_id: str, incarnation: str, facts: Mapping[str, Any]) -> Assignment | None:
        """Register an incarnation, to be named in the coordinator topic; None: not yet, ask again.

        Raises:
            Superseded: this launch is not the newest, was used already, or the job is stopping.
        """
        with self.lock:
            member = self.members.get(container)
            if member is None or member.launch.id != launch_id or member.phase not in STARTED or self.is_stopping:
                raise Superseded(f"launch {launch_id} of container {container} was replaced or given up.", "")
            named, applicant = member.owner.incarnation, member.applicant
            if named and named != incarnation:
                raise Superseded(f"launch {launch_id} of container {container} has registered already, as {named}.", "")
            if applicant is not None and applicant.incarnation != incarnation:
                raise Superseded(
                    f"launch {launch_id} of container {container} is being registered already, as {applicant.incarnation}.", ""
                )
            self.members.hear(member)
            if named:
                return Assignment(self.run_id, self.ends, self._caution_for(member), self.orders.is_paused)
            self.members.apply(member, incarnation, facts)
            place = str(facts.get("predecessor_at", ""))[:MAX_PLACE]
            if place and self.members.note_place(member, place, process_named(facts.get("predecessor_pid"), facts.get("host"))):
                self.caution = with_place(self.caution, container, place, member.history.deaths[-1].why)
            return None

    def _caution_for(self, member: Member) -> Caution:
        """What a container that starts now is told: it is watched only if one has ended without a reason lately."""
        since = self._clock.monotonic() - self.caution.watch_s
        lately = {m.number: sum(d.is_unexplained and d.at_s > since for d in m.history.deaths) for m in self.members.values()}
        last = member.history.deaths[-1] if member.history.deaths else None
        why = last.why if last is not None and last.said else ""
        return replace(self.caution, watch_s=self.caution.watch_s if any(lately.values()) else 0.0, deaths=lately[member.number], why=why)

    def heartbeat(self, container: int, incarnation: str, report: Mapping[str, Any]) -> dict[str, Any]:
        """Take a container's report; returns its orders.

        Raises:
            Superseded: this incarnation was replaced.
        """
        with self.lock:
            member = self._owner(container, incarnation)
            self.members.report(member, report)
            self._note(member, report)
            self.any_commit = self.any_commit or bool(report.get("commits"))
            copies = {t: None for t in (*self._copies(member), *self.warm.get(container, ())) if t not in member.tasks}
            answer: dict[str, Any] = {
                "command": "stop" if self.is_stopping or member.phase is Phase.STOPPING else "run",
                "epoch": member.owner.epoch,
                "release": sorted(member.releasing),
                "standby": list(copies),
                "told": max((int(item["n"]) for item in report.get("news", ())), default=0),
                **self.orders.to_json(),
            }
            if self.is_changing or self.orders.are_open(report):
                answer["again_s"] = HURRY_S
            new = [t for t in (*member.tasks, *copies) if t not in member.launch.knows]
            if new:
                answer["models"] = {t: self.tasks[t].to_json() for t in new}
            return answer

    def _copies(self, member: Member) -> list[str]:
        """The tasks of which it keeps warm copies. If a task is being warmed up on its host in order to move there, its copy is given up."""
        others = [
            names for n, names in self.warm.items() if n != member.number and n in self.members and self.members[n].host == member.host
        ]
        return [task for task in member.standby if not any(task in names for names in others)]

    def refuse_strangers(self, container: int, incarnation: str) -> None:
        """
        Raises:
            Superseded: this incarnation was replaced.
        """
        with self.lock:
            self._owner(container, incarnation)

    def is_surplus(self, number: int) -> bool:
        """Whether a container is more than the job is to have. One for which unfinished tasks are planned is not: the others may have ended."""
        return number >= self.target and all(n != number or t in self.finished for t, n in self.desired.items() if t in self.tasks)

    def refuse_unknown(self, container: int) -> None:
        """Raises ConfigurationError: there is no container of that number, or none yet. The caller holds the lock."""
        if not self.members:
            raise ConfigurationError("the job is starting: it has no containers yet.", "Ask again when `samzapy status JOB.yaml` shows some.")
        if container not in self.members:
            raise ConfigurationError(f"there is no container {container}.", f"There are: {', '.join(map(str, sorted(self.members)))}.")

    def incarnation_of(self, container: int) -> str:
        """The incarnation of a live container; "": there is none."""
        with self.lock:
            member = self.members.get(container)
            return member.owner.incarnation if member is not None and member.is_live else ""

    def report_final(self, container: int, incarnation: str, report: Mapping[str, Any]) -> None:
        """Take a container's final report.

        Raises:
            Superseded: this incarnation was replaced.
        """
        with self.lock:
            member = self._owner(container, incarnation)
            self.members.report_final(member, report)
            self._note(member, report)

    def _note(self, member: Member, report: Mapping[str, Any]) -> None:
        """Keep what a report tells beside the state. A repeated one adds nothing: what it tells of has numbers."""
        news = [item for item in report.get("news", ()) if item["n"] > self.events.told_by(member.owner.incarnation)]
        self.events.take(member.number, member.owner.incarnation, news)
        self.events.take_held(member.number, member.owner.incarnation, report.get("held", ()))
        self.observed.take(member.number, report)
        self.totals.take({member.number: member.heard.report})

    def _owner(self, container: int, incarnation: str) -> Member:
        member = self.members.get(container)
        if member is None or not member.is_live or member.owner.incarnation != incarnation:
            raise Superseded(f"this process of container {container}, {incarnation}, was replaced.", "")
        return member

    # -- the end -----------------------------------------------------------------------------------------------------------------------

    def request_stop(self, by: str = "") -> None:
        """Final commits everywhere, then the end. `by`: who asks; "": an error does."""
        with self.lock:
            if self.stop_asked_at is None:
                self.stop_asked_at, self.stop_asked_by = self._clock.monotonic(), by
                self.is_stopping = True
                self.state = JobState.STOPPING

    def fail(self, member: Member | None, error: Mapping[str, Any]) -> None:
        """The job ends with this error; the first one counts. `member`: the container it came from."""
        if member is not None:
            self.members.fail(member, str(error["message"]))
        who = f"container {member.number} failed" if member else "job failed"
        if self.failure is None:  # said in full at the end of the run
            self.failure = (-1 if member is None else member.number, error)
            LOG.error("%s with error %s: the job is being stopped; the error in full comes at the end", who, error["code"])
        else:
            LOG.error("%s too: %s: %s", who, error["code"], error["message"])
        self.request_stop()

    # -- what people ask -----------------------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The document that `samzapy status --json` prints."""
        with self.lock:
            owners = self._owners()
            copies: dict[str, list[dict[str, Any]]] = {}
            for m in self.members.values():
                for c in m.heard.report.get("standbys", ()):
                    copies.setdefault(c["task"], []).append({"container": m.number, "host": m.host, "lag": c.get("lag")})
            tasks = [self._task(name, owners.get(name), copies.get(name, ())) for name in self.tasks]
            return {
                "job": self.job.name, "id": self.job.id, "state": self.state, "run_id": self.run_id, "coordinator": self.url,
                "reason": "; ".join(why for why in (self.orders.why_paused(), self.unwritable, self.unsafe) if why),
                "paused": self.orders.paused,
                "target": self.target,
                "containers": [self._container(m) for _, m in sorted(self.members.items())],
                "tasks": tasks,
                "rates": self.observed.job(tasks, self.events.commits()),
                "hints": self.diagnosing.to_json(),
                "moves": [
                    {"task": t, "from": owners[t].number if t in owners else None, "to": self.desired.get(t), "why": why}
                    for t, why in self.waiting.items()
                ],
            }  # fmt: skip

    def task_states(self) -> list[str]:
        """The state of each task, in order."""
        owners = self._owners()
        return [str(owners[t].report_of(t).get("state", TaskState.WAITING)) if t in owners else TaskState.WAITING for t in self.tasks]

    def are_tasks_at_work(self) -> list[bool]:
        """Of each task, in order."""
        owners = self._owners()
        return [t in owners and owners[t].is_at_work(t) for t in self.tasks]

    def _owners(self) -> dict[str, Member]:
        return {t: m for m in self.members.values() for t in m.tasks}

    def _container(self, member: Member) -> dict[str, Any]:
        document = {**member.to_json(), **self.observed.container(member.number)}
        if self.unwritable and member.phase in (Phase.ENDING, Phase.APPLYING):  # it waits for that
            document["reason"] = "; ".join(filter(None, (document["reason"], WAITS_TO_WRITE)))
        if not member.is_named:
            document["tasks"] = [t for t, n in self.desired.items() if n == member.number]
        return document

    def _task(self, name: str, owner: Member | None, copies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        report = owner.report_of(name) if owner is not None else {}
        number = owner.number if owner is not None else self.desired.get(name)
        document = {**task_json(name, number, report, self.waiting.get(name, ""), copies), **self.observed.task(name, report)}
        document["stores"] = {store: self._store(facts) for store, facts in document["stores"].items()}
        document["reason"] = document["reason"] or self.unread
        if name in self.moved:
            document["last_move"] = self.moved[name]
        return document

    def _store(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        restore = facts.get("restore")
        return dict(facts) if restore is None else {**facts, "restore": {**restore, **self.observed.restore(restore)}}

    def look(self) -> None:
        """Note the job's numbers as they are now, if it is time."""
        if not self.observed.is_due:
            return
        owners = self._owners()
        reports = {name: owners[name].report_of(name) if name in owners else {} for name in self.tasks}
        brief = [{**self.observed.task(name, report), "lag": report.get("lag")} for name, report in reports.items()]  # a status has much more
        self.observed.look(brief, self.observed.job(brief, self.events.commits()))
        if self.diagnosing.is_due:
            self.diagnosing.look(self.status(), self.reports())

    def reports(self) -> dict[int, Mapping[str, Any]]:
        """The last report of each container, for metrics."""
        with self.lock:
            return {m.number: m.heard.report for m in self.members.values()}

    def model(self) -> JobModel:
        """The job model as it is now."""
        with self.lock:
            containers = {n: tuple(t for t, to in self.desired.items() if to == n) for n in sorted(self.members)}
            return JobModel(dict(self.tasks), containers)
