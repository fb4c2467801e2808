"""A Spark session for containers, and its end: quiet, bounded in time, and nothing left running.

The JVM gets its settings in a file of mode 0600, not as arguments that everybody on the machine may read. It leads a session of its own,
so a terminal's Ctrl-C reaches only the coordinator, which first asks its containers for their final commits. It dies with this process,
since it reads a pipe that we hold, and its Python workers die with it. What it says goes through a pipe: kept while it starts, to
explain a start that fails, passed on to stderr after that (in local mode the containers' log lines come this way).
"""

from __future__ import annotations

import importlib
import logging
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import samzapy
from samzapy.api.errors import ClusterUnreachable, LauncherError
from samzapy.config.extras import line_for
from samzapy.log_output import wait_for_room
from samzapy.model.process_end import ended_with
from samzapy.relayed_lines import bounded_lines
from samzapy.spark.settings import LOOPBACK, is_local, master_addresses, properties_text, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = logging.getLogger("samzapy")
PROBE_S = 5.0
STOP_S = 20.0
_TAIL_LINES = 40
_why_killed = ""
_CHATTER = ("at ", "WARNING:", "Using ", "...", "Setting default log level", "To adjust logging level", "Setting Spark log level")
# what in our environment would make PySpark look for a JVM or a server elsewhere
_UNSET = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_TESTING")


def start_session(master: str, conf: Mapping[str, str], app_name: str, java_home: str | None, locality_wait_s: float) -> SparkSession:
    """A running session; end it with `stop_session`.

    Raises:
        ConfigurationError: `conf` sets what is not the job file's to set. LauncherError: no PySpark, no Java, or the JVM does not start.
        ClusterUnreachable: no master answers.
    """
    settings = session_settings(master, conf, app_name, locality_wait_s)
    _check_installed(java_home)
    _check_master(master)
    global _why_killed
    _why_killed = ""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise LauncherError("a Spark session runs in this process already.", "Stop it first.")
    _silence_py4j()
    output = _JvmOutput()
    with _properties_file(settings) as file, _signals_kept(), _environment(_launch_environment(master, java_home, file)):
        gateway = _launch(output)
        SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm
        try:
            context = SparkContext(master=master, appName=app_name, environment=_worker_environment(), conf=SparkConf())
            session = SparkSession(context)
        except BaseException as error:
            said = text_of(error)  # only while the JVM is there
            end_jvm()
            if isinstance(error, Exception):
                raise _start_failure(master, said, output) from error
            raise
    output.pass_on(sys.stderr.buffer)
    return session


def _silence_py4j() -> None:
    """What it says of a JVM that was stopped is no news; and it says some of it, with a traceback, to the root logger."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4j)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def stop_session(session: SparkSession) -> None:
    """End the session, its JVM and all workers; waits for them."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    try:
        session.stop()
    except (Py4JError, OSError):
        if jvm_end() is None:
            raise
    finally:
        SparkContext._active_spark_context = None
        end_jvm()


def jvm_end(within_s: float = 0.0) -> str | None:
    """None while this process's JVM runs, and goes on running for that long; else that it ended, in words."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return "Spark was stopped"
    try:
        code = gateway.proc.wait(within_s)
    except subprocess.TimeoutExpired:
        return None
    return f"Spark's JVM {_why_killed}" if _why_killed else f"Spark's JVM ended ({ended_with(code)})"


def is_jvm_killed() -> bool:
    """Whether `kill_jvm` was called since the session began."""
    return bool(_why_killed)


def kill_jvm(why: str) -> None:
    """End the JVM of this process at once, whatever state it is in. `why`: what `jvm_end` is to say."""
    from pyspark import SparkContext

    global _why_killed
    gateway = SparkContext._gateway
    if gateway is not None and gateway.proc.poll() is None:
        _why_killed = why
        LOG.error("Spark's JVM (process %d) %s", gateway.proc.pid, why)
        os.killpg(gateway.proc.pid, signal.SIGKILL)


def end_jvm() -> None:
    """End the JVM of this process, if there is one; it has been told to stop, or failed to start."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    SparkContext._gateway, SparkContext._jvm = None, None
    if gateway is None:
        return
    gateway.shutdown()
    jvm: subprocess.Popen[bytes] = gateway.proc
    assert jvm.stdin is not None
    jvm.stdin.close()  # what it waits for
    try:
        jvm.wait(STOP_S)
    except subprocess.TimeoutExpired:
        LOG.warning("Spark's JVM (process %d) does not end; killing it", jvm.pid)
        os.killpg(jvm.pid, signal.SIGKILL)
        jvm.wait()


