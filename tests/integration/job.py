"""A job of a test's own on a real broker, driven as a user would: files, and the `samzapy` command in processes of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol

from tests.broker import create_topic, produce, read_all
from tests.command_server import Process, run_samzapy, start_samzapy
from tests.commands import PLACEHOLDER, what_does_not_run

PATIENCE_S = 180.0
HTTP_S = 5.0
LOOK_S = 0.1
STATUS_URL = re.compile(rb" INFO +status: (http://\S+)/api/v1/status\n")
VERBS = ["state", "checkpoint", "export", "get", "scan", "restore", "verify", "show", "status", "stop", "top", "topics", "ui", "pause", "resume", "commit"]
BARRIER = b"\x00samzapy/barrier"

TASK = """
import ctypes
import re

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class Counting(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        for word in envelope.message.split():
            if word == "boom":
                raise ValueError("boom!")
            n = (self.counts.get(word) or 0) + 1
            self.counts.put(word, n)
            collector.send(OutgoingMessageEnvelope(self.out, n, word, partition=envelope.partition))

class CountingBatches(Counting):
    def process_batch(self, envelopes, collector, coordinator):
        for envelope in envelopes:
            self.process(envelope, collector, coordinator)

class Deadly(Counting):
    def process(self, envelope, collector, coordinator):
        super().process(envelope, collector, coordinator)
        if envelope.message == "crash":
            ctypes.string_at(0)
        if envelope.message == "hold":
            re.match(r"(a|aa)+$", "a" * 60 + "b")  # holds the interpreter's lock for hours

class Loud(Counting):
    def process(self, envelope, collector, coordinator):
        print("x" * 200, envelope.offset, flush=True)
        super().process(envelope, collector, coordinator)

class Silent(StreamTask):
    def process(self, envelope, collector, coordinator):
        pass

class Huge(StreamTask):
    def init(self, context):
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        self.counts.put("before", 1)
        self.counts.put("x" * 5_000_000 if envelope.message == "huge" else envelope.message, 1)
"""


class Job:
    """Topics `<name>-in` and `<name>-out`, a job file and a task module in a folder of its own."""

    def __init__(self, servers: str, folder: Path, name: str, partitions: int = 4, task: str = "Counting", **sections: Any) -> None:
        self.servers, self.folder, self.name, self.partitions = servers, folder, name, partitions
        self.input, self.output, self.changelog = f"{name}-in", f"{name}-out", f"{name}-1-counts-changelog"
        self.state = folder / "state"
        create_topic(servers, self.input, partitions)
        create_topic(servers, self.output, partitions)
        module = "task_" + name.replace("-", "_")
        (folder / f"{module}.py").write_text(TASK)
        document = {
            "job": name,
            "task": f"{module}:{task}",
            "params": {"out": self.output},
            "kafka": {"bootstrap.servers": servers},
            "inputs": [{"topic": self.input, "value": "string"}],
            "outputs": [{"topic": self.output, "key": "string", "value": "integer"}],
            "stores": {"counts": {"key": "string", "value": "integer"}},
            "commit": {"interval": "200ms"},
            "containers": {"count": 2, "max_restarts": 50},
            "state": {"dir": str(self.state)},
            **sections,
        }
        self.file = folder / f"{name}.yaml"
        self.file.write_text(json.dumps(document))
        self._coordinator = Coordinator(name, lambda: self.of("status", "--json"))

    # -- the world outside -----------------------------------------------------------------------------------------------------------

    def feed(self, lines: list[str]) -> None:
        produce(self.servers, self.input, [(None, line.encode(), i % self.partitions) for i, line in enumerate(lines)])

    def updates(self) -> list[tuple[int, str, int]]:
        """Committed output: (partition, word, count), in order."""
        return [(r.partition, (r.key or b"").decode(), number(r.value)) for r in read_all(self.servers, self.output)]

    def stored(self) -> dict[tuple[int, str], int]:
        """The changelog, as a plain consumer sees it: newest value per partition and key."""
        newest: dict[tuple[int, str], int] = {}
        for r in read_all(self.servers, self.changelog):
            if r.key != BARRIER:
                key = r.partition, (r.key or b"").decode()
                if r.value is None:
                    newest.pop(key, None)
                else:
                    newest[key] = number(r.value)
        return newest

    # -- commands ----------------------------------------------------------------------------------------------------------------------

    def command(self, *arguments: str, limit_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """One command to its end."""
        done = run_samzapy(arguments, self.folder, limit_s)
        told = done.stdout + done.stderr
        assert PLACEHOLDER not in told or "--help" in arguments, told
        assert [] == what_does_not_run(told), "what is told to be run can be"
        return done

    def of(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command about this job: `of("state", "export", …, )` gets the job file after the verbs."""
        verbs = [
            a
            for a in arguments
            if a in VERBS
        ]
        rest = [a for a in arguments if a not in verbs]
        return self.command(*verbs, str(self.file), *rest)

    def run_to_end(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.command("run", str(self.file), "--local", "--until-end", *arguments)

    def export(self) -> dict[str, int]:
        """`samzapy state export`, the tasks' counts added up."""
        done = self.of("state", "export", "counts", "--json")
        assert done.returncode == 0, done.stderr
        total: dict[str, int] = {}
        for line in done.stdout.splitlines():
            entry = json.loads(line)
            total[entry["key"]] = total.get(entry["key"], 0) + entry["value"]
        return total

    def status(self) -> dict[str, Any] | None:
        """What its coordinator answers; None where none does."""
        return self._coordinator.status()

    def ask_by_command(self) -> None:
        """From now on `status` finds the coordinator by `samzapy status`, not by the run's log."""
        self._coordinator.follow(None)

    @contextlib.contextmanager
    def running(self, *arguments: str, limit: str = "") -> Iterator[Running]:
        """`samzapy run` in the background; killed with all it started when the block is left. `limit`: for example "ulimit -n 512; "."""
        self._coordinator.follow(self.folder / "run.log")
        command = ["run", str(self.file), *arguments]
        if limit:
            process: Process = subprocess.Popen(
                ["sh", "-c", f'{limit}exec "$@"', "sh", sys.executable, "-m", "samzapy", *command],
                stdout=subprocess.DEVNULL,
                stderr=(self.folder / "run.log").open("ab"),
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                start_new_session=True,
            )
        else:
            process = start_samzapy(command, self.folder, self.folder / "run.log")
        try:
            yield Running(self, process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Coordinator:
    """What a running job's coordinator answers, over HTTP. Where it is, the log of the run says in its first line; of a run that is not followed,
    `samzapy status --json` tells, once for each run: a command for each look would cost more processor time than the job.
    """

    def __init__(self, job: str, command: Callable[[], subprocess.CompletedProcess[str]]) -> None:
        self._job, self._command, self._url = job, command, ""
        self._log: Path | None = None
        self._log_start = 0

    def follow(self, log: Path | None) -> None:
        """The next run writes to this log, after what is in it now; None: to no log that can be read."""
        self._log, self._log_start, self._url = log, log.stat().st_size if log is not None and log.exists() else 0, ""

    def status(self) -> dict[str, Any] | None:
        self._url = self._url or self._found()
        if not self._url:
            return None
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/status", timeout=HTTP_S) as answer:
                found: dict[str, Any] = json.load(answer)
        except (OSError, ValueError, HTTPException):
            self._url = ""
            return None
        return found if found["job"] == self._job else None

    def _found(self) -> str:
        if self._log is not None:
            told = STATUS_URL.findall(self._log.read_bytes()[self._log_start :]) if self._log.exists() else []
            return told[-1].decode() if told else ""
        done = self._command()
        return str(json.loads(done.stdout)["coordinator"]) if done.returncode == 0 else ""


class Observed(Protocol):
    """A job whose folder has the log of its run."""

    folder: Path

    def status(self) -> dict[str, Any] | None: ...


class Running:
    """A running job."""

    def __init__(self, job: Observed, process: Process) -> None:
        self.job, self.process = job, process

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first status that meets the condition."""
        deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
        status: dict[str, Any] | None = None
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the job ended: {(self.job.folder / 'run.log').read_text()[-3000:]}"
            status = self.job.status()
            if status is not None and condition(status):
                return status
            pause.wait(LOOK_S)
        raise AssertionError(f"never so: {json.dumps(status)}\n{(self.job.folder / 'run.log').read_text()[-3000:]}")

    def until_running(self) -> dict[str, Any]:
        return self.until(lambda s: s["state"] == "RUNNING")

    def until_caught_up(self, ends: dict[str, int]) -> dict[str, Any]:
        """Every task's position has reached these ends, and all run."""

        def caught_up(status: dict[str, Any]) -> bool:
            at = {place: position for t in status["tasks"] for place, position in t["positions"].items()}
            return status["state"] == "RUNNING" and all(at.get(place, 0) >= end for place, end in ends.items())

        return self.until(caught_up)

    def stop(self, by: int = signal.SIGINT) -> int:
        self.process.send_signal(by)
        return self.process.wait(timeout=PATIENCE_S)


def number(value: bytes | None) -> int:
    """As Kafka's LongDeserializer reads it."""
    assert value is not None
    assert len(value) == 8
    return int.from_bytes(value, "big", signed=True)
