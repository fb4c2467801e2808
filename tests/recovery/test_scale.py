"""More and fewer containers under load: the output stays exact, tasks that need not move do not, and those that do are away for a moment.

How long is reported, from the status and from the times in the output, and not asserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from samzapy.dev.spark import LocalSpark
from tests.figures import Tell
from tests.recovery.fault_run import FaultRun
from tests.recovery.report import Report

pytestmark = pytest.mark.kafka
CALM_S = 1.5


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_local_job_is_scaled_under_load(kafka: str, tmp_path: Path, unique: str, tell: Tell) -> None:
    with FaultRun.of(kafka, tmp_path, unique, tasks=5, containers=2, arguments=("--local",), rate=300, keys=100, seed=1) as fault_run:
        report = scaled(fault_run, (4, 1, 3), tell)
    assert report.clean, str(report)


@pytest.mark.prove
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_a_job_on_spark_is_scaled_under_load(kafka: str, cluster: LocalSpark, tmp_path: Path, unique: str, tell: Tell) -> None:
    sections = {
        "commit": {"interval": "200ms", "guarantee": "exactly_once"},
        "containers": {"count": 2, "max_restarts": 50},
        "spark": {"conf": {"spark.executor.memory": "512m"}},
    }
    where = ("--master", cluster.url)
    with FaultRun.of(kafka, tmp_path, unique, 12, 2, where, rate=600, keys=5000, seed=1, sections=sections, cluster=cluster) as fault_run:
        refused = fault_run.job.command("scale", "--containers", "7")
        assert 2 == refused.returncode, refused.stderr
        assert "7 containers" in refused.stderr
        assert "6 slots" in refused.stderr
        report = scaled(fault_run, (4, 2, 3, 6, 1), tell)
    tell(str(report))
    assert report.clean, str(report)


def scaled(fault_run: FaultRun, steps: Sequence[int], tell: Tell) -> Report:
    """One number of containers after the other; after each, what moved, and that nothing else did."""
    for wanted in steps:
        fault_run.passed(CALM_S)
        before = {t["name"]: t for t in fault_run.status()["tasks"]}
        fault_run.command("scale", f"{fault_run.containers()} -> {wanted}", "scale", "--containers", str(wanted))
        fault_run.recovered()
        assert wanted == fault_run.containers()
        fault_run.passed(CALM_S)
        fault_run.look()
        after = {t["name"]: t for t in fault_run.status()["tasks"]}
        fault = fault_run.faults[-1]
        assert set(fault.tasks) == {name for name in after if after[name]["container"] != before[name]["container"]}
        stayed = set(after) - set(fault.tasks)
        assert not [t for t in stayed if after[t]["processed"] <= before[t]["processed"]], "tasks that did not move were stopped"
        gaps = fault_run.outputs.gaps_s(fault.at_ms, fault_run.outputs.last_ms())
        tell(
            f"{fault.target}: {len(fault.tasks)} tasks moved, {fault.note}; the longest without output:"
            f" {longest(gaps, fault.tasks)} of those, {longest(gaps, stayed)} of the others"
        )
    return fault_run.finish()


def longest(gaps_s: dict[int, float], tasks: Sequence[str] | set[str]) -> str:
    of = [gaps_s[int(t.rsplit(" ", 1)[1])] for t in tasks]
    return f"{max(of):.2f} s" if of else "-"
