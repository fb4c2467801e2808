"""Where benchmarks run: one broker, its topics, and a folder. What took long to make is kept for the next run."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.bench import topics
from tests.broker import create_topic

ROOT = Path(__file__).parents[2]
SAMZAPY = (sys.executable, "-m", "samzapy")
LOOPS = (sys.executable, str(Path(__file__).parent / "loops.py"))
PARTITIONS = 4
USERS = 50_000
FOR_EVER = {"retention_ms": -1}
RUN = "bench-run"  # is in the name of every topic that goes with its run
BROKER_WAIT_S = 180


@dataclass(frozen=True)
class Place:
    """What every yardstick is given.

    Attributes:
        servers: the broker's bootstrap servers.
        kept: what took long to make; it can be deleted when nothing runs.
        runs: what single runs need, which goes with them.
        records: how many the inputs have.
        small: a quick look: small inputs and state.
        say: progress, line by line.
    """

    servers: str
    kept: Path
    runs: Path
    records: int
    small: bool
    say: Callable[[str], None]

    def input(self) -> str:
        """The topic of all throughput yardsticks, filled when it is not yet."""
        topic = f"bench-in-{self.records}"
        if topics.end_offsets(self.servers, topic) != self.records:
            self.say(f"filling {topic}")
            topics.delete(self.servers, [topic])
            create_topic(self.servers, topic, PARTITIONS, **FOR_EVER)
            command = [*LOOPS, "load", "--broker", self.servers, "--input", topic, "--n", str(self.records), "--users", str(USERS)]
            subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        return topic

    def halves(self) -> tuple[str, str]:
        """The same records in two topics, for two loops: each reads all of one."""
        whole = self.input()
        names = (f"{whole}-first", f"{whole}-second")
        if sum(topics.end_offsets(self.servers, name) for name in names) != self.records:
            for number, name in enumerate(names):
                self.say(f"filling {name}")
                topics.delete(self.servers, [name])
                create_topic(self.servers, name, PARTITIONS // 2, **FOR_EVER)
                low = number * PARTITIONS // 2
                topics.fill(self.servers, name, (
                    (m.key(), m.value(), m.partition() - low)
                    for batch in topics.read(self.servers, [whole]) for m in batch if 0 <= m.partition() - low < PARTITIONS // 2
                ))  # fmt: skip
        return names

    def empty(self) -> str:
        """A topic with nothing in it: what a run over it costs is not the records' cost."""
        if "bench-empty" not in topics.names(self.servers):
            create_topic(self.servers, "bench-empty", PARTITIONS)
        return "bench-empty"

    def output(self, name: str) -> str:
        """A topic whose records bear the time at which the broker wrote them."""
        return create_topic(self.servers, f"{name}-out", PARTITIONS, message_timestamp_type="LogAppendTime")

    @contextlib.contextmanager
    def attempt(self) -> Iterator[str]:
        """A name for one run, its topics and its folder; they are removed after it."""
        name = f"{RUN}-{secrets.token_hex(4)}"
        (self.runs / name).mkdir()
        try:
            yield name
        finally:
            for path in self.runs.glob(f"{name}*"):
                shutil.rmtree(path)
            topics.delete(self.servers, [topic for topic in topics.names(self.servers) if name in topic])

    def tidy(self) -> None:
        """Remove what an interrupted run left on the broker. One `make bench` at a time uses a broker."""
        topics.delete(self.servers, [topic for topic in topics.names(self.servers) if RUN in topic])

    def job_file(self, folder: Path, task: str, inputs: list[dict[str, Any]], **more: Any) -> Path:
        """A job as a user would write it, named as its folder is; everything not given is the default."""
        document = {
            "job": folder.name, "task": f"tests.bench.tasks:{task}", "kafka": {"bootstrap.servers": self.servers}, "inputs": inputs,
            "state": {"dir": str(folder / "state")}, **more,
        }  # fmt: skip
        path = folder / "job.yaml"
        path.write_text(json.dumps(document, indent=1))
        return path


@cache
def expected(model: Callable[[str, str], topics.Contents], servers: str, given: str) -> topics.Contents:
    """The outputs that an input must lead to, worked out once."""
    return model(servers, given)


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[str]:
    """`samzapy dev kafka` in `folder`, for as long as the benchmarks run; its data stays."""
    directory = str(folder / "kafka")
    started = subprocess.run(
        [*SAMZAPY, "dev", "kafka", "start", "--port", "0", "--dir", directory],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=True, timeout=BROKER_WAIT_S,
    )  # fmt: skip
    try:
        yield started.stdout.strip()
    finally:
        subprocess.run([*SAMZAPY, "dev", "kafka", "stop", "--dir", directory], stdin=subprocess.DEVNULL, check=True, timeout=BROKER_WAIT_S)
