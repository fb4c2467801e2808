"""Records of changelogs: split by partition, and the changes in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samzapy.container.spec import StoreSpec
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Change, Message

Run = Sequence[Message]  # records of one partition, in a row


def runs(batch: Sequence[Message]) -> Iterator[tuple[TopicPartition, Run]]:
    """Split the batch into runs of one partition, so that work per partition is done per run, not per record."""
    if not batch:
        return
    numbers, topics = [m.partition() for m in batch], [m.topic() for m in batch]
    begin, end, count = 0, 0, len(batch)
    while begin < count:
        number, topic = numbers[begin], topics[begin]
        if begin == 0 and numbers.count(number) == count and topics.count(topic) == count:
            end = count
        while end < count and numbers[end] == number and topics[end] == topic:
            end += 1
        yield TopicPartition(topic, number), batch[begin:end]
        begin = end


def changes_of(run: Run, store: StoreSpec) -> list[Change]:
    """The changes in records of a store's changelog: a barrier, or a record without a key, is none."""
    values = store.values_of(run)
    return [(key, value) for message, value in zip(run, values, strict=True) if (key := message.key()) is not None and key != BARRIER_KEY]
