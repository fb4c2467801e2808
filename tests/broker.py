"""The tests' broker, and a plain Kafka client to look at it from outside.

Nothing here uses samzapy's own Kafka code: what a test asserts is what any Kafka tool would see. Reads are bounded by the end offsets
that the broker tells, never by time; the time limits only turn a hang into a failure.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from samzapy.dev.settings import Node, node_settings

LIMIT_S = 240.0
MARKERS_S = 5.0

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """A record as a plain consumer sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


def docker_answers() -> bool:
    """Whether a Docker engine (not only its command) answers."""
    if shutil.which("docker") is None:
        return False
    try:
        return subprocess.run(["docker", "info"], capture_output=True, stdin=subprocess.DEVNULL, timeout=5, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def container_settings(address: str, port: int) -> dict[str, str]:
    """The environment of Kafka's own image that makes it the broker `samzapy dev kafka` would start, reached at `address`."""
    node = Node(1, port, 9093)
    settings = node_settings(node, [node], Path("/var/lib/kafka/data"), {})
    settings["listeners"] = f"PLAINTEXT://:{port},CONTROLLER://:9093"
    settings["advertised.listeners"] = f"PLAINTEXT://{address}"
    return {"KAFKA_" + key.upper().replace(".", "_"): value for key, value in settings.items()}


def free_port() -> int:
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return int(candidate.getsockname()[1])


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create_topic(bootstrap: str, name: str, partitions: int = 1, **config: Any) -> str:
    """Create a topic and return when the leader of every partition answers for it: a leader is in the metadata before it takes the partition on.

    Config keys with dots are written with `_`.
    """
    settings = {key.replace("_", "."): str(value) for key, value in config.items()}
    client = admin(bootstrap)
    client.create_topics([NewTopic(name, partitions, -1, config=settings)], operation_timeout=30)[name].result(LIMIT_S)
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        topic = client.list_topics(name, timeout=10).topics[name]
        if topic.error is None and len(topic.partitions) == partitions and _answered_for(client, name, partitions):
            return name
    raise AssertionError(f"topic {name} has no leaders after {LIMIT_S:.0f} s")


def add_partitions(bootstrap: str, name: str, partitions: int) -> None:
    """Let a topic have so many partitions, and return when their leaders answer: a client is told of them before it may write to them."""
    client = admin(bootstrap)
    client.create_partitions([NewPartitions(name, partitions)])[name].result(LIMIT_S)
    deadline = time.monotonic() + LIMIT_S
    while len(client.list_topics(name, timeout=10).topics[name].partitions) < partitions or not _answered_for(client, name, partitions):
        assert time.monotonic() < deadline, f"topic {name} does not have {partitions} partitions after {LIMIT_S:.0f} s"


def _answered_for(client: AdminClient, name: str, partitions: int) -> bool:
    wanted = {TopicPartition(name, partition): OffsetSpec.latest() for partition in range(partitions)}
    return all(answer.exception() is None for answer in client.list_offsets(wanted, request_timeout=10).values())


def delete_topic(bootstrap: str, name: str) -> None:
    client = admin(bootstrap)  # kept: its futures end with it
    client.delete_topics([name])[name].result(LIMIT_S)


def produce(bootstrap: str, topic: str, records: Iterable[Sequence[Any] | Record], partition: int | None = None, **more: Any) -> int:
    """Produce (key, value), (key, value, partition) or Records, in order, and return how many once all are acknowledged.

    Keys and values may be str, which are encoded, bytes or None. Without a partition, Java's murmur2 of the key decides, as it does for
    every Java producer. `more`: the producer's settings, with `_` for `.`.
    """
    failures: list[KafkaError] = []
    count = 0
    settings = {"partitioner": "murmur2_random", "linger.ms": 5, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, **settings, **{name.replace("_", "."): value for name, value in more.items()}})

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for record in records:
        options = _options(record, partition)
        while True:
            try:
                producer.produce(topic, on_delivery=delivered, **options)
                break
            except BufferError:
                producer.poll(1.0)
        count += 1
        if count % 1000 == 0:
            producer.poll(0)
    left = producer.flush(LIMIT_S)
    if failures or left:
        raise AssertionError(f"{topic}: {left} records not acknowledged, {len(failures)} failed ({failures[:1]})")
    return count


