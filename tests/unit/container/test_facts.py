"""What a container tells of itself beside its tasks' states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy.container.facts import COMMIT, MAX_GROUPS, OTHER, PHASES, PROCESS, WAIT_INPUT, WAIT_OUTPUT, Errors, Facts, Histogram, LoopTime
from samzapy.container.task_instance import KEYS
from samzapy.model.durations import BUCKETS_S
from samzapy.testing.manual_clock import ManualClock
from tests.unit.container.bench import Bench
from tests.unit.container.test_leaderless import Passing

PLACE = "counts.py:31"


def one(record: str, asked: list[str] | None = None) -> Callable[[], dict[str, str]]:
    """What is told of an error, if it is asked for."""

    def told() -> dict[str, str]:
        if asked is not None:
            asked.append(record)
        return {"record": record, "text": "ValueError: bad price", "stack": "counts.py:31 in process", "action": "set aside"}

    return told


def test_the_loops_time_is_what_it_did_and_nothing_is_counted_twice() -> None:
    clock = ManualClock()
    loop = LoopTime(clock)
    loop.to(PROCESS)
    clock.sleep(3.0)
    before = loop.to(COMMIT)
    clock.sleep(2.0)
    loop.to(before)
    clock.sleep(1.0)
    loop.waited(0.5)
    loop.to(WAIT_INPUT)
    clock.sleep(4.0)

    spent = loop.spent()
    assert before == PROCESS
    assert {PROCESS: 3.5, COMMIT: 2.0, WAIT_INPUT: 4.0, WAIT_OUTPUT: 0.5, OTHER: 0.0} == {name: s for name, s in spent.items() if name != "restore"}
    assert 10.0 == sum(spent.values())
    assert set(PHASES) == set(spent)


def test_a_duration_is_in_the_first_bucket_that_it_fits() -> None:
    histogram = Histogram()
    for seconds in (0.0, 0.005, 0.006, 60.0, 61.0):
        histogram.add(seconds)

    counts = dict(zip([*BUCKETS_S, "more"], histogram.to_json()["counts"], strict=True))
    assert {0.005: 2, 0.01: 1, 60.0: 1, "more": 1} == {bound: n for bound, n in counts.items() if n}


def test_errors_are_counted_by_class_and_line_and_told_of_once_a_second() -> None:
    clock = ManualClock()
    errors = Errors(clock)
    asked: list[str] = []
    for n in range(3):
        errors.add("ValueError", PLACE, one(f"visits[{n}]@7", asked), f"Partition {n}")

    (first,) = errors.untold()
    assert ("ValueError", "counts.py:31", 3, ["Partition 0", "Partition 1", "Partition 2"]) == tuple(
        first[name] for name in ("type", "place", "count", "tasks")
    )
    errors.add("ValueError", PLACE, one("visits[0]@8", asked), "Partition 0")
    errors.add("ValueError", PLACE, one("visits[0]@9", asked), "Partition 0")
    assert [] == errors.untold()
    clock.sleep(1.0)
    assert [("visits[0]@8", 5)] == [(group["record"], group["count"]) for group in errors.untold()]
    assert [] == errors.untold()
    assert ["visits[0]@7", "visits[0]@8"] == asked, "a stack takes longer than many a record"


def test_kinds_of_errors_without_end_take_no_memory_without_end() -> None:
    errors = Errors(ManualClock())
    for n in range(3 * MAX_GROUPS):
        errors.add("ValueError", f"counts.py:{n}", one("visits[0]@7"), "Partition 0")

    told = errors.untold()
    assert MAX_GROUPS + 1 == len(told)
    assert 3 * MAX_GROUPS == sum(group["count"] for group in told)


def test_a_commit_is_told_with_its_cause_its_parts_and_the_age_of_its_records() -> None:
    facts = Facts(ManualClock())
    facts.committed("interval", {"send": 0.002, "decide": 0.03, "apply": 0.001}, 12, 2, [0.2, 1.5])

    told = facts.to_json()
    (news,) = told["news"]
    assert {"n": 1, "kind": "commit", "why": "interval", "seconds": 0.033, "changes": 12, "tasks": 2, "newest_s": 0.2, "oldest_s": 1.5} == {
        name: value for name, value in news.items() if name not in ("at_ms", "parts")
    }
    assert {"interval": 1} == told["commit_why"]
    assert 0.033 == pytest.approx(sum(part["sum"] for part in told["commit_parts"].values()))
    assert 2 == sum(told["end_to_end"]["counts"])


def test_the_share_of_one_key_is_told_once_enough_records_were_looked_at(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Passing, partitions=2)
    container = bench.start()
    hottest = lambda: container.status()["tasks"][1]["hottest"]  # noqa: E731
    for n in range(KEYS):
        assert 0.0 == hottest()
        bench.feed(("hot" if n % 10 < 4 else f"key {n}", 1), partition=1)
        bench.drain(container)
    assert 0.4 == hottest()
    assert 0.0 == container.status()["tasks"][0]["hottest"], "of a task without records"
    container.close()
