"""`samzapy dev spark` with a real cluster: a job on two hosts, one of which goes away and comes back, and nothing left at the end."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.cli.dev import app
from samzapy.dev.spark import LocalSpark
from tests.integration.job import Job
from tests.integration.processes import is_alive, is_gone, until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FIRST, SECOND = "127.0.0.2", "127.0.0.3"


def dev_spark(verb: str, directory: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["spark", verb, "--dir", str(directory), *options])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory for a cluster, which is stopped whatever the test did."""
    yield tmp_path / "spark"
    cluster = LocalSpark.at(tmp_path / "spark")
    if cluster is not None:
        cluster.stop(timeout_s=0)


def packed_environment(folder: Path) -> Path:
    """An archive whose `bin/python` is this Python."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")
    return folder / "environment.tar.gz"


def hosts(status: dict[str, Any]) -> list[str]:
    return sorted(c["host"] for c in status["containers"] if c["state"] == "RUNNING")


def pids(status: dict[str, Any]) -> list[int]:
    return [c["pid"] for c in status["containers"]]


def started(place: Path, workers: int) -> LocalSpark:
    """A cluster that the command started: workers of one core."""
    done = dev_spark("start", place, "--workers", str(workers), "--cores", "1")
    assert 0 == done.exit_code, done.stderr
    cluster = LocalSpark.at(place)
    assert cluster is not None
    told = json.loads(dev_spark("status", place, "--json").stdout)
    assert (True, done.stdout.strip(), list(cluster.hosts)) == (told["running"], told["url"], [worker["host"] for worker in told["workers"]])
    return cluster


def job_with_its_environment(kafka: str, folder: Path, name: str, **sections: Any) -> Job:
    """A job whose containers run in an environment that Spark ships, as CLUSTERS.md tells."""
    quick = dict.fromkeys(("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"), "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    job = Job(kafka, folder, name, spark={"conf": {"spark.archives": f"{packed_environment(folder)}#environment", **quick}}, **sections)
    job.feed(["one two", "two", "two three", "three"])
    return job


def check_the_end(job: Job, cluster: LocalSpark, used: set[str]) -> None:
    """All was counted, in the environment that was shipped and with state on these hosts, and nothing outlives the cluster."""
    assert {"one": 1, "two": 3, "three": 2} == job.export()
    environments = cluster.directory.glob("work-*/*/*/environment")
    assert {"work-" + host for host in used} == {found.parents[2].name for found in environments}
    assert used == {found.name for found in job.state.glob("*/127.*")}

    everything = cluster.processes()
    assert len(everything) > len(cluster.hosts)
    assert 0 == dev_spark("stop", cluster.directory).exit_code
    assert [] == [pid for pid in everything if is_alive(pid)]
    assert set() == cluster.processes()
    assert 3 == dev_spark("status", cluster.directory).exit_code


@pytest.mark.prove
@pytest.mark.kafka
@pytest.mark.timeout(900)
def test_a_job_on_a_cluster_counts_to_its_end_and_nothing_is_left(
    place: Path, kafka: str, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = started(place, 1)
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    job = job_with_its_environment(kafka, tmp_path, unique, containers={"count": 1})

    done = job.command("run", str(job.file), "--until-end", "--master", cluster.url, limit_s=600)

    assert 0 == done.returncode, done.stderr
    check_the_end(job, cluster, {FIRST})


@pytest.mark.prove
@pytest.mark.kafka
@pytest.mark.timeout(900)
def test_a_job_on_two_hosts_one_of_which_is_lost_and_comes_back(
    place: Path, kafka: str, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = started(place, 2)
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    job = job_with_its_environment(kafka, tmp_path, unique)
    with job.running("--master", cluster.url) as running:
        before = running.until(lambda s: s["state"] == "RUNNING" and hosts(s) == [FIRST, SECOND])
        [lost] = [c["pid"] for c in before["containers"] if c["host"] == FIRST]
        [kept] = [c["pid"] for c in before["containers"] if c["host"] == SECOND]
        executors = cluster.processes(FIRST)
        assert lost in executors

        cluster.kill_worker(FIRST)
        for pid in executors:
            until(lambda pid=pid: is_gone(pid), f"the end of {pid}, whose worker was killed")  # type: ignore[misc]
        assert 3 == dev_spark("status", place).exit_code
        cluster.start_worker(FIRST)

        after = running.until(lambda s: s["state"] == "RUNNING" and hosts(s) == [FIRST, SECOND] and lost not in pids(s))
        assert kept in pids(after)
        assert 0 == running.stop()
    check_the_end(job, cluster, {FIRST, SECOND})


@pytest.mark.prove
def test_what_died_is_started_again_and_what_does_not_fit_is_refused(place: Path) -> None:
    cluster = LocalSpark.start(workers=1, cores=1, memory="1GiB", directory=place)
    with pytest.raises(ConfigurationError, match=r"runs with 1 worker of 1 cores and 1024 MiB at port .*, not 2 workers of 1 cores"):
        LocalSpark.start(workers=2, directory=place)
    with pytest.raises(ConfigurationError, match=f"{SECOND} is not a host of {cluster.url}"):
        cluster.kill_worker(SECOND)

    cluster.kill_host(FIRST)
    assert set() == cluster.processes(FIRST)
    with pytest.raises(ConfigurationError, match=f"no worker of {cluster.url} runs on {FIRST}"):
        cluster.kill_worker(FIRST)
    (place / f"{FIRST}.pid").write_text(f"{os.getpid()}\n")
    assert {} == cluster.workers, "the pid of another program was taken for the worker"
    assert "incomplete, 0 of 1 workers" in dev_spark("status", place).stdout

    master = cluster.master.pid()
    assert cluster.url == dev_spark("start", place).stdout.strip()
    assert cluster.is_answering()
    assert master == cluster.master.pid()

    cluster.master.signal(signal.SIGKILL)
    assert cluster.master.ended(30)
    [worker] = cluster.workers.values()
    again = LocalSpark.start(directory=place)
    assert again.is_answering()
    assert is_gone(worker), "a worker outlived its master's end"


def test_a_port_that_is_taken_is_named_before_anything_is_done(place: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        result = dev_spark("start", place, "--port", str(port))

    assert f"port {port} is in use by another program. Take any free one: samzapy dev spark start --port 0" == str(result.exception)
    assert LocalSpark.at(place) is None


def test_a_master_that_does_not_start_says_why(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g -Dspark.rpc.askTimeout=never")

    with pytest.raises(ClusterUnreachable, match=r"Spark's master ended while starting: .*Time must be specified.*\.log") as caught:
        LocalSpark.start(workers=1, directory=place)

    assert "\n" not in str(caught.value)
    cluster = LocalSpark.at(place)
    assert cluster is not None
    assert set() == cluster.processes()
