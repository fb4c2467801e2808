"""Two containers may have one host name: what a command sees of processes in one says nothing of those in the other."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.place import SAMZAPY
from tests.recovery.keys_job import KeysJob

OWN_PROCESSES = ("unshare", "--pid", "--fork", "--mount-proc")  # as a container has them, with the host name of this one


def may_unshare() -> bool:
    try:
        return sys.platform == "linux" and subprocess.run([*OWN_PROCESSES, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.prove
@pytest.mark.kafka
@pytest.mark.timeout(300)
@pytest.mark.skipif(not may_unshare(), reason="needs Linux, util-linux and the right to make namespaces")
def test_a_run_whose_process_a_command_cannot_see_is_not_taken_for_dead(kafka: str, tmp_path: Path, unique: str) -> None:
    job = KeysJob(kafka, tmp_path, unique, 2, containers={"lease": "50s"})
    with job.running("--local") as run:
        run.until_running()
        job.give(["a b a", "c"])
        run.until_caught_up(job.ends())
        run.process.send_signal(signal.SIGSTOP)  # it does not answer, as if it were in another network
        try:
            said = {
                words: subprocess.run([*OWN_PROCESSES, *SAMZAPY, *words.split(), str(job.file)], capture_output=True, text=True, check=False, timeout=120)
                for words in ("status", "reset --execute", "checkpoint set --to-earliest --reset-state --execute")
            }
        finally:
            run.process.send_signal(signal.SIGCONT)
        assert [4, 5, 5] == [done.returncode for done in said.values()], said
        assert all("runs, but does not answer" in done.stderr for done in said.values()), said
        run.until(lambda status: status["state"] == "RUNNING")
        job.give(["a d"])
        run.until_caught_up(job.ends())
        assert 0 == run.stop()
    assert [] == job.wrong()
