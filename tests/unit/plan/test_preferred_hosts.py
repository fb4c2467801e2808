"""The plan, containers to hosts: an even load, then as much state at home as that allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from samzapy.plan.assignment import plan
from samzapy.plan.preferred_hosts import place, weigh

HOSTS = ["A", "B", "C", "D"]
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
Groups = Mapping[int, Sequence[str]]
States = Mapping[str, Mapping[str, int]]
STATES = st.dictionaries(st.sampled_from(HOSTS), st.integers(0, 3), max_size=4)
SLOTS = st.dictionaries(st.sampled_from(HOSTS), st.sampled_from([None, 0, 1, 2, 3]))


def groups(count: int, size: int = 2) -> dict[int, list[str]]:
    return {c: [f"Partition {c * size + i}" for i in range(size)] for c in range(count)}


@st.composite
def facts(draw: st.DrawFn) -> tuple[Groups, States]:
    members = groups(draw(st.integers(1, 7)))
    return members, {t: draw(STATES) for names in members.values() for t in names}


def put(members: Groups, states: States, slots: Mapping[str, int | None], fixed: Mapping[int, str]) -> dict[int, str | None]:
    return place(members, weigh([t for names in members.values() for t in names], states), slots, fixed)


def found(tasks: Sequence[str], host: str, states: States) -> tuple[int, int, int]:
    """How many of the tasks find their newest state there, how many find any, how many older states there are elsewhere."""
    here = [states[t] for t in tasks if host in states[t]]
    return sum(s[host] == max(s.values()) for s in here), len(here), sum(rank < s[host] for s in here for rank in s.values())


def total(places: Mapping[int, str], members: Groups, states: States) -> tuple[int, ...]:
    return tuple(sum(part) for part in zip(*(found(members[c], host, states) for c, host in places.items()), strict=True))


@unhurried
@given(facts(), SLOTS, st.dictionaries(st.integers(0, 6), st.sampled_from(HOSTS)))
def test_what_runs_stays_and_no_host_gets_more_than_its_slots(
    given_facts: tuple[Groups, States], slots: dict[str, int | None], fixed: dict[int, str]
) -> None:
    members, states = given_facts
    made = put(members, states, slots, fixed)
    assert {c: host for c, host in fixed.items() if c in members} == {c: made[c] for c in members if c in fixed}
    running = Counter(host for c, host in fixed.items() if c in members)
    asked = Counter(host for c, host in made.items() if c not in fixed and host is not None)
    limits = {host: s for host, s in slots.items() if s is not None}
    assert all(running[host] + n <= limits.get(host, 99) for host, n in asked.items())
    free = 99 if len(limits) < len(slots) else sum(max(0, s - running[host]) for host, s in limits.items())
    assert max(0, sum(c not in fixed for c in members) - free) == sum(host is None for host in made.values())


@unhurried
@given(facts(), SLOTS, st.dictionaries(st.integers(0, 6), st.sampled_from(HOSTS)))
def test_no_host_is_fuller_with_its_last_container_than_another_would_be_with_one_more(
    given_facts: tuple[Groups, States], slots: dict[str, int | None], fixed: dict[int, str]
) -> None:
    members, states = given_facts
    made = put(members, states, slots, fixed)
    load = Counter(made.values())
    largest = max((s for s in slots.values() if s), default=1)
    for host in {h for c, h in made.items() if c not in fixed and h is not None}:
        for other in (h for h, s in slots.items() if s is None or load[h] < s):
            assert load[host] * (slots[other] or largest) <= (load[other] + 1) * (slots[host] or largest) or host == other


@unhurried
@given(facts(), st.sampled_from([None, 2, 3]))
def test_hosts_of_equal_slots_differ_by_one_at_most(given_facts: tuple[Groups, States], each: int | None) -> None:
    load = Counter(put(*given_facts, dict.fromkeys(HOSTS, each), {}).values())
    assert max(load[h] for h in HOSTS) - min(load[h] for h in HOSTS) <= 1


@unhurried
@given(STATES.filter(bool), STATES)
def test_a_single_container_goes_where_most_of_its_newest_state_is(one: dict[str, int], two: dict[str, int]) -> None:
    members, states = groups(1), {"Partition 0": one, "Partition 1": two}
    (host,) = put(members, states, dict.fromkeys(HOSTS, 1), {}).values()
    assert host is not None
    assert max(found(members[0], h, states) for h in HOSTS) == found(members[0], host, states)


@unhurried
@given(st.fixed_dictionaries({f"Partition {i}": STATES for i in range(4)}))
def test_of_two_that_compete_the_one_that_loses_more_elsewhere_gets_the_place(states: dict[str, dict[str, int]]) -> None:
    members = groups(2)
    made = {c: host for c, host in put(members, states, dict.fromkeys(HOSTS, 1), {}).items() if host is not None}
    best = max(total(dict(enumerate(pair)), members, states) for pair in permutations(HOSTS, 2))
    assert best == total(made, members, states)


@unhurried
@given(facts(), SLOTS, st.dictionaries(st.integers(0, 6), st.sampled_from(HOSTS)))
def test_no_two_containers_find_more_in_each_others_place(
    given_facts: tuple[Groups, States], slots: dict[str, int | None], fixed: dict[int, str]
) -> None:
    members, states = given_facts
    made = {c: host for c, host in put(members, states, slots, fixed).items() if host is not None}
    for one, other in combinations([c for c in made if c not in fixed], 2):
        swapped = {**made, one: made[other], other: made[one]}
        assert total(swapped, members, states) <= total(made, members, states)


@unhurried
@given(facts(), st.sampled_from([None, 2, 3]))
def test_no_container_finds_more_on_another_host_that_could_take_it(given_facts: tuple[Groups, States], each: int | None) -> None:
    members, states = given_facts
    made = {c: host for c, host in put(members, states, dict.fromkeys(HOSTS, each), {}).items() if host is not None}
    load = Counter(made.values())
    for c, host in made.items():
        for other in (h for h in HOSTS if load[h] < load[host]):
            assert found(members[c], other, states) <= found(members[c], host, states)


MORE_THAN_SLOTS: States = {
    "Partition 0": {"B": 0}, "Partition 1": {"D": 0, "C": 0, "A": 3}, "Partition 2": {}, "Partition 3": {"D": 0, "A": 3},
    "Partition 4": {"A": 0}, "Partition 5": {}, "Partition 6": {"C": 1}, "Partition 7": {"D": 0, "A": 1},
}  # fmt: skip


@unhurried
@given(facts(), SLOTS)
@example((groups(4), MORE_THAN_SLOTS), {"C": 1, "A": 2})
def test_no_container_without_a_slot_finds_more_where_another_one_got_its_own(
    given_facts: tuple[Groups, States], slots: dict[str, int | None]
) -> None:
    members, states = given_facts
    made = put(members, states, slots, {})
    for waiting in (c for c, host in made.items() if host is None):
        for seated, host in made.items():
            if host is not None:
                assert found(members[waiting], host, states) <= found(members[seated], host, states)


@unhurried
@given(facts(), SLOTS)
def test_after_a_run_each_container_comes_back_to_its_host(given_facts: tuple[Groups, States], slots: dict[str, int | None]) -> None:
    members, states = given_facts
    made = put(members, states, slots, {})
    ran = {t: states[t] | ({host: 9} if host is not None else {}) for c, host in made.items() for t in members[c]}
    again = put(members, ran, slots, {})
    assert {c: host for c, host in made.items() if host is not None} == {c: again[c] for c, host in made.items() if host is not None}


def test_after_a_lost_host_came_back_its_containers_go_home_and_the_others_stay() -> None:
    tasks = [f"Partition {i}" for i in range(12)]
    before = {t: i // 2 for i, t in enumerate(tasks)}
    first, fled = dict(enumerate("AABBCC")), dict(enumerate("BCBBCC"))
    state = {t: {first[c]: 10} | {fled[c]: 20} for t, c in before.items()}
    made = plan(tasks, range(6), before, state, {"A": 4, "B": 4, "C": 4}, {})
    assert first == made.hosts
    assert before == {t: c for c, names in made.tasks.items() for t in names}


def test_the_loss_elsewhere_decides_and_then_the_lower_number() -> None:
    members = groups(2, size=1)
    equal = {"Partition 0": {"A": 1}, "Partition 1": {"A": 1}}
    assert {0: "A", 1: "B"} == put(members, equal, {"A": 1, "B": 1}, {})
    assert {0: "B", 1: "A"} == put(members, equal | {"Partition 0": {"A": 2, "B": 1}}, {"A": 1, "B": 1}, {})


def test_what_a_container_loses_elsewhere_is_weighed_again_when_its_second_best_place_is_gone() -> None:
    """0 seems to lose little without C, but 2 gets B: at C it finds what 1 finds there, and newer than what is elsewhere."""
    states: dict[str, dict[str, int]] = {"Partition 0": {"B": 1, "C": 2}, "Partition 1": {"C": 2}, "Partition 2": {"B": 1}}
    assert {0: "C", 1: "A", 2: "B"} == put(groups(3, size=1), states, {"A": 2, "B": 2, "C": 2}, {})


@pytest.mark.parametrize(
    ("slots", "fixed", "hosts"),
    [
        ({}, {}, [None, None, None, None]),
        ({"A": 4}, {}, ["A", "A", "A", "A"]),
        ({"A": 1, "B": 3}, {}, ["B", "B", "A", "B"]),
        ({"A": 2, "B": 1}, {}, ["A", "A", "B", None]),
        ({"A": 1, "B": None}, {}, ["A", "B", "B", "B"]),
        ({"A": None, "B": None}, {}, ["A", "B", "A", "B"]),
        ({"A": 4, "B": 4}, {0: "A", 1: "A", 2: "A"}, ["A", "A", "A", "B"]),
        ({"A": 1, "B": 4}, {0: "A", 1: "A"}, ["A", "A", "B", "B"]),
        ({"B": 2}, {0: "gone"}, ["gone", "B", "B", None]),
        ({"A": 0, "B": 4}, {}, ["B", "B", "B", "B"]),
    ],
)
def test_without_state_containers_are_spread_by_slots(slots: dict[str, int | None], fixed: dict[int, str], hosts: list[str | None]) -> None:
    stateless = {t: dict[str, int]() for names in groups(4).values() for t in names}
    assert hosts == list(put(groups(4), stateless, slots, fixed).values())
