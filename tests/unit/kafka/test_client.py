"""What Kafka's errors mean to a request outside transactions."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, Fenced, LogError, NotAuthorized, SamzapyError, TopicMissing
from samzapy.kafka.client import asked
from samzapy.kafka.errors import init_error


class Broker:
    """Answers with these errors, one after the other, then with 42."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)

    def __call__(self) -> int:
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return 42


def test_a_partition_that_was_just_made_is_asked_again() -> None:
    """Met by a run whose coordinator topic was a moment old: it ended with exit code 4."""
    assert 42 == asked("the bounds", Broker(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE))


@pytest.mark.parametrize(
    "code", [KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.KAFKA_STORAGE_ERROR]
)
def test_a_partition_whose_leader_was_just_elected_is_asked_again(code: int) -> None:
    """It cost a container a restart: the broker tells to try again, and the client does not for all requests."""
    assert 42 == asked("the bounds", Broker(code, code))


def test_a_broker_whose_connection_was_made_anew_is_asked_again() -> None:
    """Seen in a chaos run after connections were cut: a container failed with SZ300."""
    assert 42 == asked("the bounds", Broker(KafkaError._DESTROY_BROKER))


def test_what_waiting_does_not_help_is_told_at_once() -> None:
    with pytest.raises(TopicMissing, match="the bounds"):
        asked("the bounds", Broker(KafkaError.UNKNOWN_TOPIC_OR_PART))
    with pytest.raises(ClusterUnreachable, match="the bounds"):
        asked("the bounds", Broker(KafkaError._ALL_BROKERS_DOWN))


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, ConfigurationError, "commit.timeout is 16m"),
        (KafkaError._UNSUPPORTED_FEATURE, LogError, "too old"),
        (KafkaError.UNSUPPORTED_VERSION, LogError, "too old"),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NotAuthorized, "--acls"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, NotAuthorized, "--acls"),
        (KafkaError._FENCED, Fenced, "init_transactions of t"),
        (KafkaError.UNKNOWN_PRODUCER_ID, Fenced, "init_transactions of t"),
    ],
)
def test_what_every_producer_would_be_refused_for_is_not_told_as_another_run(code: int, kind: type[SamzapyError], words: str) -> None:
    """All of these are fatal to the client."""
    found = init_error(KafkaError(code, "the broker's words", True), "init_transactions of t", 960_000)
    assert (kind, True) == (type(found), words in str(found)), str(found)
