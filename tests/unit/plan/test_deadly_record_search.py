"""Which record ends containers: what follows from each death, and that the search comes to its end."""

from __future__ import annotations

import math
import signal
from dataclasses import replace

import pytest

from samzapy.model.caution import Caution, Condemned, Piece, Span, Suspects, caution_from_json, piece_from_json, piece_of
from samzapy.model.dead_letter import Origin
from samzapy.model.process_end import ProcessEnd, executor_lost, exited, killed_by, killed_or_crashed, other, silent
from samzapy.plan.deadly_record_search import (
    DEATHS_ALONE,
    MAX_SUSPECTS,
    SHRINK_BY,
    after_death,
    hopeless,
    next_limit,
    unproved,
    with_place,
)

SILENT, VANISHED = silent(10.1, 10.0), killed_or_crashed("its Python worker ended without a message")


def piece(begin: int, end: int, partition: int = 0) -> Piece:
    return Piece((Span("in", partition, begin, end),), end - begin)


def suspects(*found: Suspects) -> Caution:
    return Caution(9.0, found)


TABLE = [
    ("nothing is known of what it did: it is watched from now on", Caution(), None, Caution(9.0), False),
    ("what is known stays", suspects(Suspects(piece(0, 500))), None, suspects(Suspects(piece(0, 500))), False),
    ("the first that were under way are suspects", Caution(9.0), piece(0, 500), suspects(Suspects(piece(0, 500))), True),
    ("fewer of them", suspects(Suspects(piece(0, 500))), piece(15, 30), suspects(Suspects(piece(15, 30))), True),
    ("as many again: no nearer", suspects(Suspects(piece(15, 30))), piece(15, 30), suspects(Suspects(piece(15, 30))), False),
    ("one alone", suspects(Suspects(piece(15, 30))), piece(20, 21), suspects(Suspects(piece(20, 21), 1, 1)), True),
    (
        "others while there are suspects: no nearer",
        suspects(Suspects(piece(0, 500))),
        piece(500, 900),
        suspects(Suspects(piece(0, 500)), Suspects(piece(500, 900))),
        False,
    ),
    (
        "two places are narrowed down side by side",
        suspects(Suspects(piece(0, 500)), Suspects(piece(0, 500, 1))),
        piece(0, 15),
        suspects(Suspects(piece(0, 500, 1)), Suspects(piece(0, 15))),
        True,
    ),
    ("the same offsets of another partition", suspects(Suspects(piece(0, 9))), piece(0, 5, 1),
     suspects(Suspects(piece(0, 9)), Suspects(piece(0, 5, 1))), False),
]  # fmt: skip


@pytest.mark.parametrize(("known", "at", "then", "is_nearer"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_after_a_death(known: Caution, at: Piece | None, then: Caution, is_nearer: bool) -> None:
    found = after_death(known, at, killed_by(signal.SIGSEGV), 0, 9.0)
    assert (then, is_nearer, None) == (found.caution, found.is_nearer, found.condemned)


def test_a_record_that_ended_its_container_twice_alone_is_condemned_and_no_suspect_any_more() -> None:
    found = after_death(suspects(Suspects(piece(20, 21), 1, 1), Suspects(piece(0, 9, 1))), piece(20, 21), exited(3), 4, 9.0)
    assert found.is_nearer
    assert found.condemned is not None
    assert Condemned(Origin("in", 0, 20), 2, "exit code 3", 4) == found.condemned
    assert [Suspects(piece(0, 9, 1))] == list(found.caution.suspects)
    assert [Origin("in", 0, 20)] == [c.record for c in found.caution.condemned]
    placed = with_place(found.caution, 4, "task.py:9 in process")
    assert ["task.py:9 in process"] == [c.place for c in placed.condemned]
    assert [""] == [c.place for c in with_place(found.caution, 5, "elsewhere").condemned]


def test_deaths_at_a_record_that_is_condemned_already_count_and_are_the_end_after_two() -> None:
    """Giving it up ends the container: nothing can be done with the record any more. Each cycle of the search would be as new, for ever."""
    known = suspects()
    told = []
    for _ in range(6):
        found = after_death(known, piece(20, 21), exited(70), 4, 9.0)
        told.append((found.is_nearer, hopeless(found.caution) is not None))
        known = found.caution
    assert [(True, False), (True, False), (False, False), (False, True)] == told[:4]
    elsewhere = after_death(known, piece(30, 31), exited(70), 4, 9.0)
    assert elsewhere.is_nearer, "another record is searched for as before"


def test_one_that_was_alone_by_chance_needs_two_deaths_like_any_other() -> None:
    """A quiet topic hands records out one by one: a container that is killed by somebody else then condemns nothing."""
    found = after_death(Caution(9.0), piece(7, 8), killed_by(signal.SIGKILL), 0, 9.0)
    assert found.condemned is None
    assert Suspects(piece(7, 8), 1) == found.caution.suspects[0]


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 500, 1025, 40_000])
def test_the_search_ends_after_few_deaths_each_of_which_brings_it_nearer(count: int) -> None:
    caution, deaths, guilty = Caution(9.0), 0, count // 3
    at: Piece | None = piece(0, count)
    while True:
        found = after_death(caution, at, killed_by(signal.SIGSEGV), 0, 9.0)
        caution, deaths = found.caution, deaths + 1
        assert found.is_nearer
        if found.condemned is not None:
            break
        known = caution.suspects[0]
        begin = known.piece.spans[0].begin
        limit = next_limit(known)
        start = begin + (guilty - begin) // limit * limit
        at = piece(start, min(start + limit, known.piece.spans[0].end))
    assert Origin("in", 0, guilty) == found.condemned.record
    assert deaths <= math.ceil(math.log(count, SHRINK_BY)) + DEATHS_ALONE + 1


