"""Containers as Spark tasks: ports.Launcher over a session.

Each launch is a Spark job of its own with one partition, submitted from a thread of its own (the action blocks until the container
ends), so each restart is a placement decision of its own and containers end independently. The threads are daemons: the driver can exit
whatever they wait for. Payloads travel as the partition's data, never in Spark's configuration, names or logs. A kill that comes
before Spark has seen the job holds too: the group's future jobs are cancelled with it.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from samzapy.api.errors import LauncherError
from samzapy.clock import start_thread
from samzapy.model.names import LOCALHOST
from samzapy.model.process_end import ProcessEnd, executor_lost, exited, other
from samzapy.spark.directories import KeptDirectories, of_driver
from samzapy.spark.executor import run_partition
from samzapy.spark.executors import host_slots, leaving_hosts, local_slots, registered
from samzapy.spark.failures import GIVEN_UP, how_it_failed
from samzapy.spark.jvm_watch import JvmWatch
from samzapy.spark.session import is_jvm_killed, jvm_end, kill_jvm, stop_session, text_of
from samzapy.spark.settings import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.core.rdd import RDD
    from pyspark.sql import SparkSession

LOG = logging.getLogger("samzapy")
T = TypeVar("T")
_GIVEN_UP_REMEDY = (
    "See the master's log. A standalone master gives up after 10 executors in a row that did not start: "
    "on a single host, set SPARK_MASTER_OPTS=-Dspark.deploy.maxExecutorRetries=-1 where the master starts."
)
LOST_WITH_HOST = executor_lost(", with its worker or its host")
EXECUTORS_PATIENCE_S = 60.0
MORE_EXECUTORS_S = 30.0  # on a busy machine one executor starts that much later than another
EXECUTORS_SETTLED_S = 3.0
_TELL_AFTER_S = 5.0
_POLL_S = 0.25
_JVM_DIES_S = 5.0


class SparkHandle:
    """A container's Spark job. Its process id is the container's to tell, when it registers."""

    def __init__(self, context: SparkContext, watch: JvmWatch, group: str) -> None:
        self.group = group
        self._watch = watch
        self._context = context
        self._ended: ProcessEnd | None = None

    def exited(self) -> ProcessEnd | None:
        return self._ended

    def kill(self) -> None:
        """Cancel the job; Spark ends the worker within seconds. Nothing is left to do if Spark has ended."""
        from py4j.protocol import Py4JError

        if self._ended is not None or jvm_end() is not None:
            return
        try:
            with self._watch.call():
                self._context._jsc.sc().cancelJobGroupAndFutureJobs(self.group)
        except (OSError, Py4JError) as error:
            if jvm_end(_patience_with(error)) is None and not is_given_up(self._context):
                raise

    def end(self, how: ProcessEnd) -> None:
        self._ended = how


class SparkLauncher:
    """Starts containers on the session's executors. Owns the session from now on."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._context = session.sparkContext
        self._is_local = is_local(str(self._context.master))
        self._is_closed = False
        self._kept = KeptDirectories(of_driver(self._context))
        self._watch = JvmWatch(kill_jvm)

    @property
    def driver_host(self) -> str:
        """The address under which executors reach this process: the control listener's."""
        return str(self._context.getConf().get("spark.driver.host"))

    def hosts(self) -> Mapping[str, int | None]:
        """Hosts that can take containers now, as Spark names them, with their slots.

        Raises:
            LauncherError: the launcher was closed, or Spark's JVM died.
        """
        return self._ask("hosts are unknown", lambda spark: {LOCALHOST: local_slots(spark)} if self._is_local else _host_slots(spark))

    def leaving(self) -> Collection[str]:
        """Hosts that Spark is about to lose: their executors are being decommissioned, and get no more tasks.

        Raises:
            LauncherError: the launcher was closed, or Spark's JVM died.
        """
        return self._ask("the hosts that Spark is about to lose are not known", lambda spark: () if self._is_local else leaving_hosts(registered(spark)))

    def slots(self, needed: int) -> int | None:
        """Slots of all hosts; waits until executors have registered, longer while they have fewer slots than are needed.

        Raises:
            LauncherError: the launcher was closed, Spark's JVM died, or its master ended the application.
        """
        if not self._is_local:
            wait_for_hosts(self.hosts, needed, time.monotonic, time.sleep)
        return sum(slots or 0 for slots in self.hosts().values())

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> SparkHandle:
        """Start one, on `preferred_host` if that has a free slot within the locality wait.

        Raises:
            LauncherError: the launcher was closed, or Spark's JVM died.
        """
        self._ask(f"container {container} was not started", lambda _: None)
        text = json.dumps({**payload, "host": LOCALHOST if self._is_local else ""}).encode()
        handle = SparkHandle(self._context, self._watch, f"samzapy-container-{container}-{secrets.token_hex(4)}")
        start_thread(f"container-{container}", lambda: self._run(container, handle, text, preferred_host))
        return handle

    def close(self) -> None:
        """Cancel all, end the session, its JVM and its workers."""
        if self._is_closed:
            return
        self._is_closed = True
        self._kept.close()
        with self._watch.call():
            stop_session(self._session)
        self._watch.close()

    def _run(self, container: int, handle: SparkHandle, payload: bytes, preferred_host: str | None) -> None:
        try:
            self._context.setJobGroup(handle.group, f"container {container}", interruptOnCancel=True)
            self._context.addJobTag(f"samzapy-container-{container}")
            codes = self._one_partition(payload, preferred_host).mapPartitions(run_partition).collect()
        except Exception as error:  # noqa: BLE001 - whatever ended the job is the handle's answer
            jvm = "Spark was stopped" if self._is_closed else jvm_end(_patience_with(error))
            handle.end(how_it_failed(text_of(error)) if jvm is None else other(jvm))
        else:
            handle.end(LOST_WITH_HOST if codes[0] is None else exited(codes[0]))

    def _one_partition(self, payload: bytes, preferred_host: str | None) -> RDD[bytes]:
        jvm = self._context._jvm
        assert jvm is not None
        from pyspark.core.rdd import RDD
        from pyspark.serializers import NoOpSerializer

        hosts = [f"[{preferred_host}]" if ":" in preferred_host else preferred_host] if preferred_host and not self._is_local else []
        row = jvm.scala.Tuple2(bytearray(payload), jvm.PythonUtils.toSeq(hosts))
        any_class = jvm.scala.reflect.ClassTag.Any()
        rows = self._context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq([row]), any_class)
        return RDD(rows.toJavaRDD(), self._context, NoOpSerializer())

    def _ask(self, what_fails: str, question: Callable[[SparkContext], T]) -> T:
        """What Spark answers, if it still runs."""
        from py4j.protocol import Py4JError

        why, remedy = "its launcher is closed" if self._is_closed else jvm_end(), ""
        if why is None:
            try:
                with self._watch.call():
                    if not is_given_up(self._context):
                        return question(self._context)
                why, remedy = GIVEN_UP, _GIVEN_UP_REMEDY
            except (OSError, Py4JError) as error:
                why = jvm_end(_patience_with(error)) or str(how_it_failed(text_of(error)))
                raise LauncherError(f"{what_fails}: {why}.", "") from error
        raise LauncherError(f"{what_fails}: {why}.", remedy)


