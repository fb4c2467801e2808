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
from samzapy.container.stuck_hook import PACKAGE, PROGRAM, of_users, user_frames
from samzapy.ports import Assignment, Supervision
from samzapy.streams import App, tumbling
from samzapy.streams.compiled import FILE
from samzapy.testing import Harness
from tests.unit.container.bench import JOB, Bench

LIMIT_S = 20.0


class Ended(Exception):
    """Instead of the end of the process."""


class Office:
    """A coordinator that agrees to everything."""

    def register(self, incarnation: str, facts: Mapping[str, Any]) -> Assignment:
        return Assignment("run")

    def heartbeat(self, incarnation: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        self.ends = str(report.get("ends"))
        return {"command": "run"}

    def report_final(self, incarnation: str, report: Mapping[str, Any]) -> bool:
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

    office = Office()

    def die(reason: str) -> None:
        why.extend((reason, office.ends))
        may_go_on.set()

    def build(assignment: Assignment, incarnation: str, supervision: Supervision) -> Container:
        bench.name(0, incarnation, ["Partition 0"])
        return Container(bench.spec(), incarnation, "run", None, bench.log, bench.clock, supervision=supervision)

    runner = ContainerRunner(
        number=0,
        build=build,
        control=office,
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
    assert why[0] == why[1], "the coordinator has heard it"
    assert JOB.name == "test"


# -- user code that is no method of a task ----------------------------------------------------------------------------------------------------

HERE = "tests.unit.container.test_stuck_hook"
SEEN: list[tuple[list[str], str]] = []


def look(value: Any, *rest: Any) -> Any:
    """What another thread sees while this runs."""
    watch = threading.Thread(target=lambda: SEEN.append(user_frames(threading.main_thread().ident or 0)))
    watch.start()
    watch.join()
    return value


class LookingSerde:
    def encode(self, value: Any) -> bytes:
        return str(value).encode()

    def decode(self, data: bytes) -> Any:
        return look(data.decode())


def looking_time(envelope: Any) -> int:
    return int(look(1_600_000_000_000))


class Nothing(StreamTask):
    def process(self, envelope, collector, coordinator):
        pass


class NothingOfBatches(StreamTask):
    def process_batch(self, envelopes, collector, coordinator):
        for envelope in envelopes:
            assert envelope.message


def program(between: bool, what: str) -> App:
    app = App()
    stream = app.stream("in", key=str, value=str, watermark_delay="0s")
    if between:
        stream = stream.key_by(lambda value: value, "by-value", key=str)
    match what:
        case "map":
            stream.map(look, value=str).to("out")
        case "filter":
            stream.filter(look).to("out")
        case "sink":
            stream.sink(look)
        case "reduce":
            stream.window(tumbling("1s")).fold("all", lambda: 0, lambda n, value: look(n) + 1, value=int).to("out")
        case "pane":
            stream.window(tumbling("1s")).count("all").map(look).to("out")
    return app


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("what", ["map", "filter", "sink", "reduce", "pane"])
def test_functions_of_a_program_are_seen(what: str, between: bool) -> None:
    SEEN.clear()
    with Harness(program(between, what)) as h:
        h.send("in", "v", key="k", timestamp=1_600_000_000_000)
        h.end()
    assert SEEN
    assert all(stack and "in look: " in "".join(stack) for stack, _ in SEEN)
    assert what == "pane" or all("in[0]@0" in record or "by-value" in record for _, record in SEEN)


@pytest.mark.parametrize("task", ["Nothing", "NothingOfBatches"])
@pytest.mark.parametrize("what", ["serde", "time"])
def test_serdes_and_times_of_inputs_are_seen(task: str, what: str) -> None:
    SEEN.clear()
    given: dict[str, Any] = {"topic": "in", "key": "string", "value": f"{HERE}:LookingSerde" if what == "serde" else "string"}
    if what == "time":
        given["time"] = {"from": f"{HERE}:looking_time", "watermark_delay": "1s"}
    with Harness(globals()[task], inputs=[given]) as h:
        h.send("in", "v", key="k")
        h.run()
    assert SEEN
    assert all(stack and " on record in[0]@0" == record for stack, record in SEEN)


def test_whose_frames_these_are() -> None:
    own, user = str(PACKAGE / "streams" / "program.py"), "/project/job.py"
    assert FILE == PROGRAM
    assert 2 == of_users(["/lib/re.py", user])
    assert 2 == of_users(["/lib/re.py", user, own])
    assert 1 == of_users([PROGRAM, own])  # a function in C
    assert 0 == of_users([str(PACKAGE / "store" / "rocks.py"), own])
    assert 0 == of_users(["/lib/threading.py", str(PACKAGE / "container" / "cautious_processing.py")])
    assert 0 == of_users([])
