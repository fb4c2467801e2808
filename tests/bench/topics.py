"""Topics as the benchmarks fill and read them: quickly, in order, with a fingerprint of what is in them.

Reading a million records must not take longer than the run that wrote them, so this is less general than `tests.broker`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.broker import LIMIT_S, admin

Contents = dict[int, tuple[int, str]]  # by partition: how many records, and the fingerprint of their keys and values in order


class Fingerprint:
    """Of the keys and values of each partition, in order."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._hashes: dict[int, Any] = {}

    def add(self, partition: int, key: bytes, value: bytes) -> None:
        if partition not in self._hashes:
            self._hashes[partition], self._counts[partition] = hashlib.blake2b(digest_size=16), 0
        self._counts[partition] += 1
        self._hashes[partition].update(b"%d:%d:%b%b" % (len(key), len(value), key, value))

    def contents(self) -> Contents:
        return {p: (self._counts[p], self._hashes[p].hexdigest()) for p in sorted(self._hashes)}


@dataclass(frozen=True)
class Outputs:
    """What a run wrote, and when the broker wrote it (milliseconds)."""

    contents: Contents
    times_ms: list[int]


def read(servers: str, topics: Iterable[str]) -> Iterator[list[Message]]:
    """Batches of committed records from the start up to the end as it is now; of one partition in order. Start this when the run has ended."""
    consumer = Consumer({
        "bootstrap.servers": servers, "group.id": "bench-look-on", "enable.auto.commit": False, "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest", "enable.partition.eof": True, "fetch.queue.backoff.ms": 5, "queued.min.messages": 50_000,
    })  # fmt: skip
    try:
        known = consumer.list_topics(timeout=LIMIT_S).topics
        open_ones = {(topic, p) for topic in topics for p in known[topic].partitions}
        consumer.assign([TopicPartition(topic, p, 0) for topic, p in sorted(open_ones)])
        while open_ones:
            batch = []
            for message in consumer.consume(5000, 0.2):
                error = message.error()
                if error is None:
                    batch.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ones.discard((message.topic(), message.partition()))
                elif not error.retriable():
                    raise KafkaException(error)
            yield batch
    finally:
        consumer.close()


def outputs(servers: str, topics: Iterable[str]) -> Outputs:
    """Of one run, which may have written to several topics, but to each partition number in one of them only."""
    found, times = Fingerprint(), []
    for batch in read(servers, topics):
        for message in batch:
            found.add(message.partition(), message.key(), message.value())
            times.append(message.timestamp()[1])
    return Outputs(found.contents(), times)


def end_offsets(servers: str, topic: str) -> int:
    """The sum of a topic's end offsets; 0 where there is no such topic."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-look-on"})
    try:
        found = consumer.list_topics(timeout=LIMIT_S).topics.get(topic)
        if found is None or found.error is not None:
            return 0
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=LIMIT_S)[1] for p in found.partitions)
    finally:
        consumer.close()


def names(servers: str) -> set[str]:
    """Of all topics."""
    return set(admin(servers).list_topics(timeout=LIMIT_S).topics)


def fill(servers: str, topic: str, records: Iterable[tuple[bytes, bytes, int]]) -> None:
    """Produce (key, value, partition); a partition of -1 is chosen by the key, as Java's clients do. Raises when one is not delivered."""
    failures: list[KafkaError] = []
    producer = Producer({
        "bootstrap.servers": servers, "partitioner": "murmur2_random", "linger.ms": 20, "batch.size": 1_000_000, "enable.idempotence": True,
        "queue.buffering.max.messages": 1_000_000, "delivery.report.only.error": True,
        "on_delivery": lambda error, _: failures.append(error) if error is not None else None,
    })  # fmt: skip
    for number, (key, value, partition) in enumerate(records):
        while True:
            try:
                producer.produce(topic, value, key, partition)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    left = producer.flush(LIMIT_S)
    if failures or left:
        raise AssertionError(f"{topic}: {left} records not acknowledged, {len(failures)} failed ({failures[:1]})")


def delete(servers: str, unwanted: Iterable[str]) -> None:
    """Delete those of the topics that there are."""
    found, client = sorted(names(servers) & set(unwanted)), admin(servers)
    for done in client.delete_topics(found).values() if found else ():
        done.result(LIMIT_S)


# -- what the outputs must be, from the input alone ----------------------------------------------------------------------------------


def projected(servers: str, given: str) -> Contents:
    """W1's outputs. Keys decide the partition, as they did in the input, and each partition has one writer, so order is kept."""
    found = Fingerprint()
    for batch in read(servers, [given]):
        for message in batch:
            record = orjson.loads(message.value())
            if record["amount"] < 5.0:
                found.add(message.partition(), message.key(), orjson.dumps({"user": record["user"], "amount": record["amount"]}))
    return found.contents()


def counted(servers: str, given: str) -> Contents:
    """W2's outputs."""
    found, state = Fingerprint(), {}
    for batch in read(servers, [given]):
        for message in batch:
            record, key = orjson.loads(message.value()), message.key()
            count, total = state.get(key, (0, 0.0))
            count, total = state[key] = count + 1, total + record["amount"]
            found.add(message.partition(), key, orjson.dumps({"user": record["user"], "c": count, "s": total}))
    return found.contents()
