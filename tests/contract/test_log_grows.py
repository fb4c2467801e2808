"""Clients that have looked at a topic before it got more partitions reach the new ones at once."""

from __future__ import annotations

import pytest

from samzapy.api.errors import TopicMissing
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Consumer, TopicOutline, TopicSpec, TransactionalProducer
from tests.contract.log_worlds import World, new_topic, send, take

BEFORE, AFTER = 1, 3


def test_a_consumer_and_a_producer_that_knew_the_topic_before_reach_its_new_partitions(
    world: World, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    grown = new_topic(world.log, BEFORE)
    send(producer, grown, b"before")
    consumer.assign({TopicPartition(grown, 0): 0})
    assert [b"before"] == [m.value() for m in take(consumer, 1)]
    world.log.admin().grow(grown, AFTER)
    place = TopicPartition(grown, AFTER - 1)
    assert (0, 0) == consumer.bounds(place)
    assert 0 == consumer.offset_for_time(place, 0)
    consumer.assign({place: 0})
    producer.begin()
    producer.send(grown, b"after", b"k", AFTER - 1)
    producer.flush()
    producer.commit()
    assert [(AFTER - 1, b"after")] == [(m.partition(), m.value()) for m in take(consumer, 1)]


def test_a_plain_producer_reaches_them_too(world: World, consumer: Consumer) -> None:
    grown = new_topic(world.log, BEFORE)
    plain = world.log.plain_producer("plain")
    plain.send(grown, b"before", b"k", 0)
    plain.flush()
    world.log.admin().grow(grown, AFTER)
    plain.send_all([(grown, b"after", b"k", AFTER - 1, 0, None)])
    plain.flush()
    plain.close()
    consumer.assign({TopicPartition(grown, AFTER - 1): 0})
    assert [b"after"] == [m.value() for m in take(consumer, 1)]


def test_topics_are_told_as_they_are_now_and_only_those_that_there_are(world: World) -> None:
    grown, other = new_topic(world.log, BEFORE), new_topic(world.log, AFTER)
    with world.log.admin() as admin:
        ids = {name: facts.topic_id for name, facts in admin.topics([grown, other]).items()}
        seen = {grown: TopicOutline(ids[grown], BEFORE), other: TopicOutline(ids[other], AFTER)}
        assert seen == admin.outlines([grown, other, "no-such-topic"], 10.0)
        with world.log.admin() as another:
            another.grow(grown, AFTER)
        assert {grown: TopicOutline(ids[grown], AFTER)} == admin.outlines([grown], 10.0)
        assert {} == admin.outlines([], 10.0)


def test_a_topic_that_was_made_again_is_told_with_another_id(world: World) -> None:
    topic = new_topic(world.log, BEFORE)
    with world.log.admin() as admin:
        before = admin.outlines([topic], 10.0)[topic]
        admin.delete([topic])
        while admin.outlines([topic], 10.0):
            continue
        admin.create([TopicSpec(topic, AFTER)])
        after = admin.outlines([topic], 10.0)[topic]
    assert AFTER == after.partitions
    assert "" not in (before.topic_id, after.topic_id)
    assert before.topic_id != after.topic_id


def test_a_partition_that_there_is_not_is_said(world: World, topic: str, consumer: Consumer) -> None:
    consumer.assign({TopicPartition(topic, 0): 0})
    with pytest.raises(TopicMissing):
        consumer.bounds(TopicPartition(topic, 17))
