"""A chaos run in small, and what makes a chaos run: its schedule, what its kills met, its verdict, and when it has proved nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from samzapy.model.checkpoint import Checkpoint
from samzapy.model.names import task_name
from tests.recovery.audit import Committed, Seen
from tests.recovery.chain import Finding, Verdict
from tests.recovery.chaos import (
    CHAOS,
    CORRUPTED,
    CUT,
    DELETED,
    KILL_BROKER,
    KILLS,
    LOCAL,
    OF_BROKERS,
    OF_DRIVERS,
    OF_SPARK,
    SPARK,
    WEIGHTS,
    kinds_of,
    script,
)
from tests.recovery.chaos_report import CLEAN, INVALID, NOT_CLEAN, ChaosReport, Struck, demands, shortfalls
from tests.recovery.chaos_run import Plan, conduct
from tests.recovery.faults import Fault
from tests.recovery.phases import (
    BARRIER,
    CHANGES,
    CHECKPOINT,
    IDLE,
    IN_COMMIT,
    OUTPUT,
    PROCESSING,
    RESTORING,
    STARTING,
    Aborted,
    phases,
)
from tests.recovery.report import Report
from tests.recovery.said import Said, said
from tests.recovery.scenario import KILL_CONTAINER, KILL_DRIVER, PAUSE_CONTAINER
from tests.recovery.state import LocalStores

AT = 1_000_000


# -- the schedule ----------------------------------------------------------------------------------------------------------------------


def test_the_same_seed_makes_the_same_faults_and_every_kind_comes_first_once() -> None:
    first, again, other = (list(islice(script(seed, tuple(WEIGHTS), 1.0, 0.5), 100)) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert set(WEIGHTS) == {s.kind for s in first[: len(WEIGHTS)]}
    assert {True, False} == {s.patient for s in first if s.kind in KILLS}
    assert {True} == {s.patient for s in first if s.kind in OF_BROKERS}


def test_a_long_script_kills_often_enough_for_what_is_demanded() -> None:
    kinds = Counter(s.kind for s in islice(script(7, kinds_of(True, True, True, True), 1.0, 0.5), 200))

    assert 100 <= sum(kinds[k] for k in KILLS)
    assert 40 <= sum(n for k, n in kinds.items() if k not in KILLS)


def test_every_kind_can_be_struck_and_needs_what_it_hits() -> None:
    assert set(WEIGHTS) == set(CHAOS) == set(kinds_of(spark=True, brokers=True, network=True, small_disk=True))
    assert set() == {*OF_SPARK, *OF_BROKERS, CUT} & set(kinds_of(spark=False, brokers=False, network=False, small_disk=False))


# -- what kills met --------------------------------------------------------------------------------------------------------------------


def kill(at_ms: int = AT, phase: str = "RUNNING", *partitions: int) -> Fault:
    return Fault(at_ms, KILL_CONTAINER, "container 0", tuple(task_name(p) for p in partitions or (0,)), phase=phase)


def commit(made_ms: int, seen_ms: int, partition: int = 0) -> Committed:
    checkpoint = Checkpoint(job="j", id="1", task=task_name(partition), container=0, incarnation="i", epoch=1, sequence=1, inputs={}, stores={})
    return Committed(Seen(partition, 1, made_ms, seen_ms), checkpoint)


@pytest.mark.parametrize(
    ("met", "left", "phase"),
    [
        (IN_COMMIT, (OUTPUT, CHANGES, CHECKPOINT), "RUNNING"),
        (IN_COMMIT, (OUTPUT, CHANGES), "RUNNING"),
        (PROCESSING, (OUTPUT,), "RUNNING"),
        (STARTING, (BARRIER,), "RUNNING"),
        (STARTING, (), "WAITING"),
        (STARTING, (), ""),
        (RESTORING, (), "RESTORING, RUNNING"),
        (IDLE, (), "RUNNING"),
    ],
)
def test_what_a_kill_left_uncommitted_tells_what_it_met(met: str, left: tuple[str, ...], phase: str) -> None:
    assert [met] == phases([kill(AT, phase)], [Aborted(kind, 0, AT - 20) for kind in left], [])


def test_a_record_is_evidence_of_the_first_kill_after_it_that_hit_its_task() -> None:
    faults = [kill(AT, "RUNNING", 1), kill(AT + 50), kill(AT + 5000)]

    assert [IDLE, PROCESSING, IDLE] == phases(faults, [Aborted(OUTPUT, 0, AT - 10)], [])


def test_what_was_aborted_before_the_last_commit_is_no_evidence() -> None:
    assert [IDLE] == phases([kill()], [Aborted(OUTPUT, 0, AT - 500)], [commit(AT - 300, AT - 290)])
    assert [PROCESSING] == phases([kill()], [Aborted(OUTPUT, 0, AT - 100)], [commit(AT - 300, AT - 290)])


def test_a_commit_written_before_the_kill_and_visible_after_it_was_met() -> None:
    assert [IN_COMMIT] == phases([kill()], [], [commit(AT - 5, AT + 20)])


# -- what the log said -----------------------------------------------------------------------------------------------------------------


def test_error_lines_must_carry_a_known_code() -> None:
    found = said(
        [
            "10:00:00 WARNING container 1 starts over from what Kafka says: SZ311: the reply was lost.",
            "container 0 | 10:00:01 ERROR   container 0 failed: SZ403: the disk is full.",
            "10:00:02 ERROR     Make room.",
            "10:00:03 ERROR   something odd",
            "10:00:03 ERROR   something with SZ999",
            "26/11/21 10:00:04 ERROR TaskSchedulerImpl: Lost executor 0",
            "container 0 | Traceback (most recent call last):",
            'container 0 |   File "samzapy/container/runner.py", line 1, in run',
            "container 0 | KeyError: 0",
            "Traceback (most recent call last):",
            '  File "pyspark/accumulators.py", line 333, in handle',
            "EOFError",
        ],
        ["SZ311", "SZ403"],
    )  # fmt: skip

    assert 5 == found.errors
    assert {"SZ311": 1, "SZ403": 1} == found.codes
    assert [
        "10:00:03 ERROR   something odd",
        "10:00:03 ERROR   something with SZ999",
        "container 0 | Traceback (most recent call last):",
    ] == [*found.nameless]


# -- the verdict -----------------------------------------------------------------------------------------------------------------------


def full_run() -> list[Struck]:
    """What satisfies the demands of thirty minutes, just so."""
    kills = [Struck("chain", replace(kill(), part=LOCAL), IN_COMMIT if i < 20 else PROCESSING) for i in range(84)]
    on_spark = [(KILL_CONTAINER, PROCESSING)] * 14 + [(kind, IDLE) for kind in (*OF_DRIVERS, *OF_SPARK)] * 2
    spark = [Struck("chain", replace(kill(), kind=kind, part=SPARK), met) for kind, met in on_spark]
    return [*kills, *spark, *(Struck("chain", replace(kill(), kind=KILL_BROKER, part=LOCAL), IDLE) for _ in range(34))]


CODES = {"SZ311": 2, "SZ312": 1}
ASKED = demands(30, 350, spark=True, exactly_once=True)


def test_a_full_run_is_valid_and_less_is_not_whichever_part_is_missing() -> None:
    run = full_run()
    of_kind = {kind: [s for s in run if s.fault.kind != kind or s.fault.part != SPARK] for kind in (KILL_DRIVER, *OF_SPARK)}

    assert [] == shortfalls(run, 350 * 1800, 1800, CODES, ASKED)
    assert ["99 SIGKILLs, of 100"] == shortfalls(run[5:], 10**6, 1800, CODES, ASKED)
    assert [f"no {KILL_DRIVER} on Spark"] == [w for w in shortfalls(of_kind[KILL_DRIVER], 10**6, 1800, CODES, ASKED) if w.startswith("no ")]
    assert ["39 other faults, of 40"] == [w for w in shortfalls(run[:-1], 10**6, 1800, CODES, ASKED) if "other" in w]
    assert ["300 records a second, of 340"] == shortfalls(run, 300 * 1800, 1800, CODES, ASKED)
    assert ["0 containers found themselves in doubt, fenced or superseded, of 3"] == shortfalls(run, 10**6, 1800, {}, ASKED)


def test_kills_of_idle_processes_prove_nothing() -> None:
    idle = [replace(s, met=IDLE) for s in full_run()]
    kills = sum(s.is_kill for s in idle)

    assert [
        f"0 of {kills} SIGKILLs met a process at work, 80% are demanded", "fewer than 5 SIGKILLs met a commit",
    ] == shortfalls(idle, 10**6, 1800, CODES, ASKED)  # fmt: skip


def test_a_short_run_owes_its_share() -> None:
    asked = demands(3, 350, spark=False, exactly_once=True)

    assert (10, 4, 0, ()) == (asked.kills, asked.others, asked.spark_kills, asked.spark_kinds)
    assert 0.0 == demands(3, 350, spark=False, exactly_once=False).busy


def report(struck: list[Struck], **changes: object) -> ChaosReport:
    clean = Report((), Verdict((), 2, 10, 10), (), "7 checkpoints", 0, (), 5, 1, LocalStores((), "4 stores on 1 hosts"))
    made = ChaosReport(
        {"chain": clean}, struck, (), Said(0, (), Counter(CODES)), (), 350 * 1800, 1800, 4.0, (), {OUTPUT: 3}, ASKED
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_run_ends_clean_not_clean_or_invalid() -> None:
    lost = Report((), Verdict((Finding("lost", 0, 1, "…"),), 2, 10, 9), (), "", 0, (), 5, 1, LocalStores((), ""))

    assert (CLEAN, 0) == (report(full_run()).result, report(full_run()).exit_code)
    assert (INVALID, 2) == (report([]).result, report([]).exit_code)
    assert (NOT_CLEAN, 1) == (report([], reports={"chain": lost}).result, report([], reports={"chain": lost}).exit_code)
    assert NOT_CLEAN == report(full_run(), problems=("a transaction is open",)).result
    assert NOT_CLEAN == report(full_run(), said=Said(1, ("10:00:00 ERROR odd",), Counter(CODES))).result
    assert NOT_CLEAN == report(full_run(), lag_s=61.0).result
    assert str(report([])).endswith("\nINVALID")
    assert "WRONG: job chain: not clean, see there" in str(report([], reports={"chain": lost}))


# -- a run -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.prove
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_jobs_recover_from_kills_a_pause_another_driver_cut_connections_and_damaged_state(
    kafka: str, tmp_path: Path, unique: str
) -> None:
    kinds = (KILL_CONTAINER, PAUSE_CONTAINER, KILL_DRIVER, CUT, DELETED, CORRUPTED)
    plan = Plan(
        seed=3, minutes=30, folder=tmp_path, name=unique, servers=kafka, brokers=None, kinds=kinds, tasks=4, containers=2, small_disk=False,
        calm_s=0.5, look_every=3, most_faults=len(kinds) + 2,
    )  # fmt: skip
    told = conduct(plan, print)

    print(told)
    assert [] == told.wrong, str(told)
    assert set(kinds) == {s.fault.kind for s in told.struck}, str(told)
    assert None not in [s.fault.until_commit_s for s in told.struck if s.is_kill], str(told)
