"""A real Spark standalone cluster for tests: a master, and workers that are hosts of their own on 127.0.0.2, .3, …

Processes are started by class name through PySpark's own `spark-class`. Whatever a test did to them (killed, stopped, decommissioned),
`close` ends all of them.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from tests.integration.processes import descendants, until

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DECOMMISSION = {"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "false"}
_EXECUTOR = "CoarseGrainedExecutorBackend"


class Cluster:
    """A master on a free port, `url`, and the workers that `add` starts."""

    def __init__(self, java_home: str, directory: Path, settings: Mapping[str, str] = DECOMMISSION) -> None:
        self._directory = directory
        self._environment = {**os.environ, "JAVA_HOME": java_home, "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
        self._environment["SPARK_DAEMON_JAVA_OPTS"] = " ".join(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *(f"-D{k}={v}" for k, v in settings.items())])
        self._processes: list[subprocess.Popen[bytes]] = []
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._log = directory / "master.log"
        self._start(self._log, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = until(lambda: self._found(r"Starting Spark master at (spark://\S+)"), "the master's address")
        until(lambda: self._found(r"(New state: ALIVE)"), "the master's start")

    def add(self, host: str, cores: int = 1) -> None:
        """A worker that takes executors once this returns."""
        log = self._directory / f"worker-{host}.log"
        work = self._directory / f"work-{host}"
        command = ["org.apache.spark.deploy.worker.Worker", "--host", host, "--port", "0", "--webui-port", "0"]
        seen = self._log.read_text().count(f"Registering worker {host}:")
        self._workers[host] = self._start(log, *command, "--cores", str(cores), "--memory", "4g", "--work-dir", str(work), self.url)
        until(lambda: self._log.read_text().count(f"Registering worker {host}:") > seen, f"worker {host} registered")

    def worker(self, host: str) -> int:
        """The process id of a host's worker."""
        return self._workers[host].pid

    def executors(self, host: str) -> list[int]:
        """The process ids of a host's executors."""
        return [pid for pid in sorted(descendants(self.worker(host))) if _EXECUTOR in _command(pid)]

    def daemon(self, host: str) -> int:
        """The process id of the PySpark daemon of a host's only executor."""
        (executor,) = self.executors(host)
        parents = [pid for pid in descendants(executor) if "pyspark.daemon" in _command(pid)]
        return next(pid for pid in parents if _parent(pid) == executor)

    def master_log(self) -> str:
        return self._log.read_text()

    def close(self) -> None:
        below = {pid for process in self._processes for pid in (process.pid, *descendants(process.pid))}
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for process in self._processes:
            process.wait()

    def _start(self, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            process = subprocess.Popen(
                [str(SPARK_CLASS), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _found(self, pattern: str) -> str | None:
        match = re.search(pattern, self._log.read_text())
        return match[1] if match else None


def _command(pid: int) -> str:
    return subprocess.run(["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


def _parent(pid: int) -> int:
    return int(subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout or 0)
