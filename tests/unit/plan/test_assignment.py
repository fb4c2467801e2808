"""The plan, tasks to containers: complete, balanced, few moves, and those that cost least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samzapy.api.errors import LauncherError
from samzapy.plan.assignment import Plan, plan

HOSTS = ["A", "B", "C", "D"]
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure


@dataclass(frozen=True)
class Case:
    tasks: Sequence[str]
    containers: Sequence[int]
    before: Mapping[str, int]
    locality: Mapping[str, Mapping[str, int]]
    slots: Mapping[str, int | None]
    fixed: Mapping[int, str]

    def plan(self) -> Plan:
        return plan(self.tasks, self.containers, self.before, self.locality, self.slots, self.fixed)


def names(count: int) -> list[str]:
    return [f"Partition {i}" for i in range(count)]


def moves(before: Mapping[str, int], made: Plan) -> dict[str, tuple[int | None, int]]:
    """The tasks whose container changes: from (None: it ran nowhere), to."""
    return {t: (before.get(t), c) for t, c in homes(made.tasks).items() if before.get(t) != c}


def homes(tasks: Mapping[int, Sequence[str]]) -> dict[str, int]:
    return {t: c for c, group in tasks.items() for t in group}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    tasks = names(draw(st.integers(1, 12)))
    numbers = st.integers(0, 6)
    containers = draw(st.lists(numbers, min_size=1, max_size=6, unique=True))
    states = st.dictionaries(st.sampled_from(HOSTS), st.integers(0, 3), max_size=3)
    return Case(
        tasks,
        containers,
        draw(st.dictionaries(st.sampled_from(tasks), numbers)),
        draw(st.dictionaries(st.sampled_from(tasks), states)),
        draw(st.dictionaries(st.sampled_from(HOSTS), st.sampled_from([None, 0, 1, 2, 3]))),
        draw(st.dictionaries(st.sampled_from(containers), st.sampled_from(HOSTS))),
    )


@unhurried
@given(cases())
def test_every_task_has_one_container_and_sizes_differ_by_one_at_most(case: Case) -> None:
    made = case.plan()
    assert sorted(case.tasks) == sorted(t for group in made.tasks.values() for t in group)
    sizes = [len(group) for group in made.tasks.values()]
    assert max(sizes) - min(sizes) <= 1
    assert sorted(case.containers)[: len(case.tasks)] == list(made.tasks) == list(made.hosts)
    assert all(list(group) == sorted(group, key=case.tasks.index) for group in made.tasks.values())


@unhurried
@given(cases())
def test_the_order_in_which_facts_are_listed_makes_no_difference(case: Case) -> None:
    turned = Case(
        case.tasks,
        case.containers[::-1],
        dict(reversed(case.before.items())),
        {t: dict(reversed(s.items())) for t, s in reversed(case.locality.items())},
        dict(reversed(case.slots.items())),
        dict(reversed(case.fixed.items())),
    )
    assert case.plan() == turned.plan()


@unhurried
@given(cases())
def test_no_task_moves_that_balance_does_not_move(case: Case) -> None:
    made = case.plan()
    size, longer = divmod(len(case.tasks), len(made.tasks))
    had = {c: sum(1 for home in case.before.values() if home == c) for c in made.tasks}
    can_stay = max(sum(min(had[c], size + (c in chosen)) for c in had) for chosen in combinations(had, longer))
    assert len(case.tasks) - can_stay == len(moves(case.before, made))


@unhurried
@given(cases(), st.booleans())
def test_a_plan_applied_to_its_own_result_changes_nothing(case: Case, running: bool) -> None:
    made = case.plan()
    fixed = {c: host for c, host in made.hosts.items() if host is not None} if running else case.fixed
    again = replace(case, before=homes(made.tasks), fixed=fixed).plan()
    assert made == again
    assert {} == moves(homes(made.tasks), again)


@unhurried
@given(cases())
def test_a_container_gives_up_what_has_its_newest_state_elsewhere_before_what_has_it_here(case: Case) -> None:
    made = case.plan()
    gone = moves(case.before, made)
    for c, host in ((c, host) for c, host in case.fixed.items() if c in made.tasks):
        here = {t for t, s in case.locality.items() if host in s and s[host] == max(s.values())}
        stayed = [t for t in made.tasks[c] if case.before.get(t) == c]
        if here & {t for t, (source, _) in gone.items() if source == c}:
            assert set(stayed) <= here


@unhurried
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_an_empty_container_takes_as_many_tasks_with_state_on_its_host_as_it_can(others: int, size: int, data: st.DataObject) -> None:
    tasks = names(others * (others + 1) * size)  # each of the others gives up `size` tasks to the new one
    before = {t: 1 + i % others for i, t in enumerate(tasks)}
    known = data.draw(st.sets(st.sampled_from(tasks)))
    locality = {t: {f"host {before[t]}": 2} | ({"new": 1} if t in known else {}) for t in tasks}
    fixed = {0: "new"} | {c: f"host {c}" for c in range(1, others + 1)}
    made = plan(tasks, range(others + 1), before, locality, {}, fixed)
    possible = sum(min(size, sum(1 for t in known if before[t] == c)) for c in range(1, others + 1))
    assert possible == len(known & set(made.tasks[0]))


def test_the_tasks_of_a_lost_host_go_one_to_each_that_is_left_and_exactly_they_come_back() -> None:
    tasks = names(12)
    home = dict(enumerate("AABBCC"))
    first = {t: i // 2 for i, t in enumerate(tasks)}
    state = {t: {home[c]: 10} for t, c in first.items()}
    running = {c: home[c] for c in range(2, 6)}

    lost = plan(tasks, [2, 3, 4, 5], first, state, {"B": 2, "C": 2}, running)
    assert running == lost.hosts
    assert set(tasks[:4]) == set(moves(first, lost))
    assert {2, 3, 4, 5} == {to for _, to in moves(first, lost).values()}

    second = homes(lost.tasks)
    state = {t: state[t] | {home[c]: 20} for t, c in second.items()}
    back = plan(tasks, range(6), second, state, {"A": 2, "B": 2, "C": 2}, running)
    assert {0: "A", 1: "A", **running} == back.hosts
    assert set(tasks[:4]) == set(moves(second, back))
    assert set(tasks[:4]) == {*back.tasks[0], *back.tasks[1]}


@pytest.mark.parametrize(
    ("count", "was", "asked", "moved"),
    [
        (8, 2, 4, 4),
        (40, 2, 4, 20),
        (8, 4, 2, 4),
        (7, 2, 4, 3),
        (7, 3, 2, 2),
        (8, 4, 4, 0),
    ],
)
@pytest.mark.parametrize("slots", [{}, {"A": 4}, {"A": 2, "B": 2, "C": 2}, {"A": None, "B": None}])
def test_scaling_moves_what_it_must(count: int, was: int, asked: int, moved: int, slots: dict[str, int | None]) -> None:
    tasks = names(count)
    start = plan(tasks, range(was), {}, {}, slots, {})
    before = homes(start.tasks)
    state = {t: {start.hosts[c] or "A": 1} for t, c in before.items()}
    running = {c: host for c, host in start.hosts.items() if host is not None and c < asked}
    made = plan(tasks, range(asked), before, state, slots, running)
    assert moved == len(moves(before, made))
    assert asked >= was or {t for t, c in before.items() if c >= asked} == set(moves(before, made))


def test_of_the_containers_that_have_too_much_the_one_that_would_lose_its_newest_state_keeps_one_more() -> None:
    tasks = names(7)
    before = dict(zip(tasks, [0, 0, 0, 1, 1, 1, 9], strict=True))
    state = {t: {"AB"[c]: 1} for t, c in before.items() if c < 2 and t != "Partition 0"}
    made = plan(tasks, [0, 1, 2], before, state, {}, {0: "A", 1: "B", 2: "C"})
    assert {0: tuple(tasks[1:3]), 1: tuple(tasks[3:6]), 2: ("Partition 0", "Partition 6")} == made.tasks


def test_what_has_its_newest_state_elsewhere_goes_first_even_if_it_finds_nothing_where_it_goes() -> None:
    before = {"Partition 0": 0, "Partition 1": 0}
    state = {"Partition 0": {"A": 1, "gone": 2}, "Partition 1": {"A": 1, "C": 1}}
    assert {"Partition 0": (0, 1)} == moves(before, plan(names(2), [0, 1], before, state, {}, {0: "A", 1: "C"}))


def test_tasks_that_all_want_one_host_leave_none_of_its_containers_with_more_than_its_share() -> None:
    tasks = names(6)
    before = {"Partition 0": 0, "Partition 1": 0}
    state = {t: {"A": 1} for t in tasks[2:]}
    made = plan(tasks, range(4), before, state, {}, {0: "B", 1: "A", 2: "A", 3: "C"})
    assert [2, 2, 1, 1] == [len(group) for group in made.tasks.values()]


def test_a_task_that_must_move_goes_where_its_state_is() -> None:
    tasks = names(6)
    before = dict(zip(tasks, [0, 0, 1, 1, 9, 9], strict=True))
    state = {"Partition 4": {"B": 1}, "Partition 5": {"A": 1}}
    made = plan(tasks, [0, 1], before, state, {}, {0: "A", 1: "B"})
    assert {"Partition 4": (9, 1), "Partition 5": (9, 0)} == moves(before, made)


def test_a_first_start_asks_for_any_host_or_spreads_over_the_slots() -> None:
    assert Plan({0: ("Partition 0", "Partition 1"), 1: ("Partition 2",)}, {0: None, 1: None}) == plan(names(3), [0, 1], {}, {}, {}, {})
    assert ["A", "B", "C", "A"] == list(plan(names(4), range(4), {}, {}, {"A": 2, "B": 2, "C": 2}, {}).hosts.values())


def test_more_containers_than_tasks_leave_the_highest_out_and_none_at_all_is_refused() -> None:
    assert {0: ("Partition 0",), 2: ("Partition 1",)} == plan(names(2), [3, 2, 0], {}, {}, {}, {3: "A"}).tasks
    assert Plan({}, {}) == plan([], [0, 1], {}, {}, {"A": 1}, {})
    with pytest.raises(LauncherError, match=r"2 tasks.*containers\.count"):
        plan(names(2), [], {}, {}, {}, {})


def test_without_hosts_it_is_balanced_with_the_fewest_moves() -> None:
    made = plan(names(4), [0, 1], {"Partition 1": 1, "Partition 2": 1}, {}, {}, {})
    assert {0: ("Partition 0", "Partition 3"), 1: ("Partition 1", "Partition 2")} == made.tasks
