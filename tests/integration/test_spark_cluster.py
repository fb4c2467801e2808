"""Containers on a real standalone cluster, two hosts of one slot each: where they start, and what becomes of them when hosts go."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from samzapy.spark.session import start_session
from tests.integration.processes import is_alive, is_gone, told, until
from tests.integration.standalone import Cluster

if TYPE_CHECKING:
    from samzapy.spark.launcher import SparkHandle, SparkLauncher

pytestmark = [pytest.mark.prove, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

A, B, UNKNOWN = "127.0.0.2", "127.0.0.3", "127.0.0.9"
LOCALITY_WAIT_S = 5.0


@pytest.fixture(scope="module")
def cluster(java_home: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(java_home, tmp_path_factory.mktemp("cluster"))
    try:
        cluster.add(A)
        cluster.add(B)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def launcher(cluster: Cluster, java_home: str) -> Iterator[SparkLauncher]:
    from samzapy.spark.launcher import SparkLauncher

    launcher = SparkLauncher(start_session(cluster.url, {}, "samzapy test-1", java_home, LOCALITY_WAIT_S))
    yield launcher
    launcher.close()


class Runs:
    """The containers of a test: each started where asked, and ended with the test."""

    def __init__(self, launcher: SparkLauncher, directory: Path) -> None:
        self._launcher = launcher
        self._directory = directory
        self._handles: list[SparkHandle] = []

    def start(self, preferred_host: str) -> tuple[SparkHandle, dict[str, Any]]:
        """Its handle, and what it told about itself once it ran."""
        file = self._directory / str(len(self._handles))
        payload = {"entry": "tests.integration.entries:stay", "container": 0, "folders": [], "file": str(file)}
        handle = self._launcher.launch(0, payload, preferred_host)
        self._handles.append(handle)
        return handle, told(file)

    def end_all(self) -> None:
        for handle in self._handles:
            handle.kill()
        for handle in self._handles:
            until(handle.exited, "a container's end")


@pytest.fixture
def runs(launcher: SparkLauncher, tmp_path: Path) -> Iterator[Runs]:
    until(lambda: {A: 1, B: 1} == launcher.hosts(), "both hosts")
    runs = Runs(launcher, tmp_path)
    yield runs
    runs.end_all()


def test_the_slots_of_each_host(launcher: SparkLauncher) -> None:
    assert 2 == launcher.slots(2)
    assert {A: 1, B: 1} == launcher.hosts()
    assert not launcher.leaving()


def test_a_container_starts_on_the_host_it_prefers_and_on_another_if_that_stays_busy(runs: Runs) -> None:
    _, first = runs.start(B)
    _, second = runs.start(B)

    assert [B, A] == [first["host"], second["host"]]


def test_a_container_that_prefers_a_host_that_is_not_there_starts_all_the_same(runs: Runs) -> None:
    _, facts = runs.start(UNKNOWN)

    assert facts["host"] in (A, B)


def test_a_killed_executor_ends_its_container_and_is_replaced(runs: Runs, cluster: Cluster, launcher: SparkLauncher) -> None:
    handle, facts = runs.start(A)
    (executor,) = cluster.executors(A)

    os.kill(executor, signal.SIGKILL)

    assert "its executor was lost: Command exited with code 137" == str(until(handle.exited, "the container's end"))
    until(lambda: is_gone(facts["pid"]), "the end of its process")
    until(lambda: cluster.executors(A) not in ([], [executor]) and A in launcher.hosts(), "another executor on the host")


def test_a_killed_daemon_ends_its_container(runs: Runs, cluster: Cluster) -> None:
    handle, facts = runs.start(A)

    os.kill(cluster.daemon(A), signal.SIGKILL)

    assert "killed or crashed: its Python worker ended without a message" == str(until(handle.exited, "the container's end"))
    until(lambda: is_gone(facts["pid"]), "the end of its process")


def test_spark_does_not_start_a_container_again_whose_worker_was_killed(runs: Runs, cluster: Cluster, tmp_path: Path) -> None:
    handle, facts = runs.start(A)

    os.kill(cluster.worker(A), signal.SIGKILL)

    until(lambda: is_gone(facts["pid"]), "the end of its process")
    assert "its executor was lost, with its worker or its host" == str(until(handle.exited, "the container's end"))
    assert facts == told(tmp_path / "0")  # nobody wrote it again
    cluster.add(A)


def test_a_decommissioned_host_leaves_when_its_container_has_ended(runs: Runs, cluster: Cluster, launcher: SparkLauncher) -> None:
    handle, facts = runs.start(A)

    os.kill(cluster.worker(A), signal.SIGPWR)

    until(lambda: {A} == launcher.leaving(), "the host is leaving")
    assert {B: 1} == launcher.hosts()
    _, elsewhere = runs.start(A)
    assert B == elsewhere["host"]
    assert is_alive(facts["pid"])
    assert handle.exited() is None

    handle.kill()

    until(handle.exited, "the container's end")
    until(lambda: cluster.executors(A) == [], "the executor's end")
    until(lambda: not launcher.leaving(), "the host has left")
    os.kill(cluster.worker(A), signal.SIGKILL)
    cluster.add(A)


def test_an_executor_that_is_decommissioned_alone_is_replaced(runs: Runs, cluster: Cluster, launcher: SparkLauncher) -> None:
    (executor,) = cluster.executors(B)

    os.kill(executor, signal.SIGPWR)

    until(lambda: cluster.executors(B) not in ([], [executor]) and {A: 1, B: 1} == launcher.hosts(), "another executor on the host")
