"""What a peer may do in W3 and what not: a lost record is counted, a record too many is an error."""

from __future__ import annotations

import pytest

from tests.bench.windows import lost

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
