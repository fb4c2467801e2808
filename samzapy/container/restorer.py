"""T1 to T4: from a committed log to stores that a task may use.

A restore ends at its own barrier (restore_end.py). Every batch that is applied carries the position it leads to, so a crash in the middle goes
on from there.

Tasks that start together share one barrier transaction and one reading consumer; the records go to their stores as they come. A restore is
taken in small steps, so that the other tasks of the container go on between them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, cast

from samzapy import failpoints
from samzapy.api.errors import StateMismatch, StateRefused
from samzapy.container.generations import Opened, begin_empty, open_store
from samzapy.container.lost_checkpoint import refuse_emptied, refuse_orphans
from samzapy.container.ownership import Ownership
from samzapy.container.restore_end import BATCH_RECORDS, STRANGER, Barriers, Steps, at
from samzapy.container.spec import ContainerSpec, StoreSpec
from samzapy.container.task_instance import Restored, TaskInstance
from samzapy.ids import random_id
from samzapy.model import lease_times
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.checkpoint import Checkpoint, UnreadableCheckpoint, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition, next_offset
from samzapy.model.ownership import Startpoint
from samzapy.plan.checkpoint_orders import decides, pending
from samzapy.plan.start_refusals import Refuse, lost_end, read_too_slowly, unnamed
from samzapy.plan.state_compatibility import other_inputs, refusal
from samzapy.ports import Change, Clock, Consumer, Log, Message
from samzapy.readers import FETCH_S, NewestCheckpoints, newest_checkpoints, only_deletions, read_ranges, true_end

LOG = logging.getLogger("samzapy.restore")
LOCKED_RETRY_S = 0.2


@dataclass(kw_only=True, slots=True)
class _Reading:
    """A store that is being filled from its changelog."""

    task: TaskInstance
    spec: StoreSpec
    barrier: int
    start: int
    decision: str
    local: bool
    started: float
    started_ms: int
    named: float  # the checkpoint covers every change before this offset, so there must be none after it
    deletes: bool  # but deletions, which a `checkpoint set` that is not carried out yet may have written
    read_by: float  # later, deletions that were not read may have been removed
    records: int = 0
    pending: list[Change] = field(default_factory=list)


class Restorer:
    """Restores the stores of tasks.

    Args:
        commit_others: commits what the container's other tasks have done; called before the barriers, whose transaction holds nothing else.
    """

    def __init__(
        self,
        spec: ContainerSpec,
        log: Log,
        ownership: Ownership,
        clock: Clock,
        commit_others: Callable[[], None],
        new_id: Callable[[], str] = random_id,
    ) -> None:
        self._spec = spec
        self._log = log
        self._own = ownership
        self._clock = clock
        self._barriers = Barriers(spec, ownership, clock, commit_others, new_id)
        self.committed_ms: dict[str, int] = {}  # by task, when its newest checkpoint was written
        self._unlocked_by = float("inf")  # when locked directories are given up; counted from the first that is met

    def may_wait(self, seconds: float) -> None:
        """How long a step may wait for records."""
        self._barriers.wait_s = seconds

    def restore(self, tasks: Sequence[TaskInstance]) -> Steps[None]:
        """T1–T4 for tasks that start together. Sets each task's `checkpoint` (None on a first start), stores and `restored`.

        Raises:
            StateRefused, StateMismatch: starting would lose or double something; named, with the remedy. Superseded: another owner's barrier.
        """
        consumer = self._log.restore_consumer("restore")
        try:
            yield from self._look_first(consumer, tasks)
            barriers = self._barriers.write(tasks)  # T1
            starts = yield from self._read_checkpoints(consumer, tasks, barriers)  # T2
            self._own.check_checkpoint_topic()
            failpoints.hit("start.checkpoint.read")
            for task in tasks:
                self._check_fingerprint(task)
            logged = [s for s in self._spec.stores.values() if s.changelog]
            bounds = consumer.bounds_of(s.changelog_of(task.model.partition) for task in tasks for s in logged)
            truncated = {partition for partition, b in bounds.items() if b.start > 0}
            for task in tasks:
                refuse_emptied(task, self._spec, starts[self._spec.checkpoint_of(task.model)], self._order(task), truncated)
            readings = {}
            for task in tasks:
                for spec in self._spec.stores.values():
                    partition = spec.changelog_of(task.model.partition)
                    if spec.changelog is None:
                        begin_empty(task, spec)
                    else:
                        readings[partition] = yield from self._choose(consumer, task, spec, partition, bounds[partition].start, barriers[partition])  # T3
                    yield True
            yield from self._read(consumer, readings)  # T4
            for task in tasks:
                refuse_orphans(task, self._spec, self._order(task))
        finally:
            consumer.close()

    # -- T1 ----------------------------------------------------------------------------------------------------------------------

    def _look_first(self, consumer: Consumer, tasks: Sequence[TaskInstance]) -> Steps[None]:
        """Before the first barrier: a changelog that no checkpoint names must not be another job's, and one that a checkpoint names must reach
        to the checkpoint's position. The barriers of repeated starts would make up the missing length."""
        newest = newest_checkpoints(consumer, [self._spec.checkpoint_of(task.model) for task in tasks], self._clock)
        yield True
        logged = {n: s for n, s in self._spec.stores.items() if s.changelog}
        bounds = consumer.bounds_of(s.changelog_of(task.model.partition) for task in tasks for s in logged.values())
        strange: dict[TopicPartition, tuple[TaskInstance, str]] = {}
        for task in tasks:
            data = newest.bytes_of(self._spec.checkpoint_of(task.model))
            old = None if data is None else self._parsed(data, task)
            for name, spec in logged.items():
                mark = old.stores.get(name) if old else None
                partition = spec.changelog_of(task.model.partition)
                if mark is None or mark.topic_id != spec.topic_id:
                    strange[partition] = task, name
                elif bounds[partition].end < mark.position:
                    end = yield from true_end(consumer, partition, mark.position, self._clock, max(self._barriers.wait_s, FETCH_S))
                    if end < mark.position:
                        refusal = lost_end(str(partition), end, mark)
                        raise StateRefused(f"store {name!r} of {task.name}: {refusal.reason}", refusal.remedy)
        for batch in read_ranges(
            consumer, {partition: (bounds[partition].start, bounds[partition].end) for partition in strange}, self._clock
        ):
            for message in batch:
                if message.key() == BARRIER_KEY:
                    self._barriers.check(message, *strange[TopicPartition(message.topic(), message.partition())])
            yield True

    # -- T2 ----------------------------------------------------------------------------------------------------------------------

    def _read_checkpoints(self, consumer: Consumer, tasks: Sequence[TaskInstance], barriers: Mapping[TopicPartition, int]) -> Steps[dict[TopicPartition, int]]:
        """Sets each task's `checkpoint`: the newest before its barrier, or None. Returns the log starts of the checkpoint partitions."""
        partitions = {self._spec.checkpoint_of(task.model): task for task in tasks}
        newest = NewestCheckpoints()
        ranges = {partition: (bounds.start, barriers[partition]) for partition, bounds in consumer.bounds_of(partitions).items()}
        yield from self._barriers.read_to(
            consumer, ranges, lambda partition, keys, run: newest.take(run), lambda partition: (partitions[partition], "")
        )
        for partition, task in partitions.items():
            data = newest.bytes_of(partition)
            task.checkpoint = None if data is None else self._parsed(data, task)
            self.committed_ms[task.name] = newest.written_ms(partition)
            if task.checkpoint is not None and task.checkpoint.epoch > self._own.epoch:
                self._barriers.refuse_later(f"its newest checkpoint, in {partition}, is", task.checkpoint.epoch, True, task)
        return {partition: start for partition, (start, _) in ranges.items()}

    def _parsed(self, data: bytes, task: TaskInstance) -> Checkpoint:
        where = self._spec.checkpoint_of(task.model)
        try:
            checkpoint = checkpoint_from_bytes(data)
        except UnreadableCheckpoint as error:
            raise StateRefused(
                f"{task.name}: the newest checkpoint in {where} cannot be read: {error}.",
                "Use the samzapy version that wrote it, or run `samzapy reset JOB.yaml` to begin with empty state.",
            ) from None
        if (checkpoint.job, checkpoint.id, checkpoint.task) != (self._spec.job.name, self._spec.job.id, task.name):
            raise StateRefused(
                f"{task.name}: {where} holds the checkpoint of {checkpoint.job}-{checkpoint.id}, {checkpoint.task}.",
                "Give this job another name or id.",
            )
        return checkpoint

    def _check_fingerprint(self, task: TaskInstance) -> None:
        if task.checkpoint is None:
            return
        refused = refusal(task.checkpoint, self._spec.fingerprint, {name: s.changelog is not None for name, s in self._spec.stores.items()})
        if refused is not None:
            raise StateMismatch(f"{task.name}: {refused.reason}", refused.remedy)
        present = [topic for topic, one in self._spec.inputs.items() if one.between is None]
        others = "" if self._order(task) is not None else other_inputs(task.checkpoint, present, {p.topic for p in task.model.inputs})
        if isinstance(others, Refuse):
            raise StateMismatch(f"{task.name}: {others.reason}", others.remedy)
        if others:
            LOG.warning("%s: %s", task.name, others)

    # -- T3 ----------------------------------------------------------------------------------------------------------------------

    def _choose(self, consumer: Consumer, task: TaskInstance, spec: StoreSpec, partition: TopicPartition, start: int, barrier: int) -> Steps[_Reading]:
        name, started = spec.name, self._clock.monotonic()
        opened = yield from self._open(consumer, task, spec, partition, start, barrier)
        if isinstance(opened, Refuse):
            raise StateRefused(f"store {name!r} of {task.name}: {opened.reason}", opened.remedy)
        if opened.warning:
            LOG.warning("store %r of %s: %s", name, task.name, opened.warning)
        task.stores[name].attach(opened.engine)
        failpoints.hit("restore.chosen")
        mark = task.checkpoint.stores.get(name) if task.checkpoint else None
        named = float("inf") if mark is None or self._is_decided(task) else mark.position
        needed = max(0, next_offset(barrier) - opened.position)
        task.restored[name] = Restored("local" if opened.is_kept else "changelog", opened.reason, 0, 0.0, needed, needed)
        return _Reading(
            task=task,
            spec=spec,
            barrier=barrier,
            start=opened.position,
            decision=opened.reason,
            local=opened.is_kept,
            started=started,
            started_ms=self._clock.now_ms(),
            named=named,
            deletes=self._deletes(task),
            read_by=self._clock.monotonic() + opened.deletions_stay_s,
        )

    def _open(self, consumer: Consumer, task: TaskInstance, spec: StoreSpec, partition: TopicPartition, start: int, barrier: int) -> Steps[Opened | Refuse]:
        """Open the store. If a generation is locked, its process may be about to end: wait as long as a lease, then go on without it.

        Once for all stores that are restored together: one process holds them all, most likely.
        """
        directory, identity = spec.open_directory(task.name), spec.identity(self._spec.job, task.name)
        while True:
            now = self._clock.monotonic()
            facts = spec.facts(partition, start, barrier)
            opened = open_store(
                directory,
                identity,
                task.checkpoint,
                facts,
                now_ms=self._clock.now_ms(),
                despite_locked=now >= self._unlocked_by,
                is_ordered=self._is_decided(task),
                has_deletions_after=self._deletes(task),
            )
            if opened is not None:
                return opened
            self._unlocked_by = min(self._unlocked_by, now + lease_times.END * self._spec.lease_s + lease_times.UNLOCK_S)
            while self._clock.monotonic() < now + LOCKED_RETRY_S:
                self._clock.sleep(self._barriers.wait_s)
                yield False
            start = consumer.bounds(partition).start

    # -- T4 ----------------------------------------------------------------------------------------------------------------------

    def _read(self, consumer: Consumer, readings: Mapping[TopicPartition, _Reading]) -> Steps[None]:
        ranges = {partition: (r.start, r.barrier) for partition, r in readings.items()}
        yield from self._barriers.read_to(
            consumer,
            ranges,
            lambda partition, keys, run: self._take(readings[partition], keys, run),
            lambda partition: (readings[partition].task, readings[partition].spec.name),
        )
        for reading in readings.values():
            self._load(reading, next_offset(reading.barrier), at_end=True)
            reading.task.stores[reading.spec.name].start_flush()  # all at once: below each is waited for
        for partition, reading in readings.items():
            failpoints.hit("restore.done.before_flush")
            reading.task.stores[reading.spec.name].flush()  # so that a crash soon after finds a store that knows what it is
            done = reading.task.restored[reading.spec.name]
            LOG.info(
                "store %r of %s restored from %s: %d records of %s read in %.2f s (%s)",
                reading.spec.name, reading.task.name, done.source, done.records, partition, done.seconds, done.reason,
            )  # fmt: skip
            yield True

    def _take(self, reading: _Reading, keys: Sequence[bytes | None], run: Sequence[Message]) -> None:
        """Take consecutive records of one changelog partition. Single records are checked only if the run has one that should not be there."""
        if None in keys:
            run = [message for message in run if not _has_no_key(message)]
            keys = [message.key() for message in run]
        if run and run[-1].offset() >= reading.named:
            for message in run:
                if message.offset() >= reading.named and not (reading.deletes and message.value() is None):
                    self._refuse_unnamed(reading, message)
        reading.records += len(run)
        reading.pending.extend(zip(cast(Sequence[bytes], keys), reading.spec.values_of(run), strict=True))
        if len(reading.pending) >= BATCH_RECORDS:
            self._load(reading, next_offset(run[-1].offset()), at_end=False)

    def _refuse_unnamed(self, reading: _Reading, message: Message) -> NoReturn:
        """Raised before the record is loaded, so that the local store never claims to have seen it, however often the start is tried."""
        task, changelog = reading.task, TopicPartition(message.topic(), message.partition())
        checkpoints, position = str(self._spec.checkpoint_of(task.model)), int(reading.named)
        are_deletions = message.value() is None
        if are_deletions:
            with self._log.restore_consumer("deletions") as consumer:
                are_deletions = only_deletions(consumer, changelog, position, reading.barrier, self._clock)
        refusal = unnamed(
            task.name, str(changelog), message.offset(), checkpoints, position, message.key(), only_deletions=are_deletions
        )
        raise StateRefused(refusal.reason, refusal.remedy)

    def _load(self, reading: _Reading, position: int, at_end: bool) -> None:
        """Load one batch: the pending changes, and the position after them.

        `as_of` is the time since which tombstones may have been missed: at the log's end, now; before that, a store that was kept has
        the age it had, and a new one has the age of this restore, which reads everything that existed when it began.
        """
        task, spec = reading.task, reading.spec
        if self._clock.monotonic() > reading.read_by:
            late = read_too_slowly(str(spec.changelog_of(task.model.partition)), spec.delete_retention_ms)
            raise StateRefused(f"store {spec.name!r} of {task.name}: {late.reason}", late.remedy)
        before = task.stores[spec.name].stamp
        sequence, as_of_ms = (before.sequence, before.as_of_ms) if reading.local and before else (0, reading.started_ms)
        if at_end:
            sequence, as_of_ms = (task.checkpoint.sequence if task.checkpoint else 0), self._clock.now_ms()
        stamp = spec.stamp(self._spec.job, task.name, position, sequence, as_of_ms)
        task.stores[spec.name].load(reading.pending, stamp)
        failpoints.hit("restore.batch.applied")
        reading.pending = []
        seconds = self._clock.monotonic() - reading.started
        source = "local" if reading.local else "changelog" if reading.records else "empty"
        remaining = 0 if at_end else reading.barrier - position
        needed = max(0, next_offset(reading.barrier) - reading.start)
        task.restored[spec.name] = Restored(source, reading.decision, reading.records, seconds, remaining, needed)

    def _is_decided(self, task: TaskInstance) -> bool:
        """Whether a `checkpoint set` has set the offsets for this state."""
        return decides(self._order(task), task.model.inputs)

    def _order(self, task: TaskInstance) -> Startpoint | None:
        """The `checkpoint set` that this start carries out."""
        return pending(self._own.ledger.startpoints.get(task.name), task.checkpoint)

    def _deletes(self, task: TaskInstance) -> bool:
        """Whether that has written deletions after what the checkpoint names."""
        order = self._order(task)
        return order is not None and order.deletes


def _has_no_key(message: Message) -> bool:
    if message.key() is None:
        LOG.warning("%s a record without a key; it was skipped and has no effect. %s", at(message), STRANGER)
        return True
    return False
