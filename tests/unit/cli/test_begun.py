"""What says on a host that a run has begun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from samzapy.api.errors import ClusterUnreachable, OwnedElsewhere
from samzapy.api.exit_codes import NOT_RUNNING
from samzapy.cli.begun import begin, begun_here
from samzapy.cli.inspect import say_no_answer
from samzapy.cli.job import Job
from samzapy.cli.loading import load
from samzapy.cli.this_process import process_start, this_process
from samzapy.clock import SystemClock
from samzapy.config.schema import Settings
from samzapy.coordinator.http import Listener
from samzapy.model.ownership import LEASE_KEY, LeaseRecord
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from samzapy.wiring.job_topics import job_of as job_names


def job_of(folder: Path, job: str = "mine", servers: str = "one:1,two:2") -> tuple[Settings, Path]:
    file = folder / f"{job}.yaml"
    document = {"job": job, "task": "m:C", "inputs": [{"topic": "a"}], "kafka": {"bootstrap.servers": servers}, "state": {"dir": str(folder / "s")}}
    file.write_text(json.dumps(document))
    return load(file, None, None).settings, file


def test_a_file_counts_only_while_its_process_lives_and_for_its_kafka_only(tmp_path: Path) -> None:
    mine, file = job_of(tmp_path)
    with begin("run-1") as begun:
        begun.of(mine)
        assert [("run-1", os.getpid())] == [(b.run_id, b.pid) for b in begun_here(mine, file)]
        assert ["run-1"] == [b.run_id for b in begun_here(*job_of(tmp_path, "mine", "two:2"))]
        assert [] == begun_here(*job_of(tmp_path, "mine", "three:3")), "the same job of another Kafka"
        assert [] == begun_here(*job_of(tmp_path, "other", "one:1"))
        (written,) = (tmp_path / "s/begun/mine-1").glob("*.json")
        content = written.read_text()
    assert [] == begun_here(mine, file)

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name, text in {"dead": content.replace(f'"pid": {os.getpid()}', f'"pid": {dead.pid}'), "junk": "[" * 5000, "fields": "{}"}.items():
        (written.parent / f"{name}.json").write_text(text)
    assert [] == begun_here(mine, file)
    with begin("run-2") as begun:
        begun.of(mine)
        assert ["run-2.json"] == [path.name for path in written.parent.iterdir()], "what is left of others is removed"


def test_a_run_that_lives_and_does_not_answer_is_never_said_not_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, file = job_of(tmp_path)
    cluster = MemoryCluster(SystemClock())
    cluster.create(TopicSpec(job_names(mine).coordinator_topic, 1, {"cleanup.policy": "compact"}))
    job = Job.of(load(file, None, None), MemoryLog(cluster))
    assert NOT_RUNNING == say_no_answer(job)
    with begin("run-1") as begun:
        begun.of(mine)
        assert job.starting() is not None
        assert job.silent() == ""
        begun.listens_at("http://127.0.0.1:1")
        assert job.starting() is None
        with pytest.raises(OwnedElsewhere, match=f"runs, but does not answer .process {os.getpid()}, .*asked at http://127.0.0.1:1"):
            job.refuse_running()
        assert ClusterUnreachable.exit_code == say_no_answer(job)
        ended = LeaseRecord(run_id="run-1", url="", host="h", pid=1, process_start="s", renewed_ms=1, ended=True)
        job.log.plain_producer("run").send(job.names.coordinator_topic, ended.to_bytes(), LEASE_KEY, 0)
        job.refuse_running()  # its process is there for another moment, that is all
    assert "runs, but does not answer" in capsys.readouterr().err
    assert NOT_RUNNING == say_no_answer(job)


class SteppedClock(SystemClock):
    """Its monotonic time passes only in sleeps; `each` is called in each."""

    def __init__(self, each: Callable[[], object] = lambda: None) -> None:
        self.passed_s, self._each = 0.0, each

    def monotonic(self) -> float:  # type: ignore[override]
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        self.passed_s += seconds
        self._each()


ANOTHER_TABLE = "another boot/1"  # of a container with the same host name, or of another machine


@pytest.mark.parametrize(("pid", "host", "table", "age_ms", "lives", "waits"), [
    ("mine", "", "", 60_000, True, False),
    ("ended", "", "", 0, False, False),
    ("ended", "", ANOTHER_TABLE, 2_000, True, False),
    ("ended", "", ANOTHER_TABLE, 60_000, False, True),
    ("ended", "", None, 2_000, True, False),  # an earlier version did not say in which table
    ("mine", "elsewhere", "", 2_000, True, False),
    ("mine", "elsewhere", "", -5_000, True, False),  # its clock is ahead
    ("mine", "elsewhere", "", 60_000, False, True),
    ("mine", "elsewhere", "", -60_000, False, True),
])  # fmt: skip
def test_what_a_lease_says_of_a_run_that_does_not_answer(
    tmp_path: Path, pid: str, host: str, table: str | None, age_ms: int, lives: bool, waits: bool
) -> None:
    mine, file = job_of(tmp_path)
    log = MemoryLog(MemoryCluster(SystemClock()))
    topic = job_names(mine).coordinator_topic
    log.admin().create([TopicSpec(topic, 1, {"cleanup.policy": "compact"})])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    start = process_start(ended.pid)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie until its parent asks
    me = this_process()
    number, start = (me.pid, me.start) if pid == "mine" else (ended.pid, start)
    if table != "":
        start = start.partition("@")[0] + ("" if table is None else f"@{table}")
    lease = LeaseRecord(run_id="r", url="http://127.0.0.1:1", host=host or me.host, pid=number, process_start=start, renewed_ms=SystemClock().now_ms() - age_ms)
    log.plain_producer("run").send(topic, lease.to_bytes(), LEASE_KEY, 0)
    job = Job.of(load(file, None, None), log)
    job.clock = clock = SteppedClock()
    assert lives == bool(job.silent())
    assert waits == (clock.passed_s >= mine.containers.lease_ms / 1000)
    ended.wait()


@pytest.mark.parametrize("age_ms", [60_000, -60_000, 40 * 86_400_000])
def test_a_run_elsewhere_that_renews_its_lease_is_never_reset_whatever_its_clock_says(tmp_path: Path, age_ms: int) -> None:
    mine, file = job_of(tmp_path)
    log = MemoryLog(MemoryCluster(SystemClock()))
    topic = job_names(mine).coordinator_topic
    log.admin().create([TopicSpec(topic, 1, {"cleanup.policy": "compact"})])
    lease = LeaseRecord(run_id="r", url="http://127.0.0.1:1", host="elsewhere", pid=1, process_start="s", renewed_ms=SystemClock().now_ms() - age_ms)

    def renew() -> None:
        nonlocal lease
        if clock.passed_s % 3 == 0:
            lease = replace(lease, renewed_ms=lease.renewed_ms + 3000)
            log.plain_producer("run").send(topic, lease.to_bytes(), LEASE_KEY, 0)

    log.plain_producer("run").send(topic, lease.to_bytes(), LEASE_KEY, 0)
    job = Job.of(load(file, None, None), log)
    job.clock = clock = SteppedClock(renew)
    with pytest.raises(OwnedElsewhere, match="it has just renewed its lease"):
        job.refuse_running()
    assert 3.0 == clock.passed_s


def test_a_run_of_another_container_with_this_host_name_did_not_begin_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, file = job_of(tmp_path)
    with begin("run-1") as begun:
        begun.of(mine)
        assert [os.getpid()] == [found.pid for found in begun_here(mine, file)]
        monkeypatch.setattr("samzapy.cli.this_process.process_table", lambda: ANOTHER_TABLE)
        assert [] == begun_here(mine, file)


def test_where_a_run_answers_is_known_here_without_the_coordinator_topic(tmp_path: Path) -> None:
    mine, file = job_of(tmp_path)
    job = Job.of(load(file, None, None), MemoryLog(MemoryCluster(SystemClock())))
    document = {"job": "mine", "id": "1", "state": "RUNNING", "run_id": "run-1", "coordinator": "x", "containers": [], "tasks": [], "moves": []}
    listener = Listener(Starlette(routes=[Route("/api/v1/status", lambda _: JSONResponse(document))]), "127.0.0.1", 0)
    listener.start()
    with begin("run-1") as begun:
        begun.of(mine)
        begun.listens_at(listener.url)
        assert (listener.url, document) == (job.url(), job.status())
    assert job.status() is None
    listener.stop()


def test_a_process_is_known_by_its_command_line_before_it_has_said_anything(tmp_path: Path) -> None:
    settings, file = job_of(tmp_path)
    for words, is_seen in (("samzapy run --local mine.yaml", True), ("samzapy stop mine.yaml", False), ("samzapy run other.yaml", False)):
        with subprocess.Popen(
            [sys.executable, "-c", "input()", *words.split()], stdin=subprocess.PIPE, cwd=tmp_path
        ) as process:
            assert [process.pid] * is_seen == [begun.pid for begun in begun_here(settings, file)], words
            process.kill()


def test_a_run_that_listens_says_where(tmp_path: Path) -> None:
    mine, file = job_of(tmp_path)
    with begin("r1") as begun:
        begun.listens_at("http://127.0.0.1:1")  # it has not said yet which job it runs
        begun.of(mine)
        assert [""] == [one.url for one in begun_here(mine, file)]
        begun.listens_at("http://127.0.0.1:2")
        assert ["http://127.0.0.1:2"] == [one.url for one in begun_here(mine, file)]
    assert [] == begun_here(mine, file)
