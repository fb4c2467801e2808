"""A run on a cluster that gave all its cores to an earlier run of the same job: what it says, and that it can replace that run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.dev.spark import LocalSpark
from tests.integration.job import Job
from tests.integration.processes import until

pytestmark = [pytest.mark.prove, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]
QUICK = dict.fromkeys(("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalSpark]:
    cluster = LocalSpark.start(directory=tmp_path / "spark", workers=1, cores=1, tied=True)
    yield cluster
    cluster.stop(timeout_s=0)


@pytest.fixture
def job(kafka: str, tmp_path: Path, unique: str) -> Job:
    job = Job(kafka, tmp_path, unique, spark={"conf": QUICK}, containers={"count": 1})
    job.feed(["one two", "two", "two three", "three"])
    return job


def test_a_takeover_gets_the_cores_of_the_run_that_it_replaces(job: Job, cluster: LocalSpark) -> None:
    with job.running("--master", cluster.url) as first:
        first.until_running()
        with job.running("--master", cluster.url, "--takeover") as second:
            second.until_running()
            assert 5 == first.process.wait(60)
            job.feed(["four"])
            assert 0 == second.stop()
    assert {"one": 1, "two": 3, "three": 2} == {word: n for word, n in job.export().items() if word != "four"}


def test_while_a_suspended_run_holds_the_cores_others_say_which_process_it_is(job: Job, cluster: LocalSpark) -> None:
    with job.running("--master", cluster.url) as first:
        first.until_running()
        pid = first.process.pid
        os.kill(pid, signal.SIGSTOP)
        refused = job.command("run", str(job.file), "--master", cluster.url)
        assert 4 == refused.returncode, refused.stderr
        assert f"process {pid} on " in refused.stderr
        assert f"`kill -9 {pid}`" in refused.stderr
        with job.running("--master", cluster.url, "--takeover") as second:
            until(lambda: f"with `kill -9 {pid}`" in (job.folder / "run.log").read_text(), "the process is named")
            assert second.process.poll() is None
            os.kill(pid, signal.SIGKILL)
            second.until_running()
            assert 0 == second.stop()
    assert {"one": 1, "two": 3, "three": 2} == job.export()
