"""The settings of a local standalone cluster: one master, workers that are hosts of their own to Spark, all of it on loopback.

What a cluster in production would leave open is closed: no REST submission, no kill or decommission links in the web pages, no page on
another address than loopback. A port that is taken is an error, not a reason to take the next one. `Size` is what Spark may hand out; the
daemons themselves need little.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from samzapy.api.errors import ConfigurationError

MASTER_HOST = "127.0.0.1"
FIRST_WORKER = 2
MOST_WORKERS = 32
DEFAULT_WORKERS, DEFAULT_CORES, DEFAULT_MEMORY = 3, 2, "2GiB"
JVM_OPTIONS = ("-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")

MASTER_SETTINGS = {
    "spark.master.rest.enabled": "false",
    "spark.master.ui.decommission.allow.mode": "DENY",
    "spark.ui.killEnabled": "false",
    "spark.port.maxRetries": "0",
    "spark.deploy.maxExecutorRetries": "-1",  # else ten executors in a row that do not start end the application
}
WORKER_SETTINGS = {
    "spark.ui.killEnabled": "false",
    "spark.decommission.enabled": "true",
    "spark.worker.cleanup.enabled": "true",  # work directories of ended applications, after a week
}

_MEMORY = re.compile(r"([1-9][0-9]{0,5})\s*(?:([MmGg])(?:i?[Bb])?)")
_MIB = {"m": 1, "g": 1024}
_LEAST_MIB = 512


@dataclass(frozen=True)
class Size:
    """How many workers, and what each has to give."""

    workers: int
    cores: int
    memory_mib: int

    def __str__(self) -> str:
        return f"{self.workers} {'worker' if self.workers == 1 else 'workers'} of {self.cores} cores and {self.memory_mib} MiB"


@dataclass(frozen=True)
class Asked:
    """What a command asks for; None: whatever there is, or the default."""

    workers: int | None = None
    cores: int | None = None
    memory: str | None = None

    def over(self, existing: Size | None) -> Size:
        """The size that is meant.

        Raises:
            ConfigurationError: there cannot be such a cluster.
        """
        base = existing or Size(DEFAULT_WORKERS, DEFAULT_CORES, memory_mib(DEFAULT_MEMORY))
        size = Size(
            base.workers if self.workers is None else self.workers,
            base.cores if self.cores is None else self.cores,
            base.memory_mib if self.memory is None else memory_mib(self.memory),
        )
        if not 1 <= size.workers <= MOST_WORKERS:
            raise ConfigurationError(f"--workers {size.workers}: there can be 1 to {MOST_WORKERS}.", "Two or three show most things.")
        if not 1 <= size.cores <= 1024:
            raise ConfigurationError(f"--cores {size.cores}: a worker can have 1 to 1024.", "A core is a slot for one container.")
        return size


def memory_mib(text: str) -> int:
    """`2GiB`, `2g`, `512MiB` or `512m` in MiB.

    Raises:
        ConfigurationError: it is no such size, or too little for an executor.
    """
    found = _MEMORY.fullmatch(text.strip())
    mib = int(found[1]) * _MIB[found[2].lower()] if found else 0
    if mib < _LEAST_MIB:
        raise ConfigurationError(
            f"--memory {text!r} is not a size of at least {_LEAST_MIB}MiB.",
            "Write it as 1536MiB or 2GiB; Spark's executors take 1GiB by default.",
        )
    return mib


def worker_hosts(count: int) -> tuple[str, ...]:
    """127.0.0.2 and on: addresses of loopback, hosts to Spark."""
    return tuple(f"127.0.0.{FIRST_WORKER + i}" for i in range(count))


def master_arguments(port: int, ui_port: int, settings: Path) -> list[str]:
    """The master's class and what it is told."""
    where = ["--host", MASTER_HOST, "--port", str(port), "--webui-port", str(ui_port)]
    return ["org.apache.spark.deploy.master.Master", *where, "--properties-file", str(settings)]


def worker_arguments(host: str, size: Size, work: Path, settings: Path, master: str) -> list[str]:
    """A worker's class and what it is told."""
    gives = ["--cores", str(size.cores), "--memory", f"{size.memory_mib}m", "--work-dir", str(work)]
    where = ["--host", host, "--webui-port", "0"]
    return ["org.apache.spark.deploy.worker.Worker", *where, *gives, "--properties-file", str(settings), master]


def daemon_environment(base: Mapping[str, str], python: str, samzapy_home: Path) -> dict[str, str]:
    """`base` without what would make it another cluster, and with what executors need to run this Python and this samzapy."""
    kept = {key: value for key, value in base.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    path = [str(samzapy_home), *filter(None, [base.get("PYTHONPATH")])]
    return {**kept, "PYSPARK_PYTHON": python, "PYTHONPATH": os.pathsep.join(path)}
