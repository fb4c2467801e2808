"""A counting job with a state of many keys, for proofs of where state is found again and how much of it is read."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.broker import ends
from tests.integration.job import Job, Running

PER_LINE = 20
WORDS = 500
TICK_S = 0.1
LINES = 50
PATIENCE_S = 600.0
LOOK_S = 0.1

Status = dict[str, Any]


class KeysJob(Job):
    """Counts words; `fill` gives it as many different ones as its stores are to have keys."""

    def __init__(self, servers: str, folder: Path, name: str, partitions: int, **sections: Any) -> None:
        super().__init__(servers, folder, name, partitions, **sections)
        self.words = 0

    def fill(self, keys: int) -> None:
        self.give([" ".join(f"key{first + i:07d}" for i in range(PER_LINE)) for first in range(0, keys, PER_LINE)])

    def give(self, lines: list[str]) -> None:
        self.feed(lines)
        self.words += sum(len(line.split()) for line in lines)

    def ends(self) -> dict[str, int]:
        """By `topic[partition]`, as a status names positions."""
        return {f"{self.input}[{p}]": end for p, end in ends(self.servers, self.input).items()}

    @contextlib.contextmanager
    def running(self, *arguments: str, limit: str = "") -> Iterator[KeysRun]:
        with super().running(*arguments, limit=limit) as run:
            yield KeysRun(self, run.process)

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Words of a small vocabulary come all the time while the block is open."""
        stopping, chance = threading.Event(), random.Random(1)
        failures: list[Exception] = []

        def run() -> None:
            try:
                while not stopping.wait(TICK_S):
                    self.give([" ".join(f"w{chance.randrange(WORDS)}" for _ in range(3)) for _ in range(LINES)])
            except Exception as failure:
                failures.append(failure)  # raised where the block ends

        thread = threading.Thread(target=run, name="busy", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
        if failures:
            raise failures[0]

    def wrong(self) -> list[str]:
        """What of the committed output and state is not as it must be: every word counted 1, 2, … in order, and as often as it was given."""
        last: Counter[tuple[int, str]] = Counter()
        problems, updates = [], self.updates()
        for partition, word, count in updates:
            if count != last[partition, word] + 1:
                problems.append(f"{word} in partition {partition}: {count} after {last[partition, word]}")
            last[partition, word] = count
        if len(updates) != self.words:
            problems.append(f"{len(updates)} updates of {self.words} words")
        if self.stored() != dict(last):
            problems.append("the changelog holds other counts than the output")
        return problems[:10]


class KeysRun(Running):
    """A run of such a job, with patience for large states."""

    def until(self, condition: Callable[[Status], bool], limit_s: float = PATIENCE_S) -> Status:
        deadline, pause = time.monotonic() + limit_s, threading.Event()
        status: Status | None = None
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the job ended: {self.log_tail()}"
            status = self.job.status()
            if status is not None and condition(status):
                return status
            pause.wait(LOOK_S)
        raise AssertionError(f"never so: {json.dumps(status)}\n{self.log_tail()}")

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`samzapy <words> <job file>` to its end."""
        return self.job.command(*words, str(self.job.file), limit_s=PATIENCE_S)

    def log_tail(self, size: int = 3000) -> str:
        return (self.job.folder / "run.log").read_text(errors="replace")[-size:]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=PATIENCE_S)


# -- reading a status ------------------------------------------------------------------------------------------------------------------


def homes(status: Status) -> dict[str, str]:
    """By task, the host it runs on."""
    hosts = {c["id"]: c["host"] for c in status["containers"]}
    return {t["name"]: hosts[t["container"]] for t in status["tasks"]}


def pids(status: Status) -> dict[str, int]:
    """By task, the process it runs in."""
    of = {c["id"]: c["pid"] for c in status["containers"]}
    return {t["name"]: of[t["container"]] for t in status["tasks"]}


def processed(status: Status) -> dict[str, int]:
    return {t["name"]: t["processed"] for t in status["tasks"]}


def restores(status: Status) -> dict[str, dict[str, Any]]:
    """By task, how its store was restored when it came where it is."""
    return {t["name"]: t["stores"]["counts"]["restore"] for t in status["tasks"]}


def is_settled(status: Status) -> bool:
    """Every task and every container runs, and nothing moves."""
    return status["state"] == "RUNNING" and not status["moves"] and all(c["state"] == "RUNNING" for c in status["containers"])
