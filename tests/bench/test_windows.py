"""What a peer may do in W3 and what not: a lost record is counted, a record too many is an error. And a disturbed measurement is no figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bench.place import Place
from tests.bench.windows import Windows, less_idle, lost

WANTED = {("p1", 0): 3, ("p1", 10_000): 2, ("p2", 0): 1}


def test_records_are_lost_with_a_window_that_is_missing_and_in_one_that_has_too_few() -> None:
    assert 0 == lost(WANTED, WANTED)
    assert 3 == lost({("p1", 0): 2, ("p2", 0): 1}, WANTED)
    assert 6 == lost({}, WANTED)


def test_a_window_with_records_that_the_input_does_not_have_for_it_is_an_error_though_others_have_too_few() -> None:
    with pytest.raises(AssertionError, match="has 4 records, the input has 3"):
        lost({("p1", 0): 4}, WANTED)
    with pytest.raises(AssertionError, match="has 1 records, the input has 0"):
        lost({("p3", 0): 1}, WANTED)


class Quick(Place):
    """Without a broker."""

    def empty(self) -> str:
        return "empty"


TIMES_MS = [5000, *range(10_000, 11_000, 10), 90_000]


def test_the_rate_is_that_over_the_middle_of_the_windows_and_a_run_that_took_less_than_one_over_an_empty_topic_is_measured_again() -> None:
    said: list[str] = []
    place = Quick("", Path(), Path(), 1000, True, said.append)

    def runs(*used_s: float) -> Any:
        given = iter([(one, Windows(WANTED, TIMES_MS)) for one in used_s])
        return lambda topic: next(given)

    figures, _ = less_idle(place, "in", runs(2.0, 1.0, 1.0, 3.0))
    assert 2000.0 == figures["cpu_us_per_record"]
    assert 1000 == pytest.approx(figures["records_per_s"], rel=0.02)
    assert 1 == len(said)
    with pytest.raises(RuntimeError, match="too busy to measure on"):
        less_idle(place, "in", runs(*[1.0, 0.5] * 3))
