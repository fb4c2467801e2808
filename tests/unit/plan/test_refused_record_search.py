"""The search for a poison record, event by event, and over random logs against a broker that refuses what it is told to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samzapy.api.errors import RecordRejected, TimestampRefused, TransactionAborted
from samzapy.model.dead_letter import Origin
from samzapy.model.offsets import TopicPartition
from samzapy.model.transaction_contents import Contents
from samzapy.plan.refused_record_search import MAX_ABORTS, Culprit, GiveUp, NoCulprit, PoisonSearch, Replay, searched
from samzapy.plan.transaction_size import COMMITS_TO_GROW, GROW_BY, NO_LIMIT, SHRINK_BY

WITHOUT_A_RECORD = (
    "Kafka refuses something that belongs to no record: what a hook other than `process` or the end of a window sent or stored, or a mark of event time"
)
REFUSED = RecordRejected("too large.", "")
ABORTED = TransactionAborted("the broker wants an abort.", "")
R = [Origin("in", 0, offset) for offset in range(1000)]

Event = tuple[str, int] | tuple[str, int, TransactionAborted]


def told(search: PoisonSearch, events: Sequence[Event]) -> object:
    """The answer to the last event: ("commit", held), or ("abort", held, error) after record number `held`."""
    answer: object = None
    for event in events:
        if event[0] == "commit":
            search.committed(Contents(event[1]))
        else:
            held, error = event[1], event[2]  # type: ignore[misc]
            answer = search.aborted(Contents(held, R[held] if held else None), error)
    return answer


@pytest.mark.parametrize(
    ("events", "answer", "limit"),
    [
        # a refused record: an eighth as many, down to one; then that one is the culprit
        ([("abort", 800, REFUSED)], Replay(100), 100),
        ([("abort", 800, REFUSED), ("abort", 100, REFUSED)], Replay(12), 12),
        ([("abort", 7, REFUSED)], Replay(1), 1),
        ([("abort", 7, REFUSED), ("abort", 1, REFUSED)], Culprit(R[1], REFUSED, 1), 1),
        # the only record of a transaction, before the search is on: once more, alone on purpose
        ([("abort", 1, REFUSED)], Replay(1), 1),
        ([("abort", 1, REFUSED), ("abort", 1, REFUSED)], Culprit(R[1], REFUSED, 1), 1),
        # an abort that lies in no record: half as many, and never a culprit
        ([("abort", 800, ABORTED)], Replay(400), 400),
        ([("abort", 2, ABORTED), ("abort", 1, ABORTED)], Replay(1), 1),
        # nothing gets on: three aborts of transactions that cannot be made smaller
        ([("abort", 1, ABORTED)] * (MAX_ABORTS - 1), Replay(1), 1),
        ([("abort", 1, ABORTED)] * MAX_ABORTS, GiveUp("3 transactions in a row were aborted without progress"), 1),
        ([("abort", 0, ABORTED)] * MAX_ABORTS, GiveUp("3 transactions in a row were aborted without progress"), NO_LIMIT),
        ([*[("abort", 1, ABORTED)] * 2, ("commit", 1), ("abort", 1, ABORTED)], Replay(1), 1),  # a commit is progress
        ([*[("abort", 1, ABORTED)] * 2, ("commit", 0), ("abort", 1, ABORTED)], GiveUp("3 transactions in a row were aborted without progress"), 1),
        # refused although no record is in it: a hook did it, and would do it again
        ([("abort", 0, REFUSED)], GiveUp(WITHOUT_A_RECORD, True), NO_LIMIT),
    ],
)  # fmt: skip
def test_what_an_abort_is_answered_with(events: Sequence[Event], answer: object, limit: int) -> None:
    search = PoisonSearch(retries=0)

    assert (answer, limit) == (told(search, events), search.limit)


def test_commits_let_transactions_grow_until_the_search_is_over() -> None:
    search = PoisonSearch(retries=0)
    search.aborted(Contents(800, R[0]), REFUSED)
    limits = []
    for _ in range(2 * COMMITS_TO_GROW):
        search.committed(Contents(50))
        limits.append(search.limit)

    assert [100, 400, 400, NO_LIMIT] == limits
    assert not search.is_on
    assert (SHRINK_BY, GROW_BY) == (8, 4)  # what the numbers here are made of


def test_where_slow_brokers_leave_one_record_a_transaction_a_refusal_is_tried_again_before_the_record_is_blamed() -> None:
    search = PoisonSearch(retries=0, patience_s=60.0)
    assert Replay(1) == search.aborted(Contents(2, R[1], waited_s=60.0), ABORTED)
    assert not search.is_on  # nothing is searched for: what window() does is in the same transaction as the record
    assert Replay(1) == search.aborted(Contents(1, R[0]), REFUSED)
    assert search.is_on
    assert Culprit(R[0], REFUSED, 1) == search.aborted(Contents(1, R[0]), REFUSED)


def test_a_refused_record_is_searched_for_however_long_the_brokers_took_to_refuse_it() -> None:
    search = PoisonSearch(retries=0, patience_s=60.0)
    assert Replay(100) == search.aborted(Contents(800, R[799], waited_s=60.0), REFUSED)
    assert search.is_on


def test_an_abort_between_two_commits_begins_the_count_of_commits_again() -> None:
    search = PoisonSearch(retries=0)
    told(search, [("abort", 800, REFUSED), ("commit", 100), ("abort", 100, REFUSED), ("commit", 12)])
    assert 12 == search.limit
    search.committed(Contents(12))
    assert 48 == search.limit


def test_a_commit_without_records_is_no_reason_to_grow() -> None:
    search = PoisonSearch(retries=0)
    search.aborted(Contents(800, R[0]), REFUSED)
    for _ in range(10):
        search.committed(Contents(0))

    assert 100 == search.limit


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_record_alone_is_tried_as_often_as_on_error_says(retries: int) -> None:
    search = PoisonSearch(retries)
    search.aborted(Contents(7, R[7]), REFUSED)
    answers = [search.aborted(Contents(1, R[0]), REFUSED) for _ in range(retries + 1)]

    assert [Replay(1)] * retries + [Culprit(R[0], REFUSED, retries + 1)] == answers
    assert {R[0]} == set(search.condemned)


def test_attempts_are_counted_for_each_record() -> None:
    search = PoisonSearch(retries=1)
    search.aborted(Contents(7, R[7]), REFUSED)

    assert [Replay(1), Replay(1)] == [search.aborted(Contents(1, R[0]), REFUSED), search.aborted(Contents(1, R[1]), REFUSED)]
    assert Culprit(R[0], REFUSED, 2) == search.aborted(Contents(1, R[0]), REFUSED)


def test_a_culprit_is_skipped_once_and_forgotten_with_the_commit() -> None:
    search = PoisonSearch(retries=0)
    told(search, [("abort", 7, REFUSED)])
    culprit = search.aborted(Contents(1, R[0]), REFUSED)

    assert culprit == search.verdict(R[0], set())
    skipped = frozenset({R[0]})
    assert search.verdict(R[3], skipped) is None
    assert culprit == search.verdict(R[0], skipped), "its transaction may be aborted yet"
    search.committed(Contents(1, R[0], skipped))
    assert search.verdict(R[0], set()) is None


def test_a_culprit_that_cannot_be_set_aside_either_ends_it() -> None:
    search = PoisonSearch(retries=0)
    told(search, [("abort", 7, REFUSED)])
    search.aborted(Contents(1, R[0]), REFUSED)

    refused = search.aborted(Contents(1, R[0], frozenset({R[0]})), REFUSED)
    assert GiveUp(f"record {R[0]} is refused, and cannot be set aside either", True) == refused


def test_a_culprit_that_the_log_has_no_more_is_forgotten_when_one_after_it_comes() -> None:
    search = PoisonSearch(retries=0)
    other = Origin("in", 1, 0)
    told(search, [("abort", 7, REFUSED)])
    for record in (R[0], R[5], other):
        search.aborted(Contents(1, record), REFUSED)

    assert search.verdict(R[3], set()) is None
    assert {R[5], other} == set(search.condemned)  # not that of another partition, nor one that is still to come


def test_records_of_partitions_that_left_are_forgotten() -> None:
    search = PoisonSearch(retries=1)
    told(search, [("abort", 7, REFUSED)])
    search.aborted(Contents(1, R[0]), REFUSED)
    search.forget([R[0]])

    assert Replay(1) == search.aborted(Contents(1, R[0]), REFUSED), "counted from the start"


@settings(max_examples=150, deadline=None)
@given(
    bad=st.sets(st.integers(0, 299), max_size=6),
    natural=st.integers(1, 120),
    retries=st.integers(0, 2),
    unlucky=st.lists(st.booleans(), max_size=40),
)
def test_every_refused_record_is_found_and_every_other_is_committed_once_in_order(
    bad: set[int], natural: int, retries: int, unlucky: list[bool]
) -> None:
    """`natural`: how many records a transaction has when nothing is wrong; `unlucky`: transactions that are aborted for another reason."""
    search, committed, found = PoisonSearch(retries), list[int](), list[int]()
    position = transactions = 0
    is_lucky = True  # no mishap since the last commit: with more of them it may give up, and rightly
    while position < 300:
        transactions += 1
        assert transactions < 600, "it does not end"
        end, taken, skipped = position, list[int](), set[Origin]()
        while end < 300 and not search.is_full(end - position) and end - position < natural:
            if search.verdict(R[end], skipped) is None:
                taken.append(end)
            else:
                skipped.add(R[end])
            end += 1
        contents = Contents(end - position, R[end - 1], frozenset(skipped))
        mishap = is_lucky and bool(unlucky) and unlucky.pop()
        is_lucky = is_lucky and not mishap
        if mishap or bad.intersection(taken):
            answer = search.aborted(contents, ABORTED if mishap else REFUSED)
            assert not isinstance(answer, GiveUp), answer
            if isinstance(answer, Culprit):
                assert (retries + 1, end - 1) == (answer.attempts, answer.record.offset)
                found.append(answer.record.offset)
        else:
            search.committed(contents)
            committed += taken
            position, is_lucky = end, True

    assert sorted(bad) == sorted(found)
    assert [n for n in range(300) if n not in bad] == committed


def test_where_no_record_is_at_fault_none_is_searched_for() -> None:
    search = PoisonSearch(0, checkpoint_topic="checkpoints")
    assert NoCulprit() == search.aborted(Contents(800, R[0]), TimestampRefused("the clock is wrong.", ""))
    assert search.aborted(Contents(1, R[0]), RecordRejected("it is refused.", "", topic="checkpoints")).is_final
    assert not search.is_on
    assert isinstance(search.aborted(Contents(800, R[0]), RecordRejected("it is refused.", "", topic="out")), Replay)
    assert search.is_on


P, Q = TopicPartition("in", 0), TopicPartition("in", 1)


def test_until_the_suspects_are_committed_transactions_do_not_grow() -> None:
    search = PoisonSearch(retries=0)
    assert Replay(2) == search.aborted(Contents(16, R[9], ends={P: 10, Q: 6}), REFUSED)
    assert {P: 10, Q: 6} == search.suspects
    for at in (2, 4, 6, 8):
        search.committed(Contents(2, R[at], ends={P: at}))
        assert ({P: 10, Q: 6}, 2) == (search.suspects, search.limit)
    search.committed(Contents(2, R[9], ends={P: 10}))
    assert {Q: 6} == search.suspects
    assert Replay(1) == search.aborted(Contents(2, R[1], ends={Q: 2}), REFUSED)  # fewer suspects
    assert {Q: 2} == search.suspects
    search.committed(Contents(1, R[0], ends={Q: 1}))
    assert isinstance(search.aborted(Contents(1, R[1], ends={Q: 2}), REFUSED), Culprit)
    assert {} == search.suspects


def test_once_all_suspects_are_committed_transactions_grow() -> None:
    search = PoisonSearch(retries=0)
    search.aborted(Contents(800, R[0], ends={P: 10}), REFUSED)
    search.committed(Contents(50, ends={P: 10}))
    search.committed(Contents(50, ends={P: 20}))
    assert ({}, 400) == (search.suspects, search.limit)


def test_where_no_record_is_searched_for_there_are_no_suspects() -> None:
    search = PoisonSearch(retries=0, patience_s=60.0)
    search.aborted(Contents(2, R[1], waited_s=60.0, ends={P: 2}), ABORTED)
    assert {} == search.suspects
    search.aborted(Contents(2, R[1], ends={P: 2}), REFUSED)
    search.no_suspects()
    assert {} == search.suspects
    assert "in[0] before offset 2, in[1] before offset 6; until" in searched({P: 2, Q: 6})
