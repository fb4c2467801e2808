"""A run that has begun and cannot be asked yet: other commands say so, wait for it, or refuse; none says that the job does not run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy.api.errors import OwnedElsewhere
from samzapy.api.exit_codes import NOT_RUNNING
from tests.integration.job import LOOK_S, PATIENCE_S, Job

FROZEN_AT_IMPORT = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n"


def until(is_so: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not is_so():
        assert time.monotonic() < deadline
        pause.wait(LOOK_S)


def is_frozen(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


@pytest.mark.kafka
@pytest.mark.parametrize("where", ["before the lease", "import of the task"])
@pytest.mark.prove
def test_a_run_that_begins_is_waited_for_by_stop_and_never_said_not_to_run(
    where: str, kafka: str, tmp_path: Path, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(kafka, tmp_path, unique, 1, containers={"count": 1})
    if where == "before the lease":
        monkeypatch.setenv("SAMZAPY_FAILPOINTS", "coordinator.lease.before=stop")
        monkeypatch.setenv("SAMZAPY_FAILPOINTS_OK", "1")
        monkeypatch.setenv("SAMZAPY_FAILPOINTS_DIR", str(tmp_path))
    else:
        module = next(tmp_path.glob("task_*.py"))
        module.write_text(FROZEN_AT_IMPORT + module.read_text())
    with job.running("--local") as running:
        until(lambda: is_frozen(running.process.pid))

        told = job.of("status")
        assert (NOT_RUNNING, True) == (told.returncode, f"is starting (process {running.process.pid}" in told.stderr), told.stderr
        found = json.loads(job.of("status", "--json").stdout)
        assert ("STARTING", running.process.pid) == (found["state"], found["starting"]["pid"])
        refused = job.command("reset", str(job.file))
        assert (OwnedElsewhere.exit_code, True) == (refused.returncode, "is starting" in refused.stderr), refused.stderr
        late = job.of("stop", "--timeout", "1")
        assert (1, True) == (late.returncode, f"`kill {running.process.pid}` ends it" in late.stderr), late.stderr

        stop = subprocess.Popen(
            [sys.executable, "-m", "samzapy", "stop", str(job.file)], stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
        assert stop.stderr is not None
        assert "waiting until it can be asked" in stop.stderr.readline()
        if where == "import of the task":
            module.write_text(module.read_text().removeprefix(FROZEN_AT_IMPORT))  # for the containers
        running.process.send_signal(signal.SIGCONT)
        told_last = stop.stderr.read()
        assert (0, "stopped\n") == (stop.wait(), told_last)
        assert 0 == running.process.wait(PATIENCE_S)
    assert "ended normally" in job.of("status").stderr


@pytest.mark.kafka
def test_stop_says_when_the_run_was_killed_while_it_stopped(kafka: str, tmp_path: Path, unique: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker saw it wait for all of its time, and say then that the job was still stopping."""
    job = Job(kafka, tmp_path, unique, 1, containers={"count": 1})
    for name, value in (("FAILPOINTS", "coordinator.finish.before=stop"), ("FAILPOINTS_OK", "1"), ("FAILPOINTS_DIR", str(tmp_path))):
        monkeypatch.setenv(f"SAMZAPY_{name}", value)
    with job.running("--local") as running:
        until(lambda: "RUNNING" in job.of("status").stdout)
        command = [sys.executable, "-m", "samzapy", "stop", str(job.file), "--timeout", "300"]
        stop = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        until(lambda: is_frozen(running.process.pid))
        running.process.kill()
        assert stop.stderr is not None
        told = stop.stderr.read()
        assert (1, True, True) == (stop.wait(), "was killed while it was stopping" in told, "was killed, or cannot be reached" in told), told


@pytest.mark.kafka
def test_a_module_may_take_longer_to_import_than_a_lease_lasts(kafka: str, tmp_path: Path, unique: str) -> None:
    """An attacker saw each container declared dead while it imported, until the job failed."""
    job = Job(kafka, tmp_path, unique, 1, containers={"count": 1, "lease": "3s", "heartbeat": "1s"})
    module = next(tmp_path.glob("task_*.py"))
    module.write_text("import threading\nthreading.Event().wait(5)\n" + module.read_text())
    with job.running("--local"):
        until(lambda: json.loads(job.of("status", "--json").stdout)["state"] == "RUNNING")
        assert [0] == [container["restarts"] for container in json.loads(job.of("status", "--json").stdout)["containers"]]
        assert 0 == job.of("stop").returncode
