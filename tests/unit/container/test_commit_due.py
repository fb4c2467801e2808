"""When a commit is due."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from samzapy.container.commit_due import EARLY, EARLY_S, INTERVAL, MOST_SUMS, RECORD, SIZE, due, is_due_early, is_full


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({}, ""),
        ({"is_interval_over": True}, INTERVAL),
        ({"is_full": True}, SIZE),
        ({"is_search_full": True}, RECORD),
        ({"is_early": True}, EARLY),
        ({"is_interval_over": True, "is_full": True}, SIZE),
        ({"is_interval_over": True, "is_early": True}, INTERVAL),
        ({"is_interval_over": True, "is_search_full": True}, RECORD),
    ],
)
def test_a_commit_is_due_for_the_reason_that_people_are_told(facts: dict[str, bool], why: str) -> None:
    assert due(**facts) == why


def _task(held: int = 0, uncommitted_bytes: int = 0) -> Any:
    return SimpleNamespace(held=held, stores={"counts": SimpleNamespace(uncommitted_bytes=uncommitted_bytes)})


def test_what_stores_and_sent_records_hold_counts_together_and_a_programs_sums_on_their_own() -> None:
    assert not is_full([_task(uncommitted_bytes=40), _task(uncommitted_bytes=40)], 19, 100)
    assert is_full([_task(uncommitted_bytes=40), _task(uncommitted_bytes=40)], 20, 100)
    assert not is_full([_task(held=MOST_SUMS - 1)], 0, 100)
    assert is_full([_task(held=MOST_SUMS)], 0, 100)


def _marks(is_news: bool) -> Any:
    return SimpleNamespace(is_news=lambda task, mark: is_news, of=lambda task: None)


@pytest.mark.parametrize(
    ("has_records", "passed_s", "has_sent", "held", "is_news", "is_due"),
    [
        (False, EARLY_S, True, 0, False, True),
        (False, EARLY_S, False, 1, False, True),
        (False, EARLY_S, False, 0, True, True),
        (False, EARLY_S, False, 0, False, False),
        (True, EARLY_S, True, 1, True, False),
        (False, EARLY_S / 2, True, 1, True, False),
    ],
)
def test_a_commit_is_early_only_for_what_the_following_stage_waits_for(
    has_records: bool, passed_s: float, has_sent: bool, held: int, is_news: bool, is_due: bool
) -> None:
    assert is_due_early(has_records, passed_s, has_sent, [_task(held)], _marks(is_news)) is is_due
