"""The schedule and the comparison of `samzapy chaos`."""

from __future__ import annotations

from samzapy.model.key_partition import murmur2
from samzapy.model.process_end import other
from samzapy.testing.chaos_compare import (
    CLEAN,
    DIFFERS,
    DOUBLED,
    INVALID,
    MISSING,
    NEW,
    ORDER,
    STATE,
    Difference,
    Outcome,
    Output,
    compare,
    result,
)
from samzapy.testing.chaos_plan import KILL, PAUSE, WEIGHTS, Recorded, StrikeDone, due, placed, schedule
from samzapy.testing.chaos_process import _what_stands
from tests.unit.coordinator.test_roster import roster_of

A1, A2, B1 = Output(0, b"a", b"1"), Output(0, b"a", b"2"), Output(1, b"b", b"1")


def outcome(*outputs: Output, state: dict[bytes, bytes] | None = None) -> Outcome:
    return Outcome({"out": outputs}, {"counts": {0: {b"a": b"2"} if state is None else state}})


CALM = outcome(A1, A2, B1)


def kinds(stormy: Outcome, exactly_once: bool = True, ordered: bool = False) -> list[tuple[str, int]]:
    return [(d.kind, d.count) for d in compare(CALM, stormy, exactly_once, ordered)]


def test_the_same_seed_makes_the_same_faults_each_kind_once_before_any_comes_again() -> None:
    first, again, other = schedule(7, 60), schedule(7, 60), schedule(8, 60)

    assert first == again
    assert first != other
    assert set(WEIGHTS) == {s.kind for s in first[: len(WEIGHTS)]}
    assert sorted(s.at_s for s in first) == [s.at_s for s in first]
    assert first[-1].at_s < 60
    assert {KILL} == {s.kind for s in schedule(7, 60, (KILL,))}


def test_records_are_paced_over_most_of_the_time() -> None:
    assert [0, 500, 1000, 1000] == [due(1000, s, 100) for s in (0, 45, 90, 100)]
    assert 1000 == due(1000, 0, 0)


def test_every_run_gives_a_record_the_same_partition_and_time() -> None:
    records = [Recorded("in", None, b"1"), Recorded("in", None, b"2"), Recorded("in", b"k", b"3"), Recorded("in", b"k", b"4", 2, 99)]

    made = placed(records, 3, 1000)
    assert [0, 1, murmur2(b"k") % 3, 2] == [r.partition for r in made]
    assert [1000, 1001, 1002, 99] == [r.timestamp_ms for r in made]


def test_the_same_records_in_any_order_of_tasks_are_clean() -> None:
    assert [] == kinds(CALM)
    assert [] == kinds(outcome(B1, A1, A2), ordered=True)
    assert [] == kinds(outcome(A2, A1, B1))
    assert [(ORDER, 1)] == kinds(outcome(A2, A1, B1), ordered=True)


def test_what_is_missing_doubled_or_new_is_told() -> None:
    assert [(MISSING, 1)] == kinds(outcome(A1, A2))
    assert [(DOUBLED, 1)] == kinds(outcome(A1, A2, B1, B1))
    assert [(NEW, 1)] == kinds(outcome(A1, A2, B1, Output(0, b"a", b"3")))
    assert [(MISSING, 1), (NEW, 1)] == kinds(outcome(A1, A2, Output(0, b"b", b"1"))), "a record in another partition is another"


def test_records_without_a_key_may_be_in_any_partition() -> None:
    calm, stormy = (outcome(Output(p, None, b"1"), Output(0, None, b"2")) for p in (0, 1))

    assert [] == compare(calm, stormy, True, False)
    assert ["topic out: 1 missing, the first: any partition, key nothing, value '1'"] == [
        str(d) for d in compare(calm, outcome(Output(1, None, b"2")), True, False)
    ]


def test_at_least_once_may_repeat_but_not_lose_or_invent() -> None:
    assert [] == kinds(outcome(A1, A1, A2, B1), exactly_once=False)
    assert [(MISSING, 1)] == kinds(outcome(A1, A1, A2), exactly_once=False)
    assert [(NEW, 1)] == kinds(outcome(A1, A2, B1, Output(0, b"a", b"3")), exactly_once=False)


def test_stores_are_compared_entry_by_entry() -> None:
    assert [(STATE, 1)] == kinds(outcome(A1, A2, B1, state={b"a": b"3"}), exactly_once=False)
    assert [(STATE, 2)] == kinds(outcome(A1, A2, B1, state={b"b": b"2"}))
    [found] = compare(CALM, outcome(A1, A2, B1, state={}), True, False)
    assert "store counts: 1 state differs, the first: key 'a' of partition 0 is nothing, where '2' is right" == str(found)


def test_a_run_that_proved_nothing_is_invalid() -> None:
    hit, late = (StrikeDone(1.0, KILL, "container 0", 2.0, fed) for fed in (True, False))

    paused, missed = hit._replace(kind=PAUSE), hit._replace(note="it had ended already")

    assert CLEAN == result([hit], [], CALM)[0]
    assert result([hit, late, paused, missed], [], CALM)[1].endswith("2 of 4 faults hit the job while it was working, 1 of them as SIGKILL")
    assert INVALID == result([paused], [], CALM)[0]
    assert INVALID == result([missed], [], CALM)[0]
    assert DIFFERS == result([hit], compare(CALM, outcome(A1), True, False), CALM)[0]
    assert INVALID == result([], [], CALM)[0]
    assert INVALID == result([late], [], CALM)[0]
    assert INVALID == result([hit], [], Outcome({}, {}))[0]


def test_a_header_that_differs_is_a_difference() -> None:
    calm, stormy = outcome(A1._replace(headers=(("n", b"1"),))), outcome(A1._replace(headers=(("n", b"2"),)))
    assert [] == compare(calm, calm, True, True)
    missing, new = compare(calm, stormy, True, False)
    assert [(MISSING, 1), (NEW, 1)] == [(d.kind, d.count) for d in (missing, new)]
    assert "key 'a', value '1', headers n='1'" in str(missing)


def test_what_differs_without_faults_too_proves_nothing() -> None:
    hit = StrikeDone(1.0, KILL, "container 0", 2.0, True, "")
    lost, lost_elsewhere, twice = (Difference(*given, 3, "") for given in (("topic a", "missing"), ("topic b", "missing"), ("topic a", "doubled")))
    verdict, why = result([hit], [lost], CALM, [lost])
    assert INVALID == verdict
    assert why.startswith("two runs without faults differ in topic a too: ")
    assert (DIFFERS, "1 difference") == result([hit], [lost], CALM, [])
    for more in (lost_elsewhere, twice):
        assert (DIFFERS, "1 difference that two runs without faults do not have") == result([hit], [lost, more], CALM, [lost])


def test_of_a_job_that_is_not_whole_it_is_said_what_does_not_run() -> None:
    roster, _ = roster_of(2, 2)
    assert "container 1 (process None) RUNNING; all tasks run" in _what_stands(roster.status())
    roster.members.lose(roster.members[1], other("killed"))
    said = _what_stands(roster.status())
    assert "container 0 (process None) RUNNING, container 1 (process None) LOST" in said
    assert "WAITING" in said
    assert "does not answer" in _what_stands(None)
