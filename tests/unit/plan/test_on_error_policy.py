"""What `on_error` says of a record that fails."""

from __future__ import annotations

import pytest

from samzapy.plan.on_error_policy import (
    MAX_BACKOFF_S,
    GivenUp,
    backoff_s,
    ends_job,
    is_tried_again,
    retries_after,
    sets_aside,
    what_becomes,
)


@pytest.mark.parametrize(
    ("then", "first", "again"),
    [
        ("fail", GivenUp.STOP, GivenUp.STOP),
        ("skip", GivenUp.SKIP, GivenUp.IGNORE),
        ("dead_letter", GivenUp.SET_ASIDE, GivenUp.IGNORE),
    ],
)
def test_what_becomes_of_a_record_when_it_comes_first_and_when_it_is_read_again(then: str, first: GivenUp, again: GivenUp) -> None:
    assert what_becomes(then) is first
    assert what_becomes(then, comes_again=True) is again
    assert ends_job(then) is (then == "fail")
    assert sets_aside(then) is (then == "dead_letter")


def test_a_record_is_tried_once_and_so_often_again_and_once_more_for_lack_of_memory() -> None:
    assert [is_tried_again(attempts, retries=2) for attempts in (1, 2, 3)] == [True, True, False]
    assert not is_tried_again(1, retries_after(ValueError(), 0))
    assert is_tried_again(1, retries_after(MemoryError(), 0))


def test_each_wait_before_a_retry_is_twice_the_one_before_up_to_a_second() -> None:
    waits = [backoff_s(attempts) for attempts in range(1, 7)]
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32]
    assert backoff_s(100_000) == MAX_BACKOFF_S
