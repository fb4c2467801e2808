"""One bad record in a hundred costs less than half the speed."""

from __future__ import annotations

import statistics

import pytest

from tests.bench.bad_records import CASES, measure

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(1200)]


def test_one_bad_record_in_a_hundred_costs_less_than_half_the_speed(kafka: str) -> None:
    ratios = measure(kafka, 300_000, 5, print)

    assert {} == {name: found for name, found in ratios.items() if statistics.median(found) <= 0.5}
    assert len(CASES) == len(ratios)
