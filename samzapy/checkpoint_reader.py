"""Reading a task's newest checkpoint by whoever may not write: up to the read_committed end as it is now."""

from __future__ import annotations

from contextlib import suppress

from samzapy.api.errors import StateRefused
from samzapy.log_reader import read_ranges, read_to_end
from samzapy.model.barrier import BARRIER_KEY, barrier_from_bytes
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, UnreadableCheckpoint, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Clock, Consumer


def read_checkpoint(consumer: Consumer, place: TopicPartition, clock: Clock) -> Checkpoint | None:
    """The newest checkpoint in this partition of a checkpoint topic.

    Raises:
        StateRefused: it cannot be read. ClusterUnreachable: no progress for 30 s. TopicMissing.
    """
    newest: bytes | None = None
    for batch in read_to_end(consumer, place, clock):
        for message in batch:
            if message.key() == CHECKPOINT_KEY:
                newest = message.value()
    if newest is None:
        return None
    try:
        return checkpoint_from_bytes(newest)
    except UnreadableCheckpoint as error:
        raise StateRefused(f"the newest checkpoint in {place} cannot be read: {error}.", "Use the samzapy version that wrote it.") from None


def owners_known(consumer: Consumer, topic: str, partitions: int, clock: Clock) -> tuple[dict[int, tuple[str, ...]], int]:
    """What a checkpoint topic tells of those who wrote it: the tasks of each container number, and the highest epoch. What cannot be read there
    is passed over: whoever starts those tasks refuses it.

    Raises:
        ClusterUnreachable: no progress for 30 s.
    """
    newest: dict[TopicPartition, bytes | None] = {}
    epoch = 0
    bounds = {place: consumer.bounds(place) for place in (TopicPartition(topic, p) for p in range(partitions))}
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