def _options(record: Sequence[Any] | Record, partition: int | None) -> dict[str, Any]:
    if isinstance(record, Record):
        options: dict[str, Any] = {"key": record.key, "value": record.value, "partition": record.partition, "headers": record.headers}
        return options | {"timestamp": record.timestamp}
    key, value, *rest = record
    where = rest[0] if rest else partition
    return {"key": key, "value": value} | ({} if where is None else {"partition": where})


def ends(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[int, int]:
    """The end offset of every partition: of what is committed (the last stable offset), or of all."""
    with _Reader(bootstrap, isolation) as reader:
        return {p: high for p, (_, high) in reader.bounds(topic).items()}


def read_all(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Record]:
    """Every record from the start up to the end as it is now, by partition and offset.

    Kafka answers a commit before it has written the commit's markers: for a moment, seconds on a busy machine, what was committed cannot be
    read yet. So a reader of what is committed waits a while for transactions that are still open at the end of the topic.
    """
    if isolation == "read_committed":
        _await_markers(bootstrap, topic)
    with _Reader(bootstrap, isolation) as reader:
        return reader.read(topic)


def _await_markers(bootstrap: str, topic: str) -> None:
    """Until no transaction is open at the topic's end as it is now; at most `MARKERS_S`, for some tests leave one open on purpose."""
    deadline, pause = time.monotonic() + MARKERS_S, threading.Event()
    with _Reader(bootstrap, "read_uncommitted") as everything, _Reader(bootstrap, "read_committed") as committed:
        ends = {p: high for p, (_, high) in everything.bounds(topic).items()}
        while any(high < ends[p] for p, (_, high) in committed.bounds(topic).items()) and time.monotonic() < deadline:
            pause.wait(0.02)


def read_last(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[bytes | None, bytes]:
    """The last value of every key, as compaction would leave it: tombstones remove."""
    values: dict[bytes | None, bytes] = {}
    for record in read_all(bootstrap, topic, isolation):
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
    return values


def wait_for_records(bootstrap: str, topic: str, count: int, limit_s: float = LIMIT_S, isolation: str = "read_committed") -> list[Record]:
    """Read until the topic holds at least `count` records; they are all returned."""
    deadline = time.monotonic() + limit_s
    with _Reader(bootstrap, isolation) as reader:
        return reader.read(topic, at_least=count, deadline=deadline)


class _Reader:
    """An assigned consumer that reports partition ends: an end may come after markers and aborted records, where no record is."""

    def __init__(self, bootstrap: str, isolation: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "group.id": "samzapy-tests-look-on",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": isolation,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "fetch.queue.backoff.ms": 5,
                "fetch.wait.max.ms": 50,
            }
        )

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        found = self._consumer.list_topics(topic, timeout=LIMIT_S).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return {p: self._bounds_of(TopicPartition(topic, p)) for p in sorted(found.partitions)}

    def _bounds_of(self, partition: TopicPartition) -> tuple[int, int]:
        """A broker that has just been started again may not lead its partitions yet."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                return self._consumer.get_watermark_offsets(partition, timeout=LIMIT_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                    raise
            threading.Event().wait(0.2)

    def read(self, topic: str, at_least: int = 0, deadline: float | None = None) -> list[Record]:
        deadline = deadline or time.monotonic() + LIMIT_S
        bounds = self.bounds(topic)
        open_ends = {p: high for p, (low, high) in bounds.items() if low < high}
        records: list[Record] = []
        self._consumer.assign([TopicPartition(topic, p, low) for p, (low, _) in bounds.items()])
        while open_ends or len(records) < at_least:
            if time.monotonic() > deadline:
                raise AssertionError(f"{topic}: {len(records)} records read (wanted {at_least or 'all'}), not at the end of {open_ends}")
            for message in self._consumer.consume(1000, 0.1):
                reached = self._take(message, records)
                if reached is not None and reached[1] >= open_ends.get(reached[0], reached[1] + 1):
                    del open_ends[reached[0]]
        if not at_least:
            records = [record for record in records if record.offset < bounds[record.partition][1]]
        return sorted(records, key=lambda record: (record.partition, record.offset))

    @staticmethod
    def _take(message: Message, records: list[Record]) -> tuple[int, int] | None:
        """Keep a record; answer with the partition and the offset up to which it has now been read. None: a passing error."""
        error = message.error()
        partition, offset = message.partition(), message.offset()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            return partition, offset
        if error is not None:
            if error.retriable():
                return None
            raise KafkaException(error)
        records.append(Record(partition, offset, message.key(), message.value(), message.headers() or [], message.timestamp()[1]))
        return partition, offset + 1
