"""Modules whose import ends the process, never returns, or leaves threads behind: each command ends, and says what was wrong."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from samzapy.config.user_import import under_way
from tests.command_server import run_samzapy

TASK = "from samzapy import StreamTask\nclass Nothing(StreamTask):\n    def process(self, *_): pass\n"
JOB = 'job: j\ntask: hostile:Nothing\nkafka: {bootstrap.servers: "localhost:1"}\ninputs: [{topic: in}]\nstate: {dir: .}\n'
HANGS = 120.0


def samzapy(folder: Path, top: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.yaml").write_text(JOB)
    (folder / "hostile.py").write_text(f"{top}\n{TASK}")
    return run_samzapy(words, folder, HANGS)


def test_a_thread_that_a_module_has_started_does_not_keep_the_command(tmp_path: Path) -> None:
    done = samzapy(tmp_path, "import threading; threading.Thread(target=threading.Event().wait, name='mine').start()", "validate", "job.yaml")
    assert (done.returncode, done.stdout) == (0, "")
    assert "job.yaml: valid" in done.stderr
    assert "ended with it: 1 (mine)." in done.stderr


@pytest.mark.parametrize(
    ("top", "what"),
    [
        ("import os; os._exit(0)", "it ends the process: os._exit(0)"),
        ("from os import _exit\n_exit(3)", "it ends the process: os._exit(3)"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
    ],
)
def test_a_module_that_ends_the_process_is_an_error_with_its_place(tmp_path: Path, top: str, what: str) -> None:
    done = samzapy(tmp_path, top, "validate", "job.yaml")
    assert done.returncode == 2
    line = len(top.splitlines())
    assert f"importing hostile failed at {tmp_path}/hostile.py:{line}: {what}" in done.stderr


def test_what_a_module_forks_and_keeps_may_end_as_it_likes(tmp_path: Path) -> None:
    top = "import os\npid = os.fork()\nif pid == 0: os._exit(7)\nassert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7"
    assert samzapy(tmp_path, top, "validate", "job.yaml").returncode == 0


def test_an_import_that_does_not_return_takes_no_longer_than_the_commands_time(tmp_path: Path) -> None:
    done = samzapy(tmp_path, "import threading\nthreading.Event().wait()", "restart", "job.yaml", "--timeout", "0")
    assert done.returncode == 2
    assert f"error[SZ100]: nothing was changed after 5 s: importing hostile has not ended: it is at {tmp_path}/hostile.py:2." in done.stderr


def test_after_an_import_everything_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from samzapy.config.user_import import import_module

    (tmp_path / "kept_exit.py").write_text("from os import _exit\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    real, threads = os._exit, threading.active_count()
    import_module("kept_exit")
    assert os._exit is real
    assert under_way() == ""
    assert threading.active_count() == threads


def test_a_module_that_configures_its_log_leaves_samzapys_on(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "hostile.py").write_text(f'import logging.config\nlogging.config.dictConfig({{"version": 1}})\n{TASK}    def windows(self): pass\n')
    assert "samzapy never calls Nothing.windows" in run_samzapy(("validate", "job.yaml"), tmp_path, HANGS).stderr


def test_what_a_module_prints_is_not_among_the_data(tmp_path: Path) -> None:
    prints = "import os\nprint('buffered', end='')\nos.write(1, b'direct')\nos.system('echo of a program')"
    done = samzapy(tmp_path, prints, "validate", "job.yaml", "--json")
    assert json.loads(done.stdout)["valid"] is True
    for text in ("buffered", "direct", "of a program"):
        assert text in done.stderr