@pytest.mark.parametrize(
    "end",
    [
        killed_by(signal.SIGKILL),
        replace(killed_by(signal.SIGKILL), memory="its memory was 990 MiB 0.1 s before, containers.memory is 1024 MiB"),
        killed_by(signal.SIGTERM),
        executor_lost(": worker lost"),
        SILENT,
        VANISHED,
        other("Spark gave the application up"),
    ],
    ids=str,
)
def test_who_may_have_been_killed_by_somebody_else_condemns_no_record_however_often(end: ProcessEnd) -> None:
    known = suspects(Suspects(piece(15, 30)))
    nearer = []
    for number in range(1, 20):
        found = after_death(known, piece(20, 21), end, 0, 9.0)
        known = found.caution
        nearer.append(found.is_nearer)
        named = unproved(known, piece(20, 21))
        assert (None, number >= 2) == (found.condemned, named is not None)
        assert () == known.condemned
    assert [True, True, *([False] * 17)] == nearer, "deaths that prove nothing use the budget up"
    for _ in range(2):
        found = after_death(known, piece(20, 21), killed_by(signal.SIGSEGV), 0, 9.0)
        known = found.caution
        assert found.is_nearer
    assert found.condemned is not None, "two deaths by its own doing condemn it all the same"
    given_up = after_death(known, piece(20, 21), end, 0, 9.0)
    assert known == given_up.caution, "and one that is killed while it is given up does not end the job"


@pytest.mark.parametrize("end", [SILENT, VANISHED], ids=str)
def test_the_line_of_a_hook_that_is_found_later_makes_such_a_death_a_proof(end: ProcessEnd) -> None:
    why = str(end)
    first = after_death(suspects(Suspects(piece(15, 30))), piece(20, 21), end, 4, 9.0)
    placed = with_place(first.caution, 4, "task.py:9 in process", why)
    assert first.caution == with_place(first.caution, 5, "of another container", why)
    second = after_death(placed, piece(20, 21), end, 4, 9.0)
    assert second.condemned is None
    found = with_place(second.caution, 4, "task.py:9 in process", why)
    assert ([Condemned(Origin("in", 0, 20), 2, why, 4, "task.py:9 in process")], []) == (list(found.condemned), list(found.suspects))


def test_a_container_that_dies_elsewhere_each_time_is_not_searched_in_for_ever() -> None:
    """Killed by somebody else every few seconds: only the first of these deaths is left out of the restart budget."""
    caution, nearer = Caution(9.0), 0
    for number in range(50):
        found = after_death(caution, piece(number * 500, number * 500 + 500), killed_by(signal.SIGKILL), 0, 9.0)
        caution, nearer = found.caution, nearer + found.is_nearer
    assert nearer == 1
    assert len(caution.suspects) == MAX_SUSPECTS


def test_it_goes_over_the_wire_and_what_is_no_piece_is_none() -> None:
    found = after_death(suspects(Suspects(piece(20, 21), 1, 1), Suspects(piece(0, 9, 1))), piece(20, 21), exited(3), 4, 9.0)
    waits = after_death(found.caution, piece(30, 31), silent(9.0, 8.0), 4, 9.0)
    assert waits.caution == caution_from_json(waits.caution.to_json())
    assert found.caution == caution_from_json(found.caution.to_json())
    mixed = piece_of([("in", 0, 5), ("in", 1, 9), ("in", 0, 7)])
    assert Piece((Span("in", 0, 5, 8), Span("in", 1, 9, 10)), 3) == mixed == piece_from_json(mixed.to_json())
    assert "in[0]@5..7, in[1]@9" == str(mixed)
    for nonsense in (None, 3, "x", {}, {"spans": 1, "count": 1}, {"spans": [], "count": 1}, {"spans": [["in", 0, 1]], "count": 1}):
        assert piece_from_json(nonsense) is None


def test_a_crash_in_samzapys_own_watch_condemns_nothing() -> None:
    known = Caution(9.0)
    for _ in range(5):
        found = after_death(known, piece(20, 21), replace(killed_by(signal.SIGSEGV), is_watchdogs=True), 0, 9.0)
        known = found.caution
        assert found.condemned is None
    assert [0] == [s.proofs for s in known.suspects]
