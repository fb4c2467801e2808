"""Host affinity on three hosts: tasks find their state again, a lost host's tasks go elsewhere and back, and nobody else stops for it.

`KEYS` sets the size of the state (default 100,000). Times are reported, not asserted.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from samzapy.dev.spark import LocalSpark
from tests.figures import Tell
from tests.recovery.keys_job import KeysJob, KeysRun, Status, homes, is_settled, pids, processed, restores

pytestmark = [pytest.mark.prove, pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(3600)]
TASKS, CONTAINERS = 12, 6


def test_tasks_find_their_state_again(kafka: str, cluster: LocalSpark, tmp_path: Path, unique: str, keys: int, tell: Tell) -> None:
    job = KeysJob(
        kafka, tmp_path, unique, TASKS, containers={"count": CONTAINERS, "max_restarts": 50}, commit={"interval": "500ms"},
        spark={"conf": {"spark.executor.memory": "512m"}},
    )  # fmt: skip
    with job.running("--master", cluster.url) as run:
        job.fill(keys)
        first = homes(run.until_caught_up(job.ends()))
        assert 0 == run.stop()
    assert set(cluster.hosts) == set(first.values())

    began = time.monotonic()
    with job.running("--master", cluster.url) as run, job.busy():
        home = a_clean_restart(run, first, began, tell)
        lost = homes(home)["Partition 0"]
        elsewhere = a_lost_host(run, cluster, lost, home, tell)
        a_host_that_is_back(run, cluster, lost, first, elsewhere, tell)
    # the driver was stopped in the last step, with the load still on
    with job.running("--master", cluster.url) as run:
        run.until_caught_up(job.ends())
        assert 0 == run.stop()
    assert [] == job.wrong()


def a_clean_restart(run: KeysRun, first: dict[str, str], began: float, tell: Tell) -> Status:
    """Every task is where it was, and has all of its state."""
    status = run.until(is_settled)
    spark_s = float(re.findall(r"Spark runs \(([\d.]+) s\)", run.log_tail(100_000))[-1])
    tell(f"clean restart: all tasks run {time.monotonic() - began:.1f} s after the command, of which Spark took {spark_s:.1f} s")
    assert first == homes(status)
    assert {("local", 0)} == {(r["source"], r["records"]) for r in restores(status).values()}
    return status


def a_lost_host(run: KeysRun, cluster: LocalSpark, lost: str, home: Status, tell: Tell) -> Status:
    """Its tasks are restored elsewhere; the others stay in the processes they are in, and go on."""
    moved = {t for t, host in homes(home).items() if host == lost}
    before = run.until(is_settled)
    began = time.monotonic()
    cluster.kill_host(lost)
    status = run.until(lambda s: s["state"] == "RUNNING" and lost not in homes(s).values())
    tell(f"{lost} lost: its {len(moved)} tasks run elsewhere after {time.monotonic() - began:.1f} s")
    for task in sorted(moved):
        tell(f"  {task} on {homes(status)[task]}: {brief(restores(status)[task])}, away {last_move(status, task):.1f} s")
    stayed = set(homes(home)) - moved
    assert {t: pids(before)[t] for t in stayed} == {t: pids(status)[t] for t in stayed}
    went_on = run.until(lambda s: all(processed(s)[t] > processed(status)[t] for t in stayed))
    assert {t: pids(before)[t] for t in stayed} == {t: pids(went_on)[t] for t in stayed}
    assert all(processed(status)[t] >= processed(before)[t] for t in stayed)
    return status


def a_host_that_is_back(run: KeysRun, cluster: LocalSpark, lost: str, first: dict[str, str], elsewhere: Status, tell: Tell) -> None:
    """Containers that found no slot get one; a restart of all, one by one, brings every task home."""
    began = time.monotonic()
    cluster.start_worker(lost)
    run.until(lambda s: is_settled(s) and len(s["containers"]) == CONTAINERS and any(c["host"] == lost for c in s["containers"]))
    tell(f"{lost} is back: containers run there again after {time.monotonic() - began:.1f} s")
    began = time.monotonic()
    done = run.command("restart")
    assert 0 == done.returncode, done.stderr
    status = run.until(is_settled)
    tell(f"restart of all: {time.monotonic() - began:.1f} s, the longest that a task was away {longest_away(status):.1f} s")
    assert first == homes(status)
    for task in sorted(t for t, host in homes(status).items() if homes(elsewhere)[t] != host):
        tell(f"  {task} home on {homes(status)[task]}: {brief(restores(status)[task])}")
    assert 0 == run.stop()


def brief(restore: dict[str, object]) -> str:
    return f"{restore['source']}, {restore['records']} records in {restore['seconds']} s ({restore['reason']})"


def last_move(status: Status, task: str) -> float:
    return float(next(t.get("last_move", {}).get("seconds", 0.0) for t in status["tasks"] if t["name"] == task))


def longest_away(status: Status) -> float:
    return max(last_move(status, t["name"]) for t in status["tasks"])
