"""What Kafka's errors mean to us."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt, LogError, NotAuthorized, RecordRejected, TransactionAborted
from samzapy.kafka.errors import end_error, flush_too_late, init_error, record_error, undelivered

REJECTED = RecordRejected("too large", "", "out")


@pytest.mark.parametrize("error", [Fenced("x", ""), NotAuthorized("x", ""), RecordRejected("x", "", "t"), ClusterUnreachable("x", "")])
def test_an_undelivered_record_whose_error_says_what_it_was_ends_the_transaction_with_that(error: LogError) -> None:
    assert error is undelivered(error, REJECTED, "no access")


def test_of_another_the_librarys_log_says_more_and_without_that_the_transaction_is_aborted_and_not_in_doubt() -> None:
    error = InDoubt("erroneous state", "look")
    assert REJECTED is undelivered(error, REJECTED, "no access")
    assert (NotAuthorized, "no access") == (type(told := undelivered(error, None, "no access")), told.message)
    aborted = undelivered(error, None, "")
    assert (TransactionAborted, "erroneous state", "look") == (type(aborted), aborted.message, aborted.remedy)


def test_a_broker_that_is_late_is_told_as_such_and_no_record_is_blamed() -> None:
    late = record_error(KafkaError(KafkaError._MSG_TIMED_OUT), "out", 3, b"k", (), 60.0)
    assert (ClusterUnreachable, "out[3]: its broker did not accept a record within 60 s.") == (type(late), late.message)
    assert RecordRejected is type(record_error(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), "out", 3, b"k", (), 60.0))
    lacking = KafkaError(KafkaError._INCONSISTENT, "records were not delivered", False, False, True)
    assert ClusterUnreachable is type(end_error(lacking, "commit of t", (), 60.0, False))
    assert TransactionAborted is type(end_error(lacking, "commit of t", (), 60.0, True))


def test_a_flush_that_took_too_long_is_in_doubt_for_the_login_that_was_refused_if_one_was() -> None:
    assert "flush of t: the brokers did not accept all records within 60 s." == flush_too_late("flush of t", 60.0, None).message
    refused = flush_too_late("flush of t", 60.0, NotAuthorized("no login", "check it"))
    assert (InDoubt, "no login", "check it") == (type(refused), refused.message, refused.remedy)


@pytest.mark.parametrize("error", [KafkaError(KafkaError._TIMED_OUT), KafkaError(KafkaError.CONCURRENT_TRANSACTIONS, "wait", False, True)])
def test_an_init_that_could_be_tried_again_until_there_was_no_more_time_says_that_the_brokers_are_away(error: KafkaError) -> None:
    assert ClusterUnreachable is type(init_error(error, "init_transactions of t", 60_000))
