"""What an in-memory producer has sent and not yet had acknowledged: a queue with sequence numbers per partition, as librdkafka's.

A record is tried once per push; one that got no answer, or that must wait for the markers of the last transaction, is tried again when its
time has come, and until then keeps back what follows it in its partition. A record sent again carries its first sequence number, so the
broker takes it once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from samzapy.api.errors import LogError
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Delivered
from samzapy.testing.memory_cluster import MemoryCluster
from samzapy.testing.memory_partition import Answer, Headers, Refused
from samzapy.testing.memory_transactions import Session

RETRY_S = 0.01


@dataclass(kw_only=True, slots=True)
class Waiting:
    """A record on its way."""

    session: Session
    topic_partition: TopicPartition
    sequence: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers
    delivered: Delivered | None
    expires_s: float
    not_before_s: float = -math.inf

    def __str__(self) -> str:
        return f"record {self.sequence} of {self.session.transactional_id or self.session.producer_id} for {self.topic_partition}"


class Outbox:
    """What one producer session has not yet had acknowledged, in order per partition."""

    def __init__(self, cluster: MemoryCluster, origin: str, session: Session) -> None:
        self.session = session
        self.waiting: list[Waiting] = []
        self.added: set[TopicPartition] = set()
        self.asked = False  # whether the broker may know of the transaction
        self.disturbed = False  # whether an answer stayed away
        self.reports: list[Callable[[], None]] = []
        self._cluster = cluster
        self._origin = origin
        self._sequences: dict[TopicPartition, int] = {}

    def put(
        self, partition: TopicPartition, key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Headers,
        delivered: Delivered | None = None, expires_s: float = math.inf,
    ) -> None:  # fmt: skip
        """Queue a record, and try to get rid of all that waits.

        Raises:
            Refused, LogError: as `push`.
        """
        self.queue(partition, key, value, timestamp_ms, headers, delivered, expires_s)
        if not self._cluster.chance.happens("linger"):
            self.push()

    def queue(
        self, partition: TopicPartition, key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Headers,
        delivered: Delivered | None, expires_s: float,
    ) -> None:  # fmt: skip
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + 1
        self.waiting.append(
            Waiting(
                session=self.session,
                topic_partition=partition,
                sequence=sequence,
                key=key,
                value=value,
                timestamp_ms=timestamp_ms,
                headers=headers,
                delivered=delivered,
                expires_s=expires_s,
            )
        )

    def push(self) -> None:
        """One try for each record that may go now.

        Raises:
            Refused, LogError: the broker's answer to one of them, which is then out.
        """
        trying, self.waiting = self.waiting, []
        stuck: set[TopicPartition] = set()
        for index, record in enumerate(trying):
            try:
                gone = record.topic_partition not in stuck and self._transmit(record)
            except LogError:
                self.waiting += trying[index + 1 :]
                raise
            if not gone:
                stuck.add(record.topic_partition)
                self.waiting.append(record)

    def _transmit(self, record: Waiting) -> bool:
        now = self._cluster.clock.monotonic()
        if record.not_before_s > now:
            return False
        try:
            if self.session.transactional_id and record.topic_partition not in self.added and not self._add(record, now):
                return False
            reply = self._cluster.ask("produce", record, self._origin, partial(self._produce, record))
        except Refused as refused:
            if refused.answer is not Answer.CONCURRENT_TRANSACTIONS:
                refused.topic = record.topic_partition.topic
                raise
            record.not_before_s = now + RETRY_S
            return False
        record.not_before_s = now + reply.after_s
        if reply.answers and record.delivered is not None:
            self.reports.append(partial(record.delivered, reply.answers[0]))
        self.disturbed = self.disturbed or not reply.answers
        return bool(reply.answers)

    def _produce(self, record: Waiting) -> int:
        return self._cluster.produce(
            record.session, record.sequence, record.topic_partition, record.key, record.value, record.timestamp_ms, record.headers
        )

    def _add(self, record: Waiting, now: float) -> bool:
        self.asked = True
        joining = partial(self._cluster.add_partition, self.session, record.topic_partition)
        reply = self._cluster.ask("add", f"add {record.topic_partition} to {self.session.transactional_id}", self._origin, joining)
        if reply.answers:
            self.added.add(record.topic_partition)
            return True
        self.disturbed = True
        record.not_before_s = now + reply.after_s
        return False

    def pause_s(self) -> float:
        """How long until the first of what waits may go; records that wait for another of their partition do not count."""
        heads: dict[TopicPartition, float] = {}
        for record in self.waiting:
            heads.setdefault(record.topic_partition, record.not_before_s)
        return max(RETRY_S / 10, min(heads.values()) - self._cluster.clock.monotonic())

    def drop(self) -> None:
        """Forget what was not acknowledged, and its reports; sequence numbers stay used."""
        self.waiting, self.reports = [], []

    def report(self) -> None:
        reports, self.reports = self.reports, []
        for report in reports:
            report()

    def next_transaction(self) -> None:
        self.added.clear()
        self.asked = self.disturbed = False
