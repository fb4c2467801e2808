"""A container: owns tasks, starts them, runs them, commits them. One thread; one turn of the loop is `step()`.

Which tasks it owns is what the coordinator topic says, read after its producer was initialised (O1, O2) and again whenever the coordinator says
that there is a newer record: tasks join and leave while the others run. All that was not committed is rebuilt from Kafka.

    transaction.py    what the open transaction holds        timers.py, duties.py     what is due, as a table
    processing.py     a batch: the hot loop                  assigned.py              the coordinator topic, instructions
    commits.py        commit between two records             joining.py               tasks that are being started
    rollback.py       after an abort                         tasks.py                 window, end of stream, stopping
    hooks.py          calling the user's code                report.py                what people see
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from samzapy import failpoints
from samzapy.api.errors import BatchUnreadable, OffsetOutOfRange, SamzapyError, TopicMissing, TransactionAborted
from samzapy.container.assigned import AssignedTasks
from samzapy.container.cautious_processing import Careful
from samzapy.container.commit_due import ASKED, EARLY_S, END, START
from samzapy.container.commits import Commits
from samzapy.container.committer import Committer
from samzapy.container.duties import Duties
from samzapy.container.early_commits import Early
from samzapy.container.facts import OTHER, PROCESS, RESTORE, WAIT_INPUT, Facts
from samzapy.container.firing_retries import Firing
from samzapy.container.first_offsets import may_go_on
from samzapy.container.flushing import Flushing
from samzapy.container.growth import Growth
from samzapy.container.hooks import Hooks
from samzapy.container.input_consumer import InputConsumer
from samzapy.container.inputs import Inputs
from samzapy.container.joining import Joining
from samzapy.container.marks import Marks
from samzapy.container.misplaced_keys import MisplacedKeys
from samzapy.container.on_error import GivenUpRecords
from samzapy.container.ownership import Ownership
from samzapy.container.pausing import Paused, Pausing
from samzapy.container.processing import Processing
from samzapy.container.report import Report
from samzapy.container.rollback import RollBack
from samzapy.container.spec import ContainerSpec
from samzapy.container.standby import Standbys
from samzapy.container.starter import Starter
from samzapy.container.task_instance import TaskInstance
from samzapy.container.task_start import TaskStart
from samzapy.container.tasks import Tasks
from samzapy.container.timers import LOOK_S, Schedule
from samzapy.container.times import Times
from samzapy.container.tracing import Tracing
from samzapy.container.transaction import Transaction
from samzapy.container.unreadable_batches import skip_unreadable
from samzapy.ids import random_id
from samzapy.model.caution import Caution
from samzapy.model.offsets import TopicPartition
from samzapy.plan.on_error_policy import sets_aside
from samzapy.plan.refused_record_search import PoisonSearch
from samzapy.ports import Clock, Log, Supervision

LOG = logging.getLogger("samzapy.container")
WATCH_S = 0.01  # how often ends and gates are looked at
BUSY_WATCH_S = 0.05  # the same while records come
JOIN_WAIT_S = 0.01


class Container:
    """The run loop, and the parts that it is made of.

    Args:
        spec: what to run, as values.
        incarnation: this process's id, which the coordinator topic must name.
        end_offsets: by str(TopicPartition), for `--until-end`; None: run for ever.
        supervision: what it has of its process.
        new_id: where the nonces of its barriers come from.
        caution: what is known of records that ended containers.

    Attributes:
        tasks: those it holds: being started, running, or stopped by themselves. facts, tracing: for whoever looks inside.
    """

    def __init__(
        self,
        spec: ContainerSpec,
        incarnation: str,
        run_id: str,
        end_offsets: Mapping[str, int] | None,
        log: Log,
        clock: Clock,
        *,
        supervision: Supervision | None = None,
        new_id: Callable[[], str] = random_id,
        caution: Caution = Caution(),  # noqa: B008  a value
    ) -> None:
        if sets_aside(spec.on_error) and spec.dead_letters is None:
            raise TopicMissing(f"the dead-letter topic {spec.job.dead_letter_topic} does not exist.", "`samzapy topics JOB.yaml --create`.")
        line, name = supervision or Supervision(), f"container-{spec.number}"
        self._spec, self._clock, self._poll_records = spec, clock, spec.poll_records
        self.tasks: dict[str, TaskInstance] = {}

        # What is read, and written: the inputs' consumer, the one transactional producer, and with `at_least_once` one for outputs.
        self._transaction = transaction = Transaction()
        self.ownership = own = Ownership(spec.job, spec.number, incarnation, log, clock, transaction)
        self._outputs = None if spec.exactly_once else log.plain_producer(name)
        self._consumer = consumer = InputConsumer(lambda fetch: log.consumer(spec.job.group_id, name, fetch), caution, clock, spec.number)
        self._inputs = inputs = Inputs(consumer, log, spec.commit_timeout_s)
        self._misplaced_keys = MisplacedKeys({t: count for t, count in spec.keyed_inputs.items() if t not in spec.between}, spec.joined)
        self._standbys = standbys = Standbys(spec, log, clock)

        facts = Facts(clock)
        self._schedule = schedule = Schedule(clock, facts.loop)
        self._search = search = PoisonSearch(spec.retries, spec.patience_s, spec.job.checkpoint_topic)
        self._growth = growth = Growth(spec.keyed_inputs, spec.topic_ids, spec.number, log, clock, spec.between)
        hooks = Hooks(spec, run_id, own, transaction, self._outputs, facts.loop)
        marks = Marks(spec, run_id, own)
        self._times = times = Times(spec, run_id, inputs, clock, hooks.requests, marks)
        self._committer = committer = Committer(spec, own, self._outputs, consumer, clock, run_id, marks)
        self._commits = commits = Commits(
            transaction=transaction, inputs=inputs, hooks=hooks, committer=committer, growth=growth, search=search, schedule=schedule,
            tasks=self.tasks, spec=spec, told=facts, clock=clock,
        )  # fmt: skip
        self._early = Early(spec, marks, inputs, hooks.collector, commits, clock)

        self._given_up = given_up = GivenUpRecords(spec, own, transaction, commits, clock, facts.errors)
        self._tasks = tasks = Tasks(
            spec=spec, held=self.tasks, end_offsets=end_offsets, transaction=transaction, inputs=inputs, hooks=hooks, commits=commits, supervision=line,
            firing=Firing(hooks, given_up, spec.retries, clock),
        )  # fmt: skip
        task_start = TaskStart(
            spec=spec, run_id=run_id, caution=caution, consumer=consumer, inputs=inputs, hooks=hooks, commits=commits, search=search,
            times=times, facts=facts,
        )  # fmt: skip
        self._joining = joining = Joining(
            lambda: Starter(spec, log, own, consumer, clock, lambda: commits.commit(START), new_id), task_start, tasks, standbys, line, clock
        )
        self._assigned = assigned = AssignedTasks(spec.number, own, tasks, joining, standbys, commits, line)
        flushing = Flushing(spec.flush_interval_s, spec.flush_changes)
        self._rollback = RollBack(
            spec=spec, own=own, transaction=transaction, search=search, inputs=inputs, hooks=hooks, tasks=tasks, joining=joining,
            commits=commits, schedule=schedule, flushing=flushing,
        )  # fmt: skip

        self.tracing = Tracing(spec, hooks.collector)
        self._processing = Processing(
            retries=spec.retries, inputs=inputs, transaction=transaction, hooks=hooks, search=search, commits=commits, tasks=tasks, tracing=self.tracing,
            given_up=given_up, schedule=schedule, careful=Careful(caution, facts.loop.apart(line.announce), clock.monotonic() + caution.watch_s), clock=clock,
        )  # fmt: skip
        self._pausing = pausing = Pausing(line, inputs, transaction, commits)
        duties = Duties(
            spec=spec, supervision=line, own=own, assigned=assigned, joining=joining, transaction=transaction, tasks=tasks, commits=commits, committer=committer,
            search=search, inputs=inputs, consumer=consumer, flushing=flushing, standbys=standbys, schedule=schedule, clock=clock, times=times, pausing=pausing,
        )  # fmt: skip
        schedule.set(duties.table())
        self._report = Report(
            host=spec.host, tasks=self.tasks, inputs=inputs, consumer=consumer, transaction=transaction, committer=committer, own=own, assigned=assigned,
            standbys=standbys, facts=facts, hooks=hooks, clock=clock, pausing=pausing, commits=commits, search=search,
        )  # fmt: skip
        self._line, self._number, self.facts, self._next_advance, self._copies_lag = line, spec.number, facts, 0.0, False

    # -- starting ------------------------------------------------------------------------------------------------------------------------

    def own(self) -> None:
        """O1, O2, then begin to start every task that the coordinator topic gives to this container. Also called to recover from doubt.

        Raises:
            Superseded: another incarnation owns these tasks. LogError: Kafka, or what serdes need, could not be asked.
        """
        self.drop_all()
        self._spec.prepare()
        self.ownership.take()
        self._rollback.reset_timers()
        self._assigned.apply_instructions()

    def start(self) -> None:
        """`own`, and all tasks started. Raises StateRefused, StateMismatch, OffsetOutOfRange, TaskError (init); and what `own` raises."""
        self.own()
        while self.is_starting:
            self.step()

    # -- the loop ------------------------------------------------------------------------------------------------------------------------

    def step(self, wait_s: float = LOOK_S) -> bool:
        """One turn: poll, process, and what is due. Waits at most `wait_s` seconds for records. False: it brought none, nothing went wrong and no task starts.

        An aborted transaction is rolled back to the checkpoint here. Every other error is the caller's.
        """
        try:
            return self._turn(wait_s)
        except OffsetOutOfRange as error:
            self._growth.look()  # the topic may have been made again
            if not may_go_on(self._spec.inputs.get(error.topic)):
                raise
            return self._start_in_range(error)
        except TransactionAborted as error:
            self._rollback.after(error)
            return True
        except Paused:
            self._pausing.put_back()
            return True

    def _turn(self, wait_s: float) -> bool:
        now = self._processing.seen_at = self._clock.monotonic()
        are_watched = self._tasks.are_watched
        if self._consumer.stalled or self._consumer.must_grow:
            self._renew_consumer()

        is_busy = self._joining.is_on or self._copies_lag  # nobody waits for records while a restore or a warm copy gets on without them
        most_s = WATCH_S if are_watched else EARLY_S if self._early.is_on else wait_s
        timeout_s = 0.0 if is_busy else max(0.0, min(wait_s, self._schedule.next_at - now, most_s))
        self.facts.loop.to(WAIT_INPUT)
        try:
            batch = self._inputs.poll(min(self._poll_records, self._search.room(self._transaction.records)), timeout_s)
        except BatchUnreadable as error:  # only here: whatever else reads needs each record, and may be at it in the middle of a batch
            skip_unreadable(error, self._inputs, self._given_up, self._commits)
            batch, had_some = (), True
        else:
            had_some = bool(batch)
        if batch and not self._misplaced_keys.is_done:
            self._misplaced_keys.look(batch)
        self.facts.loop.to(PROCESS)
        if self._times.is_on:
            self._times.before(batch)
        self._processing.run(batch)
        self._early.after(batch)
        self.facts.loop.to(OTHER)

        # Gates and ends are reached by positions, not by records, so they are looked at also when nothing came.
        if are_watched and not self._pausing.is_on and (not had_some or now >= self._next_advance):
            self._tasks.advance()
            self._next_advance = now + BUSY_WATCH_S
        if self._outputs is not None:
            self._outputs.poll()

        # Between two batches: here a join may be finished, which changes what is read. A step of it may wait for records if the others have none.
        self.facts.loop.to(RESTORE)
        self._joining.restore(0.0, wait_s=0.0 if had_some else JOIN_WAIT_S)
        self._joining.finish()
        self._copies_lag = self._standbys.step()
        self.facts.loop.to(OTHER)
        if self._clock.monotonic() >= self._schedule.next_at:
            self._schedule.run()
        return had_some or self.is_starting

    def _start_in_range(self, error: OffsetOutOfRange) -> bool:
        """Records were removed before they were read. A start applies the input's policy for that: what was done is committed, all tasks start again."""
        LOG.warning("container %d: its tasks start again, to apply `on_out_of_range`: %s", self._number, error.message)
        self.commit_or_roll_back(START)
        self.own()
        return True

    def _renew_consumer(self) -> None:
        """A new one where the tasks stand: because the watchdog found this one silent, or it is time to fetch more at once."""
        self._inputs.read_again(self._consumer.renew)
        self._line.report(True)

    def commit(self) -> None:
        """Commit now, between two records; raises as `Commits.commit`."""
        self._commits.commit(ASKED)

    def commit_or_roll_back(self, why: str = ASKED) -> bool:
        """Commit now. False: the transaction was aborted and is rolled back to the checkpoint, as `step` does it."""
        try:
            self._commits.commit(why)
        except TransactionAborted as error:
            self._rollback.after(error)
            return False
        return True

    # -- stopping ------------------------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Graceful: a final commit, close() of every task, stores flushed and closed.

        Raises:
            TaskError: a close() raised; everything was committed all the same.
            TransactionAborted: the final commit was; all is closed, as it was committed before.
        """
        self._joining.stop()
        aborted: list[SamzapyError] = []
        try:
            failpoints.hit("stop.final_commit.before")
            self._commits.commit(END, is_last=True)
            failpoints.hit("stop.final_commit.after")
        except TransactionAborted as error:
            aborted.append(error)
            self._rollback.after(error)
        errors = [*self._tasks.stop_all(), *aborted]
        self.ownership.drop()
        if errors:
            raise errors[0]

    def drop_all(self) -> None:
        """Drop everything without deciding anything: what was not committed is gone, as after a crash.

        What was released stays released: until a newer record the topic does not know yet that it was.
        """
        self._rollback.drop()
        self.ownership.drop()
        self._joining.stop()
        self._tasks.drop_all()

    def close(self) -> None:
        """Close every client."""
        self.drop_all()
        self._standbys.close()
        self._growth.close()
        if self._outputs is not None:
            self._outputs.close()
        self._consumer.close()

    # -- what others see -----------------------------------------------------------------------------------------------------------------

    @property
    def seen_at(self) -> float:
        """When the loop was last seen not to be inside a hook, in monotonic seconds."""
        return self._processing.seen_at

    @property
    def written(self) -> set[str]:
        """The topics that a commit waits for."""
        return self._spec.written

    def writes(self, partition: TopicPartition) -> bool:
        """Whether a commit may wait for this partition of theirs."""
        return self._spec.is_written(partition, {task.model.partition for task in list(self.tasks.values())})

    @property
    def consumed(self) -> Mapping[TopicPartition, int]:
        """Up to where internal topics are read and committed."""
        return self._committer.consumed

    @property
    def finished(self) -> bool:
        """Every task that it owns has stopped by itself: nothing is left to do."""
        return self._assigned.have_finished

    @property
    def is_starting(self) -> bool:
        """Whether tasks that it owns have not been started yet."""
        return self._assigned.are_starting

    def status(self) -> dict[str, Any]:
        """The heartbeat's report, without lag."""
        return self._report.status()
