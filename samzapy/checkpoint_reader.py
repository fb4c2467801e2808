"""The newest checkpoints of tasks. Whoever may not write reads up to the read_committed end as it is now; a restore reads up to its barrier."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from samzapy.api.errors import StateRefused
from samzapy.log_reader import read_ranges
from samzapy.model.barrier import BARRIER_KEY, barrier_from_bytes
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, UnreadableCheckpoint, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Clock, Consumer, Message


class NewestCheckpoints:
    """Of each partition of a checkpoint topic the newest checkpoint among the records that were taken."""

    def __init__(self) -> None:
        self._newest: dict[TopicPartition, bytes | None] = {}

    def take(self, messages: Iterable[Message]) -> None:
        """The next records, in the order of their partitions."""
        for message in messages:
            if message.key() == CHECKPOINT_KEY:
                self._newest[TopicPartition(message.topic(), message.partition())] = message.value()

    def bytes_of(self, place: TopicPartition) -> bytes | None:
        """As it was written; None: there is none."""
        return self._newest.get(place)

    def of(self, place: TopicPartition) -> Checkpoint | None:
        """The checkpoint; None: there is none.

        Raises:
            StateRefused: it cannot be read.
        """
        data = self.bytes_of(place)
        try:
            return None if data is None else checkpoint_from_bytes(data)
        except UnreadableCheckpoint as error:
            raise StateRefused(f"the newest checkpoint in {place} cannot be read: {error}.", "Use the samzapy version that wrote it.") from None


def newest_checkpoints(consumer: Consumer, places: Collection[TopicPartition], clock: Clock) -> NewestCheckpoints:
    """The newest checkpoints in these partitions, up to their read_committed ends as they are now.

    Raises:
        ClusterUnreachable: no progress for 30 s. TopicMissing.
    """
    newest = NewestCheckpoints()
    bounds = consumer.bounds_of(places)
    for batch in read_ranges(consumer, {place: (b.start, b.end) for place, b in bounds.items()}, clock):
        newest.take(batch)
    return newest


def read_checkpoint(consumer: Consumer, place: TopicPartition, clock: Clock) -> Checkpoint | None:
    """The newest checkpoint in this partition of a checkpoint topic.

    Raises:
        StateRefused: it cannot be read. ClusterUnreachable: no progress for 30 s. TopicMissing.
    """
    return newest_checkpoints(consumer, [place], clock).of(place)


def owners_known(consumer: Consumer, topic: str, partitions: int, clock: Clock) -> tuple[dict[int, tuple[str, ...]], int]:
    """What a checkpoint topic tells of those who wrote it: the tasks of each container number, and the highest epoch. What cannot be read there
    is passed over: whoever starts those tasks refuses it.

    Raises:
        ClusterUnreachable: no progress for 30 s.
    """
    newest: dict[TopicPartition, bytes | None] = {}
    epoch = 0
    bounds = consumer.bounds_of(TopicPartition(topic, p) for p in range(partitions))
    for batch in read_ranges(consumer, {place: (b.start, b.end) for place, b in bounds.items()}, clock):
        for message in batch:
            if message.key() == CHECKPOINT_KEY:
                newest[TopicPartition(message.topic(), message.partition())] = message.value()
            elif message.key() == BARRIER_KEY:
                with suppress(ValueError):
                    epoch = max(epoch, barrier_from_bytes(message.value()).epoch)
    tasks: dict[int, tuple[str, ...]] = {}
    for data in newest.values():
        with suppress(UnreadableCheckpoint):
            checkpoint = checkpoint_from_bytes(data or b"")
            epoch = max(epoch, checkpoint.epoch)
            tasks[checkpoint.container] = (*tasks.get(checkpoint.container, ()), checkpoint.task)
    return tasks, epoch
