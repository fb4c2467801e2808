"""Both launchers with real processes: a container ends in a way that is told in words, and never outlives who started it."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from samzapy.api.errors import LauncherError
from samzapy.local.launcher import ProcessLauncher
from samzapy.relayed_lines import LONGEST
from tests.integration.processes import is_alive, is_gone, told, until

ENTRIES = "tests.integration.entries"


def payload_for(entry: str, file: Path, **more: Any) -> dict[str, Any]:
    return {"entry": f"{ENTRIES}:{entry}", "folders": [], "file": str(file), "token": "secret", **more}


@pytest.fixture
def output() -> io.BytesIO:
    return io.BytesIO()


@pytest.fixture
def processes(output: io.BytesIO) -> Iterator[ProcessLauncher]:
    launcher = ProcessLauncher(output)
    yield launcher
    launcher.close()


def test_a_child_gets_its_payload_and_its_exit_code_is_told(processes: ProcessLauncher, tmp_path: Path) -> None:
    handle = processes.launch(0, payload_for("write_and_end", tmp_path / "a", code=3, folders=[str(tmp_path)]), None)

    assert "exit code 3" == str(until(handle.exited, "the child's end"))
    facts = told(tmp_path / "a")
    assert handle.pid == facts["pid"]
    assert "localhost" == facts["given"]["host"]
    assert "secret" == facts["given"]["token"]
    assert str(tmp_path) == facts["path"][0]
    assert facts["sigint"]


def test_files_with_names_of_pythons_own_modules_do_not_end_a_child(
    processes: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("types", "enum", "json", "uuid", "calendar"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.chdir(tmp_path)
    handle = processes.launch(0, payload_for("write_and_end", tmp_path / "a", folders=[str(tmp_path)]), None)

    assert "exit code 0" == str(until(handle.exited, "the child's end"))


def test_a_childs_output_bears_its_number(processes: ProcessLauncher, output: io.BytesIO, tmp_path: Path) -> None:
    handle = processes.launch(7, payload_for("write_and_end", tmp_path / "a"), None)

    assert "exit code 0" == str(until(handle.exited, "the child's end"))
    processes.close()
    assert b"container 7 | a line of the container\n" in output.getvalue()


def test_of_a_long_line_of_a_childs_the_first_part_is_passed_on(processes: ProcessLauncher, output: io.BytesIO, tmp_path: Path) -> None:
    handle = processes.launch(7, payload_for("write_a_long_line", tmp_path / "a"), None)

    assert "exit code 0" == str(until(handle.exited, "the child's end"))
    processes.close()
    assert [
        b"x" * LONGEST, b"... %d more bytes of this line are left out" % (5_000_000 - LONGEST), b"y" * LONGEST, b"short"
    ] == [line.removeprefix(b"container 7 | ") for line in output.getvalue().splitlines()]  # fmt: skip


class Gone(io.BytesIO):
    """A terminal that was closed."""

    def write(self, data: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_a_container_goes_on_when_nobody_takes_its_output(tmp_path: Path) -> None:
    launcher = ProcessLauncher(Gone())
    handle = launcher.launch(7, payload_for("write_a_long_line", tmp_path / "a"), None)
    assert "exit code 0" == str(until(handle.exited, "the child's end"))
    launcher.close()


@pytest.mark.parametrize(("code", "is_told"), [("/x/task.py", False), ("/x/samzapy/kafka/producer.py", True)])
def test_an_alarm_is_laid_to_the_making_of_a_client_only_where_it_was_at_that(
    processes: ProcessLauncher, tmp_path: Path, code: str, is_told: bool
) -> None:
    handle = processes.launch(0, {**payload_for("alarm", tmp_path / "a"), "in": code}, None)
    ended = str(until(handle.exited, "the child's end"))
    assert ended.startswith("killed by SIGALRM")
    assert is_told == ("ulimit -v" in ended)


def test_an_entry_that_raises_ends_with_70_and_its_traceback(processes: ProcessLauncher, output: io.BytesIO, tmp_path: Path) -> None:
    handle = processes.launch(0, payload_for("fail", tmp_path / "a"), None)

    assert "exit code 70" == str(until(handle.exited, "the child's end"))
    processes.close()
    text = output.getvalue().decode()
    assert "CRITICAL the container's process failed: ValueError: this entry always fails\n" in text
    assert "container 0 | Traceback (most recent call last):" in text


def test_a_child_killed_from_outside_is_told_and_another_starts(processes: ProcessLauncher, tmp_path: Path) -> None:
    first = processes.launch(0, payload_for("stay", tmp_path / "a"), None)
    os.kill(told(tmp_path / "a")["pid"], signal.SIGKILL)
    assert "killed by SIGKILL" == str(until(first.exited, "the child's end"))

    second = processes.launch(0, payload_for("write_and_end", tmp_path / "b"), None)
    assert "exit code 0" == str(until(second.exited, "the second's end"))


def test_kill_ends_what_the_child_started_too(processes: ProcessLauncher, tmp_path: Path) -> None:
    handle = processes.launch(0, payload_for("stay_with_child", tmp_path / "a"), None)
    facts = told(tmp_path / "a")
    assert handle.exited() is None

    handle.kill()

    assert "killed by SIGKILL" == str(until(handle.exited, "the child's end"))
    until(lambda: is_gone(facts["other"]), "the end of the child's child")


def test_close_ends_every_child_and_nothing_starts_after(tmp_path: Path) -> None:
    launcher = ProcessLauncher(io.BytesIO())
    for number in range(2):
        launcher.launch(number, payload_for("stay", tmp_path / str(number)), None)
    pids = [told(tmp_path / str(number))["pid"] for number in range(2)]
    assert all(is_alive(pid) for pid in pids)

    launcher.close()

    assert not any(is_alive(pid) for pid in pids)
    with pytest.raises(LauncherError, match="closed"):
        launcher.launch(0, payload_for("stay", tmp_path / "c"), None)


NOHUP = pytest.mark.skipif(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="run by nohup: SIGHUP is ignored by all that is started")


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=NOHUP)])
def test_a_child_goes_on_at_a_signal_and_says_so_but_what_it_starts_ends_by_it(
    number: signal.Signals, processes: ProcessLauncher, output: io.BytesIO, tmp_path: Path
) -> None:
    handle = processes.launch(7, payload_for("stay_with_child", tmp_path / "a"), None)
    facts = told(tmp_path / "a")

    said = number.name.encode() + b" and goes on until the driver, process %d, has it make its final commit" % os.getpid()
    for times in (1, 2):
        os.kill(facts["pid"], number)
        until(lambda so_far=times: output.getvalue().count(said) == so_far, "it is told")
    os.kill(facts["other"], number)
    until(lambda: is_gone(facts["other"]), "the end of the child's child")
    assert handle.exited() is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_does_not_outlive_its_parent(number: signal.Signals, tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path / "a")], stderr=subprocess.DEVNULL)
    child = told(tmp_path / "a")["pid"]
    assert is_alive(child)

    parent.send_signal(number)
    parent.wait(30)

    until(lambda: is_gone(child), "the child's end after its parent's")


def test_a_child_lives_on_when_the_thread_that_launched_it_ends(tmp_path: Path) -> None:
    parent = subprocess.run([sys.executable, "-c", THREADED, str(tmp_path / "a")], capture_output=True, timeout=60, check=False)

    assert b"still there" in parent.stdout
    until(lambda: is_gone(told(tmp_path / "a")["pid"]), "the child's end after its parent's")


PARENT = f"""
import sys, threading
from samzapy.local.launcher import ProcessLauncher
ProcessLauncher().launch(0, {{"entry": "{ENTRIES}:stay", "file": sys.argv[1]}}, None)
threading.Event().wait()
"""
THREADED = f"""
import os, sys, threading
from pathlib import Path
from samzapy.local.launcher import ProcessLauncher
from tests.integration.processes import told
launcher, handles = ProcessLauncher(), []
payload = {{"entry": "{ENTRIES}:stay", "file": sys.argv[1]}}
thread = threading.Thread(target=lambda: handles.append(launcher.launch(0, payload, None)))
thread.start()
thread.join()
told(Path(sys.argv[1]))
print("still there" if handles[0].exited() is None else handles[0].exited(), flush=True)
os._exit(0)
"""
