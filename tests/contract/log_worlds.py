"""The two worlds that the probes of test_log_*.py run in, and what only a world can do: requests from nowhere, cleaning, another timeout.

A real broker is spoken to by librdkafka through samzapy.kafka, and where a client would never do what is to be probed, by frames made here.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Protocol

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewPartitions

from samzapy.api.errors import ClusterUnreachable, TopicMissing
from samzapy.clock import SystemClock
from samzapy.kafka.client import quiet
from samzapy.kafka.log import KafkaLog
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ports import Consumer, Log, TopicSpec, TransactionalProducer
from samzapy.readers import read_to_end
from samzapy.testing.memory_log import Chance, MemoryCluster, MemoryLog

PATIENCE_S = 20.0
CLEANER_PATIENCE_S = 120.0
# the cleaner comes every 15 s; it takes what lies in closed segments, and a segment is closed by a record that comes when it is old enough
CLEANED_OFTEN = {
    "cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "100",
}  # fmt: skip
PRODUCE, DESCRIBE_TRANSACTIONS, END_TXN = 0, 65, 26
ANSWERS = {0: "", 47: "PRODUCER_FENCED", 48: "INVALID_TXN_STATE", 51: "CONCURRENT_TRANSACTIONS", 90: "PRODUCER_FENCED"}


class World(Protocol):
    """A Kafka, and a hand in it."""

    log: Log

    def log_with(self, commit_timeout_ms: int) -> Log:
        """The same cluster, for producers with this transaction timeout."""

    def stray_end(self, transactional_id: str, commit: bool) -> str:
        """An EndTxn of the id's current producer that nobody waits for. Returns why it was refused, or nothing."""

    def topic_of_another_time(self) -> str:
        """A topic whose broker's clock seems so far from that of the clients that it takes none of their records."""

    def delete_records(self, place: TopicPartition, before: int) -> None: ...

    def send_unreadable(self, place: TopicPartition, records: int) -> None:
        """Write a batch of so many records, of which some thousand bytes become more than a client's receive.message.max.bytes."""

    def send_with_bad_header(self, place: TopicPartition, value: bytes) -> None:
        """Write a record with a header whose name is not UTF-8."""

    def add_partitions(self, name: str, count: int) -> None: ...

    def compact(self, place: TopicPartition, gone: bytes) -> None:
        """Until the cleaner has been there: a record with value `gone` is seen no more. May write records with the key `roll`."""


class MemoryWorld:
    """A cluster in memory, by the machine's clock."""

    def __init__(self, chance: Chance | None = None) -> None:
        self.cluster = MemoryCluster(SystemClock(), chance)
        self.log: Log = MemoryLog(self.cluster)
        self.stray_end = self.cluster.stray_end
        self.delete_records = self.cluster.delete_records
        self.add_partitions = self.cluster.add_partitions

    def log_with(self, commit_timeout_ms: int) -> Log:
        return MemoryLog(self.cluster, commit_timeout_ms)

    def topic_of_another_time(self) -> str:
        self.cluster.clients_ahead_ms = 7_200_000
        return new_topic(self.log)

    def send_unreadable(self, place: TopicPartition, records: int) -> None:
        begin = self.cluster.bounds(place).end
        producer = self.log.plain_producer("unreadable")
        for _ in range(records):
            producer.send(place.topic, b"", None, place.partition)
        producer.flush()
        self.cluster.spoil(place, begin, begin + records)

    def send_with_bad_header(self, place: TopicPartition, value: bytes) -> None:
        producer = self.log.plain_producer("bad header")
        producer.send(place.topic, value, None, place.partition, headers=[("\udcff", b"")])
        producer.flush()

    def compact(self, place: TopicPartition, gone: bytes) -> None:
        until(lambda: _compacted(self, place, gone))


def _compacted(world: MemoryWorld, place: TopicPartition, gone: bytes) -> bool:
    world.cluster.compact(place.topic)
    return gone not in values(world.log, place.topic, place.partition)


