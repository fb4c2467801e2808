"""Standby copies: never beside the original, evenly spread, kept where they are, near to the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samzapy.plan.standby_placement import standbys

HOSTS = ["A", "B", "C", "D"]
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure


@dataclass(frozen=True)
class Case:
    tasks: Mapping[int, Sequence[str]]
    hosts: Mapping[int, str | None]
    count: int
    before: Mapping[int, Sequence[str]]
    locality: Mapping[str, Mapping[str, int]]

    def copies(self) -> dict[int, tuple[str, ...]]:
        return standbys(self.tasks, self.hosts, self.count, self.before, self.locality)

    def owners(self) -> dict[str, str | None]:
        return {t: self.hosts[c] for c, names in self.tasks.items() for t in names}

    def known(self) -> set[str]:
        return {host for host in self.hosts.values() if host is not None}


@st.composite
def cases(draw: st.DrawFn, most: int = 12, unknown: bool = True) -> Case:
    containers = draw(st.integers(1, 6))
    tasks = [f"Partition {i}" for i in range(draw(st.integers(0, most)))]
    somewhere = [None, *HOSTS] if unknown else HOSTS
    some = st.lists(st.sampled_from([*tasks, "gone"]), unique=True)
    return Case(
        {c: tasks[c::containers] for c in range(containers)},
        {c: draw(st.sampled_from(somewhere)) for c in range(containers)},
        draw(st.integers(0, 3)),
        draw(st.dictionaries(st.integers(0, 7), some)),
        {t: draw(st.dictionaries(st.sampled_from(HOSTS), st.integers(0, 3), max_size=3)) for t in tasks},
    )


@unhurried
@given(cases())
def test_copies_lie_on_other_hosts_than_the_owner_and_each_other_and_there_are_as_many_as_can_be(case: Case) -> None:
    made = case.copies()
    for task, owner in case.owners().items():
        kept_on = [case.hosts[c] for c, names in made.items() for t in names if t == task]
        assert len(kept_on) == len(set(kept_on))
        assert not {owner, None} & set(kept_on)
        assert (0 if owner is None else min(case.count, len(case.known()) - 1)) == len(kept_on)
    assert {t for names in made.values() for t in names} <= set(case.owners())
    assert all(made.values())


@unhurried
@given(cases())
def test_a_result_given_back_is_kept(case: Case) -> None:
    made = case.copies()
    assert made == replace(case, before=made).copies()


@unhurried
@given(cases())
def test_the_order_in_which_facts_are_listed_makes_no_difference(case: Case) -> None:
    turned = Case(
        dict(reversed(case.tasks.items())),
        dict(reversed(case.hosts.items())),
        case.count,
        dict(reversed(case.before.items())),
        {t: dict(reversed(s.items())) for t, s in reversed(case.locality.items())},
    )
    assert case.copies() == turned.copies()


@settings(unhurried, max_examples=60)
@given(cases(most=5, unknown=False))
def test_the_containers_differ_as_little_as_the_hosts_allow(case: Case) -> None:
    made = case.copies()
    sizes = [len(made.get(c, ())) for c in case.tasks]
    assert _least_difference(case) == max(sizes) - min(sizes)


def _least_difference(case: Case) -> int:
    """By trying every choice of hosts for every task."""
    count = min(case.count, len(case.known()) - 1)
    choices = [list(combinations(sorted(case.known() - {owner}), count)) for owner in case.owners().values() if owner is not None]
    width = {host: list(case.hosts.values()).count(host) for host in case.known()}
    return min(_difference([host for taken in chosen for host in taken], width) for chosen in product(*choices))


def _difference(places: list[str], width: Mapping[str, int]) -> int:
    load = {host: places.count(host) for host in width}
    return max(-(-load[h] // width[h]) for h in width) - min(load[h] // width[h] for h in width)


@pytest.mark.parametrize("hosts", [{0: "A", 1: "A"}, {0: None, 1: "A"}, {0: None, 1: None}, {}])
def test_with_one_known_host_there_are_none(hosts: dict[int, str | None]) -> None:
    assert {} == standbys({0: ["Partition 0"], 1: ["Partition 1"]}, hosts, 1, {}, {})


def test_a_copy_goes_where_the_newest_state_is_if_that_is_no_further_from_even() -> None:
    tasks = {0: ["Partition 0", "Partition 1"], 1: [], 2: []}
    hosts = {0: "A", 1: "B", 2: "C"}
    state = {"Partition 0": {"A": 9, "B": 1, "C": 2}, "Partition 1": {"A": 9, "B": 1}}
    assert {1: ("Partition 1",), 2: ("Partition 0",)} == standbys(tasks, hosts, 1, {}, state)
    crowded = {t: {"A": 9, "B": 1} for t in tasks[0]}
    assert {1: ("Partition 0",), 2: ("Partition 1",)} == standbys(tasks, hosts, 1, {}, crowded)


def test_copies_reach_a_host_that_cannot_take_them_over_a_third_one() -> None:
    """All of B's copies are A's tasks, which A must not keep; so C takes some of them, and gives A what it kept for B."""
    tasks = {0: ["a1", "a2", "a3", "a4"], 1: ["b1", "b2"], 2: []}
    before = {1: ["a1", "a2", "a3", "a4"], 2: ["b1", "b2"]}
    made = standbys(tasks, {0: "A", 1: "B", 2: "C"}, 1, before, {})
    assert [2, 2, 2] == [len(made.get(c, ())) for c in range(3)]
    assert {"b1", "b2"} == set(made[0])


def test_when_a_host_is_lost_only_its_copies_are_made_anew() -> None:
    tasks = {c: [f"Partition {c}", f"Partition {c + 4}"] for c in range(4)}
    hosts: dict[int, str | None] = dict(enumerate(HOSTS))
    first = standbys(tasks, hosts, 1, {}, {})
    moved = {0: [*tasks[0], "Partition 3"], 1: [*tasks[1], "Partition 7"], 2: tasks[2]}
    second = standbys(moved, {c: hosts[c] for c in moved}, 1, first, {})
    owners = {t: c for c, names in moved.items() for t in names}
    stay = {(c, t) for c, names in first.items() for t in names if c in moved and owners[t] != c}
    assert stay <= {(c, t) for c, names in second.items() for t in names}


def test_a_copy_whose_container_became_the_owner_goes_elsewhere() -> None:
    tasks = {0: ["Partition 0"], 1: ["Partition 1"]}
    made = standbys(tasks, {0: "A", 1: "B"}, 1, {0: ["Partition 0"], 1: ["Partition 1"]}, {})
    assert {0: ("Partition 1",), 1: ("Partition 0",)} == made


def test_of_too_many_copies_the_newest_stays() -> None:
    tasks = {0: ["Partition 0"], 1: [], 2: []}
    before = {1: ["Partition 0"], 2: ["Partition 0"]}
    state = {"Partition 0": {"B": 1, "C": 2}}
    assert {2: ("Partition 0",)} == standbys(tasks, {0: "A", 1: "B", 2: "C"}, 1, before, state)


def test_levelling_moves_what_was_placed_just_now_and_leaves_old_copies_alone() -> None:
    tasks = {0: [f"Partition {i}" for i in range(8)], 1: [], 2: []}
    state = {t: {"B": 1} for t in tasks[0][2:]}
    made = standbys(tasks, {0: "A", 1: "B", 2: "C"}, 1, {1: tasks[0][:2]}, state)
    assert [4, 4] == [len(made[1]), len(made[2])]
    assert {"Partition 0", "Partition 1"} <= set(made[1])


def test_within_a_host_a_copy_stays_in_its_container() -> None:
    tasks = {0: ["Partition 0"], 1: [], 2: []}
    assert {2: ("Partition 0",)} == standbys(tasks, {0: "A", 1: "B", 2: "B"}, 1, {2: ["Partition 0"]}, {})
