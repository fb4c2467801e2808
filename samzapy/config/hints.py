"""What a person who wrote an unknown key may have meant: one of ours, or one of Samza's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

RESERVED = ("time", "side_inputs", "snapshots", "ttl", "partition_by")
BUILTIN_SERDES = ("string", "integer", "json", "bytes")

# the beginning of a Samza key → the name of ours
SAMZA: tuple[tuple[str, str], ...] = (
    ("app.name", "job"), ("app.id", "id"), ("app.class", "task"), ("job.name", "job"), ("job.id", "id"), ("job.container.count", "containers.count"),
    ("job.container.thread", "containers.count"), ("job.systemstreampartition", "nothing: task i reads partition i"),
    ("job.host-affinity.enabled", "containers.host_affinity"), ("job.standbytasks", "containers.standby"),
    ("job.coordinator", "nothing: the coordinator is part of `run`"), ("job.factory.class", "spark.master, or `run --local`"),
    ("job.default.system", "nothing: there is one system, kafka"), ("job.", "containers, commit or state"),
    ("task.class", "task"), ("task.inputs", "inputs"), ("task.commit.ms", "commit.interval"), ("task.window.ms", "window"),
    ("task.broadcast.inputs", "inputs[…].broadcast"), ("task.checkpoint", "nothing: checkpoints are always kept in Kafka"),
    ("task.transactional", "commit.guarantee"), ("task.drop.", "on_error"), ("task.ignored.exceptions", "on_error"),
    ("task.callback.timeout.ms", "commit.timeout"), ("task.max.concurrency", "containers.count"), ("task.", "commit, window or on_error"),
    ("systems.", "kafka"), ("serializers.", "key and value of the input, output or store"), ("streams.", "inputs or outputs"),
    ("stores.", "stores.<name> with key, value, engine and changelog"), ("cluster-manager.", "containers and spark"),
    ("metrics.", "nothing: /metrics of the coordinator's web"), ("yarn.", "spark"),
)  # fmt: skip
SAMZA_IN_STORE = {
    "factory": "engine", "key.serde": "key", "msg.serde": "value", "changelog.replication.factor": "nothing: min(3, brokers)",
    "container.cache.size.bytes": "containers.memory", "container.write.buffer.size.bytes": "containers.memory",
    "write.batch.size": "nothing: writes are applied with the commit", "object.cache.size": "containers.memory",
    "side.inputs": "nothing yet: side inputs are not built", "rocksdb.ttl.ms": "nothing yet: ttl is not built",
}  # fmt: skip


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`did you mean 'changelog'?`, or ""."""
    found = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return f"did you mean {found[0]!r}?" if found else ""


def unknown_key(key: str, candidates: Iterable[str], in_store: bool, at_top: bool) -> str:
    """The hint for a key that the schema does not know."""
    known = sorted(candidates)
    if in_store and key in SAMZA_IN_STORE:
        return f"Samza's; here: {SAMZA_IN_STORE[key]}"
    if at_top and "." in key:
        for start, ours in SAMZA:
            if key.startswith(start):
                return f"Samza's; here: {ours}"
    return did_you_mean(key, known) or f"known here: {', '.join(known)}"
