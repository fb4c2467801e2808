"""Warm copies: when a host is lost, a task with one is restored from it, for a hundredth of the records and a tenth of the time at most.

`KEYS` sets the size of the state (default 100,000; then a restore is so short that only the records are compared).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from samzapy.dev.spark import LocalSpark
from tests.figures import Tell
from tests.recovery.keys_job import KeysJob, homes, is_settled, restores

pytestmark = [pytest.mark.prove, pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(3600)]
TASKS, CONTAINERS = 4, 2
WARM = 100  # records behind
LARGE = 1_000_000


@dataclass(frozen=True, slots=True)
class FailOver:
    """What a lost host's tasks had to read, and the longest that one of them took to; until all ran again elsewhere."""

    records: int
    seconds: float
    until_running_s: float

    def __str__(self) -> str:
        return f"{self.records} records, the longest restore {self.seconds:.2f} s, all tasks run again after {self.until_running_s:.1f} s"


def test_a_warm_copy_saves_the_restore(kafka: str, cluster: LocalSpark, tmp_path: Path, unique: str, keys: int, tell: Tell) -> None:
    cold = fail_over(kafka, cluster, tmp_path / "cold", f"{unique}-cold", keys, 0)
    tell(f"{keys} keys, no copy: {cold}")
    warm = fail_over(kafka, cluster, tmp_path / "warm", f"{unique}-warm", keys, 1)
    tell(f"{keys} keys, one copy: {warm}")

    assert keys / CONTAINERS <= cold.records * 1.01
    assert 100 * warm.records <= cold.records
    assert keys < LARGE or 10 * warm.seconds <= cold.seconds


def fail_over(kafka: str, cluster: LocalSpark, folder: Path, name: str, keys: int, copies: int) -> FailOver:
    """Fill a job's stores, lose the host of container 0, and see where its tasks go."""
    folder.mkdir()
    job = KeysJob(
        kafka, folder, name, TASKS, containers={"count": CONTAINERS, "max_restarts": 50, "standby": copies},
        commit={"interval": "500ms"}, spark={"conf": {"spark.executor.memory": "512m"}},
    )  # fmt: skip
    with job.running("--master", cluster.url) as run:
        job.fill(keys)
        run.until_caught_up(job.ends())
        if copies:
            run.until(
                lambda s: all(t["standby"] and all(c["lag"] is not None and c["lag"] < WARM for c in t["standby"]) for t in s["tasks"])
            )
        before = run.until(is_settled)
        lost = next(c["host"] for c in before["containers"] if c["id"] == 0)
        hit = {t for t, host in homes(before).items() if host == lost}
        began = time.monotonic()
        cluster.kill_host(lost)
        try:
            status = run.until(lambda s: all(t["state"] == "RUNNING" and homes(s)[t["name"]] != lost for t in s["tasks"]))
            took_s = time.monotonic() - began
        finally:
            cluster.start_worker(lost)
        found = [restores(status)[t] for t in hit]
        run.until(is_settled)
        assert 0 == run.stop()
    assert [] == job.wrong()
    return FailOver(sum(r["records"] for r in found), max(r["seconds"] for r in found), took_s)
