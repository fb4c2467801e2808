"""A batch that cannot be decompressed: the error says where it begins and ends, and the records after it can be read. On both logs."""

from __future__ import annotations

import pytest

from samzapy.api.errors import BatchUnreadable
from samzapy.kafka.unreadable_batches import first_outside
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Consumer, Log
from tests.contract.log_worlds import World, take


def met(consumer: Consumer) -> BatchUnreadable:
    with pytest.raises(BatchUnreadable) as caught:
        take(consumer, 1)
    return caught.value


def test_a_batch_that_does_not_decompress_is_told_with_its_offsets(world: World, log: Log, topic: str, consumer: Consumer) -> None:
    place = TopicPartition(topic, 0)
    producer = log.plain_producer("p")
    producer.send(topic, b"before", None, 0)
    producer.flush()
    world.send_unreadable(place, 3)
    producer.send(topic, b"after", None, 0)
    producer.flush()
    consumer.assign({place: 0})
    assert [(0, b"before")] == [(m.offset(), m.value()) for m in take(consumer, 1)]
    batch = met(consumer)
    assert (*place, 1, 4) == (batch.topic, batch.partition, batch.begin, batch.end)
    assert 1 == consumer.positions([place])[place]
    consumer.seek({place: 2})
    batch = met(consumer)
    assert (2, 4) == (batch.begin, batch.end)
    consumer.seek({place: batch.end})
    assert [(4, b"after")] == [(m.offset(), m.value()) for m in take(consumer, 1)]


def test_a_batch_that_does_not_decompress_may_be_the_last(world: World, topic: str, consumer: Consumer) -> None:
    place = TopicPartition(topic, 0)
    world.send_unreadable(place, 2)
    consumer.assign({place: 0})
    batch = met(consumer)
    assert (0, 2) == (batch.begin, batch.end)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 1000])
def test_the_end_of_a_batch_is_found_in_few_fetches(size: int) -> None:
    asked: list[int] = []

    def is_within(offset: int) -> bool:
        asked.append(offset)
        return offset < 10 + size

    assert 10 + size == first_outside(10, is_within)
    assert len(asked) <= 2 * size.bit_length() + 1
