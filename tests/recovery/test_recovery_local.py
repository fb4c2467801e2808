"""Containers as child processes, killed, stopped beyond their lease, and their driver killed, under load: nothing lost, doubled or left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recovery.trial import Trial

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_a_local_job_recovers_from_kills_a_pause_and_another_driver(kafka: str, tmp_path: Path, unique: str) -> None:
    with Trial.of(kafka, tmp_path, unique, tasks=6, containers=3, arguments=("--local",), rate=300, keys=60, seed=1) as trial:
        for number in (0, 1, 2, 0, 1):
            assert trial.kill("kill container", trial.processes().containers[number])
            trial.recovered()
        assert trial.pause("pause container", trial.processes().containers[2])
        trial.recovered()
        trial.kill_driver()
        trial.recovered()
        report = trial.finish()

    print(report)
    assert report.verdict.clean, str(report)
    assert () == report.problems, str(report)
    assert () == report.left_behind, str(report)
    assert 0 == report.exit_code
    assert ["kill container"] * 5 + ["pause container", "kill driver"] == [f.kind for f in report.faults]
    assert None not in [t for f in report.faults for t in (f.until_running_s, f.until_commit_s)], str(report)
