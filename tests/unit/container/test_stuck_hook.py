"""A hook that does not return: where it stands is told by another thread, and the process ends when the transaction would time out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.clock import SystemClock
from samzapy.container.container import Container
from samzapy.container.runner import ContainerRunner
from samzapy.container.stuck_hook import user_frames
from samzapy.ports import Assignment, Supervision
from tests.unit.container.bench import JOB, Bench

LIMIT_S = 20.0


class Ended(Exception):
    """Instead of the end of the process."""


class Office:
    """A coordinator that agrees to everything."""

    def register(self, incarnation: str, facts: Mapping[str, Any]) -> Assignment:
        return Assignment("run")

    def heartbeat(self, incarnation: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"command": "run"}

    def finished(self, incarnation: str, report: Mapping[str, Any]) -> bool:
        self.last_word = report
        return True


def test_no_hook_no_stack(tmp_path: Path) -> None:
    assert ([], "") == user_frames(threading.get_ident())


def test_a_process_that_hangs_is_told_with_its_record_and_line_and_then_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    may_go_on = threading.Event()

    class Hanging(StreamTask):
        def process(self, envelope, collector, coordinator):
            if envelope.key == "hang":
                may_go_on.wait(LIMIT_S)  # here
                raise Ended

    bench = Bench(tmp_path, Hanging)
    bench.clock = SystemClock()  # type: ignore[assignment]
    bench.cluster.clock = bench.clock  # type: ignore[attr-defined]
    bench.feed(("good", 1), ("hang", 1))
    why: list[str] = []

    def die(reason: str) -> None:
        why.append(reason)
        may_go_on.set()

    def build(assignment: Assignment, incarnation: str, supervision: Supervision) -> Container:
        bench.name(0, incarnation, ["Partition 0"])
        return Container(bench.spec(), incarnation, "run", None, bench.log, bench.clock, supervision=supervision)

    runner = ContainerRunner(
        number=0,
        build=build,
        control=Office(),
        log=bench.log,
        clock=bench.clock,
        facts={},
        heartbeat_s=0.05,
        lease_s=30.0,
        stuck_hook_s=0.6,
        die=die,
    )
    with caplog.at_level(logging.WARNING):
        assert 1 == runner.run()
    told = next(r.getMessage() for r in caplog.records if "has not returned" in r.getMessage())
    assert "record in[0]@1" in told
    assert "test_stuck_hook.py" in told
    assert "may_go_on.wait(LIMIT_S)  # here" in told
    assert "record in[0]@1 did not return within commit.timeout" in why[0]
    assert JOB.name == "test"
