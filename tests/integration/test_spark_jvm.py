"""A JVM of Spark's that is halted, as by swapping or a long garbage collection. A session of its own: there is one in a process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from samzapy.api.errors import LauncherError
from samzapy.spark.jvm_watch import JvmWatch
from samzapy.spark.session import kill_jvm, start_session
from tests.integration.processes import descendants, is_gone, suspend, told, until
from tests.integration.test_spark_launcher import payload_for

pytestmark = pytest.mark.spark


def test_a_jvm_that_does_not_answer_is_ended_and_named(java_home: str, tmp_path: Path) -> None:
    from samzapy.spark.launcher import SparkLauncher

    launcher = SparkLauncher(start_session("local[1]", {}, "samzapy test-1", java_home, 5.0))
    launcher._watch.close()
    launcher._watch = JvmWatch(kill_jvm, silent_s=2.0, told_s=0.5, look_s=0.1)
    handle = launcher.launch(0, payload_for("stay", tmp_path / "a"), None)
    container = told(tmp_path / "a")["pid"]
    (jvm,) = [pid for pid in descendants(os.getpid()) if is_jvm(pid)]
    suspend(jvm)
    with pytest.raises(LauncherError, match="hosts are unknown: Spark's JVM did not answer for 2 s, and was ended"):
        launcher.hosts()
    assert "did not answer" in str(until(handle.exited, "the handle knows"))
    until(lambda: is_gone(container), "the end of its container")
    launcher.close()


def is_jvm(pid: int) -> bool:
    command = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return "org.apache.spark.deploy" in command
