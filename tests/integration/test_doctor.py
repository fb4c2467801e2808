"""`samzapy doctor` as a user runs it: on this machine, for a job on a real broker, and for a Spark master that answers."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from samzapy.cli.main import app
from tests.broker import admin, delete_topic, free_port
from tests.integration.job import Job
from tests.integration.processes import until
from tests.integration.test_topics_that_go import empty


def doctor(*arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code, and the checks by name."""
    result = CliRunner().invoke(app, ["doctor", *arguments, "--json"], standalone_mode=False)
    assert result.exception is None, result.exception
    told = json.loads(result.stdout)
    assert told["ok"] == (result.return_value == 0) == all(check["state"] != "fail" for check in told["checks"])
    assert all(check["remedy"] for check in told["checks"] if check["state"] != "ok")
    return result.return_value, {check["name"]: check for check in told["checks"]}


@pytest.fixture
def java_that_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that must not run; the file is there if it did."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    return tmp_path / "ran"


def test_this_machine_is_looked_at_and_no_java_is_run(java_that_tells: Path) -> None:
    code, checks = doctor()

    assert 0 == code
    assert {"python", "packages", "java", "state.dir", "open files"} <= set(checks)
    assert ("ok", True) == (checks["java"]["state"], checks["java"]["found"].startswith("21 ("))
    assert not java_that_tells.exists()


def test_a_job_file_that_is_wrong_is_a_check_that_failed(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("job: x\ntask: x\n")

    code, checks = doctor(str(file))

    assert (1, "fail", f"samzapy validate {file}") == (code, checks["job file"]["state"], checks["job file"]["remedy"])


def test_a_person_reads_lines_and_what_mends(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("job: x\ntask: x\n")

    result = CliRunner().invoke(app, ["doctor", str(file)], standalone_mode=False)

    assert "fail  job file: " in result.stdout
    assert f"\n      -> samzapy validate {file}\n" in result.stdout


@pytest.mark.kafka
def test_a_job_that_can_run_passes_and_one_whose_topic_is_gone_fails(kafka: str, unique: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, unique)
    code, checks = doctor(str(job.file))

    assert (0, "2 correct, 3 that run creates") == (code, checks["topics"]["found"])
    assert "the brokers' transaction.max.timeout.ms is " in checks["commit.timeout"]["found"]
    assert "2 containers, 2 cores at local[2]" == checks["containers.count"]["found"]

    delete_topic(kafka, job.output)
    until(lambda: job.output not in admin(kafka).list_topics(timeout=10).topics, "the topic's end")
    code, checks = doctor(str(job.file), "--set", "commit.timeout=2h", "--set", "containers.count=3", "--set", "web={host: 0.0.0.0, proxy: true}")
    assert (1, "fail") == (code, checks[f"topic {job.output}"]["state"])
    assert ["fail", "fail", "warn"] == [checks[name]["state"] for name in ("commit.timeout", "containers.count", "web.host")]


@pytest.mark.kafka
def test_a_master_that_answers_is_asked_for_its_cores(kafka: str, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.speculation true\n")
    job = Job(kafka, tmp_path, unique)

    with master_with(cores=1, place=tmp_path / "xdg" / "samzapy" / "spark") as url:
        code, checks = doctor(str(job.file), "--set", f"spark.master={url}")

    assert (1, "fail") == (code, checks["containers.count"]["state"])
    assert f"2 containers, 1 cores at {url}: the others would wait for ever" == checks["containers.count"]["found"]
    assert ["warn", "warn"] == [checks[name]["state"] for name in ("spark.authenticate", "spark-defaults")]

    code, checks = doctor(str(job.file), "--set", f"spark.master={url}")
    assert (1, f"no Spark master answers at {url.removeprefix('spark://')}") == (code, checks["spark.master"]["found"])


@pytest.mark.kafka
@pytest.mark.slow
def test_a_broker_that_is_not_there_is_told_and_does_not_hide_the_rest(kafka: str, unique: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, unique)

    code, checks = doctor(str(job.file), "--set", f"kafka={{bootstrap.servers: '127.0.0.1:{free_port()}'}}")

    assert (1, "fail", "ok") == (code, checks["kafka"]["state"], checks["web.host"]["state"])
    assert "within 10 s" in checks["kafka"]["found"]


@contextmanager
def master_with(cores: int, place: Path) -> Iterator[str]:
    """What a master of `samzapy dev spark` shows: a port that takes connections, and its web page."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        url = f"spark://127.0.0.1:{port}"
        worker = {"host": "127.0.0.2", "port": 1, "cores": cores, "coresused": 0, "state": "ALIVE"}
        with serving({"url": url, "status": "ALIVE", "workers": [worker]}) as ui_port:
            place.mkdir(parents=True)
            size = {"workers": 1, "cores": cores, "memory_mib": 1024}
            (place / "cluster.json").write_text(json.dumps({"port": port, "ui_port": ui_port, "size": size}))
            yield url


@contextmanager
def serving(document: Any) -> Iterator[int]:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, *_: object) -> None:
            return

    server = http.server.HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.kafka
def test_what_a_run_would_refuse_of_earlier_runs_is_a_check_that_failed(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, 1, containers={"count": 1})
    job.command("topics", str(job.file), "--create")
    code, checks = doctor(str(job.file))
    assert (0, "ok") == (code, checks["run"]["state"])
    topic = f"__samza_coordinator_{unique}_1"
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topic, b"value", b"key")
    producer.flush()
    empty(kafka, topic)
    code, checks = doctor(str(job.file))
    assert (1, "fail") == (code, checks["run"]["state"])
    assert f"coordinator topic {topic} starts at offset 1: records before it were deleted" in checks["run"]["found"]
