"""What samzapy relies on of Kafka's topics as they change: records deleted, partitions added, topics made anew, logs compacted."""

from __future__ import annotations

import pytest

from samzapy.api.errors import LogError, OffsetOutOfRange, TopicMissing
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ports import Consumer, Log, TopicSpec, TransactionalProducer
from tests.contract.log_worlds import CLEANED_OFTEN, World, await_leader, messages, new_topic, send, take, until, values, visible


def test_deleted_records_move_the_start_and_leave_the_offsets(
    world: World, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    send(producer, topic, b"a", b"b", b"c")
    visible(consumer, place, 4)
    world.delete_records(place, 2)
    assert Bounds(2, 4) == consumer.bounds(place)
    assert [(2, b"c")] == [(m.offset(), m.value()) for m in messages(world.log, topic)]
    consumer.assign({place: 0})
    with pytest.raises(OffsetOutOfRange, match=topic):
        take(consumer, 1)


def test_a_start_that_moved_to_the_end_leaves_an_empty_log_that_goes_on(
    world: World, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    send(producer, topic, b"a")
    visible(consumer, place, 2)
    world.delete_records(place, 2)
    assert Bounds(2, 2) == consumer.bounds(place)
    assert [] == values(world.log, topic)
    send(producer, topic, b"b")
    visible(consumer, place, 4)
    assert [(2, b"b")] == [(m.offset(), m.value()) for m in messages(world.log, topic)]


def test_partitions_that_are_added_are_empty_and_take_records(world: World, topic: str) -> None:
    world.add_partitions(topic, 3)
    until(lambda: world.log.admin().topics([topic])[topic].partitions == 3)
    assert 3 == world.log.admin().topics([topic])[topic].partitions
    await_leader(world.log, TopicPartition(topic, 2))
    producer = world.log.transactional_producer(topic)
    producer.init()
    producer.begin()
    producer.send(topic, b"new", b"k", 2)
    producer.commit()
    assert [b"new"] == values(world.log, topic, partition=2, count=1)
    producer.close()


def test_a_topic_made_anew_begins_at_offset_0_with_nothing_of_the_old_one(log: Log, topic: str, producer: TransactionalProducer) -> None:
    send(producer, topic, b"old")
    assert [b"old"] == values(log, topic, count=1)
    admin = log.admin()
    admin.delete([topic])
    until(lambda: topic not in admin.topics([topic]))
    with pytest.raises(TopicMissing):
        log.restore_consumer("gone").assign({TopicPartition(topic, 0): 0})
    admin.create([TopicSpec(topic, 2)])
    await_leader(log, TopicPartition(topic, 0))
    successor = log.transactional_producer(topic)
    successor.init()
    send(successor, topic, b"new")
    assert [b"new"] == values(log, topic, count=1)
    assert [0] == [m.offset() for m in messages(log, topic)]
    successor.close()


def test_records_before_an_offset_are_removed_and_no_others(world: World, consumer: Consumer) -> None:
    topic = new_topic(world.log, 2)
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    plain = world.log.plain_producer("plain")
    for place in places:
        for value in (b"a", b"b", b"c"):
            plain.send(topic, value, None, place.partition)
    plain.flush()
    with world.log.admin() as admin:
        admin.delete_records({places[0]: 2})
        until(lambda: consumer.bounds(places[0]).start == 2)
        admin.delete_records({places[0]: 1})  # what is gone is gone
        assert [Bounds(2, 3), Bounds(0, 3)] == [consumer.bounds(place) for place in places]
        with pytest.raises(LogError):
            admin.delete_records({places[1]: 9})  # it does not reach there
    plain.close()


@pytest.mark.slow  # a broker's cleaner comes every fifteen seconds
def test_compaction_keeps_the_newest_of_each_key_with_its_offset(world: World, consumer: Consumer) -> None:
    topic = new_topic(world.log, 1, CLEANED_OFTEN)
    place = TopicPartition(topic, 0)
    plain = world.log.plain_producer("plain")
    for key, value in (("a", b"old"), ("b", b"b1"), ("gone", b"x"), ("a", b"new"), ("gone", None)):
        plain.send(topic, value, key.encode(), 0)
    plain.flush()
    world.compact(place, gone=b"old")
    consumer.assign({place: 0})
    kept = [(m.offset(), m.key(), m.value()) for m in take(consumer, 3) if m.key() != b"roll"]
    assert [(1, b"b", b"b1"), (3, b"a", b"new"), (4, b"gone", None)] == kept
    assert 0 == consumer.bounds(place).start  # holes do not move it
    plain.close()


@pytest.mark.prove
@pytest.mark.slow
def test_what_is_younger_than_the_compaction_lag_stays_and_so_does_what_it_replaces(world: World) -> None:
    lag = {**CLEANED_OFTEN, "max.compaction.lag.ms": "700000", "min.compaction.lag.ms": "600000"}
    kept, cleaned = new_topic(world.log, 1, lag), new_topic(world.log, 1, CLEANED_OFTEN)
    plain = world.log.plain_producer("plain")
    for value in (b"old", b"new"):
        for topic in (kept, cleaned):
            plain.send(topic, value, b"a", 0)
    plain.flush()
    for _ in range(2):  # once more: the cleaner takes the dirtiest log first
        plain.send(cleaned, b"old", b"b", 0)
        plain.send(cleaned, b"new", b"b", 0)
        plain.send(kept, b"roll", b"roll", 0)
        plain.flush()
        world.compact(TopicPartition(cleaned, 0), gone=b"old")
    assert [b"old", b"new"] == values(world.log, kept, count=4)[:2]
    plain.close()


@pytest.mark.slow
def test_compaction_drops_aborted_records_and_touches_nothing_after_an_open_transaction(world: World, consumer: Consumer) -> None:
    topic = new_topic(world.log, 1, CLEANED_OFTEN)
    place = TopicPartition(topic, 0)
    producer = world.log.transactional_producer(topic)
    producer.init()
    producer.begin()
    for key, value in ((b"a", b"first"), (b"a", b"second"), (b"b", b"b1")):
        producer.send(topic, value, key, 0, timestamp_ms=1000)  # so old that what follows opens a new segment: only closed ones are cleaned
    producer.commit()
    visible(consumer, place, 4)
    opened = world.log_with(commit_timeout_ms=600_000).transactional_producer(f"{topic}-open")  # longer than the cleaner takes
    opened.init()
    opened.begin()
    opened.send(topic, b"open", b"c", 0)
    opened.flush()
    producer.begin()
    producer.send(topic, b"third", b"a", 0)  # after the open one: second stays the newest that the cleaner may see
    producer.commit()
    world.compact(place, gone=b"first")
    assert [(1, b"second"), (2, b"b1")] == [(m.offset(), m.value()) for m in messages(world.log, topic)]
    opened.abort()
    until(lambda: consumer.bounds(place).end > 7)
    left = [(m.offset(), m.value()) for m in messages(world.log, topic) if m.key() != b"roll"]
    assert [(1, b"second"), (2, b"b1"), (5, b"third")] == left
    producer.close()
