"""Clients of a job's cluster."""

from __future__ import annotations

from samzapy.config.schema import Settings
from samzapy.kafka.log import KafkaLog
from samzapy.ports import Log
from samzapy.wiring.job_topics import JobTopics


def kafka_log(settings: Settings) -> Log:
    """Clients of the job's cluster."""
    topics = JobTopics.of(settings)
    return KafkaLog(
        client=settings.kafka_client,
        producer=settings.kafka_producer,
        consumer=settings.kafka_consumer,
        commit_timeout_ms=settings.commit.timeout_ms,
        lease_ms=settings.containers.lease_ms,
        written=topics.written,
        group_id=topics.job.group_id,
    )