class _JvmOutput:
    """Both output streams of the JVM: the last lines kept until `pass_on`, then given on as they come."""

    def __init__(self) -> None:
        reading, self.writing = os.pipe()
        self._lines = os.fdopen(reading, "rb")
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._target: BinaryIO | None = None
        self._thread = threading.Thread(target=self._read, name="spark-output", daemon=True)
        self._thread.start()

    def pass_on(self, target: BinaryIO) -> None:
        self._target = target

    def words(self) -> str:
        """What the JVM said last that explains anything, on one line."""
        lines = [line.decode(errors="replace").strip().removeprefix("spark | ") for line in self._tail]
        telling = [line for line in lines if line and not line.startswith(_CHATTER)]
        return " / ".join(telling[:4])

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _read(self) -> None:
        with self._lines as lines:
            for line in bounded_lines(lines):
                target = self._target
                if target is None:
                    self._tail.append(line)
                else:
                    with suppress(OSError):  # a terminal that is gone, a full disk: the containers go on
                        target.write(line + b"\n")
                        target.flush()
                        wait_for_room()


def _launch(output: _JvmOutput) -> Any:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    streams = {"stdout": output.writing, "stderr": output.writing, "start_new_session": True}
    try:
        return launch_gateway(conf=None, popen_kwargs=streams)  # type: ignore[no-untyped-call]
    except (PySparkRuntimeError, OSError) as error:
        os.close(output.writing)
        output.writing = -1
        output.join(PROBE_S)
        why = output.words() or str(error).strip().splitlines()[0]
        raise LauncherError(f"Spark's JVM did not start: {why}.", "Check the Java installation and `spark.conf`: `samzapy doctor JOB.yaml` does both.") from error
    finally:
        if output.writing >= 0:
            os.close(output.writing)


def text_of(error: BaseException) -> str:
    """`str(error)`, which PySpark asks the JVM for; without the JVM, the kind of error."""
    from py4j.protocol import Py4JError

    try:
        return str(error)
    except (OSError, Py4JError):
        return f"{type(error).__name__}, and no more can be learnt from Spark's JVM"


def _start_failure(master: str, text: str, output: _JvmOutput) -> Exception:
    output.join(1.0)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("at ")]
    why = next((line for line in lines if line.startswith(": ")), lines[-1] if lines else "no reason given").removeprefix(": ")
    if not is_local(master):
        if "stopped SparkContext" in why:  # what is left of Spark's giving up, after a minute
            why = "it accepted the connection, then did not answer or removed the application"
        why = " / ".join(w for w in (why, output.words()) if w)
        return ClusterUnreachable(f"Spark's master {master} did not accept the job: {why}.", "See the master's log.")
    return LauncherError(f"Spark did not start with master {master}: {why}.", "Check spark.master and spark.conf.")


def _check_installed(java_home: str | None) -> None:
    try:
        importlib.import_module("pyspark")
    except ImportError as error:
        raise LauncherError("PySpark is not installed.", f"Use --local, or install it: {line_for('spark')}") from error
    home = java_home or os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else None
    if not (java.is_file() if java else shutil.which("java")):
        where = f"{home} holds no bin/java" if home else "neither JAVA_HOME nor PATH leads to one"
        raise LauncherError(f"Spark needs Java 17 or later: {where}.", f"Install one: {line_for('java')}")


def _check_master(master: str) -> None:
    """Ask a standalone master for a connection: Spark itself would try for a minute."""
    addresses = master_addresses(master)
    said = []
    for host, port in addresses:
        try:
            socket.create_connection((host, port), PROBE_S).close()
            return
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
    if addresses:
        raise ClusterUnreachable(f"no Spark master answers ({'; '.join(said)}).", "Start one, or correct spark.master.")


def _worker_environment() -> dict[str, str]:
    """What workers need to find this very samzapy where it runs from a checkout (elsewhere the folder is missing, which does no harm), and to take
    Python's own modules for what they are, whatever files lie where Spark was started."""
    home = str(Path(samzapy.__file__).resolve().parent.parent)
    if home in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return {"PYTHONSAFEPATH": "1"}
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": home}


def _launch_environment(master: str, java_home: str | None, settings_file: str) -> dict[str, str | None]:
    """What PySpark's launcher, the JVM and its workers are to see; None: not at all."""
    result: dict[str, str | None] = dict.fromkeys(_UNSET)
    result["PYSPARK_PIN_THREAD"] = "true"
    result["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {shlex.quote(settings_file)} --load-spark-defaults pyspark-shell"
    result["SPARK_LAUNCHER_OPTS"] = os.environ.get("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto")
    if java_home is not None:
        result["JAVA_HOME"] = java_home
    if is_local(master):
        result.update(SPARK_LOCAL_IP=LOOPBACK, PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    else:
        result["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    return result


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ctrl-C stays what it was: PySpark makes it cancel every job, which would end containers without a final commit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """This process's environment with these changes, and back again."""
    before = {name: os.environ.get(name) for name in changes}
    _set_environment(changes)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _properties_file(settings: Mapping[str, str]) -> Iterator[str]:
    number, name = tempfile.mkstemp(prefix="samzapy-spark-", suffix=".properties")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(properties_text(settings))
        yield name
    finally:
        os.unlink(name)
