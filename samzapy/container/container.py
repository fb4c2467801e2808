"""A container: owns tasks, starts them, runs them, commits them. One thread; one turn of the loop is `step()`.

Which tasks it owns is what the coordinator topic says, read after its producer was initialised (O1, O2) and again whenever the
coordinator says that there is a newer record: tasks join and leave while the others run. Start, restart after something went wrong, start
after a crash, and joining are the same code: barriers, checkpoint, restore, seek, `init()`, in steps between which the other tasks go on.
Everything that was not committed is rebuilt from Kafka, nothing is remembered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from samzapy import failpoints
from samzapy.api.context import JobInfo
from samzapy.api.errors import (
    BatchUnreadable,
    LogError,
    OffsetOutOfRange,
    RecordRejected,
    SamzapyError,
    Superseded,
    TaskError,
    TopicMissing,
    TransactionAborted,
)
from samzapy.container.careful import Careful, culprits_of
from samzapy.container.collector import Collector
from samzapy.container.committer import Committer
from samzapy.container.failure import DEAD_LETTER, FAIL, is_users, named, origin_of, refuse_returned
from samzapy.container.flushing import Flushing
from samzapy.container.forked import end_child, watch
from samzapy.container.growth import Growth
from samzapy.container.inputs import Inputs
from samzapy.container.metrics import TaskMetrics
from samzapy.container.ownership import Ownership
from samzapy.container.partitioners import Partitioners
from samzapy.container.processing import Processing
from samzapy.container.renewable import RenewableConsumer
from samzapy.container.requests import Requests
from samzapy.container.search import Culprit, GiveUp, Search
from samzapy.container.spec import ContainerSpec
from samzapy.container.standby import Standbys
from samzapy.container.starter import Starter
from samzapy.container.task_instance import RESTORING, RUNNING, STOPPED, Context, Lane, TaskInstance
from samzapy.container.unreadable import pass_by
from samzapy.ids import random_id
from samzapy.model.caution import Caution
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Clock, Consumer, Line, Log, Orders

LOG = logging.getLogger("samzapy.container")
LOOK_S = 0.1
WATCH_S = 0.01
JOIN_WAIT_S = 0.01
HOOKS = ("init", "window", "end_of_stream", "close")
T = TypeVar("T")
SWEEP_S = 3600.0  # not at the start: what others on this host have not opened yet must not look abandoned


@dataclass(slots=True)
class _Joining:
    """Tasks that are being started."""

    tasks: list[TaskInstance]
    starter: Starter
    steps: Generator[bool, None, None]


class Container:
    """The run loop and all that it holds.

    Args:
        spec: what to run, as values.
        incarnation: this process's id, which the coordinator topic must name.
        end_offsets: by str(TopicPartition), for `--until-end`; None: run for ever.
        line: what it has of its process.
        new_id: where the nonces of its barriers come from.
        caution: what is known of records that ended containers.

    Attributes:
        tasks: those it holds: being started, running, or stopped by themselves.
        seen_at: when the loop was last seen not to be inside a hook, in monotonic seconds.
    """

    def __init__(
        self,
        spec: ContainerSpec,
        incarnation: str,
        run_id: str,
        end_offsets: Mapping[str, int] | None,
        log: Log,
        clock: Clock,
        line: Line | None = None,
        new_id: Callable[[], str] = random_id,
        caution: Caution = Caution(),  # noqa: B008  a value
    ) -> None:
        if spec.on_error == DEAD_LETTER and spec.dead_letters is None:
            raise TopicMissing(f"the dead-letter topic {spec.job.dead_letter_topic} does not exist.", "`samzapy topics JOB.yaml --create`.")
        self._spec = spec
        self._models = dict(spec.tasks)
        self._run_id = run_id
        self._end_offsets = end_offsets
        self._log = log
        self._clock = clock
        self._line = line or Line()
        self._new_id = new_id
        self._own = Ownership(spec.job, spec.number, incarnation, log, clock)
        self._outputs = None if spec.exactly_once else log.plain_producer(f"container-{spec.number}")
        self._small_until = clock.monotonic() + caution.watch_s  # a death may have been for want of memory, for what one fetch brought
        self._is_small = self._must_grow = False
        self._consumer = RenewableConsumer(self._new_consumer)
        self._inputs = Inputs(self._consumer, spec.commit_timeout_s)
        self._partitioners = Partitioners(spec.keyed_inputs)
        self._growth = Growth(spec.keyed_inputs, spec.topic_ids, spec.number, log, clock)
        self._stalled: list[str] = []
        self._committer = Committer(spec, self._own, self._outputs, self._consumer, clock, run_id)
        self._standbys = Standbys(spec, log, clock)
        self._requests = Requests()
        watch(self._requests)
        self._collector = Collector(spec.outputs)
        self._window_held = False  # whether the transaction has what window() did
        self._search = Search(spec.retries)
        self._caution = caution
        careful = Careful(caution, self._line.under_way, clock.monotonic() + caution.watch_s)
        self._processing = Processing(
            self, spec, self._own, self._inputs, self._collector, self._requests, self._search, self._outputs, careful, clock
        )
        self._next_commit = self._next_window = self.next_duty = self._next_advance = 0.0
        self._next_look = 0.0
        self._next_sweep = clock.monotonic() + SWEEP_S
        self._flushing = Flushing(spec.flush_interval_s, spec.flush_changes)
        self._adopted = 0  # epoch of the record that is carried out
        self._released: set[str] = set()  # tasks of that record that were given back
        self._joining: _Joining | None = None
        self._copies_lag = False
        self._metrics: dict[str, TaskMetrics] = {}
        self.tasks: dict[str, TaskInstance] = {}
        self.seen_at = clock.monotonic()

    def _new_consumer(self) -> Consumer:
        self._is_small = self._clock.monotonic() < self._small_until
        return self._log.consumer(self._spec.job.group_id, f"container-{self._spec.number}", self._is_small)

    # -- owning: tasks come and go -----------------------------------------------------------------------------------------------------

    def own(self) -> None:
        """O1, O2, then begin to start every task that the coordinator topic gives to this container. Also after anything that left it in doubt.

        Raises:
            Superseded: another incarnation owns these tasks. LogError: Kafka could not be asked.
        """
        self.let_go()
        self._own.take()
        self._set_out()
        self._heed()

    def start(self) -> None:
        """`own`, and all tasks started.

        Raises:
            StateRefused, StateMismatch, OffsetOutOfRange, TaskError (init); and what `own` raises.
        """
        self.own()
        while self.is_starting:
            self.step()

    def _heed(self) -> None:
        """Carry out what the coordinator topic says and the coordinator wants: give back, then join what is missing."""
        orders = self._line.orders()
        self._models.update(orders.models)
        if orders.epoch > self._own.epoch:
            self._own.check()
        if self._own.epoch != self._adopted:
            self._adopt()
        self._give_back(orders)
        self._standbys.follow({n: self._models[n] for n in orders.standby if n in self._models and n not in self.tasks})
        if self._joining is None:
            missing = [n for n in self._own.named if n not in self.tasks and n not in self._released and n not in orders.release]
            if missing:
                self._join(missing)

    def _adopt(self) -> None:
        lost = sorted(set(self.tasks) - set(self._own.named))
        if lost:
            raise Superseded(f"container {self._spec.number}: {', '.join(lost)} was assigned to another container before this one released it.", "")
        self._adopted = self._own.epoch
        self._released.clear()
        self._line.published(True)

    def _give_back(self, orders: Orders) -> None:
        names = [n for n in self._own.named if n in orders.release and n not in self._released]
        if not names:
            return
        if self._joining is not None and any(t.name in names for t in self._joining.tasks):
            self._stop_joining()  # those that stay begin again
        leaving = [self.tasks[n] for n in names if n in self.tasks]
        if any(t.state != STOPPED for t in leaving):
            self.commit()
            failpoints.hit("move.commit.before_release")
        for task in leaving:
            if task.state != STOPPED:
                self._stop_task(task)
            del self.tasks[task.name]
        self._released.update(names)
        failpoints.hit("move.released.before_ack")
        LOG.info("gave back %s", ", ".join(names))
        self._line.published(True)

    def _join(self, names: Sequence[str]) -> None:
        """T1 to T5 begin for these tasks."""
        tasks = [self._instance(name) for name in names]
        for task in tasks:
            self._standbys.leave(task.name)
            self.tasks[task.name] = task
        starter = Starter(self._spec, self._log, self._own, self._consumer, self._clock, self.commit, self._new_id)
        self._joining = _Joining(tasks, starter, starter.steps(tasks))
        self._line.published(True)

    def _join_on(self, is_busy: bool) -> None:
        joining = self._joining
        if joining is None:
            return
        joining.starter.may_wait(0.0 if is_busy else JOIN_WAIT_S)
        try:
            next(joining.steps)
        except StopIteration:
            self._joining = None
            self._begin(joining.tasks)  # T6

    def _stop_joining(self) -> None:
        joining, self._joining = self._joining, None
        if joining is not None:
            joining.steps.close()
            for task in joining.tasks:
                self._close_stores(task)
                self.tasks.pop(task.name, None)

    def _instance(self, name: str) -> TaskInstance:
        model = self._models[name]
        stores = {store: s.make(name, None) for store, s in self._spec.stores.items()}
        task = TaskInstance(model, stores, self._metrics.setdefault(name, TaskMetrics()), RESTORING)
        ends = self._end_offsets
        task.lanes = [Lane(p, self._spec.inputs[p.topic], task, None if ends is None else ends[str(p)]) for p in model.inputs]
        return task

    def _begin(self, tasks: Sequence[TaskInstance]) -> None:
        """T6: new task objects, inputs at the checkpoint, `init()`."""
        going = []
        for task in tasks:
            task.ended, task.closing = task.committed.ended_run_id == self._run_id, False
            if task.ended:
                task.state = STOPPED
                self._close_stores(task)
            else:
                going.append(task)
        for task in going:
            self._init(task)
        if any((p.topic, p.partition) in self._inputs.lanes for t in going for p in t.model.inputs):
            self.commit()  # so that the checkpoints of those who read the same say where they stand
        begins = {t.name: {lane.partition: self._offset_to_read(lane) for lane in t.lanes} for t in going}
        self._inputs.assign(going, begins)
        for place, begin in [at for places in begins.values() for at in places.items()] if self._caution.condemned else ():
            self._search.condemn(culprits_of(self._caution, place, begin))
        if self._search.is_on:
            self.commit()  # what init() put is not laid at a record's door
        self._line.published(True)

    def _set_out(self) -> None:
        """All timers anew."""
        now = self._clock.monotonic()
        self._next_commit = now + self._spec.commit_interval_s
        self._next_window = now + self._spec.window_s if self._spec.window_s else float("inf")
        self._flushing.begin(now)
        self.next_duty = now
        self._next_look = now + 1.0

    def _offset_to_read(self, lane: Lane) -> int:
        """The committed offset; but a bootstrap input that feeds what no changelog keeps is read from its start each time."""
        if lane.spec.bootstrap and (not self._spec.stores or any(s.changelog is None for s in self._spec.stores.values())):
            return self._consumer.bounds(lane.partition).start
        return lane.task.committed.inputs[str(lane.partition)].next_offset

    def _init(self, task: TaskInstance) -> None:
        job = JobInfo(self._spec.job.name, self._spec.job.id, self._run_id)
        user = self._user(task, "the constructor", self._spec.make_task)
        context = Context(task.model, self._spec.params, job, task.stores, task.metrics)
        task.user = user
        failpoints.hit("init.before")
        self._hook(task, "init", lambda: user.init(context))
        failpoints.hit("init.after")

    # -- the loop --------------------------------------------------------------------------------------------------------------------

    def step(self, wait_s: float = LOOK_S) -> bool:
        """One turn: poll, process, and what is due. Waits at most `wait_s` seconds for records. True: there were some.

        An aborted transaction is rolled back to the checkpoint here. Every other error is the caller's.
        """
        try:
            now = self.seen_at = self._clock.monotonic()
            watching = self._watching()
            is_busy = self._joining is not None or self._copies_lag
            timeout = 0.0 if is_busy else max(0.0, min(wait_s, self.next_duty - now, WATCH_S if watching else wait_s))
            if self._stalled or self._must_grow:
                self._read_anew()
            batch = self._inputs.poll(min(self._spec.poll_records, self._search.room(self._processing.held)), timeout)
            if batch and not self._partitioners.is_done:
                self._partitioners.look(batch)
            self._processing.run(batch)
            had_some = bool(batch)
            if watching and (not had_some or now >= self._next_advance):
                self._advance()
                self._next_advance = now + WATCH_S
            if self._outputs is not None:
                self._outputs.poll()
            self._join_on(had_some)
            self._copies_lag = self._standbys.step()
            if self._clock.monotonic() >= self.next_duty:
                self.duties()
            return had_some or self.is_starting
        except BatchUnreadable as error:
            return self._pass_by(error)
        except OffsetOutOfRange:
            self._growth.look()  # the topic may have been made again
            raise
        except TransactionAborted as error:
            self._roll_back(error)
            return True

    def _pass_by(self, batch: BatchUnreadable) -> bool:
        try:
            pass_by(batch, self._spec.on_error, self._inputs, self._processing, self)
        except TransactionAborted as error:
            self._roll_back(error)
        return True

    def _read_anew(self) -> None:
        """A new consumer where the tasks stand: because the watchdog found this one silent, or it is time to fetch more at once."""
        for why in self._stalled:
            LOG.warning("container %d: %s. It gets a new consumer", self._spec.number, why)
        if self._must_grow:
            LOG.info("container %d has run for long enough since its last death: it fetches more than one batch at once again", self._spec.number)
        self._stalled, self._must_grow = [], False
        self._inputs.read_anew(self._consumer.renew)
        self._line.published(True)

    # -- what is due -------------------------------------------------------------------------------------------------------------------

    def duties(self) -> None:
        self._line.alive()
        self._heed()
        if self._search.condemned:
            self._search.forget(r for r in self._search.condemned if r[:2] not in self._inputs.lanes)  # another container's now
        now = self._clock.monotonic()
        if now >= self._next_window:
            if self._search.is_on:
                self.commit()  # so that a record is alone in its transaction
            self._window()
            if self._search.is_on:
                self.commit()
            self._next_window = max(self._next_window + (self._spec.window_s or 0.0), now)
        if now >= self._next_commit or self.is_full():
            self.commit()
        if self._spec.stores:
            stores = (store for task in self._inputs.tasks() for store in task.stores.values())
            self._flushing.step(now, self._committer.changes, stores)
        if now >= self._next_look:
            self._inputs.look_for_open_transactions(now)
            self._stalled += self._inputs.look_for_stalls(now)
            self._must_grow = self._is_small and now >= self._small_until
            self._next_look = now + 1.0
        if now >= self._next_sweep:
            self._sweep()
            self._next_sweep = now + SWEEP_S
        self._line.published(False)
        self.next_duty = min(self._next_commit, self._next_window, self._clock.monotonic() + LOOK_S)

    def _sweep(self) -> None:
        """The cleaner: stores of tasks that have been elsewhere for a day."""
        held = {*self.tasks, *(str(c["task"]) for c in self._standbys.status())}
        try:
            gone = self._spec.sweep(held)
        except (OSError, SamzapyError) as error:
            LOG.warning("stores of tasks that moved away could not be removed: %s", error)
            return
        if gone:
            LOG.info("removed the local stores of %s, which have been elsewhere for a day", ", ".join(gone))

    def _window(self) -> None:
        self._window_held = True
        for task in self._inputs.tasks():
            if task.state == RUNNING and not task.ended and task.user is not None:
                user = task.user
                self._hook(task, "window", lambda user=user: user.window(self._collector, self._requests))  # type: ignore[misc]
                if self._requests.pending:
                    self.answer(task)

    def answer(self, task: TaskInstance | None) -> None:
        """Carry out what hooks asked for."""
        requests = self._requests
        closing = [
            t for t in self.tasks.values() if t.live and (requests.shutdown_all or t.closing or (requests.shutdown_task and t is task))
        ]
        requests.clear()
        for one in closing:
            one.ended = True  # committed with what it did: wherever else it is started in this run, it stays stopped
        self.commit()
        for one in closing:
            self._stop_task(one)

    def _advance(self) -> None:
        """Open bootstrap gates; call end_of_stream where all inputs have ended, and commit that with the run's id."""
        finished = self._inputs.advance(self._inputs.positions(self._processing.unprocessed))
        if finished and self._search.is_on:
            self.commit()
        for task in finished:
            if task.user is not None:
                user = task.user
                self._hook(task, "end_of_stream", lambda user=user: user.end_of_stream(self._collector, self._requests))  # type: ignore[misc]
            self._requests.clear()
            task.ended = True
        if finished:
            failpoints.hit("end.final_commit.before")
            self.commit()
            failpoints.hit("end.final_commit.after")
            for task in finished:
                self._stop_task(task)

    def commit(self, is_last: bool = False) -> None:
        """Commit now, between two records. `is_last`: no other follows.

        Raises:
            StateMismatch, StateRefused: an input of a job with state has grown, or a topic was made again; nothing more is committed.
        """
        self._processing.release()
        raw = self._inputs.positions(self._processing.unprocessed)
        tasks = self._inputs.tasks()
        positions = {t.name: {p: max(at, t.committed.inputs[str(p)].next_offset) for p, at in raw[t.name].items()} for t in tasks}
        read = {p: at for places in positions.values() for p, at in places.items()}
        self._growth.check(read, {lane.partition: lane.committed_offset for t in tasks for lane in t.lanes}, must_look=is_last)
        if self._committer.commit(tasks, positions):
            self._search.committed(self._processing.held)
            for task in tasks:
                for lane in task.lanes:
                    lane.counts_stand()
        self._processing.decided()
        self._window_held = False
        self._collector.released_bytes = 0
        self._next_commit = self._clock.monotonic() + self._spec.commit_interval_s

    def is_full(self) -> bool:
        held = self._collector.released_bytes
        for task in self.tasks.values():
            for store in task.stores.values():
                held += store.uncommitted_bytes
        return held >= self._spec.max_uncommitted_bytes

    def _watching(self) -> bool:
        return any(lane.gate is not None or (lane.end is not None and not t.ended) for t in self._inputs.tasks() for lane in t.lanes)

    # -- going back, stopping ------------------------------------------------------------------------------------------------------------

    def _roll_back(self, error: TransactionAborted) -> None:
        """Abort: lose what a crash would lose, and read again from the checkpoint, in transactions so small that a culprit is found."""
        held = self._processing.held
        last = self._processing.last
        lanes = () if last is None else self._inputs.lanes.get((last.topic(), last.partition()), ())
        decision = self._search.aborted(held, None if last is None else origin_of(last), error)
        if isinstance(error, RecordRejected) and self._spec.job.checkpoint_topic in error.message:
            decision = GiveUp(f"{self._spec.job.checkpoint_topic} no longer accepts checkpoints", True)
        LOG.warning("a transaction of %d records was aborted: %s", held, error)
        if self._own.producer is not None and self._own.in_transaction:
            self._own.decided(self._own.producer.abort())
        had_window = self._window_held
        self._forget()
        self._stop_joining()
        tasks = [t for t in self.tasks.values() if t.state != STOPPED]
        for task in tasks:
            for store in task.stores.values():
                store.discard()
            for lane in task.lanes:
                lane.counts_go_back()
        self._inputs.drop(tasks)
        if isinstance(decision, GiveUp):  # whoever stops the container now commits nothing of what was aborted
            at = f" at record {origin_of(last)}" if held == 1 and last is not None else ""
            kind = TaskError if decision.is_final else LogError
            raise kind(f"{decision.why}{at}; the last one because: {error.message}", error.remedy) from error
        if isinstance(decision, Culprit) and self._spec.on_error == FAIL:
            who = ", ".join(lane.task.name for lane in lanes)
            raise named(who, "what it sends or stores", error, str(decision.record), decision.attempts) from error
        self._set_out()
        if had_window:
            self._next_window = self.next_duty  # what it did was undone as well
        try:
            self._begin(tasks)
        except TransactionAborted as again:  # what init() put; not for ever, as no record is in it
            self._roll_back(again)

    def _forget(self) -> None:
        self._processing.forget()
        self._window_held = False
        self._collector.clear()
        self._collector.released_bytes = 0
        self._requests.clear()

    def let_go(self) -> None:
        """Drop everything without deciding anything: what was not committed is gone, as after a crash."""
        self._forget()
        self._own.drop()
        self._inputs.drop(list(self.tasks.values()))
        self._stop_joining()
        for task in self.tasks.values():
            self._close_stores(task)
        self.tasks = {}  # what was given back stays given back: until a newer record, the topic does not know yet that it was

    def _close_stores(self, task: TaskInstance) -> None:
        for store in task.stores.values():
            store.discard()
            store.close()

    def _stop_task(self, task: TaskInstance) -> None:
        """After its final commit: no more records, close(), stores closed."""
        self._inputs.drop([task])
        user, task.state = task.user, STOPPED
        for store in task.stores.values():
            store.refuse_writes()
        try:
            if user is not None:
                self._user(task, "close", user.close)
        finally:
            for store in task.stores.values():
                store.flush()
                store.close()
        self._line.published(False)

    def stop(self) -> None:
        """Graceful: a final commit, close() of every task, stores flushed and closed.

        Raises:
            TaskError: a close() raised; everything was committed all the same.
        """
        self._stop_joining()
        try:
            failpoints.hit("stop.final_commit.before")
            self.commit(is_last=True)
            failpoints.hit("stop.final_commit.after")
        except TransactionAborted as error:
            self._roll_back(error)
        errors: list[SamzapyError] = []
        for task in self.tasks.values():
            if task.state != STOPPED:
                try:
                    self._stop_task(task)
                except TaskError as error:
                    errors.append(error)
        self._own.drop()
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Let go of every client. Nothing is decided here."""
        self.let_go()
        self._standbys.close()
        self._growth.close()
        if self._outputs is not None:
            self._outputs.close()
        self._consumer.close()

    @property
    def finished(self) -> bool:
        """Every task that it owns has stopped by itself: nothing is left to do."""
        return bool(self.tasks) and not self._released and not self.is_starting and all(t.state == STOPPED for t in self.tasks.values())

    @property
    def is_starting(self) -> bool:
        """Whether tasks that it owns have not been started yet."""
        return self._joining is not None or any(n not in self.tasks and n not in self._released for n in self._own.named)

    # -- hooks -----------------------------------------------------------------------------------------------------------------------------

    def _hook(self, task: TaskInstance, name: str, call: Callable[[], None]) -> None:
        """Call a hook: what it put and sent takes effect together, or not at all."""
        try:
            self._user(task, name, call)
        except BaseException:
            task.undo()
            self._collector.drop()
            raise
        task.keep()
        self._collector.keep()
        self._processing.release()

    def _user(self, task: TaskInstance, name: str, call: Callable[[], T]) -> T:
        try:
            returned = call()
            if returned is not None and name in HOOKS:
                refuse_returned(name, returned)
        except BaseException as error:
            if self._requests.is_forked:
                end_child(error)
            if not is_users(error):
                raise
            raise named(task.name, name, error) from error
        if self._requests.is_forked:
            end_child(None)
        return returned

    # -- what people see ---------------------------------------------------------------------------------------------------------------------

    def positions(self) -> dict[str, dict[TopicPartition, int]]:
        """By task: where it stands in each input."""
        raw = self._inputs.positions(self._processing.unprocessed)
        return {
            t.name: {lane.partition: max(raw.get(t.name, {}).get(lane.partition, 0), lane.committed_offset) for lane in t.lanes}
            for t in self.tasks.values()
        }

    def status(self) -> dict[str, Any]:
        """The heartbeat's report, without lag."""
        positions = self.positions()
        commits = self._committer
        return {
            "host": self._spec.host,
            "commits": commits.commits,
            "commit_seconds_sum": round(commits.total_seconds, 6),
            "commit_seconds_last": round(commits.last_seconds, 6),
            "producer_renewals": self._own.renewals,
            "epoch": self._adopted,
            "released": sorted(self._released),
            "standbys": self._standbys.status(),
            "tasks": [task.status(positions[task.name]) for task in self.tasks.values()],
        }
