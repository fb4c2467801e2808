"""ports.Log over confluent-kafka: makes the clients of one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.kafka.admin import KafkaAdmin
from samzapy.kafka.consumer import RESTORE, KafkaConsumer
from samzapy.kafka.producer import KafkaPlainProducer, KafkaTransactionalProducer


class KafkaLog:
    """Settings are librdkafka's keys: `client` for all, `producer` and `consumer` with them already merged in."""

    def __init__(
        self, client: Mapping[str, Any], producer: Mapping[str, Any], consumer: Mapping[str, Any], commit_timeout_ms: int, lease_ms: int
    ) -> None:
        self._client = dict(client)
        self._producer = dict(producer)
        self._consumer = dict(consumer)
        self._commit_timeout_ms = commit_timeout_ms
        self._lease_ms = lease_ms

    def consumer(self, group_id: str, name: str) -> KafkaConsumer:
        return KafkaConsumer(self._consumer, group_id, name)

    def restore_consumer(self, name: str) -> KafkaConsumer:
        return KafkaConsumer({**self._consumer, **RESTORE}, f"samzapy-{name}", name)

    def transactional_producer(self, transactional_id: str) -> KafkaTransactionalProducer:
        return KafkaTransactionalProducer(self._producer, transactional_id, self._commit_timeout_ms)

    def plain_producer(self, name: str) -> KafkaPlainProducer:
        return KafkaPlainProducer(self._producer, name, self._lease_ms)

    def admin(self) -> KafkaAdmin:
        return KafkaAdmin(self._client)
