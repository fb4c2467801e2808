"""A coordinator restarts containers for weeks: two hundred launches and ends leak nothing, in this process or in Spark's JVM."""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from samzapy.local.launcher import ProcessLauncher
from samzapy.ports import Launcher
from samzapy.spark.session import start_session
from tests.integration.processes import until

LAUNCHES = 200
WARM_UP = 40
AT_ONCE = 2
MIB = 1 << 20
PAYLOAD = {"entry": "tests.integration.entries:end", "folders": []}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def launch_and_end(launcher: Launcher, times: int) -> None:
    """That many containers, two at once; every tenth is killed as soon as it was launched."""
    for first in range(0, times, AT_ONCE):
        handles = [launcher.launch(n, {**PAYLOAD, "container": n}, "localhost") for n in range(AT_ONCE)]
        if first % (10 * AT_ONCE) == 0:
            handles[0].kill()
        for handle in handles:
            until(handle.exited, "a container's end")


def open_files(pid: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident(pid: int | str = "self") -> int:
    """Bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def this_process() -> dict[str, int]:
    gc.collect()
    return {"threads": threading.active_count(), "files": open_files(), "objects": len(gc.get_objects()), "resident": resident()}


def assert_flat(before: dict[str, int], after: dict[str, int], margins: dict[str, int]) -> None:
    """Nothing grew by more than its margin, which is less than one of a kind per launch."""
    print(f"before {before}\nafter  {after}")
    assert {} == {name: after[name] - before[name] for name in before if after[name] - before[name] > margins[name]}


@pytest.fixture
def spark_launcher(java_home: str) -> Iterator[Any]:
    from samzapy.spark.launcher import SparkLauncher

    launcher = SparkLauncher(start_session("local[2]", {}, "samzapy test-1", java_home, 5.0))
    yield launcher
    launcher.close()


@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_child_processes_leave_nothing() -> None:
    launcher = ProcessLauncher(io.BytesIO())
    launch_and_end(launcher, WARM_UP)
    before = this_process()

    launch_and_end(launcher, LAUNCHES)

    assert_flat(before, this_process(), {"threads": 2, "files": 4, "objects": LAUNCHES, "resident": 8 * MIB})
    launcher.close()


@pytest.mark.prove  # three minutes
@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_spark_containers_leave_nothing(spark_launcher: Any) -> None:
    launch_and_end(spark_launcher, WARM_UP)
    python, jvm = this_process(), spark_jvm()

    launch_and_end(spark_launcher, LAUNCHES)

    assert_flat(python, this_process(), {"threads": 2, "files": 4, "objects": LAUNCHES, "resident": 8 * MIB})
    assert_flat(jvm, spark_jvm(), {"threads": 20, "files": 20, "py4j": LAUNCHES, "heap": 4 * MIB, "children": 2})


def spark_jvm() -> dict[str, int]:
    """The driver's JVM: threads, open files, objects that Py4J holds for us, heap in use after a collection.

    Its block manager's threads are left out: Spark keeps up to 200 of them for a minute after their last use. Py4J lets go of objects
    some time after Python did, a dozen for each launch.
    """
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    jvm, pid = gateway.jvm, gateway.proc.pid
    gc.collect()
    jvm.java.lang.System.gc()
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    held = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    return {
        "threads": sum(not name.read_text().startswith("block-manager") for name in Path(f"/proc/{pid}/task").glob("*/comm")),
        "files": open_files(pid),
        "py4j": held.getGateway().getBindings().size(),
        "heap": runtime.totalMemory() - runtime.freeMemory(),
        "children": len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()),
    }
