"""The coordinator of one run: decides which container runs which tasks, for as long as the job runs.

One thread decides and acts (`run`), a turn at a time: renew the lease, see who is gone and end it at the broker, plan, name those who ask
for it and move tasks, start what is to be started. Containers and people are answered by the roster, on other threads, from what was
decided. Everything that must outlast this process is in the coordinator topic; a new coordinator finds it there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from samzapy import failpoints
from samzapy.api import exit_codes
from samzapy.api.errors import REFUSED, ClusterUnreachable, Fenced, InDoubt, LogError, SamzapyError, StateRefused, TransactionAborted
from samzapy.coordinator.coordinator_log import CoordinatorLog
from samzapy.coordinator.ended_containers import Liveness
from samzapy.coordinator.history import History, RunFacts
from samzapy.coordinator.live_changes import Changes
from samzapy.coordinator.membership import job_state
from samzapy.coordinator.movement import Movement
from samzapy.coordinator.ownership_records import OwnershipRecords, needed_keys
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.run_lease import Lease
from samzapy.coordinator.settings import CoordinatorSettings, InputTopics, Process
from samzapy.coordinator.starting import Starting
from samzapy.coordinator.writing import Writing
from samzapy.ids import random_id
from samzapy.model.job_model import TaskModel
from samzapy.model.names import Job
from samzapy.model.ownership import FIRST_RUN_KEY, Ledger, end_offsets_key, end_offsets_to_bytes, input_key, input_to_bytes
from samzapy.model.states import JobState
from samzapy.plan.bounded_run import has_job_finished, is_run_over, is_stop_overdue
from samzapy.plan.container_phases import Phase
from samzapy.plan.lost_topics import coordinator_emptied, differs_from_first_run
from samzapy.plan.preview import last_owners
from samzapy.ports import Clock, Launcher, Log

LOG = logging.getLogger("samzapy.coordinator")
TICK_S = 0.05
RETRY_S = 0.5
FENCED_S = 1.0  # a coordinator that took over has written its lease by then
ATTEMPTS = 5
BEGIN_S = 30.0  # how long a start is tried at least; what is lost and late on the network may fail some attempts in a row


class JobCoordinator:
    """Runs the containers of a job until they are finished, asked to stop, or failed.

    Args:
        payload: what every container is started with, in addition to its number, launch id and the job model.
        ends: the inputs' end offsets for `--until-end`, by str(TopicPartition); None otherwise.
        is_alive: whether a coordinator answers at a URL for this job.
        new_id: where the ids of launches come from.
        has_begun: called with the URL for people, once this run has the lease.
        facts: what the record of this run tells of its start.
    """

    def __init__(
        self,
        *,
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
        input_topics: InputTopics | None = None,
        new_id: Callable[[], str] = random_id,
        has_begun: Callable[[str], None] = lambda url: None,
        facts: RunFacts = RunFacts(),  # noqa: B008  a value
    ) -> None:
        self._job, self._run_id = job, run_id
        self._settings = settings
        self._clock, self._launcher = clock, launcher
        self._input_topics = input_topics or InputTopics()
        self._topic = CoordinatorLog(job, run_id, log, clock)
        self._ownership = OwnershipRecords(self._topic, run_id, clock)
        self.roster = Roster(job, run_id, tasks, settings.containers, ends, clock)
        self.roster.diagnosing.budget_bytes = settings.memory_bytes
        self.roster.diagnosing.hang_s = settings.stop_timeout_s
        self._lease = Lease(job, run_id, self._ownership, settings, clock, process, is_alive)
        self._liveness = Liveness(self.roster, self._ownership, settings, clock)
        self._movement = Movement(self.roster, self._ownership, settings, clock)
        self._starting = Starting(self.roster, self._ownership, settings, clock, launcher, payload, self._movement.replan, new_id)
        self.changes = Changes(self.roster, settings, clock, launcher, self._input_topics, self._movement.replan)
        self.history = History(facts, self.roster, self._ownership, settings, process, clock)
        self._writing = Writing(clock)
        self.seen_at = clock.monotonic()  # when it last began something that may wait for Kafka: a turn, the end
        self._has_begun = has_begun
        self._kill_now = False
        self._was_running = False

    def listens_at(self, url: str, control_url: str) -> None:
        """The URLs for people and for containers; call before `run`."""
        self.roster.url = url
        self._starting.control_url = control_url

    def run(self) -> int:
        """Run until the job ends. Returns the exit code: 0 finished or stopped, else that of the error that ended it.

        Raises:
            OwnedElsewhere: another run is alive. LogError: Kafka cannot be asked.
        """
        try:
            self.begin()
            self._has_begun(self.roster.url)
            while self.turn():
                self._clock.sleep(self._settings.tick_s)
        except Fenced as error:
            self.roster.state = JobState.FENCED
            LOG.error("this coordinator was replaced by another: %s: %s", error.code, error)
            return Fenced.exit_code
        except SamzapyError as error:
            if not self._lease.is_held:
                raise
            self.roster.fail(None, error.to_json())  # `status` tells of it later
        finally:
            self._launcher.close()
        return self.end()

    def begin(self) -> None:
        """The start of a coordinator: refuse while another is alive; else fence it and every container of earlier runs, then assign.
        Whatever of it was written may be written again, so what is in doubt is decided by beginning again.
        """
        until = 0.0
        for attempt in count(1):
            try:
                self._begin()
                return
            except (Fenced, InDoubt, TransactionAborted) as error:
                self.seen_at = self._clock.monotonic()
                until = until or self.seen_at + BEGIN_S
                is_last = attempt >= ATTEMPTS and (self.seen_at >= until or isinstance(error, REFUSED))
                if is_last or self._ownership.is_replaced:  # to try again would fence the run that replaced this one
                    raise self._why_not_begun(error, attempt) from None
                LOG.warning("the coordinator topic could not be written, so this start is tried again: %s: %s", error.code, error)
                self._ownership.close()
                self._clock.sleep(FENCED_S if isinstance(error, Fenced) else RETRY_S)

    def _why_not_begun(self, error: LogError, attempts: int) -> LogError:
        """A producer that failed for good is told as fenced, whatever its cause: only another run's lease shows that there is another."""
        if not isinstance(error, Fenced):
            return error
        lease, replaced = self._topic.read().lease, self._ownership.replaces
        if lease is not None and lease.run_id != self._run_id and (not lease.ended or replaced not in (None, lease.run_id)):
            return error  # that run may have ended already
        return LogError(f"the coordinator's producer failed {attempts} times in a row, the last time with: {error.message}", "See the brokers' logs.")

    def _begin(self) -> None:
        found = self._lease.await_the_other(self._topic.read)
        if found.start > 0:
            raise coordinator_emptied(self._job, found.start)
        found.must_be_readable(needed_keys(self.roster.target, self.roster.tasks, self._input_topics.inputs))
        self._refuse_other_topics(found)
        ledger = self._ownership.take_over()
        failpoints.hit("coordinator.taken_over")
        self._starting.replaced = self._lease.replaced(found)
        self._lease.renew(self.roster.url)
        LOG.info("status: %s/api/v1/status", self.roster.url)
        self._ownership.end_all(ledger, range(self.roster.target))
        failpoints.hit("coordinator.fenced")
        self._note_inputs(ledger)
        self.history.begin(ledger)
        self._await_home_hosts()
        slots = self._launcher.hosts()
        with self.roster.lock:
            self.roster.desired = {t: n for t, n in last_owners(ledger).items() if t in self.roster.tasks}
            self._movement.replan(slots)
            used = len(self.roster.members)
        LOG.info("job %s, run %s: %d tasks in %d container%s", self._job, self._run_id, len(self.roster.tasks), used, "" if used == 1 else "s")

    def end(self) -> int:
        """Write the end of this run; returns the exit code."""
        self.seen_at = self._clock.monotonic()
        failpoints.hit("coordinator.finish.before")
        failure, unsettled = self.roster.failure, self._without_final_commit()
        self.roster.state = JobState.FAILED if failure else JobState.FINISHED
        try:
            if self._ownership.is_in_doubt:
                self._movement.reconcile(self._ownership.read())
            self._ownership.end(self._liveness.record(m) for m in self.roster.members.values() if m.is_named)
            told_of = failure[1] if failure else None
            self._lease.give_up(self.roster.state, f"{told_of['code']}: {told_of['message']}" if told_of else "", self.history.last_words())
        except (LogError, StateRefused) as error:
            if failure is None or failure[1].get("message") != error.message:
                LOG.warning("the end of this run could not be written; the next run waits until the lease has ended: %s", error)
        self._ownership.close()
        if failure is None:
            stopped = "was stopped" + ", perhaps before the ends of its inputs" * (self.roster.ends is not None)
            ended = stopped if self._kill_now or self.roster.stop_asked_at is not None else "has finished"
            if unsettled:
                LOG.warning("job %s %s, but container %s made no final commit: its tasks will go on from the commit before", self._job, ended, unsettled)
            else:
                LOG.info("job %s %s; all its work is committed", self._job, ended)
            return exit_codes.of_run(None)
        number, error_fields = failure
        LOG.error(
            "job %s failed: %serror[%s]: %s", self._job, f"container {number}: " if number >= 0 else "", error_fields["code"], error_fields["message"]
        )
        if error_fields.get("remedy"):
            LOG.error("  %s", error_fields["remedy"])
        return exit_codes.of_run(error_fields)

    def _without_final_commit(self) -> str:
        """The containers that still ran, or failed, when the run ended."""
        return ", ".join(str(m.number) for m in self.roster.members.values() if (m.is_named and not m.is_done) or m.history.last_error)

    def _refuse_other_topics(self, ledger: Ledger) -> None:
        inputs = ", ".join(sorted(name for name, _ in self._input_topics.inputs.values()))
        now = self._input_topics.first_run
        error = None if now is None else differs_from_first_run(self._job, inputs, ledger.first_run, now)
        if error is not None:
            raise error

    def _note_inputs(self, ledger: Ledger) -> None:
        """Records of the first start: the ends of a bounded run, each input's number of partitions, the facts of the job's first run."""
        records: list[tuple[bytes, bytes | None]] = [
            (input_key(topic_id), input_to_bytes(name, count))
            for topic_id, (name, count) in self._input_topics.inputs.items()
            if topic_id not in ledger.first_partitions
        ]
        first_run = self._input_topics.first_run
        if first_run is not None and first_run != ledger.first_run:
            records.append((FIRST_RUN_KEY, first_run.to_bytes()))
        if self.roster.ends is not None:
            records.append((end_offsets_key(self._run_id), end_offsets_to_bytes(self.roster.ends)))
        if records:
            self._ownership.write(*records)

    def _await_home_hosts(self) -> None:
        """Executors register one after the other: before tasks are assigned, wait a while for the hosts that have the newest state."""
        newest = {max(hosts, key=lambda h: hosts[h]) for hosts in self._ownership.locality.values() if hosts}
        deadline = self._clock.monotonic() + self._settings.host_affinity_s
        while not newest <= set(self._launcher.hosts()) and self._clock.monotonic() < deadline:
            self._clock.sleep(TICK_S)
        missing = sorted(newest - set(self._launcher.hosts()))
        if missing:
            told = "no executor on %s within %.0f s: tasks with state there are restored elsewhere"
            LOG.warning(told, ", ".join(missing), self._settings.host_affinity_s)

    # -- one turn --------------------------------------------------------------------------------------------------------------------

    def turn(self) -> bool:
        """One turn; False: the job has ended. While the coordinator topic cannot be written the containers go on, and this is tried again."""
        self.seen_at = self._clock.monotonic()
        try:
            self._tick()
            self._writing.succeeded()
        except (ClusterUnreachable, InDoubt, TransactionAborted) as error:
            self._writing.failed(error)
            self._fail_if_hopeless(error)
            self._clock.sleep(RETRY_S)
        except Fenced as error:
            self._ask_who_took_over(error)
        with self.roster.lock:
            self._update_state()
            self.roster.look()
        return not self._is_over(self._clock.monotonic())

    def _fail_if_hopeless(self, error: SamzapyError) -> None:
        """The job goes on without the topic for as long as it needs nothing there; a container that is to be ended or named does."""
        waiting = [m.number for m in self.roster.members.values() if m.phase in (Phase.ENDING, Phase.APPLYING)]
        if waiting and self._writing.is_hopeless and self.roster.failure is None:
            with self.roster.lock:
                self.roster.fail(None, error.to_json())

    def _ask_who_took_over(self, error: Fenced) -> None:
        """The producer is dead at the broker; that does not mean that another coordinator is there.

        Measured: an init that comes late fences the producer that it was meant to make (tests/recovery/test_late_init.py). librdkafka also fails for
        good when a connection breaks within a request and sequence numbers no longer match; a chaos run showed that. A coordinator that has
        taken over writes its lease at once.

        Raises:
            Fenced: another run has the lease.
        """
        self._clock.sleep(FENCED_S)
        try:
            lease = self._topic.read().lease
        except (ClusterUnreachable, InDoubt, TransactionAborted) as unknown:
            LOG.warning("cannot read yet whether another coordinator has taken over: %s", unknown)
        else:
            if lease is not None and lease.run_id != self._run_id:
                raise error
        self._ownership.is_in_doubt = True  # the next turn makes a new producer, looks at the lease again, and reads what holds
        LOG.warning("the coordinator's producer failed, but no other run took over: continuing with a new producer: %s", error)

    def _tick(self) -> None:
        roster, movement = self.roster, self._movement

        # First what needs no write: a failure and a stop end containers whether or not the topic can be written.
        self._liveness.check_members(is_in_doubt=self._ownership.is_in_doubt)
        if self._ownership.is_in_doubt:
            movement.reconcile(self._ownership.read())
        self._lease.renew_when_due(roster.url)
        self._liveness.end_lost()
        if not roster.is_stopping:
            self.changes.look_for_growth()
            self.changes.leave_hosts()
            self.changes.go_on_with_restart()
            if roster.must_plan:
                slots = self._launcher.hosts()  # without the lock: they may be late
                with roster.lock:
                    movement.replan(slots)
            movement.name_and_move()
            self._starting.make_room()
            self._starting.launch_wanted()
        with roster.lock:
            movement.dismiss_surplus()
            movement.note_arrivals()
        self.history.write_when_due()

    def _update_state(self) -> None:
        roster = self.roster
        members = list(roster.members.values())
        roster.unwritable = self._writing.why_not
        found = job_state(roster.are_tasks_at_work(), members, roster.is_stopping, self._was_running)
        roster.state = roster.orders.state_of(found, members)
        self._was_running = self._was_running or found == JobState.RUNNING
        roster.is_changing = (
            bool(roster.waiting) or self.changes.is_under_way or any(not m.is_done and (not m.is_ready or m.releasing) for m in members)
        )

    def _is_over(self, now: float) -> bool:
        roster = self.roster
        left, at_once = [m.phase for m in roster.members.values() if not m.is_done], self._kill_now or roster.ends_at_once
        done, refused = has_job_finished(roster.finished, roster.tasks), self._writing.is_refused
        if is_run_over(left, ends_at_once=at_once, is_stopping=roster.is_stopping, is_topic_refused=refused, has_finished=done):
            return True
        if is_stop_overdue(roster.stop_asked_at, now, self._settings.stop_timeout_s):
            LOG.warning("containers did not stop within %.0f s; ending them", self._settings.stop_timeout_s)
            return True
        return False

    def request_stop(self, by: str = "somebody") -> None:
        """Final commits everywhere, then the end. `by`: who asks."""
        self.roster.request_stop(by)

    def kill_now(self) -> None:
        """End without final commits: nothing committed is lost."""
        self._kill_now = True
