"""What containers and runs exit with."""

from __future__ import annotations

import signal

import pytest

from samzapy.api import exit_codes
from samzapy.api.errors import OwnedElsewhere, TaskError
from samzapy.model.states import ContainerOutcome


def test_each_outcome_of_a_container_has_its_exit_code() -> None:
    assert {outcome: exit_codes.of_container(outcome) for outcome in ContainerOutcome} == {
        ContainerOutcome.FINISHED: 0,
        ContainerOutcome.STOPPED: 0,
        ContainerOutcome.FAILED: 1,
        ContainerOutcome.SUPERSEDED: 5,
    }


@pytest.mark.parametrize(
    ("failure", "signals", "code"),
    [
        (None, [], 0),
        (None, [signal.SIGTERM], 0),
        (None, [signal.SIGTERM, signal.SIGINT], 130),
        (TaskError("it failed.", "").to_json(), [], 1),
        (OwnedElsewhere("another run is alive.", "").to_json(), [], 5),
        ({"code": "SZ340"}, [], 1),
        (TaskError("it failed.", "").to_json(), [signal.SIGTERM, signal.SIGINT], 1),
    ],
)
def test_a_run_exits_with_the_code_of_its_error_or_of_the_second_signal(failure: dict[str, object] | None, signals: list[int], code: int) -> None:
    assert exit_codes.of_run(failure, signals) == code
