"""ports.Log over confluent-kafka: makes the clients of one cluster.

A topic's `max.message.bytes` bounds whole batches, and librdkafka knows one `batch.size` for all topics: measured, a topic that takes less
than that refuses every batch of good records (test_small_records_in_a_large_batch_are_refused_by_a_topic_that_takes_less). So a producer's
batches fit the smallest of the topics that it writes. Their limits are looked up for the first producer, and again after Kafka refused a
record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from samzapy.kafka.admin import KafkaAdmin
from samzapy.kafka.consumer import RESTORE, KafkaConsumer, less
from samzapy.kafka.plain_producer import KafkaPlainProducer
from samzapy.kafka.producer import BATCH_BYTES, KafkaTransactionalProducer
from samzapy.ports import Fetch

SMALLEST_BATCH_BYTES = 1000


class KafkaLog:
    """Settings are librdkafka's keys: `client` for all, `producer` and `consumer` with them already merged in.

    Args:
        written: the topics that its producers write.
        group_id: of consumers that restore or look on; whoever may read as a job's group may do that too. None: one of their own.
    """

    def __init__(
        self,
        client: Mapping[str, Any],
        producer: Mapping[str, Any],
        consumer: Mapping[str, Any],
        commit_timeout_ms: int,
        lease_ms: int,
        written: Sequence[str] = (),
        group_id: str | None = None,
    ) -> None:
        self._client = dict(client)
        self._producer = dict(producer)
        self._consumer = dict(consumer)
        self._commit_timeout_ms = commit_timeout_ms
        self._lease_ms = lease_ms
        self._written = tuple(written)
        self._group_id = group_id
        self._batch_bytes: int | None = None  # not looked up, or not any more

    def consumer(self, group_id: str, name: str, fetch: Fetch = Fetch.USUAL) -> KafkaConsumer:
        return KafkaConsumer({**self._consumer, **less(fetch, self._consumer)}, group_id, name)

    def restore_consumer(self, name: str) -> KafkaConsumer:
        return KafkaConsumer({**self._consumer, **RESTORE}, self._group_id or f"samzapy-{name}", name)

    def transactional_producer(self, transactional_id: str) -> KafkaTransactionalProducer:
        return KafkaTransactionalProducer(self._fitting(), transactional_id, self._commit_timeout_ms, self._forget_limits)

    def plain_producer(self, name: str) -> KafkaPlainProducer:
        return KafkaPlainProducer(self._fitting(), name, self._lease_ms, self._refit)

    def admin(self) -> KafkaAdmin:
        return KafkaAdmin(self._client)

    def _fitting(self) -> dict[str, Any]:
        """A producer's settings, with batches that every topic takes."""
        if self._batch_bytes is None:
            wanted = int(self._producer.get("batch.size", BATCH_BYTES))
            self._batch_bytes = batch_bytes(wanted, self._limits())
        return {**self._producer, "batch.size": self._batch_bytes}

    def _limits(self) -> list[int]:
        if not self._written:
            return []
        with self.admin() as admin:
            return [facts.max_message_bytes for facts in admin.topics(self._written).values()]

    def _forget_limits(self) -> None:
        self._batch_bytes = None

    def _refit(self) -> dict[str, Any]:
        self._forget_limits()
        return self._fitting()


def batch_bytes(wanted: int, limits: Sequence[int]) -> int:
    """How large batches may be for topics that take so many bytes. A record that is larger than a batch is sent alone."""
    return max(SMALLEST_BATCH_BYTES, min([wanted, *limits]))
