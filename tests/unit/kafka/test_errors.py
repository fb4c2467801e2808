"""What Kafka's errors mean to us."""

from __future__ import annotations

import pytest

from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt, LogError, NotAuthorized, RecordRejected, TransactionAborted
from samzapy.kafka.errors import undelivered

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
