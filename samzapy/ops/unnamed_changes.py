"""Changes in a changelog that no checkpoint names, seen from outside of a run.

Whether the job has stopped cannot be known for sure from here, so what looks like such a change is looked at again in the newest checkpoint before it
is called one.
"""

from __future__ import annotations

from samzapy.config.schema import Settings
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.ownership import Startpoint
from samzapy.ops.inspection import JobInKafka
from samzapy.plan.checkpoint_orders import decides, pending
from samzapy.plan.start_refusals import Refuse, unnamed
from samzapy.ports import Clock, Consumer, Log
from samzapy.readers import decided_bounds, only_deletions, read_checkpoint, read_ledger, read_ranges
from samzapy.wiring.job_topics import job_of


class UnnamedChanges:
    """Of one job; `facts`: its topics."""

    def __init__(self, settings: Settings, facts: JobInKafka, log: Log, clock: Clock) -> None:
        self._job, self._facts, self._log, self._clock = job_of(settings), facts, log, clock

    def refused(
        self, consumer: Consumer, task: TaskModel, store: str, changelog: TopicPartition, bounds: Bounds, checkpoint: Checkpoint | None
    ) -> Refuse | None:
        """Why a run would refuse a change in the changelog: it comes after those that the newest checkpoint covers, and no `checkpoint set` ordered it.
        `checkpoint`: the task's, read before the changelog's `bounds`."""
        if checkpoint is None or self._first(consumer, store, changelog, bounds, checkpoint, None) is None:
            return None
        order, checkpoint = self.order(task), self._newest(task) or checkpoint  # a start that carries it out commits its id
        order = pending(order, checkpoint)
        offset = self._first(consumer, store, changelog, bounds, checkpoint, order)
        if offset is None or decides(order, task.inputs):
            return None
        checkpoints = TopicPartition(self._job.checkpoint_topic, task.partition)
        are_deletions = only_deletions(consumer, changelog, offset, bounds.end, self._clock)
        return unnamed(task.name, str(changelog), offset, str(checkpoints), checkpoint.stores[store].position, only_deletions=are_deletions)

    def order(self, task: TaskModel) -> Startpoint | None:
        """The newest `checkpoint set` for the task, carried out or not."""
        topic = self._job.coordinator_topic
        if topic not in self._facts.topics:
            return None
        with self._log.restore_consumer("coordinator") as consumer:
            decided_bounds(consumer, TopicPartition(topic, 0), self._clock)
            return read_ledger(consumer, topic, self._clock).startpoints.get(task.name)

    def _first(
        self, consumer: Consumer, store: str, changelog: TopicPartition, bounds: Bounds, checkpoint: Checkpoint, order: Startpoint | None
    ) -> int | None:
        """The offset of the first change that the checkpoint does not cover; an order may have written deletions."""
        mark = checkpoint.stores.get(store)
        if mark is None:
            return None
        first: int | None = None
        for batch in read_ranges(consumer, {changelog: (max(mark.position, bounds.start), bounds.end)}, self._clock):
            for message in batch:
                if first is None and message.key() != BARRIER_KEY and not (order is not None and message.value() is None):
                    first = message.offset()
        return first

    def _newest(self, task: TaskModel) -> Checkpoint | None:
        """The task's newest checkpoint, read again: the commit that wrote the change may have written one since."""
        at = TopicPartition(self._job.checkpoint_topic, task.partition)
        with self._log.restore_consumer("checkpoint") as consumer:
            decided_bounds(consumer, at, self._clock)
            return read_checkpoint(consumer, at, self._clock)
