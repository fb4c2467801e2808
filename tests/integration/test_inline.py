"""`samzapy run --inline`: the whole job in one process, on a real broker."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.broker import create_topic, produce, read_all
from tests.integration.processes import until

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
TASK = """
import os
import threading

from samzapy import StreamTask

class Counting(StreamTask):
    def init(self, context):
        self.counts = context.get_store("counts")
        print("task in process", os.getpid(), "thread", threading.current_thread().name, flush=True)

    def process(self, envelope, collector, coordinator):
        if envelope.message == "boom":
            raise ValueError("boom!")
        n = self.counts.get(envelope.message, 0) + 1
        self.counts.put(envelope.message, n)
        collector.send(OUT, n, key=envelope.message)
"""


class Words:
    """A job that counts words, and its topics; the output does not exist yet."""

    def __init__(self, kafka: str, folder: Path) -> None:
        name = secrets.token_hex(4)
        self.kafka, self.folder, self.input, self.output, self.file = kafka, folder, f"words-{name}", f"counts-{name}", folder / "job.yaml"
        (folder / f"task_{name}.py").write_text(TASK.replace("OUT", repr(self.output)))
        create_topic(kafka, self.input, 2)
        document = {
            "job": f"inline-{name}", "task": f"task_{name}:Counting", "kafka": {"bootstrap.servers": kafka},
            "inputs": [{"topic": self.input, "value": "string"}],
            "outputs": [{"topic": self.output, "key": "string", "value": "integer", "partitions": 2}],
            "stores": {"counts": {"key": "string", "value": "integer"}}, "state": {"dir": str(folder / "state")},
        }  # fmt: skip
        self.file.write_text(json.dumps(document))

    def feed(self, *words: str) -> None:
        produce(self.kafka, self.input, [(None, word.encode()) for word in words], partition=0)

    def command(self, *more: str) -> list[str]:
        return [sys.executable, "-m", "samzapy", "run", str(self.file), "--inline", *more]

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command("--until-end", *more), cwd=self.folder, capture_output=True, text=True, timeout=150)

    def counts(self) -> list[tuple[str, int]]:
        return [((m.key or b"").decode(), int.from_bytes(m.value or b"", "big")) for m in read_all(self.kafka, self.output)]


@pytest.fixture
def words(kafka: str, tmp_path: Path) -> Words:
    return Words(kafka, tmp_path)


def test_it_processes_what_is_there_in_one_process_creates_outputs_and_goes_on_exactly(words: Words) -> None:
    words.feed("ada", "bob", "ada")
    too_long = words.run("--create-topics", "--set", "commit.timeout=1h")
    assert (2, False) == (too_long.returncode, "created" in too_long.stderr), too_long.stderr
    refused = words.run()  # who was refused has created none
    assert (4, True) == (refused.returncode, "--create-topics" in refused.stderr), refused.stderr
    first = words.run("--create-topics")
    assert first.returncode == 0, first.stderr
    assert f"created {words.output}" in first.stderr + first.stdout
    assert [("ada", 1), ("ada", 2), ("bob", 1)] == sorted(words.counts())
    assert {"container-0"} == {line.split()[-1] for line in first.stdout.splitlines() if line.startswith("task in process")}
    assert 1 == len({line.split()[3] for line in first.stdout.splitlines() if line.startswith("task in process")})
    again = words.run()
    assert (0, 3) == (again.returncode, len(words.counts())), again.stderr
    words.feed("ada")
    assert words.run().returncode == 0
    assert ("ada", 3) in words.counts()
    assert 4 == len(words.counts())


def test_an_exception_ends_it_with_the_records_name_and_what_came_before_it_is_committed(words: Words) -> None:
    words.feed("ada", "boom", "bob")
    failed = words.run("--create-topics")
    assert failed.returncode == 1, failed.stderr
    assert f"{words.input}[0]@1" in failed.stderr
    assert "boom!" in failed.stderr
    assert [("ada", 1)] == words.counts()
    set_aside = words.run("--set", "on_error.then=dead_letter")
    assert set_aside.returncode == 0, set_aside.stderr
    assert "1 set aside" in set_aside.stderr
    assert [("ada", 1), ("bob", 1)] == sorted(words.counts())


def test_ctrl_c_commits_and_ends_with_exit_code_0(words: Words) -> None:
    words.feed("ada")
    with subprocess.Popen(words.command("--create-topics", "--set", "commit.interval=1m", "--set", "commit.timeout=10m"), cwd=words.folder, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:  # fmt: skip
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(run.stderr or ()), daemon=True)
        reader.start()
        try:
            until(lambda: any("restored" in line for line in said), "the task to be started")
            until(lambda: _processed(words) >= 1, "a record to be processed")
            run.send_signal(signal.SIGINT)
            assert run.wait(90) == 0, "".join(said)
        finally:
            run.kill()
        reader.join(10)
    assert "final commit" in "".join(said)
    assert [("ada", 1)] == words.counts()


def _processed(words: Words) -> int:
    """How many records the run says it has processed."""
    shown = subprocess.run([sys.executable, "-m", "samzapy", "status", str(words.file), "--json"], capture_output=True, text=True, timeout=60, cwd=words.folder)
    status = json.loads(shown.stdout or "{}")
    return sum(task["processed"] for task in status.get("tasks", []))
