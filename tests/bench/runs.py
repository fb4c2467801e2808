"""Runs of either side as processes of their own, with the processor time that they took."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.place import LOOPS, ROOT, SAMZAPY
from tests.broker import free_port
from tests.integration.processes import until

LIMIT_S = 1800.0
LOCAL = ("--local",)


def cpu_of_children_s() -> float:
    """Processor time of all child processes that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of(run: Callable[[], object]) -> float:
    """The processor time of the processes that `run` starts and waits for, seconds."""
    before = cpu_of_children_s()
    run()
    return cpu_of_children_s() - before


@dataclass(frozen=True)
class Loop:
    """A run of loops.py: its mode, topics and folder."""

    servers: str
    mode: str
    given: str
    output: str = ""
    folder: str = ""

    def command(self) -> list[str]:
        command = [*LOOPS, self.mode, "--broker", self.servers, "--input", self.given]
        return command + (["--output", self.output] if self.output else []) + (["--dir", self.folder] if self.folder else [])


def run_loops(*loops: Loop) -> list[dict[str, Any]]:
    """All at the same time; the line that each printed."""
    processes = [
        subprocess.Popen(loop.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for loop in loops
    ]
    answers = []
    for loop, process in zip(loops, processes, strict=True):
        out, err = process.communicate(timeout=LIMIT_S)
        if process.returncode:
            raise RuntimeError(f"loops.py {loop.mode} over {loop.given} ended with {process.returncode}: {err[-1000:]}")
        answers.append(json.loads(out.strip().splitlines()[-1]))
    return answers


def run_job(job: Path, *options: str, env: Mapping[str, str] | None = None) -> None:
    """`samzapy run` up to the inputs' ends, under `--local` when `options` say nothing else. `env`: what is added to the environment."""
    command = [*SAMZAPY, "run", str(job), *(options or LOCAL), "--until-end"]
    given = {**os.environ, **(env or {})}
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, timeout=LIMIT_S, check=False, env=given
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")


class LiveJob:
    """A job that runs until it is stopped."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, log: Path) -> None:
        self.process, self._url, self._log = process, url, log

    def status(self) -> dict[str, Any] | None:
        """As it tells it; None while nobody answers."""
        try:
            answer: dict[str, Any] = json.loads(self._get("/api/v1/status"))
        except OSError:
            if self.process.poll() is not None:
                raise RuntimeError(f"the job ended with {self.process.returncode}:\n{self._log.read_text()[-3000:]}") from None
            return None
        return answer

    def running(self) -> dict[str, Any]:
        """Its status once all tasks run and have said how they were restored."""

        def all_run() -> dict[str, Any] | None:
            told = self.status()
            return told if told and all(task["state"] == "RUNNING" for task in told["tasks"]) else None

        return until(all_run, "all tasks are RUNNING", LIMIT_S)

    def commits(self) -> tuple[int, float]:
        """How many commits there were in containers that run, and the seconds they took together."""
        found = {"count": 0.0, "sum": 0.0}
        for line in self._get("/metrics").decode().splitlines():
            for part in found:
                if line.startswith(f"samzapy_commit_seconds_{part}{{"):
                    found[part] += float(line.rsplit(" ", 1)[1])
        return int(found["count"]), found["sum"]

    def stop(self) -> None:
        """In order: a last commit, exit code 0."""
        self.process.send_signal(signal.SIGINT)
        if self.process.wait(LIMIT_S):
            raise RuntimeError(f"the job ended with {self.process.returncode}:\n{self._log.read_text()[-3000:]}")

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self._url + path, timeout=10) as answer:
            content: bytes = answer.read()
            return content


@contextlib.contextmanager
def live_job(job: Path, *sets: str, where: tuple[str, ...] = LOCAL) -> Iterator[LiveJob]:
    """Started; stopped at the end. `sets`: KEY=VALUE, as `samzapy run --set` takes them; `where`: its options that say what runs it."""
    port, log = free_port(), job.parent / "run.log"
    given = [part for one in (f"web.port={port}", "containers.heartbeat=200ms", *sets) for part in ("--set", one)]
    with log.open("wb") as err:
        process = subprocess.Popen([*SAMZAPY, "run", str(job), *where, *given], stdin=subprocess.DEVNULL, stdout=err, stderr=err, cwd=ROOT)
    try:
        live = LiveJob(process, f"http://127.0.0.1:{port}", log)
        yield live
        live.stop()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
