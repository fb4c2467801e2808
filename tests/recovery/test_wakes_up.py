"""A container and its driver that were stopped, as on a machine that hung, and wake up beside a run that has taken their place.

The container's producer, consumer and stores are still open and it is in the middle of its work. It ends by itself, what it had not
committed is seen by nobody, and it has no file in common with its successor, which runs on the same host.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.integration.job import PATIENCE_S, Job, Running
from tests.integration.processes import until
from tests.integration.test_dead_letters import everything, origins

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
WORDS = [f"word{i % 97}" if i % 50 else f"word{i % 97} boom" for i in range(30_000)]
QUICK = {"count": 1, "heartbeat": "200ms", "lease": "5s"}


def container_of(run: Running) -> int:
    status = run.until(lambda s: s["state"] == "RUNNING" and all(c["pid"] for c in s["containers"]))
    return int(status["containers"][0]["pid"])


def files_of(pid: int, folder: Path) -> set[Path]:
    """What a process has open below a folder."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        path = Path(os.readlink(link))
        if path.is_relative_to(folder) and path.is_file():
            found.add(path)
    return found


def traces(files: set[Path]) -> set[Path]:
    """Those that say where a process ended; they lie together, by container."""
    return {f for f in files if f.parent.name == ".traces"}


def contents(files: Iterable[Path]) -> dict[Path, bytes]:
    """Of the stores that these files are of; RocksDB's own diary is left out."""
    folders = {file.parent for file in files}
    return {path: path.read_bytes() for folder in folders for path in folder.iterdir() if not path.name.startswith("LOG")}


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def await_end(pid: int) -> float:
    """Seconds until the process has ended."""
    started = time.monotonic()
    while not is_gone(pid):
        assert time.monotonic() - started < PATIENCE_S, "it goes on"
    return time.monotonic() - started


def until_committed(job: Job, lines: list[str]) -> None:
    """`status` tells where a task stands; on a machine with much to do a commit may be tried again after that."""
    bad = sum("boom" in line for line in lines)
    until(lambda: len(job.updates()) >= len(lines) - bad and len(origins(job)) >= bad, f"all of {len(lines):,} records are committed", PATIENCE_S)


@pytest.mark.parametrize("guarantee", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.prove)])
def test_whoever_wakes_up_beside_its_successor_ends_and_has_done_no_harm(kafka: str, tmp_path: Path, guarantee: str) -> None:
    job = Job(
        kafka, tmp_path, f"wakes-{secrets.token_hex(4)}", partitions=2, containers=QUICK, on_error={"then": "dead_letter"},
        commit={"interval": "500ms", "timeout": "20s", "guarantee": guarantee},
    )  # fmt: skip
    with job.running("--local") as first:
        sleeper = container_of(first)
        job.feed(WORDS[:5000])
        first.until_caught_up(everything(job))
        job.feed(WORDS[5000:20_000])
        for pid in (first.process.pid, sleeper):
            os.kill(pid, signal.SIGSTOP)
        its_files = files_of(sleeper, job.state)
        with job.running("--local", "--takeover") as second:
            second.until_caught_up(everything(job))
            until_committed(job, WORDS[:20_000])
            files = files_of(container_of(second), job.state)
            before = contents(files)
            assert not is_gone(sleeper)

            for pid in (sleeper, first.process.pid):
                os.kill(pid, signal.SIGCONT)
            print(f"{guarantee}: ended {await_end(sleeper):.2f} s after it woke up")

            assert (True, True) == (bool(its_files), bool(files))
            assert set() == {f.parent for f in files - traces(files)} & {f.parent for f in its_files}
            assert 1 == len(traces(files))
            assert traces(files) == {f for f in traces(files) if f.exists()}, "who wakes up removes his own trace only"
            assert before == contents(files)
            assert 5 == first.process.wait(PATIENCE_S)
            job.feed(WORDS[20_000:])
            second.until_caught_up(everything(job))
            until_committed(job, WORDS)
            assert 0 == second.stop()
    assert sorted((job.input, i % 2, i // 2) for i, line in enumerate(WORDS) if "boom" in line) == sorted(origins(job))
    good = Counter((i % 2, line) for i, line in enumerate(WORDS) if "boom" not in line)
    assert good == job.stored()
    updates = [(p, word, n) for (p, word), count in good.items() for n in range(1, count + 1)]
    assert sorted(updates) == sorted(job.updates()) if guarantee == "exactly_once" else set(updates) == set(job.updates())