class KafkaWorld:
    """A real broker."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._settings = {"bootstrap.servers": servers}
        self._admin = AdminClient(quiet(self._settings))
        self.log: Log = self.log_with(20_000)

    def log_with(self, commit_timeout_ms: int) -> Log:
        return KafkaLog(self._settings, self._settings, self._settings, commit_timeout_ms, lease_ms=10_000)

    def stray_end(self, transactional_id: str, commit: bool) -> str:
        name = transactional_id.encode()
        # DescribeTransactions v0: one id; answer: throttle, [error, id, state, timeout, start, producer id, epoch, …]
        answer = self._ask(DESCRIBE_TRANSACTIONS, 0, bytes([2, len(name) + 1]) + name + b"\0", flexible=True)
        at = 1 + 4 + 1 + 2 + 1 + len(name)
        at += answer[at] + 4 + 8
        producer_id, epoch = struct.unpack_from(">qh", answer, at)
        # EndTxn v1; answer: throttle, error
        frame = struct.pack(">h", len(name)) + name + struct.pack(">qhb", producer_id, epoch, commit)
        return ANSWERS[struct.unpack_from(">h", self._ask(END_TXN, 1, frame, flexible=False), 4)[0]]

    def _ask(self, key: int, version: int, body: bytes, flexible: bool) -> bytes:
        host, port = self._servers.split(",")[0].rsplit(":", 1)
        frame = struct.pack(">hhih", key, version, 1, 5) + b"probe" + (b"\0" if flexible else b"") + body
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            with connection.makefile("rb") as incoming:
                (size,) = struct.unpack(">i", incoming.read(4))
                return incoming.read(size)[4:]

    def topic_of_another_time(self) -> str:
        return new_topic(self.log, config={"message.timestamp.before.max.ms": "0"})  # however soon a record comes, its time is past

    def delete_records(self, place: TopicPartition, before: int) -> None:
        for future in self._admin.delete_records([Place(*place, before)]).values():
            future.result()

    def send_unreadable(self, place: TopicPartition, records: int) -> None:
        large = {"compression.type": "zstd", "linger.ms": 1000, "batch.size": 200_000_000, "message.max.bytes": 200_000_000}
        producer = Producer(quiet({**self._settings, **large, "queue.buffering.max.kbytes": 400_000}))
        for number in range(records):
            producer.produce(place.topic, value=b"" if number else bytes(90_000_000), partition=place.partition)
        assert 0 == producer.flush(PATIENCE_S)

    def send_with_bad_header(self, place: TopicPartition, value: bytes) -> None:
        topic, batch = place.topic.encode(), _batch_of_one(value, header=b"\xff")
        # Produce v3: no transaction, acks of all, 10 s; one topic, one partition
        body = struct.pack(">hhi", -1, -1, 10_000) + struct.pack(">ih", 1, len(topic)) + topic + struct.pack(">iii", 1, place.partition, len(batch))
        answer = self._ask(PRODUCE, 3, body + batch, flexible=False)
        assert 0 == struct.unpack_from(">h", answer, 4 + 2 + len(topic) + 4 + 4)[0]

    def add_partitions(self, name: str, count: int) -> None:
        for future in self._admin.create_partitions([NewPartitions(name, count)]).values():
            future.result()

    def compact(self, place: TopicPartition, gone: bytes) -> None:
        until(lambda: self._rolled_and_gone(place, gone), CLEANER_PATIENCE_S)

    def _rolled_and_gone(self, place: TopicPartition, gone: bytes) -> bool:
        plain = self.log.plain_producer("roll")
        plain.send(place.topic, b"roll", b"roll", place.partition)
        plain.flush()
        plain.close()
        return gone not in values(self.log, place.topic, place.partition)


def _batch_of_one(value: bytes, header: bytes) -> bytes:
    """A record batch (version 2) of one record without a key, with one empty header."""
    # no attributes, no difference of time and offset, no key; then the value, and how many headers. Every number is below 64: one byte.
    record = bytes([0, 0, 0, _zigzag(-1), _zigzag(len(value))]) + value + bytes([_zigzag(1), _zigzag(len(header))]) + header + bytes([0])
    now_ms = int(time.time() * 1000)
    body = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + bytes([_zigzag(len(record))]) + record
    return struct.pack(">qiibI", 0, 4 + 1 + 4 + len(body), 0, 2, _crc32c(body)) + body


def _zigzag(number: int) -> int:
    return number << 1 ^ number >> 63


def _crc32c(data: bytes) -> int:
    sum_ = 0xFFFFFFFF
    for byte in data:
        sum_ ^= byte
        for _ in range(8):
            sum_ = sum_ >> 1 ^ 0x82F63B78 * (sum_ & 1)
    return sum_ ^ 0xFFFFFFFF


def until(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Ask until it holds; that it never does is found by what the test asserts next."""
    deadline = time.monotonic() + patience_s
    while not holds() and time.monotonic() < deadline:
        pass


def new_topic(log: Log, partitions: int = 2, config: dict[str, str] | None = None) -> str:
    """A topic whose partitions all have a leader: one that was just created has none for a moment."""
    name = f"probe-{secrets.token_hex(6)}"
    log.admin().create([TopicSpec(name, partitions, config or {})])
    for number in range(partitions):
        await_leader(log, TopicPartition(name, number))
    return name


def await_leader(log: Log, place: TopicPartition) -> None:
    consumer = log.restore_consumer("leader")
    until(lambda: _has_leader(consumer, place))
    consumer.close()


def _has_leader(consumer: Consumer, place: TopicPartition) -> bool:
    try:
        consumer.bounds(place)
    except (ClusterUnreachable, TopicMissing):
        return False
    return True


def send(producer: TransactionalProducer, topic: str, *sent: bytes, commit: bool = True) -> None:
    producer.begin()
    for value in sent:
        producer.send(topic, value, b"k", 0)
    producer.flush()
    if commit:
        producer.commit()
    else:
        producer.abort()


def take(consumer: Consumer, count: int) -> list[Any]:
    """Exactly `count` records, then nothing more at once."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        found.extend(consumer.poll(100, 0.1))
    return found


def read_until(consumer: Consumer, place: TopicPartition, position: int) -> int:
    """Poll until the position is reached; returns what it is in the end."""
    deadline = time.monotonic() + PATIENCE_S
    while consumer.positions([place])[place] < position and time.monotonic() < deadline:
        assert list(consumer.poll(100, 0.05)) == []
    return consumer.positions([place])[place]


def visible(consumer: Consumer, place: TopicPartition, end: int) -> Bounds:
    """A commit that returned is not yet visible: wait until the stable end is there."""
    deadline = time.monotonic() + PATIENCE_S
    while consumer.bounds(place).end < end and time.monotonic() < deadline:
        consumer.poll(1, 0.01)
    return consumer.bounds(place)


def messages(log: Log, topic: str, partition: int = 0) -> list[Any]:
    consumer = log.restore_consumer("values")
    found = [m for batch in read_to_end(consumer, TopicPartition(topic, partition), SystemClock()) for m in batch]
    consumer.close()
    return found


def values(log: Log, topic: str, partition: int = 0, count: int = 0) -> list[bytes | None]:
    """What can be read, once `count` records can; a commit that returned is not yet visible."""
    until(lambda: len(messages(log, topic, partition)) >= count)
    return [m.value() for m in messages(log, topic, partition)]
