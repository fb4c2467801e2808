"""Where a process stood that could not say so: written without the interpreter's lock, read by the next one."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from samzapy.container.crash_place import Trace, left_by, place_in
from samzapy.container.stuck_hook import CALLERS
from samzapy.model.process_end import WATCHDOG

RUN = """
import sys, threading
from pathlib import Path
sys.path.insert(0, {folder!r})
from samzapy import StreamTask
from samzapy.container.crash_place import Trace
from tests.unit.container.bench import Bench
import deadly
trace = Trace(Path({trace!r}), {lease_s})
bench = Bench(Path({state!r}), deadly.Task)
bench.feed(("a", 1))
container = bench.start()
trace.arm()
bench.drain(container)
"""
DEADLY = """
import ctypes, os, re, sys
from samzapy import StreamTask
class Task(StreamTask):
    def process(self, envelope, collector, coordinator):
        self.work()
    def work(self):
        {line}
"""
EXIT = "os._exit(3)"
CRASH = "ctypes.string_at(0)"
HOLD = 're.match(r"(a|aa)+$", "a" * 60 + "b")'


@pytest.mark.parametrize(("line", "lease_s"), [(CRASH, 60.0), (EXIT, 60.0), (HOLD, 2.0)])
def test_a_crash_an_exit_and_a_lock_that_is_held_leave_the_line_of_the_users_code(tmp_path: Path, line: str, lease_s: float) -> None:
    trace = tmp_path / "made" / "trace"
    (tmp_path / "deadly.py").write_text(DEADLY.format(line=line))
    program = RUN.format(folder=str(tmp_path), trace=str(trace), lease_s=lease_s, state=str(tmp_path / "state"))
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        if line is CRASH:
            assert process.wait(60) < 0
        elif line is EXIT:
            assert 3 == process.wait(60)
        else:
            _await_text(process, trace)
    finally:
        process.kill()
        process.wait(60)
    found = Trace(trace, 60.0)
    try:
        hook = "deadly.py:6 in process > deadly.py:8 in work"
        assert found.predecessor_at == hook if line is EXIT else found.predecessor_at.startswith(hook + " > ")
        assert process.pid == found.predecessor_pid
    finally:
        found.close()
    assert not trace.exists()


def _await_text(process: subprocess.Popen[bytes], trace: Path) -> None:
    while not (trace.exists() and "in process" in trace.read_text()):
        assert process.poll() is None
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue


WATCHED = """
import ctypes, sys, time
from pathlib import Path
from samzapy.container.crash_place import Trace
path = Path(sys.argv[1])
trace = Trace(path, 0.2)
trace.arm()
while "Timeout" not in path.read_text():
    pass
threads, thread = ctypes.CDLL(None), ctypes.c_ulong()
threads.pthread_create(ctypes.byref(thread), None, ctypes.cast(threads.abort, ctypes.c_void_p), None)
while True:
    pass
"""


def test_a_crash_of_the_watch_itself_is_no_place_of_a_hook(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "made" / "trace"
    process = subprocess.Popen([sys.executable, "-c", WATCHED, str(path)])
    assert process.wait(60) == -signal.SIGABRT
    assert WATCHDOG == left_by(path, process.pid)
    with caplog.at_level(logging.WARNING):
        found = Trace(path, 60.0)
    found.close()
    assert ("", process.pid) == (found.predecessor_at, found.predecessor_pid)
    assert [m for m in caplog.messages if "crashed in samzapy's watchdog over threads: no record was the cause" in m]


def test_a_process_that_ended_in_order_leaves_nothing_and_only_its_user_can_read_what_another_leaves(tmp_path: Path) -> None:
    path = tmp_path / ".traces" / "0"
    trace = Trace(path, 60.0)
    trace.arm()
    assert (0o600, 0o700) == (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777)
    trace.close()
    assert not path.exists()
    assert "" == trace.predecessor_at


def test_who_ends_after_its_successor_began_leaves_the_successors_trace(tmp_path: Path) -> None:
    path = tmp_path / ".traces" / "0"
    asleep, successor = Trace(path, 60.0), Trace(path, 60.0)
    asleep.close()
    assert path.exists()
    successor.close()
    assert not path.exists()


def test_what_was_overcome_is_cleared_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / ".traces" / "0"
    trace = Trace(path, 60.0)
    faulthandler.dump_traceback(path.open("ab"))  # as if the watch had come to its end
    trace.arm()
    trace.arm()
    assert 1 == sum("no other thread of this process could run" in message for message in caplog.messages)
    assert f"process {os.getpid()}\n" == path.read_text()
    trace.close()


CRASHING_CHILD = """
import ctypes, os
from pathlib import Path
from samzapy.container.forked import watch
from samzapy.container.requests import Requests
from samzapy.container.crash_place import Trace
requests = Requests()
watch(requests)
trace = Trace(Path({trace!r}), 60.0)
child = os.fork()
if not child:
    ctypes.string_at(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) < 0
