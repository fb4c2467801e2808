"""The settings of a local broker: small, quick to start, on loopback, and otherwise as a real cluster has them.

Every node is broker and controller, so of three any one may die. Topics of the broker's own have few partitions, for they are what a
start waits for; replication is `min(3, brokers)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"

# For a JVM that runs for seconds or minutes: without the optimising compiler it starts with half of the processor time.
BRIEF_JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# 512 MiB is enough for some 15,000 partitions. A broker that lacks memory ends: it would live on without some of its threads, and answer nothing.
JVM_OPTIONS = (
    "-Xms64m", "-Xmx512m", "-XX:+ExitOnOutOfMemoryError", "-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Djava.net.preferIPv4Stack=true",
)  # fmt: skip

LOGGING = """status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


@dataclass(frozen=True)
class Node:
    """One broker and controller of the cluster."""

    id: int
    port: int
    controller_port: int


def node_settings(
    node: Node, nodes: Sequence[Node], data: Path, overrides: Mapping[str, str], secure: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What goes into this node's server.properties; `overrides` win. `secure`: what a secured broker needs besides (`Secure.broker_settings`)."""
    listener = "PLAINTEXT" if secure is None else secure["inter.broker.listener.name"]
    replicas = min(3, len(nodes))
    in_sync = max(1, replicas - 1)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{voter.id}@{HOST}:{voter.controller_port}" for voter in nodes),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener}://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": f"{listener}://{HOST}:{node.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(8 << 20),
        "num.network.threads": "2",
        "num.io.threads": "4",
        "num.recovery.threads.per.data.dir": "2",
        "num.replica.fetchers": "1",
        "background.threads": "2",
        **(secure or {}),
        **overrides,
    }


def properties_text(settings: Mapping[str, str]) -> str:
    """Java's properties format: a backslash escapes itself, and Kafka reads it as ISO-8859-1."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in sorted(settings.items()))


def _escaped(text: str) -> str:
    units = text.replace("\\", "\\\\").encode("utf-16-be", "surrogateescape")
    pairs = (units[i] << 8 | units[i + 1] for i in range(0, len(units), 2))
    return "".join(chr(unit) if unit < 0x80 else f"\\u{unit:04x}" for unit in pairs)
