"""Whoever writes to a run's output never waits for its reader, and what is lost is counted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import pytest

from samzapy.log_output import BLOCKED_S, QueuedOutput
from samzapy.testing.manual_clock import ManualClock

LIMIT = 100_000
LINES = 20_000  # of more bytes than a pipe holds and may wait, together
LIMIT_S = 60  # seconds, for a process that is to end in some
ROOT = Path(__file__).parents[2]


@contextmanager
def a_pipe() -> Iterator[tuple[BinaryIO, int]]:
    """The end to read from, and the one to write to."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as lines:
        try:
            yield lines, writing
        finally:
            with suppress(OSError):
                os.close(writing)


@contextmanager
def a_full_pipe() -> Iterator[tuple[BinaryIO, int]]:
    """One that takes nothing more. What it is full of are ends of lines."""
    with a_pipe() as (lines, writing):
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            while os.write(writing, b"\n"):
                pass
        os.set_blocking(writing, True)
        yield lines, writing


def read_to_the_end(output: QueuedOutput, lines: BinaryIO) -> list[str]:
    """What a reader gets who comes now."""
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.extend(line.decode().rstrip() for line in lines if line != b"\n"))
    reader.start()
    output.close()
    os.close(output.fd)
    reader.join()
    return found


def test_a_pipe_that_nobody_reads_stops_no_writer_and_the_lines_that_are_lost_are_counted_where_they_are_missing() -> None:
    clock = ManualClock()
    with a_full_pipe() as (reader, fd):
        output = QueuedOutput(fd, "standard error", LIMIT, clock.monotonic)
        output.write(b"line 0\n")
        while not output.note():  # the thread is about to write
            clock.advance(BLOCKED_S)
        for n in range(1, LINES):
            output.write(b"line %d\n" % n)
        waiting = threading.Thread(target=output.wait_for_room)  # for no reader who takes nothing
        waiting.start()
        while waiting.is_alive():  # the write that nobody takes may begin only now, by this clock
            clock.advance(BLOCKED_S)
            waiting.join(0.01)
        while not (note := output.note()).startswith("standard error has not been read"):
            clock.advance(BLOCKED_S)
        found = read_to_the_end(output, reader)

    assert note.startswith("standard error has not been read for ")
    assert " s (Ctrl-S, or a pager or pipe that waits?); the job goes on; log lines lost so far: " in note
    lost = int(note.rpartition(": ")[2])
    [missing] = [line for line in found if "WARNING" in line]
    assert missing.endswith(f"lines missing here: {lost}, because standard error was read too slowly, or not at all")
    assert LINES == lost + len(found) - 1
    at = found.index(missing)
    numbers = [int(line.split()[1]) for line in found if line != missing]
    assert [n for n, after in pairwise(numbers) if after != n + 1] == [numbers[at - 1]], "in order, with one gap, where the line says"
    assert (0, LINES - 1) == (numbers[0], numbers[-1]), "the newest are kept"
    assert output.note().startswith(f"log lines lost so far: {lost}, the last at ")


def test_a_reader_that_reads_loses_nothing_of_threads_that_may_wait() -> None:
    def print_much(who: int) -> None:
        for n in range(LINES):
            output.write(b"%d %d\n" % (who, n))
            output.wait_for_room()

    with a_pipe() as (lines, fd):
        output = QueuedOutput(fd, "standard error", LIMIT, ManualClock().monotonic)
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.extend(lines))
        threads = [threading.Thread(target=print_much, args=(who,)) for who in range(3)]
        for thread in (reader, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        output.close()
        os.close(fd)
        reader.join()

    assert "" == output.note()
    for who in range(3):
        assert [b"%d %d\n" % (who, n) for n in range(LINES)] == [line for line in found if line.startswith(b"%d " % who)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_and_stops_nothing() -> None:
    with open("/dev/full", "wb") as full:
        output = QueuedOutput(full.fileno(), "standard error", LIMIT)
        output.write(b"one\ntwo\n")
        output.close()
    assert "log lines lost so far: 2, the last at " in output.note()
    assert output.note().endswith("standard error could not be written: No space left on device")


def run_python(code: str, stderr: int, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", f"import os, signal, sys\n{code}", *arguments],
        stdout=subprocess.PIPE, stderr=stderr, timeout=LIMIT_S, check=False, cwd=ROOT,
    )  # fmt: skip


def test_what_is_written_at_the_end_is_there_in_its_order_with_what_a_forked_copy_writes() -> None:
    code = (
        "from samzapy.log_output import queued_output\n"
        "with queued_output():\n"
        "    for n in range(5000):\n"
        "        print('out', n)\n"
        "        print('err', n, file=sys.stderr)\n"
        "    sys.stderr.flush()\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        print('a copy', flush=True)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "    sys.stdout.write('last')\n"
        "print(' words')\n"
    )
    done = run_python(code, subprocess.STDOUT)
    found = done.stdout.decode().splitlines()
    found.remove("a copy")
    assert [f"{name} {n}" for n in range(5000) for name in ("out", "err")] + ["last words"] == found


def test_a_handler_of_a_signal_writes_too_whatever_it_interrupts() -> None:
    code = (
        "from samzapy.log_output import QueuedOutput\n"
        "output, taken = QueuedOutput(1, 'standard output', 1 << 30), []\n"
        "def handle(*_):\n"
        "    taken.append(0)\n"
        "    output.write(b'signal\\n')\n"
        "signal.signal(signal.SIGALRM, handle)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\n"
        "written = 0\n"
        "while len(taken) < 300:\n"
        "    output.write(b'line\\n')\n"
        "    written += 1\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "output.close()\n"
        "os.write(2, b'%d %d' % (written, len(taken)))\n"
    )
    done = run_python(code, subprocess.PIPE)
    assert f"{done.stdout.count(b'line')} {done.stdout.count(b'signal')}" == done.stderr.decode()


def test_a_run_that_is_refused_while_nobody_reads_ends() -> None:
    with a_full_pipe() as (_, pipe):
        assert 2 == run_python("from samzapy.__main__ import main; main()", pipe, "run", "no-such-job.yaml").returncode


def test_a_ctrl_c_while_nobody_reads_ends_it(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    with a_full_pipe() as (_, pipe):
        code = f"sys.path.insert(0, {str(tmp_path)!r})\nfrom samzapy.__main__ import main; main()"
        assert 130 == run_python(code, pipe, "run", "no-such-job.yaml").returncode
