"""What a container does in its lease, and when."""

from __future__ import annotations

import pytest

from samzapy.model.lease_times import Step, due_step, until_next_step_s


@pytest.mark.parametrize(
    ("silent_s", "step"),
    [(0.0, Step.GO_ON), (7.99, Step.GO_ON), (8.0, Step.STEP_DOWN), (9.49, Step.STEP_DOWN), (9.5, Step.DIE), (100.0, Step.DIE)],
)
def test_a_container_that_hears_nothing_steps_down_and_then_dies_before_its_lease_of_ten_seconds_ends(silent_s: float, step: Step) -> None:
    assert due_step(silent_s, 10.0) is step


@pytest.mark.parametrize(("silent_s", "left_s"), [(0.0, 8.0), (7.0, 1.0), (8.0, 1.5), (9.0, 0.5), (10.0, -0.5)])
def test_it_looks_again_when_the_next_step_is_due(silent_s: float, left_s: float) -> None:
    assert until_next_step_s(silent_s, 10.0) == pytest.approx(left_s)
