"""Where a restore ends: at the barriers that tasks write when they start together (T1), up to which T2 and T4 read.

A restore ends at its own barrier: a record that this owner wrote after it fenced every predecessor, so all that was ever committed lies
before it. Nothing depends on end offsets, on markers or on how compaction left the log.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TypeVar

from samzapy import failpoints
from samzapy.api.errors import InDoubt, OffsetOutOfRange, StateRefused, check
from samzapy.container.changelog_records import Run, runs
from samzapy.container.ownership import Ownership
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.model.barrier import BARRIER_KEY, Barrier, barrier_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.plan.open_transaction import OpenTransaction
from samzapy.ports import Clock, Consumer, Message

LOG = logging.getLogger("samzapy.restore")
BATCH_RECORDS = 2000
STUCK_S = 2.0
STRANGER = "Another application writes to this topic: revoke its permission (`kafka-acls.sh`), or stop the program."
T = TypeVar("T")
Steps = Generator[bool, None, T]  # each step says whether it got on, or has to wait for something
Take = Callable[[TopicPartition, Sequence[bytes | None], Run], None]  # a run and its keys
Whose = Callable[[TopicPartition], tuple[TaskInstance, str]]  # task and store ("" for a checkpoint partition)


class Barriers:
    """Writes the barriers of tasks that start together, and reads up to them.

    Args:
        commit_others: commits what the container's other tasks have done; called before the barriers, whose transaction holds nothing else.

    Attributes:
        wait_s: how long a step may wait for records, in seconds.
    """

    def __init__(
        self, spec: ContainerSpec, ownership: Ownership, clock: Clock, commit_others: Callable[[], None], new_id: Callable[[], str]
    ) -> None:
        self._spec = spec
        self._own = ownership
        self._clock = clock
        self._commit_others = commit_others
        self._new_id = new_id
        self.wait_s = 0.0

    def write(self, tasks: Sequence[TaskInstance]) -> dict[TopicPartition, int]:
        """Write one barrier to the checkpoint partition and to each changelog partition of each task, in one transaction. Returns their offsets."""
        offsets: dict[TopicPartition, int] = {}
        nonce = self._new_id()
        self._commit_others()
        check(not self._own.in_transaction, "barriers have a transaction of their own")
        producer = self._own.open()
        for task in tasks:
            partitions = [("", self._spec.checkpoint_of(task.model))]
            partitions += [(name, s.changelog_of(task.model.partition)) for name, s in self._spec.stores.items() if s.changelog]
            for store, partition in partitions:
                producer.send(
                    partition.topic,
                    barrier_of(self._spec, self._own, task, store, nonce),
                    BARRIER_KEY,
                    partition.partition,
                    delivered=lambda offset, partition=partition: offsets.__setitem__(partition, offset),  # type: ignore[misc]
                )
        producer.flush()
        failpoints.hit("start.barrier.sent")
        self._own.decided(producer.commit())
        failpoints.hit("start.barrier.committed")
        return offsets

    def read_to(
        self,
        consumer: Consumer,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        take: Take,
        whose: Whose,
    ) -> Steps[None]:
        """Read every record from each start up to this owner's barrier (at the given offset, inclusive). Barriers are checked and not handed on.

        Raises:
            StateRefused, Superseded: a barrier that is another job's or a later owner's. InDoubt: records were removed during the read.
        """
        if not ranges:
            return
        consumer.assign({p: start for p, (start, _) in ranges.items()})
        barriers = {p: barrier for p, (_, barrier) in ranges.items()}
        last_progress = self._clock.monotonic()
        said = False
        try:
            while barriers:
                batch = self._poll(consumer, barriers)
                for partition, run in runs(batch):
                    barrier = barriers.get(partition)
                    if barrier is not None and self._take(partition, run, barrier, take, whose):
                        del barriers[partition]
                        consumer.unassign([partition])
                if batch:
                    last_progress = self._clock.monotonic()
                elif not said and self._clock.monotonic() - last_progress > STUCK_S:
                    said = self._say_stuck(consumer, barriers, whose)
                yield bool(batch)
        finally:
            consumer.unassign(barriers)
            for partition in ranges:
                whose(partition)[0].reason = ""

    def _take(self, partition: TopicPartition, run: Run, barrier: int, take: Take, whose: Whose) -> bool:
        """True: this owner's barrier is reached; later records are ignored."""
        is_last = run[-1].offset() >= barrier
        if is_last:
            run = run[: bisect_left(run, barrier, key=lambda message: message.offset()) + 1]
        keys = [message.key() for message in run]
        begin = 0
        while BARRIER_KEY in keys[begin:]:
            found = keys.index(BARRIER_KEY, begin)
            self._take_changes(partition, keys[begin:found], run[begin:found], barrier, take)
            self.check(run[found], *whose(partition), is_replaced=run[found].offset() <= barrier)
            begin = found + 1
        self._take_changes(partition, keys[begin:], run[begin:], barrier, take)
        return is_last

    @staticmethod
    def _take_changes(partition: TopicPartition, keys: Sequence[bytes | None], run: Run, barrier: int, take: Take) -> None:
        if run and run[-1].offset() > barrier:  # only the last can be: it stands for the barrier where compaction took that away
            keys, run = keys[:-1], run[:-1]
        if run:
            take(partition, keys, run)

    def _poll(self, consumer: Consumer, open_partitions: Iterable[TopicPartition]) -> Sequence[Message]:
        try:
            return consumer.poll(BATCH_RECORDS, self.wait_s)
        except OffsetOutOfRange as error:  # what that means for the store, its rules decide when it is started again
            partitions = ", ".join(map(str, open_partitions))
            raise InDoubt(f"a restore was reading {partitions}, and records there were removed meanwhile: {error.message}", "") from None

    def _say_stuck(self, consumer: Consumer, barriers: Mapping[TopicPartition, int], whose: Whose) -> bool:
        for partition, barrier in barriers.items():
            end = consumer.bounds(partition).end
            if end <= barrier:
                task, _ = whose(partition)
                task.reason = OpenTransaction(partition, end, barrier=barrier)
                LOG.warning("%s; waiting until it is committed or aborted", task.reason)
        return True

    def check(self, message: Message, task: TaskInstance, store: str, is_replaced: bool = False) -> None:
        """`is_replaced`: a barrier of this start's own follows, so what it replaced may be anything, but not another job's or a later owner's.

        Raises:
            StateRefused: another job's, task's or store's. Superseded: a later owner's.
        """
        partition = TopicPartition(message.topic(), message.partition())
        try:
            barrier = barrier_from_bytes(message.value())
        except ValueError as error:
            if is_replaced:
                LOG.warning("%s %s; it was skipped: this start's barrier replaced it. %s", at(message), error, STRANGER)
                return
            raise StateRefused(
                f"{at(message)} {error}, and no checkpoint confirms that the topic belongs to this job. {STRANGER}",
                f"If the content of {partition.topic} is not needed, delete the topic; otherwise give store {store!r} another `changelog`.",
            ) from None
        job = self._spec.job
        if (barrier.job, barrier.id, barrier.task, barrier.store) != (job.name, job.id, task.name, store):
            raise StateRefused(
                f"{partition} belongs to store {barrier.store!r} of {barrier.job}-{barrier.id}, {barrier.task}; not to store {store!r} of {job}, {task.name}.",
                f"Give store {store!r} its own changelog topic.",
            )
        if barrier.epoch <= self._own.epoch:
            return
        self.refuse_later(f"{at(message)} a barrier", barrier.epoch, store == "", task)
        LOG.warning(
            "%s a barrier of epoch %d, ignored: the newest owner of %s has epoch %d. %s",
            at(message), barrier.epoch, task.name, self._own.epoch, STRANGER,
        )  # fmt: skip

    def refuse_later(self, what: str, epoch: int, is_needed: bool, task: TaskInstance) -> None:
        """Something is of a later epoch than this owner's. Every owner is named in the coordinator topic before it writes anything, so that
        topic is asked once more whether there is a later one.

        Args:
            is_needed: whether to go by the record if there is none: checkpoints and barriers beside them are how a lost coordinator topic shows.

        Raises:
            Superseded: there is a later owner. StateRefused: there is none, so somebody else wrote it, or the coordinator topic lost its end.
        """
        self._own.check()
        if is_needed and epoch > self._own.epoch:
            raise StateRefused(
                f"{task.name}: {what} of epoch {epoch}, but the last owner in the coordinator topic is of epoch {self._own.epoch}. "
                f"Either the coordinator topic lost its last records, or another application wrote the record of epoch {epoch}.",
                "If another application does, revoke its permission (`kafka-acls.sh`), or stop it. "
                "In both cases, run `samzapy reset JOB.yaml --coordinator --execute`: new epochs are higher; state and checkpoints stay.",
            )


def barrier_of(spec: ContainerSpec, own: Ownership, task: TaskInstance, store: str, nonce: str = "") -> bytes:
    """A barrier of this owner, for a partition of a task's store; "": of its checkpoints."""
    return Barrier(spec.job.name, spec.job.id, task.name, store, own.epoch, own.incarnation, nonce).to_bytes()


def at(message: Message) -> str:
    """The place of a record, as the start of a sentence about it."""
    return f"{message.topic()}[{message.partition()}] at offset {message.offset()} has"
