"""Sums of large numbers: exact, or refused by their names."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from samzapy.api.errors import TaskError
from samzapy.streams import App, agg
from samzapy.testing import Harness

LARGEST = (1 << 63) - 1


def summed(values: list[Any], kept: Any = None) -> Any:
    """An exact sum, its accumulator as a store has it after each value; it is the same of two halves."""
    made = agg.sum(exact=True)
    assert made.merge is not None
    parts = [made.zero() if kept is None else kept, made.zero()]
    for at, value in enumerate(values):
        half = 2 * at >= len(values)
        parts[half] = json.loads(json.dumps(made.add(parts[half], value)))
    return made.result(made.merge(parts[0], parts[1]))


@pytest.mark.parametrize("values", [[LARGEST, LARGEST, -5], [LARGEST] * 5, [2**70, -(2**70), 1], [1, 2]])
def test_an_exact_sum_of_whole_numbers_is_one(values: list[int]) -> None:
    found = summed(values)
    assert (sum(values), int) == (found, type(found))


@pytest.mark.parametrize("values", [[1e308, 1e308, -1e308], [0.1] * 10, [2**53, 1, 0.5, 1, 2**62 + 1], [1e16, 1.0, -1e16], [1.0, 2.0]])
def test_an_exact_sum_with_floats_is_rounded_once(values: list[float]) -> None:
    found = summed(values)
    assert (float(sum(map(Fraction, values))), float) == (found, type(found))


def test_exact_sums_of_any_floats_are_those_of_fractions() -> None:
    random = Random(7)
    for _ in range(200):
        values = [math.ldexp(random.uniform(-1, 1), random.randint(-200, 200)) for _ in range(random.randint(1, 20))]
        assert float(sum(map(Fraction, values))) == summed(values)


def test_what_an_older_samzapy_kept_of_an_exact_sum_is_read() -> None:
    assert 5.75 == summed([0.5], [0.25, 5.0])
    assert 7 == summed([2], [5])


def test_an_exact_sum_that_no_float_holds_is_refused() -> None:
    with pytest.raises(TaskError, match="more than a float holds"):
        summed([1e308, 1e308])


def test_a_mean_of_large_whole_numbers_is_their_mean() -> None:
    made = agg.mean()
    pair = made.zero()
    for _ in range(3):
        pair = made.add(pair, LARGEST)
    assert float(LARGEST) == made.result(pair)


@pytest.mark.parametrize(("kind", "value", "why"), [(int, LARGEST, "a whole number in a store has 64 bits"), (float, 1e308, "more than a float holds")])
def test_a_sum_that_a_store_cannot_hold_names_store_and_field_and_what_to_use(kind: type, value: Any, why: str) -> None:
    app = App()
    app.stream("in", key=str, value=kind).aggregate("totals", n=agg.count(), cents=agg.sum()).to("out")
    with Harness(app) as h:
        for _ in range(3):
            h.send("in", value, key="k")
        with pytest.raises(TaskError, match=rf"aggregate totals .*: cents: agg.sum gives .*{why}.* exact=True"):
            h.run()


def test_value_counts_of_numbers_says_what_to_do() -> None:
    app = App()
    app.stream("in", key=str, value=int).aggregate("kinds", n=agg.value_counts()).to("out")
    with Harness(app) as h:
        h.send("in", 3, key="k")
        with pytest.raises(TaskError, match=r"value_counts counts texts, not int: give it a function, such as value_counts\(str\)"):
            h.run()
