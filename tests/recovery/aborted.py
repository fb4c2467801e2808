"""Reading what a job wrote and never committed, while it runs: before compaction takes it away.

Both views of a topic are read up to the last stable offset, each time from where the last look stopped; a record that only the uncommitted
reader sees was aborted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from samzapy.model.barrier import BARRIER_KEY, barrier_from_bytes
from tests.broker import LIMIT_S, ends
from tests.recovery.job import ChainJob
from tests.recovery.phases import BARRIER, CHANGES, CHECKPOINT, OUTPUT, Aborted

Place = tuple[str, int]
Key = tuple[str, int, int]


class AbortedReader:
    """Of one job's output, changelogs and checkpoints."""

    def __init__(self, servers: str, job: ChainJob) -> None:
        own = job.topics.job
        self._servers = servers
        self._kinds = {job.topics.output: OUTPUT, own.checkpoint_topic: CHECKPOINT}
        self._kinds |= {own.changelog_topic(store): CHANGES for store in job.STORES}
        self._next: dict[Place, int] = {}
        self.found: list[Aborted] = []

    def look(self) -> None:
        """Add what was aborted since the last look."""
        until = {(t, p): end for t in self._kinds for p, end in ends(self._servers, t).items() if end > self._next.get((t, p), 0)}
        if not until:
            return
        committed: set[Key] = set()
        self._read("read_committed", until, lambda m: committed.add(_key(m)))
        self._read("read_uncommitted", until, lambda m: None if _key(m) in committed else self.found.append(self._aborted(m)))
        self._next.update(until)

    def _aborted(self, message: Message) -> Aborted:
        kind, partition = self._kinds[str(message.topic())], message.partition() or 0
        if message.key() == BARRIER_KEY:  # those without a nonce are sent while records are processed (container/early_partitions.py)
            kind = BARRIER if barrier_from_bytes(message.value()).nonce else OUTPUT
        elif kind == OUTPUT:
            partition = json.loads(message.value() or b"{}").get("from", partition)
        return Aborted(kind, partition, message.timestamp()[1])

    def _read(self, isolation: str, until: dict[Place, int], take: Callable[[Message], object]) -> None:
        consumer = Consumer(_settings(self._servers, isolation))
        left, deadline = dict(until), time.monotonic() + LIMIT_S
        try:
            consumer.assign([TopicPartition(t, p, self._next.get((t, p), 0)) for t, p in until])
            while left:
                assert time.monotonic() < deadline, f"not at the end of {left} after {LIMIT_S:.0f} s"
                for message in consumer.consume(5000, 0.1):
                    self._pass(message, until, left, take)
        finally:
            consumer.close()

    @staticmethod
    def _pass(message: Message, until: dict[Place, int], left: dict[Place, int], take: Callable[[Message], object]) -> None:
        error, offset = message.error(), message.offset() or 0
        place = str(message.topic()), message.partition() or 0
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.retriable():
                return
            raise KafkaException(error)
        if error is None:
            if offset < until[place]:
                take(message)
            offset += 1
        if offset >= until[place]:
            left.pop(place, None)


def _key(message: Message) -> Key:
    return str(message.topic()), message.partition() or 0, message.offset() or 0


def _settings(servers: str, isolation: str) -> dict[str, str | int | bool]:
    return {
        "bootstrap.servers": servers,
        "log_level": 0,
        "group.id": "samzapy-tests-look-on",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": isolation,
        "auto.offset.reset": "earliest",  # compaction may have taken the beginning
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
    }
