"""A real Spark cluster on this machine: a standalone master, and workers that are hosts of their own, on loopback only.

A cluster is a directory: its description (`cluster.json`), and per process the settings, the log and the pid file; what executors leave
(their logs, their scratch files) lies in it too. `start` makes what is missing and returns when the master knows every worker; called again
it changes nothing, or brings back the workers that died. One process at a time works on a directory (`lock`).

Whatever the cluster starts carries the directory in its environment: workers hand it to their executors, these to Python. So `stop` finds
all of it, though an executor whose worker was killed has no parent that we know.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote

import samzapy
from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.dev.jars import SCALA_VERSION, pyspark_jars
from samzapy.dev.java import Java, find_java, java_for_spark
from samzapy.dev.launch import Launch
from samzapy.dev.places import Progress, locked, made, resolved, silent, state_dir
from samzapy.dev.ports import PortTaken, free_ports, is_free
from samzapy.dev.process import Server, end_all, explain_end, started_with
from samzapy.dev.settings import LOGGING, properties_text
from samzapy.dev.spark_probe import Master, ask_master
from samzapy.dev.spark_settings import (
    JVM_OPTIONS,
    MASTER_HOST,
    MASTER_SETTINGS,
    WORKER_SETTINGS,
    Asked,
    Size,
    daemon_environment,
    master_arguments,
    worker_arguments,
    worker_hosts,
)
from samzapy.model.bounded_json import NOT_UNDERSTOOD, read_object
from samzapy.private_files import read_regular

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
MAX_BYTES = 1 << 20  # of cluster.json
MARK = "SAMZAPY_DEV_SPARK"
_ATTEMPTS = 3
_POLL_S = 0.1


@dataclass(frozen=True)
class LocalSpark:
    """A cluster in a directory, running or not."""

    directory: Path
    port: int
    ui_port: int
    size: Size

    # -- what it is -----------------------------------------------------------------------------------------------------------------

    @classmethod
    def at(cls, directory: Path) -> LocalSpark | None:
        """The cluster that this directory holds, if it holds one."""
        directory = resolved(directory)
        try:
            data = read_regular(directory / "cluster.json", MAX_BYTES)
        except FileNotFoundError:
            return None
        try:
            stored = read_object(data, MAX_BYTES)
            return cls(directory, int(stored["port"]), int(stored["ui_port"]), Size(**stored["size"]))
        except NOT_UNDERSTOOD as error:
            raise ConfigurationError(
                f"{directory}/cluster.json was not written by samzapy: {error}.", "Delete the directory, or name another with --dir."
            ) from error

    @property
    def url(self) -> str:
        return f"spark://{MASTER_HOST}:{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        return worker_hosts(self.size.workers)

    @property
    def master(self) -> Server:
        return self._server("master")

    def worker(self, host: str) -> Server:
        return self._server(self._known(host))

    @property
    def workers(self) -> dict[str, int]:
        """Pid by host, of the workers that run."""
        return {host: pid for host in self.hosts if (pid := self.worker(host).pid()) is not None}

    def processes(self, host: str | None = None) -> set[int]:
        """Every process of the cluster, or of one host of it: daemons, executors, and what runs in them."""
        if host is not None:
            return started_with(MARK, self._mark(self._known(host)))
        return set().union(*(started_with(MARK, self._mark(name)) for name in ("master", *self.hosts)))

    def ask(self) -> Master | None:
        """What the master says, None if it does not answer, or another does in its place."""
        answer = ask_master(MASTER_HOST, self.ui_port)
        return answer if answer is not None and answer.url == self.url and answer.is_leading else None

    def is_answering(self) -> bool:
        """The master answers and knows every worker."""
        answer = self.ask()
        return answer is not None and answer.hosts >= set(self.hosts) and len(self.workers) == len(self.hosts)

    # -- start and stop -------------------------------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        *,
        workers: int | None = None,
        cores: int | None = None,
        memory: str | None = None,
        port: int | None = None,
        directory: Path | None = None,
        java: Java | None = None,
        say: Progress = silent,
        tied: bool = False,
        timeout_s: float = START_TIMEOUT_S,
    ) -> LocalSpark:
        """Start a cluster, or the workers of it that do not run, and wait until all are registered.

        What is not given is as the directory holds it, else 3 workers of 2 cores and 2GiB, and any free port. `tied`: its daemons end with
        the thread that called this, and its executors with them.
        """
        place, asked = made(directory or default_directory(port), "a Spark cluster"), Asked(workers, cores, memory)
        with locked(place / "lock"):
            existing = cls.at(place)
            if existing is not None and existing.master.pid() is not None:
                existing._check_fits(asked, port)
                cluster = existing
            else:
                if existing is not None:
                    existing._end(STOP_TIMEOUT_S)  # workers without their master serve nobody
                cluster = cls._describe(place, existing, asked, port)
            launch = Launch(java_for_spark(java or find_java()), pyspark_jars("and its jars are needed for the cluster"), tied, timeout_s)
            taken = None
            for _ in range(_ATTEMPTS):
                try:
                    return cluster._bring_up(launch, say)
                except PortTaken as again:
                    taken = again
                    cluster = cls._describe(place, cluster, asked, port, anew=True)
            raise ClusterUnreachable(f"Spark did not start: {taken}.", "Run this again, with another --port.")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """End every daemon, executor and container, by force after the time. False if nothing ran."""
        with locked(self.directory / "lock"):
            ran = bool(self.processes())
            self._end(timeout_s)
        return ran

    def kill_worker(self, host: str) -> int:
        """End a host's worker by SIGKILL; its pid. Its executors notice and end by themselves, and their containers with them.

        Raises:
            ConfigurationError: no worker runs there.
        """
        with locked(self.directory / "lock"):
            server = self.worker(host)
            pid = server.pid()
            if pid is None:
                raise ConfigurationError(f"no worker of {self.url} runs on {host}.", f"These run: {', '.join(self.workers) or 'none'}.")
            server.signal(signal.SIGKILL)
            server.ended(STOP_TIMEOUT_S)
        return pid

    def kill_host(self, host: str) -> None:
        """End worker, executors and containers of a host by SIGKILL, as when its machine goes down."""
        with locked(self.directory / "lock"):
            self._sweep(lambda: self.processes(host))
            self.worker(host).ended(STOP_TIMEOUT_S)

    def start_worker(self, host: str, java: Java | None = None, tied: bool = False, timeout_s: float = START_TIMEOUT_S) -> int:
        """Start a host's worker again and wait until it is registered; its pid."""
        with locked(self.directory / "lock"):
            running = self.worker(host).pid()
            if running is not None:
                return running
            launch = Launch(java_for_spark(java or find_java()), pyspark_jars("and its jars are needed for the cluster"), tied, timeout_s)
            self._start_and_await([host], launch, lambda answer: host in answer.hosts)
            return self.workers[host]

    # -- the description ------------------------------------------------------------------------------------------------------------

    @classmethod
    def _describe(cls, directory: Path, existing: LocalSpark | None, asked: Asked, port: int | None, anew: bool = False) -> LocalSpark:
        """The cluster to start, none of whose processes run. `anew`: its ports were lost to others."""
        size = asked.over(existing.size if existing else None)
        if port is not None and not 0 <= port <= 65535:
            raise ConfigurationError(f"--port {port} is not a port.", "Choose one from 1024 on, or 0 for any free one.")
        for host in (MASTER_HOST, *worker_hosts(size.workers)):
            _check_address(host)
        kept = existing.port if existing and port is None and not anew and is_free(MASTER_HOST, existing.port) else None
        if port and not is_free(MASTER_HOST, port):
            raise ConfigurationError(
                f"port {port} is in use by another program.", "Take any free one: samzapy dev spark start --port 0"
            )
        fixed = port or kept
        free = free_ports(2, besides=[fixed] if fixed else [])
        cluster = cls(directory, fixed or free[0], free[1], size)
        draft = directory / "cluster.json.draft"
        draft.write_text(json.dumps({"port": cluster.port, "ui_port": cluster.ui_port, "size": asdict(size)}, indent=1) + "\n")
        draft.replace(directory / "cluster.json")
        return cluster

    def _check_fits(self, asked: Asked, port: int | None) -> None:
        """Refuse to be asked for another cluster than the one that runs."""
        wanted = asked.over(self.size)
        if wanted != self.size or (port and port != self.port):
            there = f"{wanted} at port {port or self.port}"
            raise ConfigurationError(
                f"the cluster in {self.directory} runs with {self.size} at port {self.port}, not {there}.",
                f"Stop it first: samzapy dev spark stop --dir {quote(str(self.directory))}",
            )

    def _known(self, host: str) -> str:
        if host not in self.hosts:
            raise ConfigurationError(f"{host} is not a host of {self.url}.", f"Its hosts are {', '.join(self.hosts)}.")
        return host

    # -- the processes --------------------------------------------------------------------------------------------------------------

    def _mark(self, name: str) -> str:
        return f"{self.directory}#{name}"

    def _server(self, name: str) -> Server:
        return Server(self.directory / f"{name}.pid", self.directory / f"{name}.log", mark=str(self._settings_file(name)))

    def _settings_file(self, name: str) -> Path:
        return self.directory / f"{name}.properties"

    def _bring_up(self, launch: Launch, say: Progress) -> LocalSpark:
        before = self.processes()
        missing = [host for host in self.hosts if host not in self.workers]
        try:
            if self.master.pid() is None:
                say(f"starting Spark on {self.url} with {self.size} ({self.directory})")
                self._start_and_await(["master"], launch, lambda _: True)
            self._start_and_await(missing, launch, lambda answer: answer.hosts >= set(self.hosts))
        except BaseException:
            if before:
                end_all([self.worker(host) for host in missing], within_s=5.0)
            else:
                self._end(5.0)
            raise
        return self

    def _start_and_await(self, names: Sequence[str], launch: Launch, is_up: Callable[[Master], bool]) -> None:
        """Start these, and wait until the master answers what is hoped for."""
        log_starts = {name: self._server(name).log_size() for name in names}
        (self.directory / "log4j2.properties").write_text(LOGGING)
        for name in names:
            self._settings_file(name).write_text(properties_text(MASTER_SETTINGS if name == "master" else WORKER_SETTINGS))
            self._server(name).start(self._command(name, launch), tied=launch.tied, environment=self._environment(name, launch))
        deadline = time.monotonic() + launch.timeout_s
        while (answer := self.ask()) is None or not is_up(answer):
            for name in {"master", *names}:
                if self._server(name).pid() is None:
                    explain_end(self._server(name), log_starts.get(name, 0), f"Spark's {_title(name)}")
            if time.monotonic() >= deadline:
                part = names[0] if names else "master"
                raise ClusterUnreachable(
                    f"Spark's {_title(part)} was not ready within {launch.timeout_s:.0f} s.", f"See {self._server(part).log}."
                )
            time.sleep(_POLL_S)

    def _command(self, name: str, launch: Launch) -> list[str]:
        file = self._settings_file(name)
        if name == "master":
            return launch.command(self.directory, JVM_OPTIONS, master_arguments(self.port, self.ui_port, file))
        return launch.command(self.directory, JVM_OPTIONS, worker_arguments(name, self.size, self.directory / f"work-{name}", file, self.url))

    def _environment(self, name: str, launch: Launch) -> dict[str, str]:
        scratch = self.directory / f"scratch-{name}"
        scratch.mkdir(exist_ok=True)
        ours = {
            MARK: self._mark(name),
            "JAVA_HOME": str(launch.java.home),
            "SPARK_HOME": str(launch.jars.parent),
            "SPARK_SCALA_VERSION": SCALA_VERSION,  # else a worker looks for it in a build's directories
            "SPARK_LOCAL_DIRS": str(scratch),
            "SPARK_LOCAL_IP": MASTER_HOST if name == "master" else name,
        }
        return daemon_environment(os.environ, sys.executable, Path(samzapy.__file__).resolve().parent.parent) | ours

    def _end(self, timeout_s: float) -> None:
        end_all([*(self.worker(host) for host in self.hosts), self.master], timeout_s)
        self._sweep(self.processes)

    @staticmethod
    def _sweep(remaining: Callable[[], set[int]]) -> None:
        """Kill until nothing is left: what is killed may just have started another."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while left := remaining():
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            if time.monotonic() >= deadline:
                raise ClusterUnreachable(
                    f"these processes do not end: {sorted(left)}.", "They may be stuck in the kernel: look at them with ps."
                )
            time.sleep(_POLL_S)


def default_directory(port: int | None = None) -> Path:
    """One place for the cluster on whatever port, and one for each port that was asked for."""
    return state_dir() / (f"spark-{port}" if port else "spark")


def _title(name: str) -> str:
    return name if name == "master" else f"worker on {name}"


def _check_address(host: str) -> None:
    """Only Linux has all of 127.0.0.0/8 without being asked."""
    with socket.socket() as candidate:
        try:
            candidate.bind((host, 0))
        except OSError as error:
            raise ConfigurationError(
                f"{host} is not an address of this machine: {error.strerror}.",
                f"On macOS, add it until the next boot: sudo ifconfig lo0 alias {host}",
            ) from None
