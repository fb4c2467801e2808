"""Whether starting again helps. The restart budget of the coordinator: test_plans.py."""

from __future__ import annotations

import pytest

from samzapy.api.errors import (
    BatchUnreadable,
    ClusterUnreachable,
    Fenced,
    InDoubt,
    NoLeader,
    OffsetOutOfRange,
    SamzapyError,
    StateRefused,
    Superseded,
    TaskError,
    TransactionAborted,
)
from samzapy.model.states import ContainerOutcome
from samzapy.plan.restarts import MAX_RESTARTS_WITHOUT_COMMIT, STARTS_OVER, all_failed_alike, ends_job, failures_in_a_row, gives_up


@pytest.mark.parametrize("kind", [InDoubt, Fenced, TransactionAborted, ClusterUnreachable])
def test_what_leaves_a_container_in_doubt_makes_it_start_over_and_does_not_end_the_job(kind: type[SamzapyError]) -> None:
    assert issubclass(kind, STARTS_OVER)
    assert not ends_job(kind("it happened.", ""), ContainerOutcome.FAILED)


@pytest.mark.parametrize(
    "error",
    [
        TaskError("it failed.", ""),
        StateRefused("it is lost.", ""),
        OffsetOutOfRange("it is gone.", ""),
        BatchUnreadable("in", 0, 3, 7, "a checksum"),
    ],
)
def test_what_a_new_process_would_meet_again_ends_the_job_but_not_by_a_container_that_was_replaced(error: SamzapyError) -> None:
    assert not isinstance(error, STARTS_OVER)
    assert ends_job(error, ContainerOutcome.FAILED)
    assert not ends_job(error, ContainerOutcome.SUPERSEDED)


def test_a_container_that_was_replaced_and_one_without_an_error_do_not_end_the_job() -> None:
    assert not ends_job(Superseded("it was replaced.", ""), ContainerOutcome.SUPERSEDED)
    assert not ends_job(None, ContainerOutcome.FAILED)


def test_a_container_ends_after_six_failures_in_a_row_unless_kafka_is_away() -> None:
    failures = 0
    for _ in range(MAX_RESTARTS_WITHOUT_COMMIT):
        failures = failures_in_a_row(failures, has_got_on=False)
        assert not gives_up(failures, is_kafka_away=False)
    failures = failures_in_a_row(failures, has_got_on=False)
    assert gives_up(failures, is_kafka_away=False)
    assert not gives_up(failures, is_kafka_away=True)
    assert not gives_up(failures_in_a_row(failures, has_got_on=True), is_kafka_away=False)


LEADERLESS, REFUSED = NoLeader("nobody leads it.", "").to_json(), StateRefused("it is lost.", "").to_json()


@pytest.mark.parametrize(
    ("errors", "any_commit", "is_alike"),
    [
        ([REFUSED], False, True),
        ([REFUSED, {**REFUSED, "message": "in other words"}], False, True),
        ([REFUSED, LEADERLESS], False, False),
        ([REFUSED, None], False, False),
        ([None, None], False, False),
        ([], False, False),
        ([REFUSED, REFUSED], True, False),
    ],
)
def test_all_containers_failed_alike_when_all_have_the_same_error_and_none_has_committed(
    errors: list[dict[str, object] | None], any_commit: bool, is_alike: bool
) -> None:
    assert all_failed_alike(errors, any_commit) is is_alike
