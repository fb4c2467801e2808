"""What commands say of a job that has not run yet, and what a run says at its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from samzapy.api.errors import TopicMissing
from tests.integration.job import Job

pytestmark = pytest.mark.kafka


@pytest.mark.prove
def test_before_the_first_run_and_after_a_failure(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, 1, containers={"count": 1, "standby": 1})

    assert 0 == job.of("topics").returncode, "run creates what is missing"
    assert "it never ran" in job.of("status").stderr
    for command in (("state", "drop"), ("checkpoint", "forget")):
        dropped = job.command(*command, str(job.file), "old")
        assert dropped.returncode == TopicMissing.exit_code
        assert "has no checkpoints that could be changed: it never ran, was reset, or its coordinator topic was deleted" in " ".join(dropped.stderr.split())
    for verb in ("verify", "restore"):
        done = job.of("state", verb)
        assert (4, True) == (done.returncode, "the job has not run yet" in done.stderr), done.stderr

    job.feed(["fine"])
    done = job.run_to_end()
    assert 0 == done.returncode, done.stderr
    assert "has finished; all its work is committed" in done.stderr
    assert "no warm copies are kept" in done.stderr
    assert "its last run ended normally" in job.of("status").stderr
    for words in (("get", "nostore", "k"), ("restore", "--store", "nostore"), ("restore", "--task", "Partition 9")):
        done = job.of("state", *words)
        assert (2, True) == (done.returncode, "error[SZ100]: there is no" in done.stderr), done.stderr
    done = job.of("state", "get", "counts", "nobody")
    assert (1, True) == (done.returncode, "no such key" in done.stderr), done.stderr

    job.feed(["boom"])
    done = job.run_to_end()
    assert 1 == done.returncode
    assert "in process: raise ValueError(" in done.stderr, "the user's frames"
    assert "Traceback" not in done.stderr
    done = job.of("status")
    assert (3, True) == (done.returncode, "its last run failed" in done.stderr and "boom!" in done.stderr), done.stderr
    told = json.loads(job.of("status", "--json").stdout)
    assert ("FAILED", True, "FAILED") == (told["state"], told["last_run"]["ended_in_order"], told["last_run"]["outcome"])
