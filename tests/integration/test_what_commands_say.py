"""What an operator reads: of a restart, of a move, of an entry, of a refusal, of a failure. On a real broker, by the real command."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.broker import add_partitions, create_topic, produce
from tests.commands import commands_in
from tests.integration.job import Job

pytestmark = pytest.mark.kafka


@pytest.fixture
def job(kafka: str, tmp_path: Path) -> Job:
    return Job(kafka, tmp_path, f"job-{secrets.token_hex(4)}", partitions=2)


@pytest.mark.prove
def test_a_restart_is_told_with_its_reason_and_scale_tells_of_its_own_moves_only(job: Job) -> None:
    job.feed(["the fox", "the dog"])
    with job.running("--local") as run:
        status = run.until_running()
        document = json.loads(job.file.read_text())  # the run, and what it starts again, keep what it began with
        job.file.write_text(json.dumps({**document, "stores": {"renamed": document["stores"]["counts"]}}))
        victim = next(c["pid"] for c in status["containers"] if c["id"] == 1)
        os.kill(victim, signal.SIGKILL)
        run.until(lambda s: s["state"] == "RUNNING" and s["containers"][1]["restarts"] == 1 and s["containers"][1]["pid"] != victim)
        restarts = [line for line in job.of("status").stdout.splitlines() if "last restart" in line]
        assert re.fullmatch(
            rf"container 1, last restart: \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d \+\d{{4}}, process {victim} on localhost: killed by SIGKILL.*",
            restarts[0],
        )
        assert 1 == len(restarts)
        told = json.loads(job.of("status", "--json").stdout)["containers"][1]["last_restart"]  # with the run's token: with all texts
        assert f"process {victim} on localhost" == told["process"]
        assert told["reason"].startswith("killed by SIGKILL")

        away = r"Partition 1: container 1 -> 0, \d+\.\d s without an owner"
        down = job.command("scale", str(job.file), "--containers", "1").stderr
        assert re.search(away, down), down
        assert "Partition 0" not in down
        again = job.command("scale", str(job.file), "--containers", "1").stderr
        assert "1 container" == again.strip().splitlines()[-1]
        assert not re.search(away, again), again

        (module,) = job.folder.glob("task_*.py")
        code = module.read_text()
        module.write_text("import not_there\n" + code)
        refused = job.command("restart", str(job.file))
        assert (2, True) == (refused.returncode, "not_there" in refused.stderr), refused.stderr
        assert "RUNNING" == (job.status() or {})["state"]

        module.write_text(code.replace("def init(self, context):", "def init(self, context):\n        raise ValueError('new code')"))
        broken = job.command("restart", str(job.file))
        assert (1, True) == (broken.returncode, "ended meanwhile; its last run failed" in broken.stderr), broken.stderr
        assert "ValueError: new code" in broken.stderr


ROWS = """
import msgspec

class Row(msgspec.Struct, array_like=True):
    word: str
    seen: int

class Rows(StreamTask):
    def init(self, context):
        self.kept = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        before = self.kept.get(envelope.message)
        self.kept.put(envelope.message, Row(word=envelope.message, seen=1 + (before.seen if before else 0)))
