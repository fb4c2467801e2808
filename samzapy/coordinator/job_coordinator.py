"""The coordinator of one run: who runs what, for as long as the job runs.

What must hold: a task's next owner is named only after its last one was ended in the coordinator topic (a), that was read back (b), and
its transactional.id was fenced at the broker (c). So at no time can two owners commit. Everything decided is in the coordinator topic; a
new coordinator finds it there.

One lock: the main loop (`run`) and the control requests (`register`, `heartbeat`, `finished`, on the listener's threads) take turns.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt, LogError, OwnedElsewhere, Superseded, TransactionAborted
from samzapy.coordinator import membership as state
from samzapy.coordinator.membership import Member, job_state
from samzapy.coordinator.metadata import CoordinatorLog
from samzapy.model.job_model import JobModel
from samzapy.model.names import Job
from samzapy.model.ownership import LEASE_KEY, ContainerRecord, LeaseRecord, Ledger, container_key, end_offsets_key, end_offsets_to_bytes
from samzapy.plan.restarts import GiveUp, decide_restart
from samzapy.ports import Assignment, Clock, Launcher, Log

LOG = logging.getLogger("samzapy.coordinator")
TICK_S = 0.05
RETRY_S = 0.5
REGISTER_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """Durations in seconds."""

    heartbeat_s: float = 2.0
    lease_s: float = 10.0
    max_restarts: int = 8
    restart_window_s: float = 300.0
    stop_timeout_s: float = 60.0
    register_timeout_s: float = 180.0
    takeover: bool = False


@dataclass(slots=True)
class _Failure:
    error: Mapping[str, Any]
    container: int


@dataclass(frozen=True, slots=True)
class Process:
    """This process, as another coordinator may look for it."""

    host: str
    pid: int
    start: str
    is_gone: Callable[[str, int, str], bool] = field(compare=False, default=lambda host, pid, start: False)


class JobCoordinator:
    """Runs the containers of a job until they are finished, asked to stop, or failed.

    Args:
        payload: what every container is started with, besides its number and launch id.
        ends: the inputs' end offsets for `--until-end`, by str(TopicPartition); None otherwise.
        is_alive: whether a coordinator answers at a URL for this job.
    """

    def __init__(
        self,
        job: Job,
        run_id: str,
        model: JobModel,
        payload: Mapping[str, Any],
        ends: Mapping[str, int] | None,
        settings: CoordinatorSettings,
        log: Log,
        clock: Clock,
        launcher: Launcher,
        process: Process,
        is_alive: Callable[[str], bool],
    ) -> None:
        self._job = job
        self._run_id = run_id
        self._model = model
        self._payload = payload
        self._ends = ends
        self._settings = settings
        self._clock = clock
        self._launcher = launcher
        self._process = process
        self._is_alive = is_alive
        self._metadata = CoordinatorLog(job, run_id, log, clock)
        self._lock = threading.RLock()
        self._members = {n: Member(n, names) for n, names in model.containers.items()}
        self._epoch = 0
        self._stop_asked_at: float | None = None
        self._kill_now = False
        self._failure: _Failure | None = None
        self._state = state.STARTING
        self._was_running = False
        self._renewed_at = 0.0
        self._any_commit = False
        self.url = ""
        self.control_url = ""

    # -- the run ---------------------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Until the job is over. Returns the exit code: 0 finished or stopped, else that of the error that ended it.

        Raises:
            OwnedElsewhere: another run is alive. LogError: Kafka cannot be asked.
        """
        try:
            with self._lock:
                self._take_over()
            while self._ticked():
                self._clock.sleep(TICK_S)
        except Fenced as error:
            self._state = state.FENCED
            LOG.error("this coordinator was replaced by another: %s", error)
            return Fenced.exit_code
        finally:
            self._launcher.close()
        return self._end()

    def _end(self) -> int:
        failure = self._failure
        self._state = state.FAILED if failure else state.FINISHED
        try:
            with self._lock:
                self._end_incarnations(m for m in self._members.values() if m.incarnation)
                self._metadata.write((LEASE_KEY, self._lease(ended=True).to_bytes()))
        except LogError as error:
            LOG.warning("the end of this run could not be written; the next run waits for the lease to be over: %s", error)
        self._metadata.close()
        if failure is None:
            return 0
        LOG.error(
            "job %s failed in container %d: error[%s]: %s", self._job, failure.container, failure.error["code"], failure.error["message"]
        )
        if failure.error.get("remedy"):
            LOG.error("  %s", failure.error["remedy"])
        return int(failure.error.get("exit_code", 1))

    def _take_over(self) -> None:
        """The start of a coordinator: refuse while another is alive; else fence it and every container of earlier runs."""
        self._await_the_other()
        self._metadata.take_over()
        ledger = self._metadata.read()
        self._epoch = ledger.epoch
        self._renew(self._clock.monotonic())
        earlier = [r for r in ledger.containers.values() if r.incarnation]
        self._end_records(earlier)
        for number in sorted({r.container for r in ledger.containers.values()} | set(self._members)):
            self._metadata.fence(number)
        if self._ends is not None:
            self._metadata.write((end_offsets_key(self._run_id), end_offsets_to_bytes(self._ends)))
        self._prefer(ledger)
        now = self._clock.monotonic()
        for member in self._members.values():
            member.launch_at = now
        LOG.info("job %s, run %s: %d tasks in %d containers", self._job, self._run_id, len(self._model.tasks), len(self._members))

    def _await_the_other(self) -> None:
        said = False
        while True:
            lease = self._metadata.read().lease
            if lease is None or lease.ended or self._settings.takeover or lease.run_id == self._run_id:
                return
            if self._process.is_gone(lease.host, lease.pid, lease.process_start):
                return
            age_s = (self._clock.now_ms() - lease.renewed_ms) / 1000
            if lease.url and self._is_alive(lease.url):
                raise OwnedElsewhere(
                    f"job {self._job} is run by process {lease.pid} on {lease.host} (lease {max(age_s, 0):.0f} s old, {lease.url}).",
                    "Stop that one with `samzapy stop`, or take its place with `--takeover`.",
                )
            if not 0 <= age_s < self._settings.lease_s:
                return
            if not said:
                said = True
                LOG.info("another run's lease (process %d on %s) is %.0f s old; waiting until it is over", lease.pid, lease.host, age_s)
            self._clock.sleep(0.5)

    def _prefer(self, ledger: Ledger) -> None:
        """A container is asked for where most of its tasks were last."""
        homes = {task: r.host for r in sorted(ledger.containers.values(), key=lambda r: r.epoch) for task in r.tasks if r.host}
        for member in self._members.values():
            hosts = [homes[t] for t in member.tasks if t in homes]
            member.preferred_host = max(sorted(set(hosts)), key=hosts.count) if hosts else None

    def _lease(self, ended: bool = False) -> LeaseRecord:
        p = self._process
        return LeaseRecord(self._run_id, "" if ended else self.url, p.host, p.pid, p.start, self._clock.now_ms(), ended)

    def _renew(self, now: float) -> None:
        self._metadata.write((LEASE_KEY, self._lease().to_bytes()))
        self._renewed_at = now

    # -- one turn --------------------------------------------------------------------------------------------------------------------

    def _ticked(self) -> bool:
        """One turn; while Kafka cannot be asked the containers go on, and this is tried again."""
        try:
            return self._tick()
        except (ClusterUnreachable, InDoubt, TransactionAborted) as error:
            LOG.warning("the coordinator topic could not be written, trying again: %s", error)
            self._clock.sleep(RETRY_S)
            return not self._kill_now

    def _tick(self) -> bool:
        with self._lock:
            now = self._clock.monotonic()
            if now - self._renewed_at >= self._settings.lease_s / 3:
                self._renew(now)
            for member in self._members.values():
                self._look_at(member, now)
            self._state = job_state(list(self._members.values()), self._is_stopping, self._was_running)
            self._was_running = self._was_running or self._state == state.RUNNING
            return not self._is_over(now)

    @property
    def _is_stopping(self) -> bool:
        return self._stop_asked_at is not None

    def _is_over(self, now: float) -> bool:
        if all(m.done for m in self._members.values()) or self._kill_now:
            return True
        if self._stop_asked_at is not None and now - self._stop_asked_at > self._settings.stop_timeout_s:
            LOG.warning("containers did not stop within %.0f s; ending them", self._settings.stop_timeout_s)
            return True
        return False

    def _look_at(self, member: Member, now: float) -> None:
        if member.done:
            return
        if member.handle is None:
            if self._is_stopping:
                member.done, member.state = True, state.STOPPED
            elif member.launch_at is not None and now >= member.launch_at:
                self._launch(member, now)
            return
        ended = member.handle.exited()
        if ended is not None:
            self._died(member, ended, now)
        elif member.registered and now - member.heard_at > self._settings.lease_s:
            self._died(member, f"silent for {now - member.heard_at:.1f} s, its lease of {self._settings.lease_s:.0f} s is over", now)
        elif not member.registered and now - member.heard_at > self._settings.register_timeout_s:
            self._died(member, f"did not register within {self._settings.register_timeout_s:.0f} s", now)
        elif not member.registered and self._is_stopping:
            member.handle.kill()
            member.done, member.state = True, state.STOPPED

    def _launch(self, member: Member, now: float) -> None:
        member.launch_id = secrets.token_hex(8)
        member.registered = False
        member.launch_at = None
        member.heard_at = now
        member.state = state.STARTING
        payload = {**self._payload, "container": member.number, "launch_id": member.launch_id, "control_url": self.control_url}
        member.handle = self._launcher.launch(member.number, payload, member.preferred_host)

    def _died(self, member: Member, why: str, now: float) -> None:
        """Take its tasks away by force, then start it again if the budget allows."""
        if member.handle is not None:
            member.handle.kill()
        if self._failure is None and not self._is_stopping and member.state != state.LOST:
            LOG.warning("container %d (process %s on %s): %s", member.number, member.pid, member.host, why)
        member.state = state.LOST
        member.last_error = member.last_error or why
        self._end_incarnations([member])  # if this raises, the next turn finds the member as it was and does it again
        member.handle = None
        member.registered = False
        if self._is_stopping:
            member.done = True
            return
        member.deaths.append(now)
        decision = decide_restart(member.deaths, now, self._settings.max_restarts, self._settings.restart_window_s)
        if isinstance(decision, GiveUp):
            self._fail(
                member,
                {
                    "code": "SZ340",
                    "message": f"{decision.reason}; the last time: {member.last_error}",
                    "remedy": "See its log lines above.",
                },
            )
            return
        member.restarts += 1
        member.launch_at = now + decision.delay_s
        member.last_error = ""

    def _fail(self, member: Member, error: Mapping[str, Any]) -> None:
        member.state, member.done = state.FAILED, True
        member.last_error = str(error["message"])
        if self._failure is None:
            self._failure = _Failure(error, member.number)
            LOG.error("container %d failed: %s; stopping the job", member.number, str(error["message"]).rstrip("."))
        self.request_stop()

    # -- owning ----------------------------------------------------------------------------------------------------------------------

    def _end_incarnations(self, members: Any) -> None:
        """(a) to (c) for members that may still be alive."""
        gone = [m for m in members if m.incarnation]
        if not gone:
            return
        self._end_records([self._record(m) for m in gone])
        for member in gone:
            self._metadata.fence(member.number)  # (c)
            member.incarnation = ""

    def _end_records(self, records: Sequence[ContainerRecord]) -> None:
        ended = []
        for record in records:
            self._epoch += 1
            ended.append(ContainerRecord(record.container, self._epoch, "", record.tasks, record.run_id, record.host, record.pid))
        if not ended:
            return
        self._metadata.write(*((container_key(r.container), r.to_bytes()) for r in ended))  # (a)
        self._await_visible(ended)  # (b): a commit that returned is not yet visible

    def _await_visible(self, records: Sequence[ContainerRecord]) -> None:
        while True:
            there = self._metadata.read().containers
            if all(r.container in there and there[r.container].epoch >= r.epoch for r in records):
                return
            self._clock.sleep(0.02)

    def _record(self, member: Member) -> ContainerRecord:
        return ContainerRecord(
            member.number, self._epoch, member.incarnation, member.tasks, self._run_id, member.host or "", member.pid or 0
        )

    # -- what containers ask (the listener's threads) ------------------------------------------------------------------------------------

    def register(self, container: int, launch_id: str, incarnation: str, facts: Mapping[str, Any]) -> Assignment:
        """Name an incarnation in the coordinator topic, and tell it what it runs.

        Raises:
            Superseded: this launch is not the newest, was used already, or the job is stopping.
        """
        with self._lock:
            member = self._members.get(container)
            if member is None or member.launch_id != launch_id or member.done or self._is_stopping:
                raise Superseded(f"launch {launch_id} of container {container} is not wanted any more.", "")
            if member.registered and member.incarnation != incarnation:
                raise Superseded(f"launch {launch_id} of container {container} has registered already, as {member.incarnation}.", "")
            if not member.registered:
                member.host, member.pid = str(facts.get("host", "")), int(facts.get("pid", 0))
                member.incarnation = incarnation
                self._epoch += 1
                self._metadata.write((container_key(container), self._record(member).to_bytes()))
                member.registered = True
            member.heard_at = self._clock.monotonic()
            return Assignment(self._epoch, member.tasks, self._run_id, self._ends)

    def heartbeat(self, container: int, incarnation: str, report: Mapping[str, Any]) -> dict[str, Any]:
        """How a container is; what it is to do.

        Raises:
            Superseded: this incarnation was replaced.
        """
        with self._lock:
            member = self._owner(container, incarnation)
            member.heard_at = self._clock.monotonic()
            member.report = report
            member.state = str(report.get("state", state.RUNNING))
            self._any_commit = self._any_commit or bool(report.get("commits"))
            return {"command": "stop" if self._is_stopping else "run"}

    def finished(self, container: int, incarnation: str, report: Mapping[str, Any]) -> None:
        """A container's last word.

        Raises:
            Superseded: this incarnation was replaced.
        """
        with self._lock:
            member = self._owner(container, incarnation)
            member.heard_at = self._clock.monotonic()
            member.report = report
            error = report.get("error")
            outcome = report.get("outcome")
            if outcome in ("finished", "stopped"):
                member.state, member.done = state.STOPPED, True
            elif error and (error.get("fatal") or self._all_failed_alike(member, error)):
                self._fail(member, error)
            elif error:
                member.last_error = str(error.get("message", ""))

    def _owner(self, container: int, incarnation: str) -> Member:
        member = self._members.get(container)
        if member is None or not member.registered or member.incarnation != incarnation:
            raise Superseded(f"incarnation {incarnation} of container {container} was replaced.", "")
        return member

    def _all_failed_alike(self, member: Member, error: Mapping[str, Any]) -> bool:
        """Every container ended with the same error before any commit: starting again will not help."""
        member.last_error = str(error.get("message", ""))
        codes = {m.report.get("error", {}).get("code") if m.report.get("error") else None for m in self._members.values()}
        return not self._any_commit and len(codes) == 1 and None not in codes

    # -- what people ask -------------------------------------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Final commits everywhere, then the end. A second request ends the containers at once."""
        with self._lock:
            if self._stop_asked_at is None:
                self._stop_asked_at = self._clock.monotonic()
                self._state = state.STOPPING

    def kill_now(self) -> None:
        """End without final commits: nothing committed is lost."""
        self._kill_now = True

    def status(self) -> dict[str, Any]:
        """The contract's status document."""
        with self._lock:
            members = list(self._members.values())
            tasks = [t for m in members for t in m.task_reports()]
            order = {name: i for i, name in enumerate(self._model.tasks)}
            return {
                "job": self._job.name, "id": self._job.id, "state": self._state, "run_id": self._run_id, "coordinator": self.url,
                "containers": [m.to_json() for m in members],
                "tasks": sorted(tasks, key=lambda t: order[t["name"]]),
            }  # fmt: skip

    def reports(self) -> dict[int, Mapping[str, Any]]:
        """The last report of each container, for metrics."""
        with self._lock:
            return {m.number: {**m.report, "restarts": m.restarts} for m in self._members.values()}

    def job_model(self) -> dict[str, Any]:
        return self._model.to_json()
