"""What says on a host that a run has begun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


@pytest.mark.parametrize(("pid", "host", "age_ms", "lives"), [
    ("mine", "", 60_000, True), ("ended", "", 0, False), ("mine", "elsewhere", 2_000, True), ("mine", "elsewhere", 60_000, False),
])  # fmt: skip
def test_what_a_lease_says_of_a_run_that_does_not_answer(tmp_path: Path, pid: str, host: str, age_ms: int, lives: bool) -> None:
    mine, file = job_of(tmp_path)
    log = MemoryLog(MemoryCluster(SystemClock()))
    topic = job_names(mine).coordinator_topic
    log.admin().create([TopicSpec(topic, 1, {"cleanup.policy": "compact"})])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    start = process_start(ended.pid)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie until its parent asks
    me = this_process()
    number, start = (me.pid, me.start) if pid == "mine" else (ended.pid, start)
    lease = LeaseRecord(run_id="r", url="http://127.0.0.1:1", host=host or me.host, pid=number, process_start=start, renewed_ms=SystemClock().now_ms() - age_ms)
    log.plain_producer("run").send(topic, lease.to_bytes(), LEASE_KEY, 0)
    assert lives == bool(Job.of(load(file, None, None), log).silent())
    ended.wait()


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
