"""Server processes and their pid files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from samzapy.dev.process import Server, command_line, end_all, first_complaint, started_with

WAITS = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]
LIMIT_S = 30.0


def server(directory: Path) -> Server:
    return Server(directory / "pid", directory / "log", mark=str(directory / "mark"))


def await_output(started: Server) -> None:
    while not started.said_since(0):
        assert started.pid() is not None


def test_it_is_found_again_by_its_mark_and_ended(tmp_path: Path) -> None:
    started = server(tmp_path).start([*WAITS, str(tmp_path / "mark")], tied=False)

    assert started == server(tmp_path).pid()
    assert not server(tmp_path).ended(within_s=0)
    server(tmp_path).signal(signal.SIGTERM)
    assert server(tmp_path).ended(LIMIT_S)
    assert server(tmp_path).pid() is None
    assert not (tmp_path / "pid").exists()


def test_a_pid_that_another_program_has_now_is_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")

    assert server(tmp_path).pid() is None
    server(tmp_path).signal(signal.SIGKILL)
    assert server(tmp_path).ended(within_s=0)


@pytest.mark.parametrize("content", ["", "nonsense", "0", "99999999"])
def test_a_pid_file_that_names_nothing_is_no_process(tmp_path: Path, content: str) -> None:
    (tmp_path / "pid").write_text(content)

    assert server(tmp_path).pid() is None


def test_what_it_says_goes_to_its_log(tmp_path: Path) -> None:
    server(tmp_path).start([sys.executable, "-c", "print('said')", str(tmp_path / "mark")], tied=False)
    assert server(tmp_path).ended(LIMIT_S)

    assert "said\n" == (tmp_path / "log").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_tied_one_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    starter = (
        "import os, signal, sys; from pathlib import Path; from samzapy.dev.process import Server; d = Path(sys.argv[1]);"
        f"Server(d / 'pid', d / 'log', str(d / 'mark')).start({WAITS!r} + [str(d / 'mark')], tied=True);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )

    killed = subprocess.run([sys.executable, "-c", starter, str(tmp_path)], check=False)

    assert -signal.SIGKILL == killed.returncode
    assert server(tmp_path).ended(LIMIT_S)


def test_the_command_line_of_this_very_process_is_seen() -> None:
    assert Path(sys.executable).name in command_line(os.getpid()) or "pytest" in command_line(os.getpid())


def test_processes_are_found_by_what_they_were_started_with(tmp_path: Path) -> None:
    marked, other = server(tmp_path), Server(tmp_path / "pid2", tmp_path / "log2", mark=str(tmp_path / "mark2"))
    pid = marked.start([*WAITS, marked.mark], tied=False, environment={**os.environ, "SAMZAPY_MARK": f"{tmp_path}#1"})
    other.start([*WAITS, other.mark], tied=False, environment={**os.environ, "SAMZAPY_MARK": f"{tmp_path}#11"})
    await_output(marked)  # before that, the kernel may not show its environment yet
    await_output(other)
    try:
        assert {pid} == started_with("SAMZAPY_MARK", f"{tmp_path}#1")
    finally:
        end_all([marked, other], within_s=LIMIT_S)
    assert set() == started_with("SAMZAPY_MARK", f"{tmp_path}#1")


def test_one_that_does_not_end_when_asked_is_killed(tmp_path: Path) -> None:
    deaf = [sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"]
    server(tmp_path).start([*deaf, str(tmp_path / "mark")], tied=False)
    await_output(server(tmp_path))

    end_all([server(tmp_path)], within_s=0)

    assert server(tmp_path).pid() is None
    assert not (tmp_path / "pid").exists()


def test_of_a_long_output_the_telling_line_is_shown() -> None:
    trace = ["10:00 INFO Starting", "10:01 ERROR Failed to start", "java.net.BindException: no such address.", "\tat java.base/Net.bind"]
    assert "java.net.BindException: no such address" == first_complaint(trace)
    assert "10:01 ERROR Failed to start" == first_complaint(trace[:2])
    assert "it said nothing" == first_complaint([])
