"""When a partition that stands still is looked at, and what is said of it."""

from __future__ import annotations

import pytest

from samzapy.plan.stalled import CONFIRM_S, Still, confirmed, look, why_it_stands

LIMIT_S = 60.0


@pytest.mark.parametrize(
    ("before", "position", "is_paused", "now_s", "drained", "after", "asks"),
    [
        (None, 5, False, 10.0, 0, Still(5, 10.0), False),
        (Still(5, 10.0), 6, False, 80.0, 9, Still(6, 80.0), False),  # it moved
        (Still(5, 10.0, 3), 5, True, 80.0, 9, None, False),  # it is held back
        (Still(5, 10.0), 5, False, 69.9, 9, Still(5, 10.0), False),  # not for long
        (Still(5, 10.0), 5, False, 70.0, 9, Still(5, 10.0, 9), False),  # for long; but what does the client still have?
        (Still(5, 10.0, 9), 5, False, 71.0, 10, Still(5, 10.0, 9), False),  # the container is busy with others
        (Still(5, 10.0, 9), 5, False, 72.0, 11, Still(5, 72.0), True),
        (Still(5, 10.0, 9, has_more=True), 5, False, 72.0, 11, Still(5, 72.0, has_more=True), True),
        (Still(5, 10.0, 9, has_more=True), 6, False, 72.0, 11, Still(6, 72.0), False),
    ],
)
def test_look(
    before: Still | None, position: int, is_paused: bool, now_s: float, drained: int, after: Still | None, asks: bool
) -> None:  # fmt: skip
    assert (after, asks) == look(before, position, is_paused, now_s, drained, LIMIT_S)


def test_records_that_are_there_are_looked_for_a_second_time_before_it_counts_as_standing() -> None:
    doubted, is_sure = confirmed(Still(5, 72.0), 72.0, LIMIT_S)
    assert not is_sure
    _, asks = look(doubted, 5, False, 72.0 + CONFIRM_S - 0.1, 20, LIMIT_S)
    assert not asks
    again, asks = look(doubted, 5, False, 72.0 + CONFIRM_S, 20, LIMIT_S)
    assert again is not None
    assert not asks, "the client may still have them"
    again, asks = look(again, 5, False, 79.0, 22, LIMIT_S)
    assert again is not None
    assert asks
    assert (Still(5, 79.0), True) == confirmed(again, 79.0, LIMIT_S)


@pytest.mark.parametrize(
    ("end", "run_end", "said"),
    [
        (5, None, ""),
        (5, 5, ""),
        (4, None, ""),
        (9, None, "in[0]: the next offset is 5, the end 9, and no record came for 60 s, although the partition is not held back on purpose"),
        (9, 7, "in[0]: the next offset is 5, the end 9, and no record came for 60 s, although the partition is not held back on purpose; this run ends at 7"),
        (5, 7, "in[0] is at 5, and this run ends at 7, but no readable record is left before that end: the topic ends at 5"),
    ],
)
def test_why_it_stands(end: int, run_end: int | None, said: str) -> None:
    assert said == why_it_stands("in[0]", 5, end, run_end, LIMIT_S)