def wait_for_hosts(
    hosts: Callable[[], Mapping[str, int | None]], needed: int, now: Callable[[], float], sleep: Callable[[float], None]
) -> None:
    """Until hosts with as many slots as are needed have come and no more did for a while; or, with fewer, until none came for `MORE_EXECUTORS_S`;
    or, with none at all, for `EXECUTORS_PATIENCE_S`. Says once if it takes long."""
    seen: Mapping[str, int | None] = {}
    since = started = now()
    is_told = False
    while True:
        at, found = now(), hosts()
        if found != seen:
            seen, since = found, at
        slots = sum(needed if n is None else n for n in seen.values())
        until = since + (EXECUTORS_SETTLED_S if slots >= needed else MORE_EXECUTORS_S) if seen else started + EXECUTORS_PATIENCE_S
        if at >= until:
            return
        if slots < needed and at >= started + _TELL_AFTER_S and not is_told:
            is_told = True
            LOG.warning(
                "Spark has given this run %d of the %d slots that it needs; waiting for up to %.0f s for %s executor. "
                "Other applications may hold its cores: the master's page shows them. Ctrl-C ends the wait",
                slots, needed, until - at, "another" if seen else "an",
            )
        sleep(_POLL_S)


def is_given_up(context: SparkContext) -> bool:
    """Whether Spark stopped by itself: its master ended the application, or is gone for good."""
    return bool(context._jsc.sc().isStopped())


def _host_slots(context: SparkContext) -> dict[str, int | None]:
    return dict(host_slots(registered(context)))


def _patience_with(error: Exception) -> float:
    """How long to look for the JVM's end: a broken line to it means that it is dying, and so does that it was killed."""
    from py4j.protocol import Py4JNetworkError

    return _JVM_DIES_S if is_jvm_killed() or isinstance(error, OSError | Py4JNetworkError) else 0.0
