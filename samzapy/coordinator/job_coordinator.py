"""The coordinator of one run: who runs what, for as long as the job runs.

One thread decides and acts (`run`), a turn at a time: renew the lease, see who ended or fell silent and end it at the broker, name those
who ask for it, move tasks, start what is to be started. Containers and people are answered by the roster, on other threads, from what
was decided. Everything that must outlast this process is in the coordinator topic; a new coordinator finds it there.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from samzapy.api.errors import (
    ClusterUnreachable,
    ConfigurationError,
    Fenced,
    InDoubt,
    LogError,
    OwnedElsewhere,
    SamzapyError,
    TransactionAborted,
)  # fmt: skip
from samzapy.coordinator import membership as state
from samzapy.coordinator.membership import Death, Member, job_state
from samzapy.coordinator.metadata import CoordinatorLog
from samzapy.coordinator.owning import Named, Owning
from samzapy.coordinator.roster import Roster
from samzapy.model.job_model import TaskModel
from samzapy.model.names import Job
from samzapy.model.ownership import (
    LEASE_KEY,
    ContainerRecord,
    LeaseRecord,
    Ledger,
    end_offsets_key,
    end_offsets_to_bytes,
    input_key,
    input_to_bytes,
)  # fmt: skip
from samzapy.plan.assignment import check_slots, plan, standbys
from samzapy.plan.hosts import NoRoom, Start, choose_host
from samzapy.plan.moves import decide_moves, orphans
from samzapy.plan.restarts import GiveUp, decide_restart
from samzapy.ports import Clock, Launcher, Log

LOG = logging.getLogger("samzapy.coordinator")
TICK_S = 0.05
RETRY_S = 0.5
LEAVE_S = 2.0


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """Durations in seconds."""

    containers: int = 1
    standby: int = 0
    host_affinity_s: float = 5.0
    heartbeat_s: float = 2.0
    lease_s: float = 10.0
    max_restarts: int = 8
    restart_window_s: float = 300.0
    stop_timeout_s: float = 60.0
    register_timeout_s: float = 120.0
    growth_s: float = 10.0
    takeover: bool = False
    has_changelogs: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """This process, as another coordinator may look for it."""

    host: str
    pid: int
    start: str
    is_gone: Callable[[str, int, str], bool] = field(compare=False, default=lambda host, pid, start: False)


@dataclass(frozen=True, slots=True)
class World:
    """The input topics: by topic id, name and partition count now; and `look`, which finds tasks that came since.

    `look` returns all tasks, or raises ConfigurationError where the job cannot go on with the partitions that there are now.
    """

    inputs: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    look: Callable[[], Mapping[str, TaskModel]] | None = None


class JobCoordinator:
    """Runs the containers of a job until they are finished, asked to stop, or failed.

    Args:
        payload: what every container is started with, besides its number, launch id and the job model.
        ends: the inputs' end offsets for `--until-end`, by str(TopicPartition); None otherwise.
        is_alive: whether a coordinator answers at a URL for this job.
    """

    def __init__(
        self,
        job: Job,
        run_id: str,
        tasks: Mapping[str, TaskModel],
        payload: Mapping[str, Any],
        ends: Mapping[str, int] | None,
        settings: CoordinatorSettings,
        log: Log,
        clock: Clock,
        launcher: Launcher,
        process: Process,
        is_alive: Callable[[str], bool],
        world: World | None = None,
    ) -> None:
        self._job = job
        self._run_id = run_id
        self._payload = payload
        self._settings = settings
        self._clock = clock
        self._launcher = launcher
        self._process = process
        self._is_alive = is_alive
        self._world = world or World()
        self._topic = CoordinatorLog(job, run_id, log, clock)
        self._owning = Owning(self._topic, run_id, clock)
        self.roster = Roster(job, run_id, tasks, settings.containers, ends, clock)
        self._members = self.roster.members
        self._lock = self.roster.lock
        self._finished: set[str] = set()  # tasks that have ended by themselves
        self._failure: tuple[int, Mapping[str, Any]] | None = None
        self._stop_asked_at: float | None = None
        self._kill_now = False
        self._was_running = False
        self._renewed_at = 0.0
        self._looked_at = 0.0
        self._left_at = 0.0
        self._room_since: float | None = None
        self._must_plan = False
        self._roll: list[tuple[int, str]] = []  # to be restarted: container, the launch that is to end
        self._roll_homes: dict[int, str | None] = {}
        self._left: dict[str, tuple[int, float]] = {}
        self.control_url = ""

    # -- the run ---------------------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Until the job is over. Returns the exit code: 0 finished or stopped, else that of the error that ended it.

        Raises:
            OwnedElsewhere: another run is alive. LogError: Kafka cannot be asked.
        """
        try:
            self.begin()
            while self.turn():
                self._clock.sleep(TICK_S)
        except Fenced as error:
            self.roster.state = state.FENCED
            LOG.error("this coordinator was replaced by another: %s", error)
            return Fenced.exit_code
        finally:
            self._launcher.close()
        return self.end()

    def begin(self) -> None:
        """The start of a coordinator: refuse while another is alive; else fence it and every container of earlier runs, then assign."""
        self._await_the_other()
        ledger = self._owning.take_over()
        self._renew()
        self._owning.end(r for r in ledger.containers.values() if r.incarnation)
        fenced = {r.container for r in ledger.containers.values() if r.incarnation}
        for number in sorted(({r.container for r in ledger.containers.values()} | set(range(self.roster.target))) - fenced):
            self._owning.fence(number)
        self._note_inputs(ledger)
        before = {t: r.container for r in sorted(ledger.containers.values(), key=lambda r: r.epoch) for t in r.tasks}
        self._await_home_hosts()
        with self._lock:
            self.roster.desired = {t: n for t, n in before.items() if t in self.roster.tasks}
            self._plan()
            used = len(self._members)
        LOG.info("job %s, run %s: %d tasks in %d containers", self._job, self._run_id, len(self.roster.tasks), used)

    def end(self) -> int:
        """The end of this run, written; the exit code."""
        failure = self._failure
        self.roster.state = state.FAILED if failure else state.FINISHED
        try:
            if self._owning.is_in_doubt:
                self._owning.read()
            self._owning.end(self._record(m) for m in self._members.values() if m.incarnation)
            self._owning.write((LEASE_KEY, self._lease(ended=True).to_bytes()))
        except LogError as error:
            LOG.warning("the end of this run could not be written; the next run waits for the lease to be over: %s", error)
        self._owning.close()
        if failure is None:
            return 0
        number, error_told = failure
        who = f"container {number}: " if number >= 0 else ""
        LOG.error("job %s failed: %serror[%s]: %s", self._job, who, error_told["code"], error_told["message"])
        if error_told.get("remedy"):
            LOG.error("  %s", error_told["remedy"])
        return int(error_told.get("exit_code", 1))

    def _await_the_other(self) -> None:
        said = False
        while True:
            lease = self._topic.read().lease
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

    def _note_inputs(self, ledger: Ledger) -> None:
        """Where a bounded run ends, and how many partitions each input had when this job first saw it."""
        records: list[tuple[bytes, bytes | None]] = [
            (input_key(topic_id), input_to_bytes(name, count))
            for topic_id, (name, count) in self._world.inputs.items()
            if topic_id not in ledger.first_partitions
        ]
        if self.roster.ends is not None:
            records.append((end_offsets_key(self._run_id), end_offsets_to_bytes(self.roster.ends)))
        if records:
            self._owning.write(*records)

    def _await_home_hosts(self) -> None:
        """Executors come one after the other: give the hosts that have the newest state their time, before anything is assigned."""
        newest = {max(hosts, key=lambda h: hosts[h]) for hosts in self._owning.locality.values() if hosts}
        deadline = self._clock.monotonic() + self._settings.host_affinity_s
        while not newest <= set(self._launcher.hosts()) and self._clock.monotonic() < deadline:
            self._clock.sleep(TICK_S)
        missing = sorted(newest - set(self._launcher.hosts()))
        if missing:
            LOG.warning(
                "no executor on %s within %.0f s: what had its state there is restored elsewhere",
                ", ".join(missing),
                self._settings.host_affinity_s,
            )

    def _lease(self, ended: bool = False) -> LeaseRecord:
        p = self._process
        return LeaseRecord(self._run_id, "" if ended else self.roster.url, p.host, p.pid, p.start, self._clock.now_ms(), ended)

    def _renew(self) -> None:
        now = self._clock.monotonic()
        self._owning.write((LEASE_KEY, self._lease().to_bytes()))
        self._renewed_at = now

    # -- one turn --------------------------------------------------------------------------------------------------------------------

    def turn(self) -> bool:
        """One turn; False: the job is over. While Kafka cannot be asked the containers go on, and this is tried again."""
        try:
            self._tick()
        except (ClusterUnreachable, InDoubt, TransactionAborted) as error:
            LOG.warning("the coordinator topic could not be written, trying again: %s", error)
            self._clock.sleep(RETRY_S)
        return not self._is_over(self._clock.monotonic())

    def _tick(self) -> None:
        if self._owning.is_in_doubt:
            self._agree_with(self._owning.read())
        if self._clock.monotonic() - self._renewed_at >= self._settings.lease_s / 3:
            self._renew()
        with self._lock:
            now = self._clock.monotonic()
            for member in list(self._members.values()):
                self._look_at(member, now)
        self._end_lost()
        if not self.roster.is_stopping:
            self._look_for_growth()
            self._leave_hosts()
            self._go_on_with_restart()
            with self._lock:
                if self._must_plan:
                    self._plan()
            self._name_and_move()
            self._make_room()
            self._launch_wanted()
        with self._lock:
            self._settle_state()

    def _agree_with(self, ledger: Ledger) -> None:
        """After a write that was in doubt: what the topic says is what holds."""
        with self._lock:
            for member in self._members.values():
                record = ledger.containers.get(member.number)
                if record is None or not record.incarnation:
                    continue
                if member.applicant is not None and record.incarnation == member.applicant[0]:
                    self._named(member, record.incarnation, member.applicant[1], record.tasks, record.epoch)
                elif record.incarnation == member.incarnation:
                    member.tasks, member.epoch = record.tasks, record.epoch
                    member.releasing = {t: at for t, at in member.releasing.items() if t in record.tasks}

    def _settle_state(self) -> None:
        roster = self.roster
        states = roster.task_states()
        roster.state = job_state(states, list(self._members.values()), roster.is_stopping, self._was_running)
        self._was_running = self._was_running or roster.state == state.RUNNING
        roster.is_changing = bool(roster.waiting or self._roll) or any(
            not m.done and (not m.is_ready or m.releasing) for m in self._members.values()
        )
        self._dismiss_surplus()
        now = self._clock.monotonic()
        for task, (number, at) in list(self._left.items()):
            owner = next((m for m in self._members.values() if task in m.tasks), None)
            if owner is not None and owner.task_reports().get(task, {}).get("state") in (state.RUNNING, state.STOPPED):
                del self._left[task]
                roster.moved[task] = {"from": number, "to": owner.number, "seconds": round(now - at, 2)}
                LOG.info("%s moved from container %d to %d; it was away for %.1f s", task, number, owner.number, now - at)

    def _dismiss_surplus(self) -> None:
        """Containers that are too many stop once their tasks are elsewhere; all that have no tasks do when there is nothing left to run."""
        nothing_left = self._finished >= set(self.roster.tasks)
        for member in list(self._members.values()):
            if member.tasks or member.done or member.ending or not (nothing_left or member.number >= self.roster.target):
                continue
            if member.is_live:
                member.stop_wanted = True
            elif member.handle is None and not nothing_left:
                del self._members[member.number]

    def _is_over(self, now: float) -> bool:
        if self._kill_now or all(m.done for m in self._members.values()):
            return True
        if self._stop_asked_at is not None and now - self._stop_asked_at > self._settings.stop_timeout_s:
            LOG.warning("containers did not stop within %.0f s; ending them", self._settings.stop_timeout_s)
            return True
        return False

    # -- who is alive ------------------------------------------------------------------------------------------------------------------

    def _look_at(self, member: Member, now: float) -> None:
        if member.done or member.ending:
            return
        if member.last_word is not None and self._took_leave(member, member.last_word):
            return
        if member.handle is None:
            if self.roster.is_stopping:
                member.done, member.state = True, state.STOPPED
            return
        ended = member.handle.exited()
        overdue = [t for t, since in member.releasing.items() if now - since > self._settings.lease_s]
        silent_s = now - member.heard_at
        if ended is not None:
            self._lose(member, ended)
        elif member.registered and silent_s > self._settings.lease_s:
            self._lose(member, f"silent for {silent_s:.1f} s, its lease of {self._settings.lease_s:g} s is over")
        elif member.registered and overdue:
            self._lose(member, f"did not release {', '.join(overdue)} within its lease of {self._settings.lease_s:g} s")
        elif not member.registered and silent_s > self._settings.register_timeout_s:
            self._lose(member, f"did not register within {self._settings.register_timeout_s:g} s")
        elif not member.registered and self.roster.is_stopping:
            member.handle.kill()
            member.done, member.state = True, state.STOPPED

    def _took_leave(self, member: Member, word: Mapping[str, Any]) -> bool:
        """A container that said how it ended. True: there is no more to do about it."""
        error, outcome = word.get("error"), word.get("outcome")
        if outcome == "finished" or (outcome == "stopped" and self.roster.is_stopping):
            member.state, member.done = state.STOPPED, True
            self._finished.update(member.tasks if outcome == "finished" else ())
            return True
        if outcome == "stopped":
            member.ending = "asked to stop"
            return True
        if error and (error.get("fatal") or self._all_failed_alike(member, error)):
            self._fail(member, error)
            return True
        if error:
            member.last_error = str(error.get("message", ""))
        return False

    def _all_failed_alike(self, member: Member, error: Mapping[str, Any]) -> bool:
        """Every container ended with the same error before any commit: starting again will not help."""
        words = [m.last_word or m.report for m in self._members.values()]
        codes = {w["error"].get("code") if w.get("error") else None for w in words}
        return not self.roster.any_commit and len(codes) == 1 and None not in codes

    def _lose(self, member: Member, why: str) -> None:
        """It is gone, or is to be: its tasks are taken by force in this turn."""
        if member.handle is not None:
            member.handle.kill()
        if self._failure is None and not self.roster.is_stopping:
            LOG.warning("container %d (process %s on %s): %s", member.number, member.pid, member.host, why)
        member.ending = why
        member.state = state.LOST

    def _end_lost(self) -> None:
        """(a) to (c) for those that are gone; if this raises, the next turn does it again."""
        gone = [m for m in self._members.values() if m.ending]
        if not gone:
            return
        self._owning.end([self._record(m) for m in gone if m.incarnation])
        with self._lock:
            for member in gone:
                self._after_end(member)

    def _after_end(self, member: Member) -> None:
        now, why = self._clock.monotonic(), member.ending
        lost, host = member.tasks, member.host or ""
        self._left.update({t: (member.number, now) for t in lost if t not in self._left})
        where = f"process {member.pid} on {member.host}" if member.registered else "before it registered"
        asked = member.stop_wanted and why == "asked to stop"
        member.tasks, member.incarnation, member.registered, member.applicant = (), "", False, None
        member.handle, member.launched_on, member.ending, member.last_word = None, None, "", None
        member.releasing, member.standby, member.report, member.stop_wanted = {}, (), {}, False
        if self.roster.is_stopping or (asked and self._finished >= set(self.roster.tasks)):
            member.done, member.state = True, state.STOPPED
            return
        if member.number >= self.roster.target:
            del self._members[member.number]
            self._must_plan = True
            return
        member.wanted_since = now
        if asked:
            member.state = state.STARTING
            return
        member.deaths.append(Death(now, self._clock.now_ms(), where, member.last_error or why))
        decision = decide_restart([d.at_s for d in member.deaths], now, self._settings.max_restarts, self._settings.restart_window_s)
        if isinstance(decision, GiveUp):
            story = "; ".join(str(d) for d in member.deaths[-5:])
            self._fail(
                member, {"code": "SZ340", "message": f"{decision.reason}. The last ones: {story}", "remedy": "See its log lines above."}
            )
            return
        member.restarts += 1
        member.launch_at = now + decision.delay_s
        member.last_error = ""
        holders = {m.number: m.holder() for m in self._members.values() if m.is_live}
        self.roster.desired.update(orphans(self.roster.desired, holders, lost, host))

    def _fail(self, member: Member | None, error: Mapping[str, Any]) -> None:
        if member is not None:
            member.state, member.done = state.FAILED, True
            member.last_error = str(error["message"])
        if self._failure is None:
            self._failure = (-1 if member is None else member.number, error)
            LOG.error(
                "%s: %s; stopping the job",
                f"container {member.number} failed" if member else "job failed",
                str(error["message"]).rstrip("."),
            )
        self.request_stop()

    def _record(self, member: Member) -> ContainerRecord:
        return ContainerRecord(
            member.number, member.epoch, member.incarnation, member.tasks, self._run_id, member.host or "", member.pid or 0
        )

    # -- who runs what -----------------------------------------------------------------------------------------------------------------

    def _plan(self, fixed: Mapping[int, str] | None = None) -> Mapping[int, str | None]:
        """Decide anew where every task should run. Those that run stay on their host unless `fixed` says otherwise. Returns the hosts to ask for."""
        self._must_plan = False
        roster, now = self.roster, self._clock.monotonic()
        names = [t for t in roster.tasks if t not in self._finished]
        for number in range(min(roster.target, len(roster.tasks))):
            if number not in self._members:
                self._members[number] = Member(number, wanted_since=now)
        numbers = [n for n, m in sorted(self._members.items()) if n < roster.target and not m.is_parked and not m.done]
        live = {n: self._members[n].host or "" for n in numbers if self._members[n].is_live} if fixed is None else fixed
        if not numbers or not names:
            return {}
        before = {t: n for t, n in roster.desired.items() if t in roster.tasks}
        decided = plan(names, numbers, before, self._owning.locality, self._launcher.hosts(), live)
        roster.desired = {t: n for n, tasks in decided.tasks.items() for t in tasks}
        for number in numbers:
            if not self._members[number].is_live:
                self._members[number].preferred_host = decided.hosts.get(number)
        return decided.hosts

    def _name_and_move(self) -> None:
        """One transaction: those who ask to be named, and tasks that change hands."""
        with self._lock:
            roster, now = self.roster, self._clock.monotonic()
            holders = {m.number: m.holder() for m in self._members.values() if m.is_live and not m.done}
            steps = decide_moves(roster.desired, holders, self._settings.has_changelogs)
            roster.waiting, roster.warm = steps.waiting, steps.warm
            for number, names in steps.release.items():
                member = self._members[number]
                member.releasing = {t: member.releasing.get(t, now) for t in names}
            self._spread_copies()
            owned = {t for n, h in holders.items() for t in steps.records.get(n, h.tasks)}
            owned |= {t for m in self._members.values() if m.done or m.ending for t in m.tasks}
            named = [self._to_be_named(self._members[n], tasks) for n, tasks in steps.records.items()]
            applicants = [(m, *m.applicant) for m in self._members.values() if m.applicant is not None and not m.registered and not m.done]
            for member, incarnation, facts in applicants:
                tasks = tuple(t for t in roster.tasks if roster.desired.get(t) == member.number and t not in owned)
                named.append(Named(member.number, incarnation, tasks, str(facts.get("host", "")), int(facts.get("pid", 0))))
        if not named:
            return
        epochs = self._owning.name(named)
        with self._lock:
            self._left.update({t: (n, now) for n, tasks in steps.records.items() for t in holders[n].tasks if t not in tasks})
            tasks_of = {one.container: one.tasks for one in named}
            for number in steps.records:
                member = self._members[number]
                member.tasks, member.epoch = tasks_of[number], epochs[number]
                kept = set(member.tasks) - holders[number].released
                member.releasing = {t: at for t, at in member.releasing.items() if t in kept}
            for member, incarnation, facts in applicants:
                self._named(member, incarnation, facts, tasks_of[member.number], epochs[member.number])

    def _to_be_named(self, member: Member, tasks: tuple[str, ...]) -> Named:
        return Named(member.number, member.incarnation, tasks, member.host or "", member.pid or 0)

    def _named(self, member: Member, incarnation: str, facts: Mapping[str, Any], tasks: tuple[str, ...], epoch: int) -> None:
        """The coordinator topic names it now."""
        member.incarnation, member.tasks, member.epoch = incarnation, tasks, epoch
        member.host, member.pid = str(facts.get("host", "")), int(facts.get("pid", 0))
        member.registered, member.applicant = True, None
        member.state, member.reason = state.STARTING, ""
        member.heard_at = self._clock.monotonic()
        self._must_plan = True
        if member.preferred_host is None:
            return
        if member.host == member.preferred_host:
            member.hits, member.affinity = member.hits + 1, "on its preferred host"
        else:
            why = member.affinity or f"Spark had no free slot there within {self._settings.host_affinity_s:g} s"
            member.misses, member.affinity = member.misses + 1, f"not on {member.preferred_host}: {why}"
            LOG.warning("container %d runs on %s, %s", member.number, member.host, member.affinity)
        for task in tasks:
            if "holds" in facts and task not in facts["holds"]:
                self._owning.forget_host(task, member.host)

    def _spread_copies(self) -> None:
        """Which containers keep warm copies of which tasks."""
        if not self._settings.standby or not self._settings.has_changelogs:
            return
        live = {m.number: m for m in self._members.values() if m.is_live and not m.done}
        owners = {n: m.tasks for n, m in live.items()}
        before = {n: m.standby for n, m in live.items()}
        chosen = standbys(owners, {n: m.host for n, m in live.items()}, self._settings.standby, before, self._owning.locality)
        for number, member in live.items():
            member.standby = tuple(chosen.get(number, ()))

    # -- starting containers -----------------------------------------------------------------------------------------------------------

    def _launch_wanted(self) -> None:
        wanted = [m for m in self._members.values() if m.wanted_since is not None and m.handle is None and not m.done and not m.ending]
        if not wanted:
            return
        slots = self._launcher.hosts()
        for member in wanted:
            now = self._clock.monotonic()
            if now < member.launch_at:
                continue
            used = self._used()
            waited_s = now - max(member.wanted_since or 0.0, member.launch_at)
            chosen = choose_host(member.preferred_host, self._state_of(member), slots, used, waited_s, self._settings.host_affinity_s)
            if isinstance(chosen, Start):
                self._launch(member, chosen, now)
            elif isinstance(chosen, NoRoom) and any(m.is_live for m in self._members.values()):
                self._park(member, chosen.why)
            else:
                member.reason = chosen.why

    def _launch(self, member: Member, chosen: Start, now: float) -> None:
        with self._lock:
            member.launch_id = secrets.token_hex(8)
            member.wanted_since = None
            member.heard_at = now
            member.state, member.reason, member.affinity = state.STARTING, "", chosen.miss
            member.report, member.last_word = {}, None
            member.launched_on = chosen.host
            member.knows = frozenset(self.roster.tasks)
        payload = {
            **self._payload, "model": self.roster.model().to_json(), "container": member.number, "launch_id": member.launch_id,
            "control_url": self.control_url,
        }  # fmt: skip
        member.handle = self._launcher.launch(member.number, payload, chosen.host)

    def _used(self) -> dict[str, int]:
        """Slots that containers of ours take, by host."""
        used: dict[str, int] = {}
        for member in self._members.values():
            host = member.host if member.is_live else member.launched_on
            if member.handle is not None and host:
                used[host] = used.get(host, 0) + 1
        return used

    def _state_of(self, member: Member) -> dict[str, int]:
        """By host, how many of the tasks that it will have left their newest state there."""
        found: dict[str, int] = {}
        for task, number in self.roster.desired.items():
            hosts = self._owning.locality.get(task)
            if number == member.number and hosts:
                newest = max(hosts, key=lambda h: hosts[h])
                found[newest] = found.get(newest, 0) + 1
        return found

    def _park(self, member: Member, why: str) -> None:
        with self._lock:
            member.is_parked, member.wanted_since, member.state, member.reason = True, None, state.LOST, f"{why}; its tasks run elsewhere"
            LOG.warning("container %d is not started: %s; its tasks go to the others", member.number, why)
            self._plan()

    def _make_room(self) -> None:
        """Containers that found no slot are started once there has been one for a while."""
        parked = [m for m in self._members.values() if m.is_parked]
        if not parked:
            return
        now, used = self._clock.monotonic(), self._used()
        free = sum((1 << 30 if n is None else n - used.get(host, 0)) for host, n in self._launcher.hosts().items())
        free -= sum(1 for m in self._members.values() if m.wanted_since is not None and not m.done)
        if free <= 0:
            self._room_since = None
        elif self._room_since is None:
            self._room_since = now
        elif now - self._room_since >= self._settings.host_affinity_s:
            self._room_since = None
            with self._lock:
                for member in parked[:free]:
                    self._unpark(member, now)
                self._plan()

    def _unpark(self, member: Member, now: float) -> None:
        member.is_parked, member.wanted_since, member.launch_at, member.reason = False, now, now, ""
        member.state = state.STARTING
        LOG.info("container %d is started again: there is a slot", member.number)

    # -- change --------------------------------------------------------------------------------------------------------------------------

    def request_scale(self, containers: int) -> dict[str, Any]:
        """Run the job in so many containers from now on.

        Raises:
            ConfigurationError: not a number of containers. LauncherError: more than there are slots.
        """
        if containers < 1:
            raise ConfigurationError(f"{containers} containers: a job runs in one or more.", "")
        slots = list(self._launcher.hosts().values())
        wanted = min(containers, len(self.roster.tasks))
        check_slots(wanted, None if any(n is None for n in slots) else sum(n or 0 for n in slots), "this cluster")
        with self._lock:
            self._refuse_while_stopping()
            before, self.roster.target = self.roster.target, wanted
            self._must_plan = True
            LOG.info("scaling from %d to %d containers", before, wanted)
            return {"containers": wanted, "before": before, "tasks": len(self.roster.tasks)}

    def request_restart(self, container: int | None) -> dict[str, Any]:
        """Restart one container, or all, one after the other; each goes where its state is, or back home.

        Raises:
            ConfigurationError: no such container.
        """
        with self._lock:
            self._refuse_while_stopping()
            if container is not None and container not in self._members:
                raise ConfigurationError(f"there is no container {container}.", f"There are: {', '.join(map(str, sorted(self._members)))}.")
            now = self._clock.monotonic()
            if container is None:
                for member in self._members.values():
                    if member.is_parked:
                        self._unpark(member, now)
                self._roll_homes = dict(self._plan(fixed={}))
            numbers = [container] if container is not None else sorted(n for n, m in self._members.items() if not m.done)
            numbers.sort(key=lambda n: self._members[n].host == self._roll_homes.get(n, self._members[n].host))
            self._roll = [(n, self._members[n].launch_id) for n in numbers if self._members[n].handle is not None]
            return {"containers": [n for n, _ in self._roll]}

    def _refuse_while_stopping(self) -> None:
        if self.roster.is_stopping:
            raise ConfigurationError("the job is stopping.", "Start it again with `samzapy run`.")

    def _go_on_with_restart(self) -> None:
        """One container at a time, and only while all others run."""
        with self._lock:
            if not self._roll:
                return
            number, launch_id = self._roll[0]
            member = self._members.get(number)
            others = [m for m in self._members.values() if m.number != number and not m.done and not m.is_parked]
            if member is None or member.done or (member.launch_id != launch_id and self._is_at_work(member)):
                self._roll.pop(0)
            elif member.launch_id == launch_id and not member.stop_wanted and all(self._is_at_work(m) for m in others):
                member.stop_wanted = True
                LOG.info("restarting container %d", number)
            if member is not None and not member.is_live and self._roll_homes.get(number):
                member.preferred_host = self._roll_homes[number]
            if not self._roll:
                self._roll_homes = {}

    def _leave_hosts(self) -> None:
        """Containers on hosts that Spark is about to lose are restarted elsewhere in good time."""
        now = self._clock.monotonic()
        if now - self._left_at < LEAVE_S or self._roll:
            return
        self._left_at = now
        leaving = set(self._launcher.leaving())
        if leaving:
            with self._lock:
                self._roll = [(m.number, m.launch_id) for m in self._members.values() if m.is_live and m.host in leaving]
                for number, _ in self._roll:
                    member = self._members[number]
                    member.preferred_host = None
                    LOG.info("container %d leaves %s, which is being decommissioned", number, member.host)

    def _is_at_work(self, member: Member) -> bool:
        reports = member.task_reports()
        return member.is_ready and all(reports.get(t, {}).get("state") in (state.RUNNING, state.STOPPED) for t in member.tasks)

    def _look_for_growth(self) -> None:
        """Partitions that were added to the inputs."""
        now = self._clock.monotonic()
        if self._world.look is None or self.roster.ends is not None or now - self._looked_at < self._settings.growth_s:
            return
        self._looked_at = now
        try:
            tasks = self._world.look()
        except ClusterUnreachable:
            return  # asked again next time
        except SamzapyError as error:
            with self._lock:
                self._fail(None, {"code": error.code, "message": error.message, "remedy": error.remedy, "exit_code": error.exit_code})
            return
        new = [t for t in tasks if t not in self.roster.tasks]
        if new:
            with self._lock:
                LOG.info("the inputs have grown: %s", ", ".join(new))
                self.roster.tasks.update({t: tasks[t] for t in new})
                self._must_plan = True

    # -- stopping ------------------------------------------------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Final commits everywhere, then the end. A second request ends the containers at once."""
        with self._lock:
            if self._stop_asked_at is None:
                self._stop_asked_at = self._clock.monotonic()
                self.roster.is_stopping = True
                self.roster.state = state.STOPPING

    def kill_now(self) -> None:
        """End without final commits: nothing committed is lost."""
        self._kill_now = True
