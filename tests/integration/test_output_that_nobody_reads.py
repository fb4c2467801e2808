"""Standard error is a pipe or a terminal that takes nothing more: the run goes on, says so, and ends when it is told to."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.integration.job import Job
from tests.integration.processes import until

pytestmark = pytest.mark.kafka

RECORDS = 2000  # of 200 bytes and more that the task prints: more than the pipes between the task and the reader hold


@contextmanager
def full_pipe(path: Path) -> Iterator[Path]:
    """A named pipe that is full, and that nobody reads."""
    os.mkfifo(path)
    both_ends = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        for piece in (b"x" * 4096, b"x"):
            with suppress(BlockingIOError):
                while os.write(both_ends, piece):
                    pass
        yield path
    finally:
        os.close(both_ends)


@pytest.mark.prove
def test_a_run_whose_log_nobody_reads_goes_on_says_so_and_ends_when_told_to(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, 2, task="Loud", containers={"count": 2, "max_restarts": 0})
    job.feed(["word"] * RECORDS)

    with full_pipe(tmp_path / "pipe") as pipe, job.running("--local", limit=f"exec 2>'{pipe}'; ") as run:
        job.ask_by_command()  # its log, which names its address, is not read
        caught_up = run.until_caught_up({f"{job.input}[{p}]": RECORDS // 2 for p in range(2)})
        told = until(lambda: "note: standard error has not been read for" in (shown := job.of("status").stdout) and shown, "status says it")
        assert 0 == run.stop(signal.SIGTERM), "a final commit, within the time that containers have for it"

    assert [0, 0] == [c["restarts"] for c in caught_up["containers"]], "their heartbeats were answered"
    assert "the job goes on; log lines lost so far:" in told
    assert [(p, "word", n) for p in range(2) for n in range(1, RECORDS // 2 + 1)] == sorted(job.updates())
    assert "its last run ended normally" in job.of("status").stderr
