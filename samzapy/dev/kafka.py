"""A real Kafka on this machine: KRaft, no ZooKeeper, no Docker, on loopback only.

A cluster is a directory: its description (`cluster.json`), and per node the settings, the log, the pid file and the data. `start` makes
what is missing and returns when every node says that every node is there; called again it changes nothing, or brings back the nodes
that died. Data outlives `stop`. One process at a time works on a directory (`lock`); the brokers run in sessions of their own.
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote

from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.dev.jars import KAFKA_VERSION, kafka_jars
from samzapy.dev.java import Java, find_java
from samzapy.dev.launch import Launch
from samzapy.dev.places import Progress, locked, made, resolved, silent, state_dir, write_private
from samzapy.dev.ports import PortTaken, free_ports, is_free
from samzapy.dev.probe import ask_cluster
from samzapy.dev.process import Server, end_all, explain_end, first_complaint
from samzapy.dev.secure import ADMIN, BROKER, JOB, Secure
from samzapy.dev.settings import BRIEF_JVM_OPTIONS, HOST, JVM_OPTIONS, LOGGING, Node, node_settings, properties_text
from samzapy.kafka.acls import set_passwords
from samzapy.model.bounded_json import NOT_UNDERSTOOD, read_object
from samzapy.private_files import read_regular

DEFAULT_PORT = 9092
MOST_BROKERS = 9
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
MAX_BYTES = 1 << 20  # of cluster.json
_ATTEMPTS = 3
_POLL_S = 0.1
_BROKER = "kafka.Kafka"


@dataclass(frozen=True)
class LocalKafka:
    """A cluster in a directory, running or not."""

    directory: Path
    cluster_id: str
    nodes: tuple[Node, ...]
    is_secure: bool = False

    # -- what it is -----------------------------------------------------------------------------------------------------------------

    @classmethod
    def at(cls, directory: Path) -> LocalKafka | None:
        """The cluster that this directory holds, if it holds one."""
        directory = resolved(directory)
        try:
            data = read_regular(directory / "cluster.json", MAX_BYTES)
        except FileNotFoundError:
            return None
        try:
            stored = read_object(data, MAX_BYTES)
            return cls(directory, stored["cluster_id"], tuple(Node(**node) for node in stored["nodes"]), stored.get("secure", False) is True)
        except NOT_UNDERSTOOD as error:
            raise ConfigurationError(
                f"{directory}/cluster.json was not written by samzapy: {error}.", "Delete the directory, or name another with --dir."
            ) from error

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    @property
    def secure(self) -> Secure | None:
        """The certificates and users of a secured cluster; None: everybody who reaches it may do everything."""
        return Secure(self.directory / "secure") if self.is_secure else None

    def client_settings(self, user: str = JOB) -> dict[str, str]:
        """librdkafka's settings for a user of this cluster; of a secured one they hold a password."""
        secure = self.secure
        return {"bootstrap.servers": self.bootstrap_servers} if secure is None else secure.client_settings(user, self.bootstrap_servers)

    @property
    def pids(self) -> dict[int, int]:
        """Pid by node id, of the nodes that run."""
        return {node.id: pid for node in self.nodes if (pid := self.server(node).pid()) is not None}

    def is_running(self) -> bool:
        return len(self.pids) == len(self.nodes)

    def is_answering(self) -> bool:
        """Every node runs, knows every node and who leads them."""
        return self.is_running() and all(self._sees_all(node) for node in self.nodes)

    def server(self, node: Node) -> Server:
        return Server(self.directory / f"node-{node.id}.pid", self.directory / f"node-{node.id}.log", mark=str(self._settings_file(node)))

    # -- start and stop -------------------------------------------------------------------------------------------------------------

    @classmethod
    def start(
        cls,
        *,
        port: int | None = None,
        brokers: int | None = None,
        directory: Path | None = None,
        secure: bool | None = None,
        overrides: Mapping[str, str] | None = None,
        java: Java | None = None,
        say: Progress = silent,
        tied: bool = False,
        timeout_s: float = START_TIMEOUT_S,
    ) -> LocalKafka:
        """Start a cluster, or the nodes of it that do not run, and wait until it answers.

        `port`, `brokers` and `secure` default to what the directory holds, else 9092, 1 and not; port 0 is any free one. `secure`: with TLS,
        passwords and ACLs. `overrides` are broker settings, for this start only. `tied`: the brokers end with the thread that
        called this, and their JVMs start quickly at the cost of speed later.
        """
        if directory is None:
            chosen = DEFAULT_PORT if port is None else port or free_ports(1)[0]
            directory, port = default_directory(chosen), chosen
        directory = made(directory, "a Kafka")
        with locked(directory / "lock"):
            existing = cls.at(directory)
            cluster = existing if existing is not None and existing.pids else cls._describe(directory, existing, port, brokers, secure)
            cluster._check_fits(port, brokers, secure)
            java = java or find_java()
            launch = Launch(java, kafka_jars(java, say), tied, timeout_s, dict(overrides or {}))
            taken = None
            for _ in range(_ATTEMPTS):
                try:
                    return cluster._bring_up(launch, say)
                except PortTaken as again:
                    taken = again
                    cluster = cluster if cluster.pids else cls._describe(directory, cluster, port, brokers, secure)
            raise ClusterUnreachable(f"Kafka did not start: {taken}.", "Run this again, with another --port.")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Ask every node to end, kill those that have not within the time. False if none ran."""
        with locked(self.directory / "lock"):
            servers = [self.server(node) for node in self.nodes]
            ran = any(server.pid() is not None for server in servers)
            end_all(servers, timeout_s)
        return ran

    # -- one broker of several ------------------------------------------------------------------------------------------------------

    def kill_broker(self, number: int) -> None:
        """SIGKILL, as a host that loses its power; returns when it is gone. Numbers are the nodes' ids, from 1."""
        server = self.server(self._node(number))
        server.signal(signal.SIGKILL)
        if not server.ended(STOP_TIMEOUT_S):
            raise ClusterUnreachable(f"broker {number} still runs {STOP_TIMEOUT_S:.0f} s after its SIGKILL.", f"See {server.log}.")

    def pause_broker(self, number: int) -> None:
        """SIGSTOP: it keeps its connections and answers nobody."""
        self.server(self._node(number)).signal(signal.SIGSTOP)

    def resume_broker(self, number: int) -> None:
        """SIGCONT: it goes on where it was, whatever the others have decided meanwhile."""
        self.server(self._node(number)).signal(signal.SIGCONT)

    def start_broker(self, number: int, *, java: Java | None = None, tied: bool = False) -> None:
        """Start one that does not run, with the settings of its last start, and do not wait for it: `is_answering` tells when it is back."""
        node = self._node(number)
        with locked(self.directory / "lock"):
            server = self.server(node)
            if server.pid() is None:
                java = java or find_java()
                launch = Launch(java, kafka_jars(java, silent), tied, START_TIMEOUT_S)
                server.start(self._broker(node, launch), tied=tied)

    def _node(self, number: int) -> Node:
        found = next((node for node in self.nodes if node.id == number), None)
        if found is None:
            raise ConfigurationError(f"{self.directory} has no broker {number}.", f"There are 1 to {len(self.nodes)}.")
        return found

    # -- the description ------------------------------------------------------------------------------------------------------------

    @classmethod
    def _describe(
        cls, directory: Path, existing: LocalKafka | None, port: int | None, brokers: int | None, secure: bool | None
    ) -> LocalKafka:
        """The cluster to start, none of whose nodes run: who it is stays, ports may change."""
        if existing is not None:
            existing._check_fits(None, brokers, secure)
        count = brokers if brokers is not None else len(existing.nodes) if existing else 1
        if not 1 <= count <= MOST_BROKERS:
            raise ConfigurationError(
                f"--brokers {count}: there can be 1 to {MOST_BROKERS}.", "One is enough for most uses; three survive the loss of one."
            )
        fixed = _fixed_ports(existing, port, count)
        for wanted in fixed:
            _check_free(wanted)
        free = free_ports(2 * count, besides=fixed)
        ports = fixed or free[count:]
        nodes = tuple(Node(i + 1, ports[i], free[i]) for i in range(count))
        is_secure = existing.is_secure if existing else bool(secure)
        cluster = cls(directory, existing.cluster_id if existing else _new_cluster_id(), nodes, is_secure)
        draft = directory / "cluster.json.draft"
        stored = {"kafka": KAFKA_VERSION, "cluster_id": cluster.cluster_id, "secure": is_secure, "nodes": [asdict(node) for node in nodes]}
        draft.write_text(json.dumps(stored, indent=1) + "\n")
        draft.replace(directory / "cluster.json")
        return cluster

    def _check_fits(self, port: int | None, brokers: int | None, secure: bool | None) -> None:
        """Refuse to be asked for another cluster than the one the directory holds."""
        if secure is not None and secure != self.is_secure:
            held, asked = ("a secured cluster", "one without") if self.is_secure else ("a cluster without security", "a secured one")
            raise ConfigurationError(
                f"{self.directory} holds {held}, not {asked}.", "Name another directory with --dir, or delete this one."
            )
        if brokers is not None and brokers != len(self.nodes):
            raise ConfigurationError(
                f"{self.directory} holds a cluster of {len(self.nodes)}, not of {brokers} brokers.",
                "Name another directory with --dir, or delete this one.",
            )
        if port and port != self.nodes[0].port:
            raise ConfigurationError(
                f"the Kafka in {self.directory} runs on port {self.nodes[0].port}, not {port}.",
                f"Stop it first: samzapy dev kafka stop --dir {quote(str(self.directory))}",
            )

    # -- the processes --------------------------------------------------------------------------------------------------------------

    def _settings_file(self, node: Node) -> Path:
        return self.directory / f"node-{node.id}.properties"

    def _data(self, node: Node) -> Path:
        return self.directory / f"node-{node.id}"

    def _broker(self, node: Node, launch: Launch) -> list[str]:
        return launch.command(self.directory, (*JVM_OPTIONS, *(BRIEF_JVM_OPTIONS if launch.tied else ())), [_BROKER, str(self._settings_file(node))])

    def _bring_up(self, launch: Launch, say: Progress) -> LocalKafka:
        running = self.pids
        missing = [node for node in self.nodes if node.id not in running]
        if missing:
            say(f"starting Kafka {KAFKA_VERSION} on {self.bootstrap_servers} ({self.directory})")
        started: list[Server] = []
        try:
            self._write_settings(missing, launch)
            self._format([node for node in missing if not (self._data(node) / "meta.properties").exists()], launch)
            log_starts = {}
            for node in missing:
                server = self.server(node)
                log_starts[node.id] = server.log_size()
                server.start(self._broker(node, launch), tied=launch.tied)
                started.append(server)
            self._await_answers(log_starts, launch.timeout_s)
            self._make_users()
        except BaseException:
            end_all(started, within_s=5.0)
            raise
        return self

    def _write_settings(self, nodes: Sequence[Node], launch: Launch) -> None:
        (self.directory / "log4j2.properties").write_text(LOGGING)
        secure = self.secure
        if secure is not None and nodes:
            secure.make(launch.java)
        for node in nodes:
            settings = node_settings(
                node, self.nodes, self._data(node), launch.overrides, secure.broker_settings() if secure is not None else None
            )
            write_private(self._settings_file(node), properties_text(settings))

    def _make_users(self) -> None:
        secure = self.secure
        if secure is not None:
            set_passwords(self.client_settings(BROKER), {user: secure.password(user) for user in (ADMIN, JOB)})

    def _format(self, nodes: Sequence[Node], launch: Launch) -> None:
        tools = []
        for node in nodes:
            arguments = ["format", "--ignore-formatted", "-t", self.cluster_id, "-c", str(self._settings_file(node))]
            command = launch.command(self.directory, (*JVM_OPTIONS, *BRIEF_JVM_OPTIONS), ["kafka.tools.StorageTool", *arguments])
            tools.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        for node, tool in zip(nodes, tools, strict=True):
            said, _ = tool.communicate()
            if tool.returncode != 0:
                raise ClusterUnreachable(
                    f"{self._data(node)} could not be made ready for Kafka: {first_complaint(said.splitlines())}.",
                    "Delete the directory, or name another with --dir.",
                )

    def _await_answers(self, log_starts: Mapping[int, int], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        waiting = list(self.nodes)
        while True:
            waiting = [node for node in waiting if not self._sees_all(node)]
            if not waiting:
                return
            for node in self.nodes:
                if self.server(node).pid() is None:
                    explain_end(self.server(node), log_starts.get(node.id, 0), "Kafka")
            if time.monotonic() >= deadline:
                log = self.server(waiting[0]).log
                raise ClusterUnreachable(f"Kafka on port {waiting[0].port} did not answer within {timeout_s:.0f} s.", f"See {log}.")
            time.sleep(_POLL_S)

    def _sees_all(self, node: Node) -> bool:
        secure = self.secure
        seen = ask_cluster(HOST, node.port, login=secure.login() if secure is not None else None)
        return (
            seen is not None
            and seen.cluster_id == self.cluster_id
            and seen.nodes >= {other.id for other in self.nodes}
            and seen.controller is not None
        )


def default_directory(port: int) -> Path:
    return state_dir() / f"kafka-{port}"


def _new_cluster_id() -> str:
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made


def _fixed_ports(existing: LocalKafka | None, port: int | None, count: int) -> list[int]:
    """The brokers' ports if they are not to be chosen: as asked for, else as they were."""
    if port is None:
        return [node.port for node in existing.nodes] if existing else list(range(DEFAULT_PORT, DEFAULT_PORT + count))
    if not 0 <= port <= 65536 - count:
        raise ConfigurationError(f"--port {port} is not a port.", "Choose one from 1024 on, or 0 for any free one.")
    return list(range(port, port + count)) if port else []


def _check_free(port: int) -> None:
    if is_free(HOST, port):
        return
    other = ask_cluster(HOST, port)
    owner = f"a Kafka of another directory (cluster {other.cluster_id})" if other else "another program"
    raise ConfigurationError(
        f"port {port} is in use by {owner}.", "Stop it, or take any free port: samzapy dev kafka start --port 0"
    )
