"""Why a container ended reaches the coordinator, whatever goes wrong while it lets go of its stores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from samzapy import StreamTask
from samzapy.clock import SystemClock
from samzapy.container.container import Container
from samzapy.ports import Assignment, Supervision
from samzapy.store.directory import LocalStoreDirectory
from samzapy.store.problems import StoreDiskFull
from samzapy.store.rocks import RocksEngine
from tests.unit.container.bench import Bench
from tests.unit.container.test_stuck_hook import ContainerRunner, Office


class FullWhenClosed(RocksEngine):
    """A store whose disk is full by the time it is closed."""

    def close(self) -> None:
        super().close()
        raise StoreDiskFull(f"local store {self.path}: closing: the disk is full.", "")


class Failing(StreamTask):
    def process(self, envelope, collector, coordinator):
        raise ValueError("no")


def test_a_disk_that_is_full_at_the_end_does_not_hide_the_error_that_ended_the_container(tmp_path: Path) -> None:
    bench, office = Bench(tmp_path, Failing, stores={"s": {}, "t": {}}), Office()
    bench.clock = SystemClock()  # type: ignore[assignment]
    bench.cluster.clock = bench.clock  # type: ignore[attr-defined]
    bench.feed(("a", 1))

    def build(assignment: Assignment, incarnation: str, supervision: Supervision) -> Container:
        spec = bench.spec()
        stores = {
            name: replace(store, open_directory=lambda task, name=name: LocalStoreDirectory(tmp_path / task / name, FullWhenClosed))
            for name, store in spec.stores.items()
        }
        bench.name(0, incarnation, ["Partition 0"])
        return Container(replace(spec, stores=stores), incarnation, "run", None, bench.log, bench.clock, supervision=supervision)

    ContainerRunner(
        number=0,
        build=build,
        control=office,
        log=bench.log,
        clock=bench.clock,
        facts={},
        heartbeat_s=0.05,
        lease_s=30.0,
        stuck_hook_s=60.0,
        die=print,
    ).run()

    assert ("failed", "SZ200", True) == (office.last_word["outcome"], office.last_word["error"]["code"], office.last_word["error"]["fatal"])


def test_a_container_that_has_a_successor_says_that_and_not_what_it_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As one that was frozen: it wakes up, and finds its topics as the successor has left them."""
    bench, office = Bench(tmp_path, Failing), Office()
    bench.clock = SystemClock()  # type: ignore[assignment]
    bench.cluster.clock = bench.clock  # type: ignore[attr-defined]
    bench.feed(("a", 1))

    class Frozen(Failing):
        def process(self, envelope, collector, coordinator):
            bench.name(0, "successor", ["Partition 0"])
            super().process(envelope, collector, coordinator)

    bench.task = Frozen

    def build(assignment: Assignment, incarnation: str, supervision: Supervision) -> Container:
        bench.name(0, incarnation, ["Partition 0"])
        return Container(bench.spec(), incarnation, "run", None, bench.log, bench.clock, supervision=supervision)

    ContainerRunner(
        number=0, build=build, control=office, log=bench.log, clock=bench.clock, facts={}, heartbeat_s=0.05, lease_s=30.0, stuck_hook_s=60.0, die=print
    ).run()  # fmt: skip

    assert ("superseded", "SZ313", False) == (office.last_word["outcome"], office.last_word["error"]["code"], office.last_word["error"]["fatal"])
    assert "the coordinator topic names successor" in office.last_word["error"]["message"]
    assert not [line.getMessage() for line in caplog.records if "ValueError" in line.getMessage() or line.levelname == "ERROR"]