"""


def test_the_crash_of_a_child_that_a_hook_forked_is_not_told_as_the_containers(tmp_path: Path) -> None:
    path = tmp_path / ".traces" / "0"
    process = subprocess.Popen([sys.executable, "-c", CRASHING_CHILD.format(trace=str(path))])
    assert 0 == process.wait(60)
    assert f"process {process.pid}\n" == path.read_text()


def test_a_link_that_somebody_laid_there_is_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mine = tmp_path / "mine"
    mine.write_text("precious")
    (tmp_path / "0").symlink_to(mine)
    with caplog.at_level(logging.INFO):
        trace = Trace(tmp_path / "0", 60.0)
    trace.arm()
    trace.close()
    assert "precious" == mine.read_text()
    assert "nothing will show at which line" in caplog.text


def _laid(kind: str, folder: Path, outside: Path) -> Path:
    """What somebody put where a trace belongs, and the path of that trace."""
    traces = folder / ".traces"
    if kind == "a link to a folder":
        traces.symlink_to(outside)
    elif kind == "a pipe for a folder":
        os.mkfifo(traces)
    else:
        traces.mkdir()
        {"a pipe": os.mkfifo, "a link": lambda at: at.symlink_to(outside / "0"), "a folder": os.mkdir}[kind](traces / "0")
    return traces / "0"


@pytest.mark.parametrize("kind", ["a link to a folder", "a pipe for a folder", "a pipe", "a link", "a folder"])
def test_a_place_that_somebody_prepared_is_left_alone_and_the_process_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    outside, state = tmp_path / "outside", tmp_path / "state"
    outside.mkdir()
    state.mkdir()
    (outside / "0").write_text("precious")
    path = _laid(kind, state, outside)
    program = (
        "import logging, sys; from pathlib import Path; from samzapy.container.crash_place import Trace; logging.basicConfig()\n"
        f"t = Trace(Path({str(path)!r}), 60.0, Path({str(state)!r})); t.arm(); t.close(); print('went on')"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert "went on\n" == ran.stdout
    assert 1 == ran.stderr.count("nothing will show at which line"), ran.stderr
    assert ["0"] == [f.name for f in outside.iterdir()]
    assert "precious" == (outside / "0").read_text()
    assert os.path.lexists(path) or kind == "a pipe for a folder"


def test_a_trace_says_nothing_to_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / ".traces" / "0"
    path.parent.mkdir()
    caller = min(CALLERS)
    path.write_text(f'Thread 0x1 (most recent call first):\n  File "/x/\x1b[2Ja.py", line 3 in f\n  File "{caller}", line 1 in g\n')
    trace = Trace(path, 60.0)
    trace.close()
    assert (r"\x1b[2Ja.py:3 in f", 0) == (trace.predecessor_at, trace.predecessor_pid)


def test_what_is_no_trace_of_a_hook_tells_no_place() -> None:
    here = os.path.join(os.path.dirname(__file__), "x.py")
    assert "" == place_in("")
    assert "" == place_in("\0\xff" * 100)
    assert "" == place_in(f'Thread 0x1 (most recent call first):\n  File "{here}", line 3 in idle\n')
    deep = "\n".join(f'  File "{here}", line {i} in down' for i in range(100))
    assert place_in(f"Current thread 0x1 (most recent call first):\n{deep}\n  ...\n").endswith("x.py:1 in down > x.py:0 in down")
