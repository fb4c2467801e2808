"""A command that is forked from the tests' server is the command: what it says, how it ends, where it is, what it is given, and that it can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_server import run_samzapy
from tests.integration.processes import is_gone, until

LIMIT_S = 120.0
JOB = "job: here\ntask: task_of_${WHAT}:Here\nkafka: {bootstrap.servers: 'localhost:1'}\ninputs: [{topic: in}]\n"
TASK = "import os\nfrom samzapy import StreamTask\nprint('in', os.getcwd())\nclass Here(StreamTask):\n    def process(self, e, c, o): ...\n"


@pytest.mark.parametrize("arguments", [["validate", "job.yaml"], ["validate", "no.yaml"], ["schema"]])
def test_it_is_the_command(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "task_of_mine.py").write_text(TASK)
    environment = {**os.environ, "WHAT": "mine"}
    command = [sys.executable, "-m", "samzapy", *arguments]
    real = subprocess.run(
        command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )

    forked = run_samzapy(arguments, tmp_path, LIMIT_S, environment)

    assert (real.args, real.returncode, real.stdout, real.stderr) == (forked.args, forked.returncode, forked.stdout, forked.stderr)
    assert forked.stdout + forked.stderr


def test_one_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "task_of_mine.py").write_text("import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(3600)\n")
    run_samzapy(["--version"], tmp_path, LIMIT_S)  # the server has started

    with pytest.raises(subprocess.TimeoutExpired):
        run_samzapy(["validate", "job.yaml"], tmp_path, 10.0, {**os.environ, "WHAT": "mine"})

    pid = int((tmp_path / "pid").read_text())
    until(lambda: is_gone(pid), "the command is no more")
    assert 0 == run_samzapy(["--version"], tmp_path, LIMIT_S).returncode
