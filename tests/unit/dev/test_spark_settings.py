"""What a local Spark cluster is started with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.dev.spark_settings import MASTER_SETTINGS, Asked, Size, daemon_environment, memory_mib, worker_arguments, worker_hosts


def test_what_is_not_asked_for_is_as_it_was_else_the_default() -> None:
    assert Size(3, 2, 2048) == Asked().over(None)
    assert Size(2, 4, 2048) == Asked(workers=2, cores=4).over(None)
    assert Size(1, 4, 1024) == Asked(workers=1, memory="1GiB").over(Size(2, 4, 512))


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (Asked(workers=0), "--workers 0: there can be 1 to 32"),
        (Asked(workers=33), "--workers 33"),
        (Asked(cores=0), "--cores 0"),
        (Asked(memory="2"), "--memory '2'"),
        (Asked(memory="256MiB"), "at least 512MiB"),
        (Asked(memory="much"), "--memory 'much'"),
    ],
)
def test_what_cannot_be_is_refused(asked: Asked, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        asked.over(None)


@pytest.mark.parametrize(("text", "mib"), [("2GiB", 2048), ("2g", 2048), ("1536MiB", 1536), ("512m", 512), ("1 GB", 1024)])
def test_memory_is_written_as_spark_or_as_the_job_file_does(text: str, mib: int) -> None:
    assert mib == memory_mib(text)


def test_workers_are_hosts_of_their_own() -> None:
    assert ("127.0.0.2", "127.0.0.3", "127.0.0.4") == worker_hosts(3)


def test_a_worker_is_told_its_host_and_what_it_has_to_give() -> None:
    told = worker_arguments("127.0.0.3", Size(3, 2, 2048), Path("d/work"), Path("d/settings"), "spark://127.0.0.1:7077")

    given = dict(zip(told[1:-1:2], told[2:-1:2], strict=True))
    assert ("127.0.0.3", "2", "2048m") == (given["--host"], given["--cores"], given["--memory"])
    assert ("d/settings", "spark://127.0.0.1:7077") == (given["--properties-file"], told[-1])


def test_daemons_see_nothing_of_another_cluster_and_import_this_samzapy() -> None:
    base = {"SPARK_HOME": "other", "SPARK_MASTER_OPTS": "x", "PYSPARK_PYTHON": "other", "KAFKA_PASSWORD": "kept", "PYTHONPATH": "theirs"}

    expected = {"KAFKA_PASSWORD": "kept", "PYSPARK_PYTHON": "python", "PYTHONPATH": os.pathsep.join(["checkout", "theirs"])}
    assert expected == daemon_environment(base, "python", Path("checkout"))


def test_the_master_takes_no_jobs_by_rest_and_no_orders_by_its_web_page() -> None:
    closed = {"spark.master.rest.enabled": "false", "spark.ui.killEnabled": "false", "spark.master.ui.decommission.allow.mode": "DENY"}
    assert closed.items() <= MASTER_SETTINGS.items()
