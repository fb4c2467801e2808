"""One step of a move after the other."""

from __future__ import annotations

import pytest

from samzapy.plan.host_choice import NoRoom, Start, Wait, choose_host
from samzapy.plan.moves import WARM_RECORDS, Holder, decide_moves, orphans


def holder(*tasks: str, host: str = "a", ready: bool = True, **more: object) -> Holder:
    return Holder(tasks, host, ready, **more)  # type: ignore[arg-type]


def test_tasks_that_nobody_has_go_to_their_container_once_it_runs() -> None:
    assert {0: ("x", "y")} == decide_moves({"x": 0, "y": 0}, {0: holder("x")}, False).records
    assert {} == decide_moves({"x": 0, "y": 1}, {0: holder("x"), 1: holder(ready=False)}, False).records
    assert {} == decide_moves({"x": 0, "y": 1}, {0: holder("x")}, False).records


def test_a_release_is_ordered_when_the_target_runs_and_the_record_follows_the_release() -> None:
    desired = {"x": 0, "y": 1}
    steps = decide_moves(desired, {0: holder("x", "y"), 1: holder()}, False)
    assert ({}, {0: frozenset({"y"}), 1: frozenset()}) == (steps.records, steps.release)
    steps = decide_moves(desired, {0: holder("x", "y", releasing=frozenset({"y"})), 1: holder()}, False)
    assert {} == steps.records
    steps = decide_moves(desired, {0: holder("x", "y", releasing=frozenset({"y"}), released=frozenset({"y"})), 1: holder()}, False)
    assert {0: ("x",), 1: ("y",)} == steps.records


def test_a_release_that_was_ordered_is_never_taken_back_but_the_task_may_be_given_again() -> None:
    mine = {"x": 0, "y": 0}
    steps = decide_moves(mine, {0: holder("x", "y", releasing=frozenset({"y"}))}, False)
    assert frozenset({"y"}) == steps.release[0]
    steps = decide_moves(mine, {0: holder("x", "y", releasing=frozenset({"y"}), released=frozenset({"y"}))}, False)
    assert {0: ("x", "y")} == steps.records


def test_a_released_task_leaves_its_record_even_if_its_target_is_gone() -> None:
    assert {0: ("x",)} == decide_moves({"x": 0, "y": 1}, {0: holder("x", "y", released=frozenset({"y"}))}, False).records


@pytest.mark.parametrize(
    ("behind", "host", "moves"), [(None, "b", False), (WARM_RECORDS + 1, "b", False), (WARM_RECORDS, "b", True), (None, "a", True)]
)
def test_with_changelogs_the_target_is_warm_first_unless_it_is_on_the_same_host(behind: int | None, host: str, moves: bool) -> None:
    copies = {} if behind is None else {"y": behind}
    steps = decide_moves({"x": 0, "y": 1}, {0: holder("x", "y"), 1: holder(host=host, copies=copies)}, True)
    assert moves == (steps.release[0] == {"y"})
    assert ({} if moves else {1: ("y",)}) == steps.warm


def test_the_copy_that_is_least_behind_takes_over_and_never_one_on_the_lost_host() -> None:
    takers = {
        1: holder(host="lost", copies={"x": 0}),
        2: holder(host="b", copies={"x": 9, "y": 1}),
        3: holder(host="c", copies={"x": 2, "y": None}),
        4: holder(host="d", ready=False, copies={"x": 0, "y": 0}),
    }
    assert {"x": 3, "y": 2} == orphans(takers, ["x", "y", "z"], "lost")


@pytest.mark.parametrize(
    ("preferred", "slots", "used", "waited", "expected"),
    [
        ("a", {"a": 1, "b": 1}, {}, 0.0, Start("a")),
        ("a", {"a": 1, "b": 1}, {"a": 1}, 4.9, Wait("no free slot on a, waiting for it")),
        ("a", {"a": 1, "b": 1}, {"a": 1}, 5.0, Start("b", "no free slot on a within 5 s")),
        ("a", {"b": 1}, {}, 0.0, Wait("no executor on a, waiting for it")),
        ("a", {"b": 1}, {}, 5.0, Start("b", "no executor on a within 5 s")),
        ("a", {"b": 1}, {"b": 1}, 5.0, NoRoom("all 1 slots are taken")),
        ("a", {}, {}, 99.0, Wait("no executor is available, waiting for one")),
        (None, {"a": 1, "b": 2}, {}, 0.0, Start("b")),
        (None, {"a": None}, {"a": 7}, 0.0, Start("a")),
    ],
)
def test_where_a_container_is_started(
    preferred: str | None, slots: dict[str, int | None], used: dict[str, int], waited: float, expected: object
) -> None:
    assert expected == choose_host(preferred, {}, slots, used, waited, 5.0)


def test_the_host_with_the_most_state_is_taken_when_the_preferred_one_does_not_come() -> None:
    assert Start("c", "no executor on a within 5 s") == choose_host("a", {"c": 2, "b": 1}, {"b": 4, "c": 1}, {}, 5.0, 5.0)
