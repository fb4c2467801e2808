"""A container that stops and could not make its final commit says so: the coordinator would tell people that all its work is committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.api.errors import TransactionAborted
from samzapy.container.container import Container
from samzapy.container.heartbeat import STOP
from samzapy.container.runner import ContainerRunner
from samzapy.ports import Assignment, Supervision
from samzapy.testing import Harness
from tests.unit.container.bench import Bench
from tests.unit.container.test_stuck_hook import Office

RECORDS = [("a", 1), ("b", 2), ("c", 3)]


class Passing(StreamTask):
    processed = 0

    def process(self, envelope, collector, coordinator):
        Passing.processed += 1
        collector.send("out", envelope.message, key=envelope.key)


def last_word(bench: Bench, is_stopping: Callable[[ContainerRunner, Container], None]) -> Mapping[str, Any]:
    """Of a container that runs until it is asked to stop. `is_stopping`: called when it is built; arranges for that."""
    office = Office()

    def build(assignment: Assignment, incarnation: str, supervision: Supervision) -> Container:
        bench.name(0, incarnation, ["Partition 0"])
        container = Container(bench.spec(), incarnation, "run", None, bench.log, bench.clock, supervision=supervision)
        is_stopping(runner, container)
        return container

    runner = ContainerRunner(
        number=0, build=build, control=office, log=bench.log, clock=bench.clock, facts={}, heartbeat_s=1.0, lease_s=10.0, stuck_hook_s=60.0,
        die=print, spawn=lambda name, target: None, settle_memory=lambda: None, resident=lambda: 0,
    )  # fmt: skip
    assert 0 == runner.run()
    return office.last_word


def after_the_records(bench: Bench, failure: str = "") -> Callable[[ContainerRunner, Container], None]:
    """The coordinator asks for a stop when all records are processed; the commit that follows fails."""

    def arrange(runner: ContainerRunner, container: Container) -> None:
        step, Passing.processed = container.step, 0

        def stepping(*given: float) -> bool:
            found = step(*given)
            if Passing.processed == len(RECORDS) and runner._heartbeat.command != STOP:
                if failure:
                    bench.cluster.fail_next("commit", failure)
                runner._heartbeat.command = STOP
            return found

        container.step = stepping  # type: ignore[method-assign]

    return arrange


def bench_of(folder: Path) -> Bench:
    bench = Bench(folder, Passing, commit_interval_s=1e9)
    bench.feed(*RECORDS)
    return bench


def test_a_final_commit_that_was_made_needs_no_word(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    word = last_word(bench, after_the_records(bench))
    assert ("stopped", None) == (word["outcome"], word["error"])
    assert RECORDS == bench.read("out")


@pytest.mark.parametrize(("failure", "code"), [("aborted", "SZ310"), ("in_doubt_lost", "SZ311"), ("fenced", "SZ312")])
def test_a_final_commit_that_failed_is_told_to_the_coordinator(tmp_path: Path, failure: str, code: str, caplog: pytest.LogCaptureFixture) -> None:
    bench = bench_of(tmp_path)
    word = last_word(bench, after_the_records(bench, failure))
    assert ("stopped", code, False) == (word["outcome"], word["error"]["code"], word["error"]["fatal"])
    assert "container 0: the final commit failed" in caplog.text
    assert [] == bench.read("out")


def test_a_stop_that_comes_while_the_container_starts_over_is_no_stop_with_everything_committed(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)

    def arrange(runner: ContainerRunner, container: Container) -> None:
        drop_all, step = container.drop_all, container.step

        def dropping() -> None:
            drop_all()
            if Passing.processed:
                runner._heartbeat.command = STOP

        def stepping(*given: float) -> bool:
            found = step(*given)
            if Passing.processed == len(RECORDS):
                bench.cluster.fail_next("commit", "in_doubt_lost")
                container.commit()
            return found

        Passing.processed = 0
        container.drop_all, container.step = dropping, stepping  # type: ignore[method-assign]

    word = last_word(bench, arrange)
    assert ("stopped", "SZ311", False) == (word["outcome"], word["error"]["code"], word["error"]["fatal"])
    assert [] == bench.read("out")


def test_a_harness_whose_final_commit_is_aborted_says_so() -> None:
    with Harness(Passing, inputs=[{"topic": "in"}], outputs=[{"topic": "out"}]) as harness:
        harness.send("in", b"1", key=b"a")
        harness.run(commit=False)
        harness.log._cluster.fail_next("commit", "aborted")
        with pytest.raises(TransactionAborted):
            harness.stop()
