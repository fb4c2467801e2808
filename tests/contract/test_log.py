"""What samzapy relies on of Kafka, as probes: each runs on the in-memory log and on a real broker."""

from __future__ import annotations

import secrets
import time

import pytest

from samzapy.api.errors import (
    ConfigurationError,
    Fenced,
    LogError,
    OffsetOutOfRange,
    RecordRejected,
    TimestampRefused,
    TopicMissing,
    TransactionAborted,
)
from samzapy.clock import SystemClock
from samzapy.model.key_partition import murmur2
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.plan.transaction_timeout import LIMIT, limit_of
from samzapy.ports import Consumer, Log, TopicSpec, TransactionalProducer
from tests.contract.log_worlds import PATIENCE_S, World, new_topic, read_until, send, take, values, visible


def _flush_and_commit(producer: TransactionalProducer) -> None:
    producer.flush()
    producer.commit()


def test_committed_records_are_seen_and_markers_take_offsets(
    log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    send(producer, topic, b"a", b"b")
    send(producer, topic, b"c")
    place = TopicPartition(topic, 0)
    assert visible(consumer, place, 5) == Bounds(0, 5)
    consumer.assign({place: 0})
    assert [(m.offset(), m.value()) for m in take(consumer, 3)] == [(0, b"a"), (1, b"b"), (3, b"c")]
    assert read_until(consumer, place, 5) == 5


def test_an_open_transaction_hides_what_follows_it_until_it_is_decided(
    log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    producer.begin()
    producer.send(topic, b"open", b"k", 0)
    producer.flush()
    other = log.plain_producer("other")
    other.send(topic, b"plain", b"k", 0)
    other.flush()
    assert consumer.bounds(place).end == 0
    producer.commit()
    visible(consumer, place, 3)
    assert values(log, topic, count=2) == [b"open", b"plain"]


def test_the_high_watermark_is_after_an_open_transaction_and_bounds_are_before_it(
    log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    send(producer, topic, b"a")
    visible(consumer, place, 2)
    producer.begin()
    producer.send(topic, b"open", b"k", 0)
    producer.flush()
    consumer.assign({place: 0})
    assert [b"a"] == [m.value() for m in take(consumer, 1)]
    deadline = time.monotonic() + PATIENCE_S
    while consumer.high_watermark(place) < 3 and time.monotonic() < deadline:
        consumer.poll(1, 0.05)
    assert (3, 2) == (consumer.high_watermark(place), consumer.bounds(place).end)
    assert {place: 3, TopicPartition(topic, 1): 0} == log.admin().high_watermarks([place, TopicPartition(topic, 1)])
    wanted = [place, TopicPartition(topic, 1), TopicPartition(topic, 99), TopicPartition(f"{topic}-nowhere", 0)]
    assert {place: 2, TopicPartition(topic, 1): 0} == log.admin().ends(wanted)


def test_bounds_of_many_partitions_are_those_of_each(log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer) -> None:
    other = new_topic(log, 3)
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1), *(TopicPartition(other, p) for p in range(3))]
    send(producer, topic, b"a")
    send(producer, other, b"b", b"c")
    visible(consumer, places[0], 2)
    producer.begin()
    producer.send(topic, b"open", b"k", 0)
    producer.flush()
    each = {place: consumer.bounds(place) for place in places}
    assert each == consumer.bounds_of(iter([*places, *places]))
    assert (Bounds(0, 2), 3) == (each[places[0]], sum(bounds.end for place, bounds in each.items() if place.topic == other))
    assert {} == consumer.bounds_of([])
    with pytest.raises(TopicMissing):
        consumer.bounds_of([*places, TopicPartition(f"{topic}-nowhere", 0)])
    producer.abort()


def test_aborted_records_are_never_seen_and_positions_pass_them(
    log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    send(producer, topic, b"a")
    send(producer, topic, b"lost", b"lost", commit=False)
    visible(consumer, place, 5)
    consumer.assign({place: 0})
    assert [m.value() for m in take(consumer, 1)] == [b"a"]
    assert read_until(consumer, place, 5) == 5


def test_init_fences_the_predecessor_and_its_open_transaction_is_gone_at_once(
    log: Log, topic: str, producer: TransactionalProducer
) -> None:
    producer.begin()
    producer.send(topic, b"zombie", b"k", 0)
    producer.flush()
    successor = log.transactional_producer(topic)
    successor.init()
    assert values(log, topic) == []
    send(successor, topic, b"mine")
    producer.send(topic, b"late", b"k", 0)
    with pytest.raises((Fenced, TransactionAborted)):
        _flush_and_commit(producer)
    assert b"zombie" not in values(log, topic)
    successor.close()


def test_a_delivered_callback_tells_the_offset_before_flush_returns(log: Log, topic: str, producer: TransactionalProducer) -> None:
    send(producer, topic, b"a")
    told: list[int] = []
    producer.begin()
    producer.send(topic, b"b", b"k", 0)
    producer.send(topic, b"c", b"k", 0, delivered=told.append)
    producer.flush()
    assert told == [3]
    producer.commit()


def test_a_record_that_the_broker_rejects_poisons_the_transaction_without_any_callback(log: Log, producer: TransactionalProducer) -> None:
    small = new_topic(log, 1, {"max.message.bytes": "1000"})
    producer.begin()
    producer.send(small, b"ok", b"k", 0)
    producer.send(small, b"x" * 5000, b"k", 0)
    with pytest.raises(TransactionAborted):
        _flush_and_commit(producer)
    assert producer.abort() is False  # its sequence numbers have a hole: the next transaction needs a new producer
    assert values(log, small) == []
    successor = log.transactional_producer(small)
    successor.init()
    send(successor, small, b"after")
    assert values(log, small, count=1) == [b"after"]
    successor.close()


@pytest.mark.parametrize("then", ["commit", "send more", "flush a record whose offset is asked for"])
def test_that_a_record_itself_was_refused_is_told_whatever_is_done_next(
    log: Log, topic: str, producer: TransactionalProducer, then: str
) -> None:
    small = f"probe-{secrets.token_hex(6)}"
    log.admin().create([TopicSpec(small, 1, {"max.message.bytes": "1000"})])
    told: list[int] = []
    producer.begin()
    producer.send(small, b"x" * 5000, b"k", 0, delivered=told.append if then.startswith("flush") else None)
    with pytest.raises(RecordRejected) as refused:
        _next(producer, topic, then)
    assert small == refused.value.topic
    producer.abort()
    assert [] == told
    assert [] == values(log, topic)


def _next(producer: TransactionalProducer, topic: str, then: str) -> None:
    if then == "commit":
        producer.commit()
    producer.flush()
    for i in range(10):
        producer.send(topic, b"more", b"k", 0, delivered=None if i else lambda offset: None)
    _flush_and_commit(producer)


def test_a_plain_producer_tells_that_a_record_itself_was_refused_and_goes_on(log: Log) -> None:
    small = f"probe-{secrets.token_hex(6)}"
    log.admin().create([TopicSpec(small, 1, {"max.message.bytes": "1000"})])
    producer = log.plain_producer("probe")
    producer.send(small, b"x" * 5000, b"k", 0)
    with pytest.raises(RecordRejected) as refused:
        producer.flush()
    assert small == refused.value.topic
    producer.send(small, b"after", b"k", 0)
    producer.flush()
    producer.close()
    assert [b"after"] == values(log, small)


@pytest.mark.parametrize("then", ["commit", "send more", "flush a record whose offset is asked for"])
def test_that_the_clock_of_this_host_is_to_blame_and_no_record_is_told_whatever_is_done_next(world: World, then: str) -> None:
    topic = world.topic_of_another_time()
    producer = world.log.transactional_producer(topic)
    producer.init()
    producer.begin()
    producer.send(topic, b"v", b"k", 0, delivered=(lambda offset: None) if then.startswith("flush") else None)
    with pytest.raises(TimestampRefused, match=r"[Cc]lock"):
        _next(producer, topic, then)
    producer.abort()
    producer.close()
    plain = world.log.plain_producer("probe")
    plain.send(topic, b"v", b"k", 0)
    with pytest.raises(TimestampRefused, match=r"[Cc]lock"):
        plain.flush()
    plain.close()


def test_a_record_whose_timestamp_the_task_gave_is_to_blame_for_it(log: Log, topic: str, producer: TransactionalProducer) -> None:
    too_late_ms = SystemClock().now_ms() + 2 * 3_600_000  # the default of message.timestamp.after.max.ms is an hour
    producer.begin()
    producer.send(topic, b"v", b"k", 0, timestamp_ms=too_late_ms)
    with pytest.raises(RecordRejected) as refused:
        _next(producer, topic, "commit")
    assert topic == refused.value.topic
    producer.abort()
    plain = log.plain_producer("probe")
    plain.send(topic, b"v", b"k", 0, too_late_ms)
    with pytest.raises(RecordRejected) as refused:
        plain.flush()
    assert topic == refused.value.topic
    plain.send(topic, b"now", b"k", 0)
    plain.flush()
    plain.close()
    assert [b"now"] == values(log, topic)


def test_tombstones_and_empty_values_are_different(log: Log, topic: str, producer: TransactionalProducer) -> None:
    producer.begin()
    producer.send(topic, None, b"k", 0)
    producer.send(topic, b"", b"k", 0)
    producer.commit()
    assert values(log, topic, count=2) == [None, b""]


def test_headers_and_timestamps_travel(log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer) -> None:
    producer.begin()
    producer.send(topic, b"v", b"k", 0, timestamp_ms=1234, headers=[("h", b"1"), ("h", b"2")])
    producer.commit()
    visible(consumer, TopicPartition(topic, 0), 2)
    consumer.assign({TopicPartition(topic, 0): 0})
    (message,) = take(consumer, 1)
    assert message.timestamp()[1] == 1234
    assert message.headers() == [("h", b"1"), ("h", b"2")]


def test_keys_choose_javas_partition(log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer) -> None:
    keys = [f"key-{i}".encode() for i in range(50)]
    producer.begin()
    for key in keys:
        producer.send(topic, b"v", key)
    producer.commit()
    for p in (0, 1):
        visible(consumer, TopicPartition(topic, p), 2)
    consumer.assign({TopicPartition(topic, p): 0 for p in (0, 1)})
    assert {m.key(): m.partition() for m in take(consumer, 50)} == {k: murmur2(k) % 2 for k in keys}


def test_a_paused_partition_hands_out_nothing_and_goes_on_where_it_was(
    log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    send(producer, topic, b"a", b"b")
    visible(consumer, place, 3)
    consumer.assign({place: 0})
    consumer.pause([place])
    assert [m for _ in range(5) for m in consumer.poll(10, 0.05)] == []
    consumer.resume([place])
    assert [m.value() for m in take(consumer, 2)] == [b"a", b"b"]


def test_seek_and_a_new_assignment_hand_out_nothing_that_was_fetched_before(
    log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    place = TopicPartition(topic, 0)
    send(producer, topic, *(str(i).encode() for i in range(20)))
    visible(consumer, place, 21)
    consumer.assign({place: 0})
    assert consumer.positions([place]) == {place: 0}
    first = []
    while not first:
        first = list(consumer.poll(3, 0.1))  # the rest waits in the client
    consumer.seek({place: 10})
    assert [m.offset() for m in take(consumer, 10)] == list(range(10, 20))
    consumer.unassign([place])
    assert list(consumer.poll(10, 0.05)) == []
    consumer.assign({place: 5})
    assert take(consumer, 1)[0].offset() == 5


def test_a_position_outside_the_log_is_named(log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer) -> None:
    send(producer, topic, b"a")
    consumer.assign({TopicPartition(topic, 0): 1000})
    with pytest.raises(OffsetOutOfRange, match=topic):
        take(consumer, 1)


def test_unknown_topics_are_said_at_once(log: Log, consumer: Consumer) -> None:
    with pytest.raises(TopicMissing):
        consumer.assign({TopicPartition("no-such-topic", 0): 0})
    assert log.admin().topics(["no-such-topic"]) == {}


def test_a_broker_setting_that_nobody_knows_is_not_told(log: Log) -> None:
    admin = log.admin()
    assert admin.broker_settings("no.such.setting") == []
    admin.close()


def test_a_transaction_may_take_what_every_broker_allows_and_not_longer(world: World, topic: str) -> None:
    with world.log.admin() as admin:
        limit = limit_of(admin.broker_settings(LIMIT))
    assert limit is not None
    for timeout_ms in (limit, limit + 1):
        producer = world.log_with(timeout_ms).transactional_producer(topic)
        if timeout_ms == limit:
            producer.init()
        else:
            with pytest.raises(ConfigurationError, match=r"commit\.timeout is .* longer than the brokers allow"):
                producer.init()
        producer.close()


def test_a_client_is_closed_when_its_block_ends(log: Log, topic: str) -> None:
    with log.admin() as admin, log.restore_consumer("block") as consumer:
        facts = admin.topics([topic])[topic]
        consumer.assign({TopicPartition(topic, 0): 0})

    assert topic == facts.name
    with pytest.raises(RuntimeError):
        consumer.poll(1, 0.1)


def test_topic_facts_tell_a_new_topic_of_the_same_name(log: Log) -> None:
    name, admin = f"probe-{secrets.token_hex(6)}", log.admin()
    admin.create([TopicSpec(name, 3, {"cleanup.policy": "compact"})])
    admin.create([TopicSpec(name, 3)])  # one that exists is fine
    before = admin.topics([name])[name]
    assert (before.partitions, before.config["cleanup.policy"]) == (3, "compact")
    admin.delete([name])
    deadline = time.monotonic() + PATIENCE_S
    while admin.topics([name]) and time.monotonic() < deadline:
        pass
    admin.create([TopicSpec(name, 3)])
    assert admin.topics([name])[name].topic_id != before.topic_id


def test_an_empty_partition_has_equal_bounds_and_reading_it_ends(log: Log, topic: str, consumer: Consumer) -> None:
    assert consumer.bounds(TopicPartition(topic, 1)) == Bounds(0, 0)
    assert values(log, topic) == []


def test_a_plain_producer_that_fails_says_so_at_flush(log: Log) -> None:
    small = new_topic(log, 1, {"max.message.bytes": "1000"})
    plain = log.plain_producer("plain")
    plain.send(small, b"x" * 5000, b"k", 0)
    with pytest.raises(LogError, match=small):
        plain.flush()
    plain.send(small, b"ok", b"k", 0)
    plain.flush()
    assert values(log, small, count=1) == [b"ok"]


def test_the_offset_for_a_time_is_the_first_at_or_after_it(
    log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer
) -> None:
    producer.begin()
    for at in (1000, 2000, 3000):
        producer.send(topic, b"v", b"k", 0, timestamp_ms=at)
    producer.commit()
    place = TopicPartition(topic, 0)
    visible(consumer, place, 4)
    assert [consumer.offset_for_time(place, at) for at in (0, 1000, 1500, 3000)] == [0, 0, 1, 2]
    assert consumer.offset_for_time(place, 9000) >= 3  # a marker has a time too


def test_a_batch_goes_in_order_with_and_without_extras(log: Log, topic: str, producer: TransactionalProducer, consumer: Consumer) -> None:
    given = [(1000 + i if i % 3 == 0 else 0, (("h", b"x"),) if i % 5 == 0 else None) for i in range(30)]
    producer.begin()
    producer.send_all([(topic, str(i).encode(), b"k", 0, at, headers) for i, (at, headers) in enumerate(given)])
    producer.commit()
    plain = log.plain_producer("plain")
    plain.send_all([(topic, b"plain", b"k", 0, 0, None), (topic, b"timed", b"k", 0, 7, (("h", b"y"),))])
    plain.flush()
    consumer.assign({TopicPartition(topic, 0): 0})
    records = take(consumer, 32)
    assert [record.value() for record in records] == [*(str(i).encode() for i in range(30)), b"plain", b"timed"]
    for record, (at, headers) in zip(records, [*given, (0, None), (7, (("h", b"y"),))], strict=True):
        assert at in (0, record.timestamp()[1])
        assert (record.headers() or []) == list(headers or ())


def test_a_batch_with_a_record_that_cannot_go_poisons_the_transaction(log: Log, topic: str, producer: TransactionalProducer) -> None:
    producer.begin()
    producer.send_all([(topic, b"a", b"k", 0, 0, None), (topic, b"x" * 200_000_000, b"k", 0, 0, None), (topic, b"b", b"k", 0, 0, None)])
    with pytest.raises(TransactionAborted):
        _flush_and_commit(producer)
    producer.abort()
    assert values(log, topic) == []
