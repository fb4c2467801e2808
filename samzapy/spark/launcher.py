"""Containers as Spark tasks: ports.Launcher over a session.

Each launch is a Spark job of its own with one partition, submitted from a thread of its own (the action blocks until the container
ends), so each restart is a placement decision of its own and containers end independently. The threads are daemons: the driver can exit
whatever they wait for. Payloads travel as the partition's data, never in Spark's configuration, names or logs. A kill that comes
before Spark has seen the job holds too: the group's future jobs are cancelled with it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from samzapy.api.errors import LauncherError
from samzapy.spark.executor import run_partition
from samzapy.spark.failures import how_it_failed
from samzapy.spark.session import jvm_end, stop_session, text_of
from samzapy.spark.settings import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.core.rdd import RDD
    from pyspark.sql import SparkSession

LOCALHOST = "localhost"
EXECUTORS_PATIENCE_S = 60.0
EXECUTORS_SETTLED_S = 3.0
_POLL_S = 0.25
_JVM_DIES_S = 5.0


class SparkHandle:
    """A container's Spark job. Its process id is the container's to tell, when it registers."""

    def __init__(self, context: SparkContext, group: str) -> None:
        self.group = group
        self._context = context
        self._ended: str | None = None

    def exited(self) -> str | None:
        return self._ended

    def kill(self) -> None:
        """Cancel the job; Spark ends the worker within seconds."""
        if self._ended is None and jvm_end() is None:
            self._context._jsc.sc().cancelJobGroupAndFutureJobs(self.group)

    def end(self, words: str) -> None:
        self._ended = words


class SparkLauncher:
    """Starts containers on the session's executors. Owns the session from now on."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._context = session.sparkContext
        self._is_local = is_local(str(self._context.master))
        self._is_closed = False

    @property
    def driver_host(self) -> str:
        """The address under which executors reach this process: the control listener's."""
        return str(self._context.getConf().get("spark.driver.host"))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that have executors now, as Spark names them."""
        return (LOCALHOST,) if self._is_local else tuple(sorted({host for host, _ in self._executors()}))

    def slots(self) -> int | None:
        """Cores of all executors; waits until they have registered."""
        if self._is_local:
            return self._context.defaultParallelism
        return self._settled_cores()

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> SparkHandle:
        """Start one, on `preferred_host` if that has a free slot within the locality wait.

        Raises:
            LauncherError: the launcher was closed, or Spark's JVM died.
        """
        from pyspark import InheritableThread

        why = "its launcher is closed" if self._is_closed else jvm_end()
        if why is not None:
            raise LauncherError(f"container {container} was not started: {why}.", "")
        text = json.dumps({**payload, "host": LOCALHOST if self._is_local else ""}).encode()
        handle = SparkHandle(self._context, f"samzapy-container-{container}-{secrets.token_hex(4)}")
        InheritableThread(
            target=self._run, args=(container, handle, text, preferred_host), name=f"container-{container}", daemon=True
        ).start()
        return handle

    def close(self) -> None:
        """Cancel all, end the session, its JVM and its workers."""
        if self._is_closed:
            return
        self._is_closed = True
        stop_session(self._session)

    def _run(self, container: int, handle: SparkHandle, payload: bytes, preferred_host: str | None) -> None:
        try:
            self._context.setJobGroup(handle.group, f"container {container}", interruptOnCancel=True)
            self._context.addJobTag(f"samzapy-container-{container}")
            codes = self._one_partition(payload, preferred_host).mapPartitions(run_partition).collect()
        except Exception as error:  # noqa: BLE001 - whatever ended the job is the handle's answer
            handle.end("Spark was stopped" if self._is_closed else jvm_end(_patience_with(error)) or how_it_failed(text_of(error)))
        else:
            handle.end(f"exit code {codes[0]}")

    def _one_partition(self, payload: bytes, preferred_host: str | None) -> RDD[bytes]:
        jvm = self._context._jvm
        assert jvm is not None
        from pyspark.core.rdd import RDD
        from pyspark.serializers import NoOpSerializer

        hosts = [preferred_host] if preferred_host and not self._is_local else []
        row = jvm.scala.Tuple2(bytearray(payload), jvm.PythonUtils.toSeq(hosts))
        any_class = jvm.scala.reflect.ClassTag.Any()
        rows = self._context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq([row]), any_class)
        return RDD(rows.toJavaRDD(), self._context, NoOpSerializer())

    def _executors(self) -> list[tuple[str, int]]:
        """Host and cores of every executor."""
        listed = self._context._jsc.sc().statusStore().executorList(True)
        found = []
        for i in range(listed.size()):
            executor = listed.apply(i)
            if executor.id() != "driver":
                found.append((str(executor.hostPort()).rpartition(":")[0].strip("[]"), int(executor.totalCores())))
        return found

    def _settled_cores(self) -> int:
        """Cores, once some have come and no more did for a while."""
        cores, since, started = 0, time.monotonic(), time.monotonic()
        while True:
            now, found = time.monotonic(), sum(cores for _, cores in self._executors())
            if found != cores:
                cores, since = found, now
            if (cores and now - since >= EXECUTORS_SETTLED_S) or now - started >= EXECUTORS_PATIENCE_S:
                return cores
            time.sleep(_POLL_S)


def _patience_with(error: Exception) -> float:
    """How long to look for the JVM's end: a broken line to it means that it is dying."""
    from py4j.protocol import Py4JNetworkError

    return _JVM_DIES_S if isinstance(error, OSError | Py4JNetworkError) else 0.0
