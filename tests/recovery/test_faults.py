"""Finding a job's processes, hitting exactly those, and telling how long recovery took."""

from __future__ import annotations

import http.client
import http.server
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from samzapy.model.checkpoint import Checkpoint
from tests.integration.processes import until
from tests.recovery.audit import Committed, Seen
from tests.recovery.chaos import World
from tests.recovery.fault_run import FaultRun
from tests.recovery.faults import (
    MARK,
    Fault,
    JobProcesses,
    Proc,
    Sample,
    containers_below,
    descendants,
    find,
    is_alive,
    marked,
    processes,
    sample_of,
    seconds_until_commit,
    seconds_until_running,
    send,
    timed,
)
from tests.recovery.tcp_relay import TcpRelay


def proc(pid: int, parent: int, *command: str) -> Proc:
    return Proc(pid, parent, pid * 100, "S", command)


def executor(pid: int, parent: int, application: str) -> Proc:
    return proc(pid, parent, "java", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--app-id", application, "--cores", "1")


CLUSTER = {
    p.pid: p
    for p in (
        proc(1, 0, "init"),
        proc(10, 1, "python", "-m", "samzapy", "run", "job.yaml"),
        proc(11, 10, "java", "org.apache.spark.deploy.SparkSubmit"),
        proc(20, 1, "java", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.2"),
        proc(30, 1, "java", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.3"),
        executor(21, 20, "app-1"),
        proc(22, 21, "python", "-m", "pyspark.daemon"),
        proc(23, 22, "python", "-m", "pyspark.daemon"),  # a forked worker keeps its parent's command line
        executor(31, 30, "app-1"),
        executor(32, 30, "app-of-another"),
        proc(33, 32, "python", "-m", "pyspark.daemon"),
    )
}
STATUS = {"containers": [{"id": 0, "pid": 23}, {"id": 1, "pid": None}, {"id": 2, "pid": 9999}]}


def test_what_lies_between_driver_and_containers_is_found_and_no_other_jobs() -> None:
    found = find(CLUSTER, 10, STATUS)

    assert CLUSTER[10] == found.driver
    assert {0: CLUSTER[23]} == found.containers
    assert (CLUSTER[21], CLUSTER[31]) == found.executors
    assert (CLUSTER[22],) == found.daemons
    assert {20, 30} == {w.pid for w in found.workers}
    assert {10, 21, 22, 23, 31} == {p.pid for p in found.all()}


def test_what_an_executors_or_the_drivers_death_takes_along() -> None:
    found = find(CLUSTER, 10, STATUS)

    assert [0] == containers_below(CLUSTER, found, CLUSTER[21])
    assert [] == containers_below(CLUSTER, found, CLUSTER[31])
    assert [0] == containers_below(CLUSTER, found, CLUSTER[10])


def test_a_job_of_which_nothing_is_known_yet_has_a_driver_only() -> None:
    assert JobProcesses(CLUSTER[10], {}) == find(CLUSTER, 10, None)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child of its own, both with a mark."""
    code = f"import subprocess, sys; subprocess.run([{sys.executable!r}, '-c', 'import signal; signal.pause()'])"
    mark = secrets.token_hex(6)
    process = subprocess.Popen([sys.executable, "-c", code, mark], env={**os.environ, MARK: mark}, start_new_session=True)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_signals_reach_exactly_the_process_that_was_found(child: subprocess.Popen[bytes]) -> None:
    below = until(lambda: descendants(processes(), child.pid) or None, "the child's child")[0]

    assert send(below, signal.SIGSTOP)
    assert until(lambda: processes()[below.pid].state == "T", "stopped")
    assert is_alive(below)
    assert send(below, signal.SIGCONT)
    assert not send(replace(below, start=below.start - 1), signal.SIGKILL)
    assert is_alive(below)
    assert send(below, signal.SIGKILL)
    assert until(lambda: not is_alive(below), "killed")
    assert not send(below, signal.SIGCONT)


def test_a_mark_finds_what_a_job_started_even_without_its_parent(child: subprocess.Popen[bytes]) -> None:
    mark = str(child.args[-1])  # type: ignore[index]
    both = until(lambda: found if len(found := marked(mark)) == 2 else None, "both")
    assert child.pid in {p.pid for p in both}

    child.kill()
    child.wait()
    assert {p.pid for p in both} - {child.pid} == {p.pid for p in marked(mark)}
    assert [] == marked("nobody's mark")


# -- times ---------------------------------------------------------------------------------------------------------------------------


def status(state: str, pids: list[int | None], tasks: list[str]) -> dict[str, Any]:
    return {"state": state, "containers": [{"pid": p} for p in pids], "tasks": [{"state": t} for t in tasks]}


def test_a_job_is_whole_when_every_task_runs() -> None:
    assert Sample(5, True, frozenset({7, 8})) == sample_of(status("RUNNING", [7, 8], ["RUNNING", "RUNNING"]), 5)
    assert not sample_of(status("RUNNING", [7], ["RUNNING", "RESTORING"]), 5).whole
    assert not sample_of(status("DEGRADED", [None], ["RUNNING"]), 5).whole
    assert Sample(5, False) == sample_of(None, 5)


def samples(*rows: tuple[int, bool, int]) -> list[Sample]:
    return [Sample(at, whole, frozenset({pid})) for at, whole, pid in rows]


def test_recovery_ends_with_the_first_good_sample_after_the_last_bad_one() -> None:
    kill = Fault(1000, "kill", "container 0", ("Partition 0",), frozenset({7}))
    told = samples((900, False, 7), (1100, True, 7), (1200, False, 7), (1300, False, 9), (1500, True, 9), (1600, True, 9))

    assert 0.5 == seconds_until_running(told, kill)
    assert 0.5 == seconds_until_running(told[:2] + told[4:], kill)  # the coordinator had not noticed: its old pid is a bad sample
    assert None is seconds_until_running(told, kill, until_ms=1400)
    assert None is seconds_until_running(told[:1], kill)
    assert 0.0 == seconds_until_running(told[4:], replace(kill, kind="stop", gone=frozenset()))


def committed(task: str, made_ms: int, seen_ms: int) -> Committed:
    return Committed(Seen(0, 0, made_ms, seen_ms), Checkpoint(job="j", id="1", task=task, container=0, incarnation="i", epoch=1, sequence=0, inputs={}, stores={}))


def test_the_last_of_the_hit_tasks_decides_when_all_have_committed() -> None:
    kill = Fault(1000, "kill", "container 0", ("Partition 0", "Partition 1"))
    before, first, second = committed("Partition 0", 1000, 1100), committed("Partition 0", 1500, 1600), committed("Partition 0", 1700, 1800)
    other, unhit = committed("Partition 1", 1400, 1900), committed("Partition 2", 1001, 1002)

    assert 0.9 == seconds_until_commit([before, first, second, other, unhit], kill)
    assert None is seconds_until_commit([before, first, second, unhit], kill)
    assert 0.8 == seconds_until_commit([first, second, other], replace(kill, tasks=("Partition 0",), over_ms=1600))


def test_a_faults_time_ends_where_the_next_begins() -> None:
    faults = [Fault(2000, "kill", "b", ("Partition 0",)), Fault(1000, "kill", "a", ("Partition 0",))]
    timed(faults, samples((1100, False, 1), (2100, False, 2), (2300, True, 2)), [committed("Partition 0", 2200, 2250)], 3000)

    assert [(0.3, 0.25), (None, 1.25)] == [(f.until_running_s, f.until_commit_s) for f in faults]


def test_what_hit_the_job_and_is_noted_with_another_is_not_counted_to_the_fault_before() -> None:
    seen = samples((1100, False, 1), (1400, True, 2), (2100, False, 2), (2300, True, 2))
    alone, broken_off = Fault(1000, "kill", "a", ("Partition 0",)), Fault(1000, "kill", "a", ("Partition 0",))
    timed([alone], seen, [], 3000)
    timed([broken_off], seen, [], 3000, breaks=[900, 2000])

    assert (1.3, 0.4) == (alone.until_running_s, broken_off.until_running_s)


def test_a_fault_of_everything_ends_the_time_of_the_second_jobs_fault_before_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = FaultRun.__new__(FaultRun), FaultRun.__new__(FaultRun)
    for fault_run in (first, second):
        fault_run.faults, fault_run._breaks, fault_run.part = [], [], ""
    monkeypatch.setattr(FaultRun, "tasks", lambda _: ("Partition 0",))
    fault = World(first, second, tmp_path).note("pause broker", "broker 1")

    assert ([fault], [], [fault.at_ms]) == (first.faults, second.faults, second._breaks)


# -- the relay -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[str]:
    """Echoes what is posted."""

    class Echo(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the test asks what it wants to know."""

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()


def post(url: str, body: bytes, timeout: float = 30.0) -> bytes:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    try:
        connection.request("POST", "/", body)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_a_relay_passes_on_is_cut_and_is_mended(server: str) -> None:
    big = b"x" * 1_000_000
    with TcpRelay(server) as relay:
        assert big == post(relay.url, big)
        relay.cut()
        with pytest.raises(TimeoutError):
            post(relay.url, b"lost", timeout=0.2)
        relay.refuse()
        with pytest.raises(OSError):
            post(relay.url, b"refused")
        relay.mend()
        assert b"again" == post(relay.url, b"again")
        assert 3 == relay.connections


def test_what_was_under_way_when_the_link_was_cut_arrives_late(server: str) -> None:
    answers: list[bytes] = []
    with TcpRelay(server) as relay:
        relay.cut()
        waiting = threading.Thread(target=lambda: answers.append(post(relay.url, b"late")))
        waiting.start()
        assert until(lambda: relay.connections == 1, "the connection")
        assert [] == answers
        relay.mend()
        waiting.join()
    assert [b"late"] == answers


def test_a_job_that_was_never_hit_has_no_times_to_tell() -> None:
    timed([], [], [], 1_000)
