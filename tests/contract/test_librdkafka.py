"""What librdkafka does by itself: the facts that samzapy's use of Kafka follows from, each shown on the library alone.

If one of these fails after an update, the rule that names it may be given up. What samzapy's own clients promise is tested in test_log*.py.
"""

from __future__ import annotations

import logging
import time
from threading import Event

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Message, Producer, TopicPartition

from samzapy.api.errors import ConfigurationError
from samzapy.kafka.plain_producer import KafkaPlainProducer
from samzapy.kafka.producer import KafkaTransactionalProducer
from tests.broker import LIMIT_S, create_topic, produce, read_all

pytestmark = pytest.mark.kafka


def begun(kafka: str, transactional_id: str, **settings: object) -> Producer:
    options = {key.replace("_", "."): value for key, value in settings.items()}
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": transactional_id, **({} if "debug" in options else {"log_level": 0}), **options})
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    return producer


def reading(kafka: str, topic: str, **settings: object) -> Consumer:
    options = {key.replace("_", "."): value for key, value in settings.items()}
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic, "enable.auto.commit": False, **options})
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def take(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    deadline = time.monotonic() + LIMIT_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message)
    assert count == len(found)
    return found


def test_a_full_queue_raises_and_a_transaction_of_ours_may_be_larger_than_it(kafka: str, unique: str) -> None:
    create_topic(kafka, unique)
    alone = begun(kafka, f"{unique}-alone", queue_buffering_max_messages=100)
    for _ in range(100):
        alone.produce(unique, b"lost", partition=0)
    with pytest.raises(BufferError):
        alone.produce(unique, b"lost", partition=0)
    alone.abort_transaction(LIMIT_S)

    ours = KafkaTransactionalProducer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 100}, unique, 20_000)
    ours.init()
    ours.begin()
    for number in range(1000):
        ours.send(unique, b"%d" % number, b"k", 0)
    ours.flush()
    ours.commit()
    ours.close()

    assert [b"%d" % number for number in range(1000)] == [record.value for record in read_all(kafka, unique)]


def test_a_record_that_is_larger_than_the_queue_is_refused_with_the_key_to_change(kafka: str, unique: str) -> None:
    """It would wait for ever: the queue is empty and it does not fit."""
    create_topic(kafka, unique)
    settings = {"bootstrap.servers": kafka, "queue.buffering.max.kbytes": 1}
    ours, plain = KafkaTransactionalProducer(settings, unique, 20_000), KafkaPlainProducer(settings, f"{unique}-plain", 20_000)
    ours.init()
    ours.begin()
    for send in (ours.send, plain.send):
        for _ in range(20):
            send(unique, b"v" * 500, b"k", 0)  # more than the queue takes, each alone fits
        with pytest.raises(ConfigurationError, match="a record of 2,001 bytes does not fit") as refused:
            send(unique, b"v" * 2000, b"k", 0)
        assert "queue.buffering.max.kbytes" in refused.value.remedy
    ours.flush()
    ours.commit()
    plain.flush()
    ours.close()
    plain.close()

    assert 40 == len(read_all(kafka, unique))


def test_a_commit_reports_success_without_the_records_that_produce_refused(kafka: str, unique: str) -> None:
    """Hence an error of `produce` poisons the transaction, whether or not the task's code swallows it."""
    create_topic(kafka, unique)
    producer = begun(kafka, unique, message_max_bytes=2000)
    refused = 0
    for number in range(30):
        try:
            producer.produce(unique, b"x" * (10 if number % 3 == 0 else 3000), partition=0)
        except KafkaException:
            refused += 1
    producer.commit_transaction(LIMIT_S)

    assert (20, 10) == (refused, len(read_all(kafka, unique)))


def test_small_records_in_a_large_batch_are_refused_by_a_topic_that_takes_less(kafka: str, unique: str) -> None:
    """Hence batches that fit the smallest topic that is written."""
    create_topic(kafka, unique, max_message_bytes=20_000)
    outcome: list[str] = []
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 200, "batch.size": 1_000_000})
    for _ in range(100):
        producer.produce(
            unique, b"x" * 1000, partition=0, on_delivery=lambda error, _: outcome.append("" if error is None else error.name())
        )
    assert 0 == producer.flush(LIMIT_S)

    assert {"MSG_SIZE_TOO_LARGE"} == set(outcome)


def test_a_deletion_and_an_empty_value_are_false(kafka: str, unique: str) -> None:
    """Hence a message is compared with None: `if message` would drop every tombstone."""
    create_topic(kafka, unique)
    produce(kafka, unique, [(b"k", None), (b"k", b""), (b"k", b"v")])
    consumer = reading(kafka, unique)
    assert [(None, False), (b"", False), (b"v", True)] == [(m.value(), bool(m)) for m in take(consumer, 3)]
    consumer.close()


def test_a_position_is_unknown_until_something_was_fetched(kafka: str, unique: str) -> None:
    """Hence the offset that was assigned stands for it until then."""
    create_topic(kafka, unique)
    produce(kafka, unique, [(b"k", b"v")])
    consumer = reading(kafka, unique)
    assert OFFSET_INVALID == consumer.position([TopicPartition(unique, 0)])[0].offset
    take(consumer, 1)
    assert 1 == consumer.position([TopicPartition(unique, 0)])[0].offset
    consumer.close()


def test_a_consumer_whose_queue_was_full_idles_for_fetch_queue_backoff(kafka: str, unique: str) -> None:
    """Hence 5 ms instead of the default of a second: a restore would spend its time waiting."""
    create_topic(kafka, unique)
    producer = Producer({"bootstrap.servers": kafka, "batch.num.messages": 100, "linger.ms": 100})
    for _ in range(1000):
        producer.produce(unique, b"x" * 1000, partition=0)
    assert 0 == producer.flush(LIMIT_S)
    seconds: dict[int, list[float]] = {}
    for backoff_ms in (1000, 5):
        small = {"queued_min_messages": 10, "fetch_message_max_bytes": 1000, "fetch_max_bytes": 100_000, "message_max_bytes": 100_000}
        consumer = reading(kafka, unique, fetch_queue_backoff_ms=backoff_ms, **small)
        take(consumer, 1)
        for _ in range(5):  # whoever empties the queue before the fetcher looked at it does not wait: not in every round
            Event().wait(0.1)
            started = time.monotonic()
            take(consumer, 150)
            seconds.setdefault(backoff_ms, []).append(time.monotonic() - started)
        consumer.close()

    assert max(seconds[1000]) > 2 * min(seconds[5])


def test_a_partition_is_added_to_a_transaction_once_by_its_first_record(kafka: str, unique: str) -> None:
    """Why barriers are sent before a commit needs their partitions (container/early_partitions.py)."""
    create_topic(kafka, unique)
    lines: list[str] = []
    log = logging.Logger(unique)
    log.addFilter(lambda record: bool(lines.append(record.getMessage())))
    producer = begun(kafka, unique, debug="eos", logger=log)

    def asks(first: bytes | None) -> bool:
        """Whether the commit asks for the partition; it may ask again while the broker ends the transaction before."""
        if first is not None:
            producer.produce(unique, first, partition=0)
            producer.flush(LIMIT_S)
        lines.clear()
        producer.produce(unique, b"in the commit", partition=0)
        producer.commit_transaction(LIMIT_S)
        producer.poll(0)
        producer.begin_transaction()
        return any("Registering partitions with transaction" in line for line in lines)

    assert [True, False, True] == [asks(None), asks(b"early"), asks(None)]
