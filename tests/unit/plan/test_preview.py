"""`samzapy plan` and `samzapy lag`: what is decided from what is known."""

from __future__ import annotations

import pytest

from samzapy.cli.lag import reported
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import ContainerRecord, Ledger
from samzapy.plan.grouping import group
from samzapy.plan.lag import partition_lags
from samzapy.plan.preview import last_owners, preview_run, slots_of

TASKS = [f"Partition {i}" for i in range(4)]


def ledger(*records: ContainerRecord, **locality: dict[str, int]) -> Ledger:
    return Ledger(containers={r.container: r for r in records}, locality={name.replace("_", " "): hosts for name, hosts in locality.items()})


def record(container: int, epoch: int, *tasks: str) -> ContainerRecord:
    return ContainerRecord(container, epoch, "", tasks, "run", "h", 1)


@pytest.mark.parametrize(
    ("master", "slots"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[*]", 8),
        ("local[2,4]", 2),
        ("spark://h:7077", None),
        ("yarn", None),
        ("local-cluster[2,1,1024]", None),
    ],
)
def test_slots_are_known_where_the_master_says_them(master: str, slots: int | None) -> None:
    assert slots == slots_of(master, cores=8)


def test_a_job_that_never_ran_is_spread_evenly_over_the_slots_of_this_machine() -> None:
    seen = preview_run(TASKS, 2, Ledger(), "local[2]", cores=8)
    assert {0: 2, 1: 2} == {n: len(names) for n, names in seen.plan.tasks.items()}
    assert {0: "localhost", 1: "localhost"} == seen.plan.hosts
    assert ({}, 2, False) == (seen.before, seen.slots, seen.hosts_are_assumed)


def test_tasks_stay_in_the_containers_that_had_them_last() -> None:
    known = ledger(record(0, 5, *TASKS[2:]), record(1, 6, *TASKS[:2]))
    seen = preview_run(TASKS, 2, known, None, cores=8)
    assert {0: tuple(TASKS[2:]), 1: tuple(TASKS[:2])} == seen.plan.tasks
    assert {**dict.fromkeys(TASKS[2:], 0), **dict.fromkeys(TASKS[:2], 1)} == seen.before


def test_the_newest_record_says_where_a_task_was() -> None:
    assert {"Partition 0": 0, "Partition 1": 1} == last_owners(ledger(record(1, 3, *TASKS[:2]), record(0, 7, TASKS[0])))


def test_on_a_cluster_containers_are_asked_for_where_their_state_is() -> None:
    known = ledger(record(0, 1, TASKS[0]), record(1, 2, TASKS[1]), Partition_0={"east": 1}, Partition_1={"west": 2, "east": 1})
    seen = preview_run(TASKS[:2], 2, known, "spark://h:7077", cores=8)
    assert {0: "east", 1: "west"} == seen.plan.hosts
    assert (None, True) == (seen.slots, seen.hosts_are_assumed)


def test_more_containers_than_tasks_are_not_used() -> None:
    assert [0, 1, 2, 3] == sorted(preview_run(TASKS, 9, Ledger(), None, cores=8).plan.tasks)


def test_lag_is_the_end_less_the_next_offset_and_unknown_without_one() -> None:
    tasks = group({"in": 3}, set(), has_stores=True)
    here = [TopicPartition("in", p) for p in range(3)]
    found = partition_lags(tasks, {TASKS[0]: {here[0]: 4}, TASKS[1]: {here[1]: 12}}, dict.fromkeys(here, 10))
    assert [(4, 10, 6), (12, 12, 0), (None, 10, None)] == [(s.next_offset, s.end, s.lag) for s in found]


def test_a_broadcast_partition_shows_the_task_that_is_furthest_behind() -> None:
    tasks = group({"in": 2, "all": 1}, {"all"}, has_stores=True)
    everywhere = TopicPartition("all", 0)
    ends = {p: 10 for t in tasks.values() for p in t.inputs}
    found = partition_lags(tasks, {TASKS[0]: {everywhere: 7}, TASKS[1]: {everywhere: 3}}, ends)
    assert [(TASKS[1], 3, 7)] == [(s.task, s.next_offset, s.lag) for s in found if s.topic_partition == everywhere]


def test_a_task_that_has_not_read_its_checkpoint_stands_where_that_says_not_at_0() -> None:
    """So reports a task whose container has just started: `samzapy lag` would show the whole partition."""
    tasks = group({"in": 2}, set(), has_stores=True)
    report = [{"name": name, "positions": {f"in[{n}]": 7 * n}, "sequence": n - 1} for n, name in enumerate(tasks)]
    assert {TASKS[0]: {}, TASKS[1]: {TopicPartition("in", 1): 7}} == reported(tasks, {"tasks": report})
