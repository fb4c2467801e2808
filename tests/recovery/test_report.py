"""The scenario is the same for the same seed, and the report says what it must."""

from __future__ import annotations

from itertools import islice

from tests.recovery.chain import Finding, Verdict
from tests.recovery.faults import Fault
from tests.recovery.report import Report, p95
from tests.recovery.scenario import KILL_CONTAINER, NEEDS_A_WHOLE_JOB, OF_EXECUTORS, OF_OUR_CLUSTER, STRIKES, WEIGHTS, kinds_for, steps
from tests.recovery.state import LocalStores

CLEAN = Verdict((), 2, 10, 10)


def report(
    *faults: Fault,
    verdict: Verdict = CLEAN,
    problems: tuple[str, ...] = (),
    code: int = 0,
    left: tuple[str, ...] = (),
    stores: tuple[str, ...] = (),
) -> Report:
    return Report(faults, verdict, problems, "7 checkpoints", code, left, 5, 1, LocalStores(stores, "4 stores on 1 hosts"))


def test_the_same_seed_makes_the_same_faults_and_every_kind_comes_first_once() -> None:
    first, again, other = (list(islice(steps(seed, tuple(WEIGHTS), 3.0, 0.5), 50)) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert set(WEIGHTS) == {s.kind for s in first[: len(WEIGHTS)]}
    assert {True, False} == {s.patient for s in first if s.kind == KILL_CONTAINER}
    assert {True} == {s.patient for s in first if s.kind in NEEDS_A_WHOLE_JOB}


def test_every_kind_can_be_struck_and_needs_what_it_hits() -> None:
    assert set(WEIGHTS) == set(STRIKES)
    assert set(WEIGHTS) == set(kinds_for(has_executors=True, has_cluster=True))
    assert {*OF_EXECUTORS, *OF_OUR_CLUSTER} == set(WEIGHTS) - set(kinds_for(has_executors=False, has_cluster=False))


def test_p95_is_the_smallest_value_that_95_of_100_do_not_exceed() -> None:
    assert 95.0 == p95([float(n) for n in range(1, 101)])
    assert 19.0 == p95([float(n) for n in range(1, 21)] + [0.0])
    assert 3.0 == p95([3.0])


def test_the_table_has_a_row_per_fault_and_figures_per_kind() -> None:
    one = Fault(1_000_000, "kill container", "container 0", ("Partition 0",), frozenset({7}), "RUNNING", 1.0, 1.25)
    two = Fault(1_004_500, "kill container", "container 1", ("Partition 1", "Partition 3"), frozenset({8}), "", None, 2.25, "in vain")
    lines = [" ".join(line.split()) for line in str(report(one, two)).splitlines()]

    assert "1 0.0 kill container container 0 1 RUNNING 1.00 1.25" in lines
    assert "2 4.5 kill container container 1 2 ? - 2.25 in vain" in lines
    assert "kill container 1 of 2 all run again 1.00 1.00 1.00" in lines
    assert "all 2 of 2 hit tasks committed 1.75 2.25 2.25" in lines


def test_a_report_without_faults_can_be_printed() -> None:
    assert "verdict: clean" in str(report())


def test_a_report_is_clean_only_if_everything_is() -> None:
    dirty = Verdict((Finding("lost", 0, 1, "…"),), 2, 10, 9)

    assert report().clean
    assert not report(verdict=dirty).clean
    assert not report(problems=("two owners",)).clean
    assert not report(code=1).clean
    assert not report(left=("4711: java",)).clean
    assert not report(stores=("Partition 0 differs",)).clean
