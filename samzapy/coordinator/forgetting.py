"""`state drop` and `checkpoint forget`: remove stores or inputs that a stopped job no longer has from its checkpoints, for all tasks or for none.

One transaction of the job's coordinator id writes a next checkpoint for every task concerned. A store's changelog topic is deleted after
that: where the command is cut short in between, the topic is left over, and a store that later has its name is refused until it is deleted.
The same command again deletes it: the barriers in it say whose changelog it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from samzapy.api.errors import ConfigurationError
from samzapy.coordinator.alone import Alone
from samzapy.coordinator.coordinator_log import Written
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.barrier import BARRIER_KEY, barrier_from_bytes
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Ledger, Startpoint, startpoint_key
from samzapy.plan.forgetting import is_of, without_input, without_order, without_store
from samzapy.ports import Clock, Log
from samzapy.readers import read_checkpoint, read_to_end

Checkpoints = Mapping[int, Checkpoint]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is taken out.

    Attributes:
        before, after: the checkpoints concerned, by the partition of the checkpoint topic.
        orders: what is left of orders of `checkpoint set` that named it; None: nothing.
        topics: changelog topics that are to be deleted.
        replaced: changelog topics of the store's that are others now than the checkpoint names; they are left alone.
        left_over: changelog topics of the store's that no checkpoint names, and that are to be deleted.
    """

    before: Checkpoints = field(default_factory=dict)
    after: Checkpoints = field(default_factory=dict)
    orders: Mapping[str, Startpoint | None] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()


class Forgetting:
    """One command. Arguments as of `coordinator.checkpoint_set.Rewinding`."""

    def __init__(
        self, job: Job, settings: CoordinatorSettings, log: Log, clock: Clock, process: Process, is_alive: Callable[[str], bool]
    ) -> None:
        self._job = job
        self._log = log
        self._clock = clock
        self._alone = Alone(job, settings, log, clock, process, is_alive, "nothing was forgotten")

    def store(self, name: str, used: Collection[str], execute: bool) -> Forgotten:
        """Forget a store, and delete its changelog. `used`: the changelogs of the job's other stores; none of them is deleted.

        Raises:
            ConfigurationError: one of those is that of the store. OwnedElsewhere: another run is alive, or has taken the job over. StateRefused: a
                checkpoint cannot be read. LogError.
        """
        found = self._do(lambda ledger: self._of_store(name, used), execute)
        if execute and (gone := (*found.topics, *found.left_over)):
            admin = self._log.admin()
            try:
                admin.delete(gone)
            finally:
                admin.close()
        return found

    def input(self, topic: str, execute: bool) -> Forgotten:
        """Forget the tasks' offsets in a topic. Raises as `store`."""
        return self._do(lambda ledger: self._of_input(topic, ledger), execute)

    def _do(self, find: Callable[[Ledger], Forgotten], execute: bool) -> Forgotten:
        found = find(self._alone.read())
        if not execute or found == Forgotten():
            return found
        with self._alone as alone:
            found = find(alone.ledger)
            if found.after or found.orders:
                alone.write(self._records(found), lambda: self._is_written(found))
        return found

    def _of_store(self, name: str, used: Collection[str]) -> Forgotten:
        checkpoints = self._checkpoints()
        before = {p: c for p, c in checkpoints.items() if name in c.stores}
        named = {c.stores[name].topic: c.stores[name].topic_id for c in before.values()}
        usual = self._job.changelog_topic(name)
        may_be_left = usual not in {*used, *(mark.topic for c in checkpoints.values() for mark in c.stores.values())}
        admin = self._log.admin()
        try:
            there = admin.topics({*named, usual} if may_be_left else named)
        finally:
            admin.close()
        if shared := sorted(named.keys() & set(used)):
            raise ConfigurationError(
                f"the changelog of store {name!r}, {', '.join(shared)}, is also that of another store of the job, whose state would be deleted.",
                "In the job file, give that other store another `changelog:` first, or remove its line `changelog:`; then run this again.",
            )
        same = tuple(t for t in named if t in there and there[t].topic_id == named[t])
        other = tuple(t for t in named if t in there and t not in same)
        left_over = (usual,) if may_be_left and usual in there and self._is_changelog(usual, there[usual].partitions, name) else ()
        return Forgotten(before, {p: without_store(c, name) for p, c in before.items()}, {}, same, other, left_over)

    def _is_changelog(self, topic: str, partitions: int, store: str) -> bool:
        """Whether a topic is this job's changelog of the store: every start of a task writes a barrier into it, which says so."""
        consumer = self._log.restore_consumer("forget")
        try:
            topic_partitions = [TopicPartition(topic, partition) for partition in range(partitions)]
            barriers = (
                m for p in topic_partitions for batch in read_to_end(consumer, p, self._clock) for m in batch if m.key() == BARRIER_KEY
            )
            return any(self._wrote(barrier.value(), store) for barrier in barriers)
        finally:
            consumer.close()

    def _wrote(self, data: bytes | None, store: str) -> bool:
        try:
            barrier = barrier_from_bytes(data)
        except ValueError:
            return False
        return (barrier.job, barrier.id, barrier.store) == (self._job.name, self._job.id, store)

    def _of_input(self, topic: str, ledger: Ledger) -> Forgotten:
        changed = {p: (c, after) for p, c in self._checkpoints().items() if (after := without_input(c, topic)) is not c}
        orders = {task: without_order(o, topic) for task, o in ledger.startpoints.items() if any(is_of(p, topic) for p in o.offsets)}
        return Forgotten({p: c for p, (c, _) in changed.items()}, {p: c for p, (_, c) in changed.items()}, orders)

    def _checkpoints(self) -> dict[int, Checkpoint]:
        topic = self._job.checkpoint_topic
        admin = self._log.admin()
        try:
            facts = admin.topics([topic]).get(topic)
        finally:
            admin.close()
        consumer = self._log.restore_consumer("forget")
        try:
            partitions = [TopicPartition(topic, p) for p in range(facts.partitions if facts else 0)]
            found = {partition.partition: read_checkpoint(consumer, partition, self._clock) for partition in partitions}
        finally:
            consumer.close()
        return {p: checkpoint for p, checkpoint in found.items() if checkpoint is not None}

    def _records(self, found: Forgotten) -> Iterable[Written]:
        for partition, checkpoint in found.after.items():
            yield self._job.checkpoint_topic, CHECKPOINT_KEY, checkpoint.to_bytes(), partition
        for task, order in found.orders.items():
            yield self._job.coordinator_topic, startpoint_key(task), None if order is None else order.to_bytes(), 0

    def _is_written(self, found: Forgotten) -> bool:
        there = self._checkpoints()
        return all(p in there and there[p].sequence >= c.sequence for p, c in found.after.items())
