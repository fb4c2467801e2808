"""Reading a task's newest checkpoint by whoever may not write: up to the read_committed end as it is now."""

from __future__ import annotations

from samzapy.api.errors import StateRefused
from samzapy.log_reader import read_to_end
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
