"""A fatal error of the client at an abort, a commit, an init, or between two tries of them: one of ours, at which a container starts over."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from samzapy.api.errors import Fenced, TransactionAborted
from samzapy.kafka.producer import KafkaTransactionalProducer

FATAL = KafkaException(KafkaError(KafkaError._FATAL, "the client failed", True))
LATER = KafkaException(KafkaError(KafkaError.CONCURRENT_TRANSACTIONS, "not yet", False, True))


class Client:
    """confluent_kafka.Producer, as it was seen to fail: a call raises `first`, and what serves its events raises `then`."""

    def __init__(self, first: BaseException, then: BaseException) -> None:
        self._first, self._then = first, then

    def _raise(self, *_: Any, **__: Any) -> None:
        raise self._first

    init_transactions = begin_transaction = commit_transaction = abort_transaction = _raise

    def poll(self, timeout: float) -> int:
        raise self._then

    purge = poll


@pytest.mark.parametrize("first", [FATAL, LATER, SystemError("while callbacks ran")])
@pytest.mark.parametrize("call", ["init", "commit", "abort"])
def test_a_fatal_error_is_one_at_which_the_container_starts_over(call: str, first: BaseException) -> None:
    producer = KafkaTransactionalProducer({"bootstrap.servers": "127.0.0.1:1"}, "t", 60_000)
    if call != "init":
        producer._is_open = True
    producer._producer = Client(first, FATAL)  # type: ignore[assignment]
    with pytest.raises(Fenced):
        getattr(producer, call)()


def test_a_fatal_error_at_begin_is_too() -> None:
    producer = KafkaTransactionalProducer({"bootstrap.servers": "127.0.0.1:1"}, "t", 60_000)
    producer._producer = Client(SystemError("while callbacks ran"), FATAL)  # type: ignore[assignment]
    with pytest.raises(Fenced):
        producer.begin()


class Slow:
    """confluent_kafka.Producer with a record on its way to a broker that is slow."""

    def flush(self, timeout: float) -> int:
        return 1

    def poll(self, timeout: float) -> int:
        return 0


@pytest.mark.parametrize("name", ["UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR, requires epoch bump"])
def test_a_flush_of_a_transaction_that_has_failed_says_so_though_records_are_still_on_their_way(name: str) -> None:
    """Measured: after a broker refused one record, the report of another one, which is on its way to another broker, may be seconds away."""
    producer = KafkaTransactionalProducer({"bootstrap.servers": "127.0.0.1:1"}, "t", 60_000)
    producer._is_open, producer._producer = True, Slow()  # type: ignore[assignment]
    line = f"Current transaction failed in state InTransaction: unknown (broker may be terminating) ({name})"
    producer._heard.log(20, line)
    with pytest.raises(TransactionAborted, match="UNKNOWN_SERVER_ERROR"):
        producer.flush()