"""


@pytest.mark.prove
def test_a_class_that_cannot_read_what_is_stored_is_refused_before_any_container_is_restarted(kafka: str, tmp_path: Path, unique: str) -> None:
    module = "task_" + unique.replace("-", "_")
    job = Job(kafka, tmp_path, unique, 1, "Rows", stores={"counts": {"key": "string", "value": f"record:{module}:Row"}}, containers={"count": 1})
    file = job.folder / f"{module}.py"
    file.write_text(good := file.read_text() + ROWS)
    job.feed(["fox", "fox"])
    with job.running("--local") as run:
        (container,) = run.until_caught_up({f"{job.input}[0]": 2})["containers"]
        file.write_text(good.replace("    word: str\n    seen: int\n", "    seen: int\n    word: str\n"))
        refused = job.command("restart", str(job.file))
        assert (2, True) == (refused.returncode, "error[SZ110]: Partition 0: " in refused.stderr), refused.stderr
        for body in ({}, {"dry_run": True}):
            code, answer = over_http(job, "restart", body)
            assert (409, True) == (code, "the new code cannot be used: error[SZ110]: Partition 0: " in answer["detail"]), answer
        status = job.status() or {}
        assert ("RUNNING", container["pid"]) == (status["state"], status["containers"][0]["pid"])

        file.write_text(good + "# as before\n")  # of another size: Python takes a file of the same size and second for the one that it has compiled
        dry = job.command("restart", str(job.file), "--dry-run")
        assert (0, True) == (dry.returncode, "would do: " in dry.stderr), dry.stderr
        assert container["pid"] == (job.status() or {})["containers"][0]["pid"]
        assert 200 == over_http(job, "restart", {})[0]
        run.until(lambda s: s["state"] == "RUNNING" and s["containers"][0]["pid"] not in (None, container["pid"]))
        job.feed(["fox"])
        assert container["pid"] != run.until_caught_up({f"{job.input}[0]": 3})["containers"][0]["pid"]
        assert 0 == run.stop()
    assert [["fox", 3]] == [json.loads(line)["value"] for line in job.of("state", "export", "counts", "--json").stdout.splitlines()]


def over_http(job: Job, verb: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """What the job's page would get."""
    page = urlsplit(job.command("ui", str(job.file), "--no-open").stdout.strip())
    connection = http.client.HTTPConnection(page.netloc, timeout=120)
    try:
        token = page.fragment.partition("token=")[2]
        connection.request("POST", f"/v1/jobs/{job.name}/1/{verb}", json.dumps(body), {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, json.load(answer)
    finally:
        connection.close()


def test_each_entry_says_whose_it_is(job: Job) -> None:
    job.feed(["the fox", "the dog"])
    assert 0 == job.run_to_end().returncode
    wanted = [("dog", 1), ("fox", 0), ("the", 0), ("the", 1)]
    assert [f"{key}\t1\tPartition {n}" for key, n in wanted] == job.of("state", "export", "counts").stdout.splitlines()
    told = [json.loads(line) for line in job.of("state", "scan", "counts", "--json").stdout.splitlines()]
    assert [{"key": key, "value": 1, "task": f"Partition {n}", "partition": n} for key, n in wanted] == told
    assert ["the\t1\tPartition 0", "the\t1\tPartition 1"] == job.of("state", "get", "counts", "the").stdout.splitlines()


RAW = """
class Raw(StreamTask):
    def init(self, context):
        self.kept = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        self.kept.put(envelope.key, envelope.message)
"""
ENTRIES = [(b"", b"\xff\x00"), (b"/wA=", b"/wA="), ("caf\u00e9".encode(), b'{"base64": "/wA="}'), (b"\xff\x00", b""), (b"\xff\\x00", b"\\xff")]


@pytest.mark.prove
def test_a_script_reads_a_store_of_bytes_as_it_is(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, 1, "Raw", stores={"counts": {"key": "bytes", "value": "bytes"}}, inputs=[{"topic": f"{unique}-in"}])
    (module,) = job.folder.glob("task_*.py")
    module.write_text(module.read_text() + RAW)
    produce(kafka, job.input, [(key, value, 0) for key, value in ENTRIES])
    assert 0 == job.run_to_end().returncode

    def bytes_of(line: str, field: str) -> bytes:
        document = json.loads(line)
        return document[field].encode() if field in document else base64.b64decode(document[f"{field}_base64"])

    exported = job.of("state", "export", "counts", "--json").stdout.splitlines()
    assert sorted(ENTRIES) == [(bytes_of(line, "key"), bytes_of(line, "value")) for line in exported]
    found = job.of("state", "get", "counts", "/wA=", "--base64", "--json").stdout
    assert b"" == bytes_of(found, "value")
    assert 2 == len(job.of("state", "scan", "counts", "/w==", "--base64", "--json").stdout.splitlines())
    refused = job.of("state", "get", "counts", "no base64!", "--base64")
    assert (2, True) == (refused.returncode, "key_base64" in refused.stderr), refused.stderr
    followed = job.command("tail", job.input, "--from-beginning", "--json", "--kafka", kafka).stdout.splitlines()
    assert ENTRIES == [(bytes_of(line, "key"), bytes_of(line, "value")) for line in followed]


@pytest.mark.prove
def test_plan_and_validate_end_as_the_run_that_would_be_refused(job: Job) -> None:
    def ends() -> tuple[int, int, int]:
        plan, valid = job.command("plan", str(job.file)), job.command("validate", str(job.file), "--connect")
        assert (plan.returncode == 0) == ("error" not in plan.stderr), plan.stderr
        return plan.returncode, valid.returncode, job.run_to_end().returncode

    def change(**sections: object) -> None:
        job.file.write_text(json.dumps({**json.loads(job.file.read_text()), **sections}))

    job.feed(["the fox", "the dog"])
    assert (0, 0, 0) == ends()
    task = json.loads(job.file.read_text())["task"]
    change(task=task.replace("Counting", "Counted"))
    assert (2, 2, 2) == ends(), "no such class"
    change(task=task, outputs=[{"topic": f"{job.name}-none", "key": "string", "value": "integer"}])
    assert (4, 4, 4) == ends(), "an output is missing"
    create_topic(job.servers, f"{job.name}-none", 2)
    stores = json.loads(job.file.read_text())["stores"]
    change(stores={**stores, "counts": {"key": "string", "value": "json"}})
    plan, valid = job.command("plan", str(job.file)), job.command("validate", str(job.file), "--connect")
    assert (2, 2) == (plan.returncode, valid.returncode), "another serde than the state was written with"
    assert "SZ110" in plan.stderr
    change(stores=stores)
    add_partitions(job.servers, job.input, 3)
    assert (2, 2, 2) == ends(), "an input of a job with state has grown"


def test_a_failure_is_told_in_full_once(job: Job) -> None:
    job.feed(["the fox", "the boom", "a", "b"])
    done = job.run_to_end()
    assert 1 == done.returncode
    lines = done.stderr.splitlines()
    assert {"ValueError: boom!": 1, "Fix the task": 1} == Counter(
        w for line in lines for w in ("ValueError: boom!", "Fix the task") if w in line
    )
    assert "error[SZ200]" in lines[-2], done.stderr
    assert 'raise ValueError("boom!")' in done.stderr, "the stack is with the container's lines"


def test_what_is_told_to_be_run_does_what_it_says(job: Job) -> None:
    """Each remedy is taken as it is printed and given to a shell, until the job runs."""
    there = json.loads(job.file.read_text())
    missing = [f"{job.name}-late-{n}" for n in ("in", "out")]
    there |= {"inputs": [{"topic": missing[0], "value": "string"}], "outputs": [{"topic": missing[1], "key": "string", "value": "integer"}]}
    job.file.write_text(json.dumps(there))

    refused = job.run_to_end("--set", "id=7")
    assert (4, True) == (refused.returncode, "Create them first" in refused.stderr), refused.stderr
    for command in commands_in(refused.stderr):
        assert 0 == shell(job, command).returncode
    assert 0 == job.run_to_end("--set", "id=7").returncode

    unknown = job.command("dlq", "show", str(job.file), "3", "--set", "id=7")
    (command,) = commands_in(unknown.stderr)
    assert f"samzapy dlq list {job.file} --set id=7" == command, "of the job that was meant: the id makes it another"
    assert (2, 0) == (unknown.returncode, shell(job, command).returncode)

    with job.running("--local") as run:
        run.until_running()
        busy = job.command("reset", str(job.file))
        (command,) = commands_in(busy.stderr)
        assert (5, f"samzapy stop {job.file}") == (busy.returncode, command)
        assert 0 == shell(job, command).returncode
        assert 0 == run.process.wait(timeout=60)


def shell(job: Job, command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(command, shell=True, cwd=job.folder, env={**os.environ, "PATH": path}, text=True, capture_output=True, timeout=60)


def test_a_commit_timeout_above_the_brokers_limit_is_named_by_every_command_and_no_other_run_is_blamed(job: Job) -> None:
    too_long = ("--set", "commit.timeout=16m")
    said = "commit.timeout is 16m, longer than the brokers allow a transaction to take: their transaction.max.timeout.ms is 900000 (15m)."
    for verb, *options in (("validate", "--connect"), ("plan", "--local"), ("run", "--local", "--until-end")):
        told = job.command(verb, str(job.file), *options, *too_long)
        assert (2, True) == (told.returncode, said in told.stderr), told.stderr
        assert "SZ3" not in told.stderr
    told = job.command("doctor", str(job.file), *too_long)
    assert (1, True) == (told.returncode, f"fail commit.timeout: {said}" in " ".join(told.stdout.split())), told.stdout
