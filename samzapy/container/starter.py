"""Starting tasks, T1 to T5: restore their stores, then decide where each input is read from, and commit that before `init()`.

Start, restart and move are this code. It is taken in steps, so that a task that joins a running container does not hold up the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from samzapy import failpoints
from samzapy.api.errors import BatchUnreadable, NoLeader, StateRefused
from samzapy.container.committer import fitting
from samzapy.container.first_offsets import begin_offset, condemned_before, first_offset, known_marks, was_added
from samzapy.container.ownership import Ownership
from samzapy.container.restore_end import Steps
from samzapy.container.restorer import Restorer
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.container.unread_deletions import look_for_unread_deletions, warn_of_unread_deletions
from samzapy.ids import random_id
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, InputMark, StoreMark
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.ownership import Startpoint
from samzapy.plan.checkpoint_orders import pending
from samzapy.plan.refill import refill_at_start
from samzapy.ports import Clock, Consumer, Log

LOG = logging.getLogger("samzapy.container")
UNREADABLE = (
    "To read it, allow more memory: `kafka: {receive.message.max.bytes: 1000000000}` (the default is 100000000). If the batch is damaged, bring back a replica "
    "or a copy of the topic that has the batch undamaged, or run `samzapy reset JOB.yaml` to begin with empty state."
)
LEADER_S = 1.0  # between two looks at whether a partition is led again


class Starter:
    """Starts tasks that start together; one use.

    Args:
        consumer: asked for bounds and times only.
        commit_others: commits what the container's other tasks have done, so that the next transaction is the starting tasks' alone.
    """

    def __init__(
        self,
        spec: ContainerSpec,
        log: Log,
        ownership: Ownership,
        consumer: Consumer,
        clock: Clock,
        commit_others: Callable[[], None],
        new_id: Callable[[], str] = random_id,
    ) -> None:
        self._spec = spec
        self._own = ownership
        self._consumer = consumer
        self._commit_others = commit_others
        self._clock = clock
        self._wait_s = 0.0
        self._unread: list[dict[str, str]] = []
        self._logged = {name for name, store in spec.stores.items() if store.changelog}
        self._restorer = Restorer(spec, log, ownership, clock, commit_others, new_id)

    def steps(self, tasks: Sequence[TaskInstance]) -> Steps[None]:
        """T1 to T5. Afterwards every task has a checkpoint that is committed.

        Raises:
            Superseded, StateRefused, StateMismatch, OffsetOutOfRange: these tasks must not start. LogError: start over.
        """
        try:
            yield from self._all_steps(tasks)
        except BatchUnreadable as error:  # of a changelog, or of the checkpoint topic: what `on_error` says is of inputs
            raise StateRefused(f"a task's state cannot be restored: {error.message}", UNREADABLE) from None

    def _all_steps(self, tasks: Sequence[TaskInstance]) -> Steps[None]:
        yield from self._restorer.restore(tasks)
        bounds = yield from self._bounds([partition for task in tasks for partition in self._partitions_of(task)])
        fresh = [task for task in tasks if self._decide_offsets(task, bounds)]
        warn_of_unread_deletions(self._unread)
        if fresh:
            self._commit_others()
            producer = self._own.open()
            for task in fresh:
                producer.send(self._spec.job.checkpoint_topic, fitting(task.committed, self._spec), CHECKPOINT_KEY, task.model.partition)
            producer.flush()
            failpoints.hit("start.first_checkpoint.before")
            self._own.decided(producer.commit())
            failpoints.hit("start.first_checkpoint.after")

    def _bounds(self, partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, Bounds]]:
        """Asked until every partition is led; meanwhile the container's other tasks go on. `Lags` says which are not."""
        while True:
            try:
                return self._consumer.bounds_of(partitions)
            except NoLeader as error:
                LOG.debug("container %d waits before it starts tasks: %s", self._spec.number, error)
            again = self._clock.monotonic() + LEADER_S
            while self._clock.monotonic() < again:
                self._clock.sleep(self._wait_s)
                yield False

    def may_wait(self, seconds: float) -> None:
        """How long a step may wait for records."""
        self._wait_s = seconds
        self._restorer.may_wait(seconds)

    def _partitions_of(self, task: TaskInstance) -> list[TopicPartition]:
        """Its inputs, and its changelogs."""
        changelogs = [s.changelog_of(task.model.partition) for s in self._spec.stores.values() if s.changelog]
        return [*(task_input.partition for task_input in task.inputs), *changelogs]

    def _decide_offsets(self, task: TaskInstance, bounds: Mapping[TopicPartition, Bounds]) -> bool:
        """T5: decide each input's next offset; True if the checkpoint is a new one that has to be committed first.

        A `checkpoint set` that no start has carried out yet comes before the checkpoint; its id is committed even if nothing moves.
        """
        old = task.checkpoint
        order = pending(self._own.ledger.startpoints.get(task.name), old)
        inputs, left = self._positions(task, old, order, bounds)
        if old is not None:
            self._unread += look_for_unread_deletions(
                task, old, self._restorer.committed_ms[task.name], self._empty(task, old), bounds, self._consumer, self._clock
            )
        stores = {name: self._mark(task, name, old, bounds) for name, s in self._spec.stores.items() if s.changelog}
        if order is not None:  # whatever the changelogs hold by now is this state
            stores = {name: self._seen(task, name, mark) for name, mark in stores.items()}
        if old is not None and order is None and (old.inputs, old.left) == (inputs, left):
            task.checkpoint = replace(old, stores=stores)
            return False
        checkpoint = replace(self._checkpoint(task, old, inputs, stores), left=left)
        if order is not None:
            LOG.info(
                "%s: inputs continue where `checkpoint set` (order %s) says: %s",
                task.name,
                order.id,
                ", ".join(f"{p} at {o}" for p, o in order.offsets.items()),
            )
            checkpoint = replace(checkpoint, startpoint_id=order.id, ended_run_id="")
        task.checkpoint = checkpoint
        return True

    def _positions(
        self, task: TaskInstance, old: Checkpoint | None, order: Startpoint | None, bounds: Mapping[TopicPartition, Bounds]
    ) -> tuple[dict[str, InputMark], dict[str, InputMark]]:
        """The next offsets of the task's inputs, and those of its removed inputs."""
        before = known_marks(old, None)
        empty = self._empty(task, old)
        known = known_marks(old, order)
        inputs: dict[str, InputMark] = {}
        for task_input in task.inputs:
            partition, spec = str(task_input.partition), task_input.spec
            mark, at = known.get(partition), bounds[task_input.partition]
            has_grown = was_added(task_input.partition, self._own.ledger.first_partitions.get(spec.topic_id))
            offset = begin_offset(mark, at, spec, task_input.partition, has_grown=has_grown, is_empty=spec.table in empty)
            refill = refill_at_start(before.get(partition), spec.topic_id, first_offset(at, spec), offset, empty & spec.fills, self._logged)
            inputs[partition] = InputMark(
                spec.topic_id,
                offset,
                mark.time if mark is not None and (spec.time is not None or spec.between is not None) else None,
                condemned_before(offset, spec, before.get(partition)),
                refill,
            )
            for store in refill:
                LOG.info(
                    "%s: %s is read again from %d to %d for store %r, which began empty; these records change nothing else",
                    task.name, partition, refill[store], offset, store,
                )  # fmt: skip
            if old is not None and partition not in old.inputs:
                came = f"is an input again; it was at {before[partition].next_offset}" if partition in before else "is new to this task"
                LOG.info("%s: %s %s; it is read from %d", task.name, partition, came, offset)
        left = {partition: mark for partition, mark in known.items() if partition not in inputs}
        for partition in sorted(left.keys() - (old.left.keys() if old is not None else set())):
            LOG.info(
                "%s: %s is no longer an input; if it is added again, it is read from %d", task.name, partition, left[partition].next_offset
            )
        return inputs, left

    def _empty(self, task: TaskInstance, old: Checkpoint | None) -> set[str]:
        """The stores with a changelog that begin empty, though their task does not begin."""
        return set() if old is None else {name for name in self._logged - old.stores.keys() if not task.restored[name].records}

    def _mark(self, task: TaskInstance, name: str, old: Checkpoint | None, bounds: Mapping[TopicPartition, Bounds]) -> StoreMark:
        mark = old.stores.get(name) if old else None
        if mark is not None:
            return mark
        spec, stamp = self._spec.stores[name], task.stores[name].stamp
        partition = spec.changelog_of(task.model.partition)
        start = bounds[partition].start
        return StoreMark(partition.topic, spec.topic_id, start, stamp.position if stamp else start)

    @staticmethod
    def _seen(task: TaskInstance, name: str, mark: StoreMark) -> StoreMark:
        stamp = task.stores[name].stamp
        return mark if stamp is None else replace(mark, position=max(mark.position, stamp.position))

    def _checkpoint(
        self, task: TaskInstance, old: Checkpoint | None, inputs: Mapping[str, InputMark], stores: Mapping[str, StoreMark]
    ) -> Checkpoint:
        job = self._spec.job
        new = Checkpoint(
            job=job.name,
            id=job.id,
            task=task.name,
            container=self._spec.number,
            incarnation=self._own.incarnation,
            epoch=self._own.epoch,
            sequence=0,
            inputs=inputs,
            stores=stores,
            fingerprint=dict(self._spec.fingerprint),
        )
        if old is None:
            return new
        return replace(new, sequence=old.sequence + 1, startpoint_id=old.startpoint_id, ended_run_id=old.ended_run_id, watermarks=old.watermarks)
