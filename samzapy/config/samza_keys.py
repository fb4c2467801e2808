"""Samza's configuration keys and the names of ours, for people who come from there; and keys that are reserved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

RESERVED = frozenset({"time", "side_inputs", "snapshots"})
RESERVED_OF_STORES = frozenset({"partition_by"})

# pattern of Samza's key (* stands for one name, ** for the rest) → what to write instead
SAMZA: tuple[tuple[str, str], ...] = (
    ("job.name", "`job`"),
    ("job.id", "`id`"),
    ("app.name", "`job`"),
    ("app.id", "`id`"),
    ("app.class", "`task` (module:Class)"),
    ("app.runner.class", "`spark.master`"),
    ("task.class", "`task` (module:Class)"),
    ("task.inputs", "`inputs`, a list of {topic, key, value}"),
    ("task.broadcast.inputs", "`broadcast: true` at an entry of `inputs`"),
    ("task.window.ms", "`window`, with a unit: 10s"),
    ("task.commit.ms", "`commit.interval`, with a unit: 1s"),
    ("task.commit.**", "`commit.interval` and `commit.timeout`"),
    ("task.shutdown.ms", "`containers.lease`"),
    ("task.checkpoint.**", "fixed: checkpoints are always kept, in Kafka"),
    ("task.ignored.exceptions", "`on_error.then: skip`"),
    ("task.drop.**", "`on_error.then: skip`"),
    ("task.opts", "`spark.conf`"),
    ("task.**", "not a setting: remove it"),
    ("job.container.count", "`containers.count`"),
    ("job.container.**", "`containers`"),
    ("job.factory.class", "`spark.master`"),
    ("job.host-affinity.enabled", "`containers.host_affinity`"),
    ("job.standbytasks.**", "`containers.standby`"),
    ("job.default.system", "fixed: Kafka is the only system"),
    ("job.changelog.system", "fixed: changelogs are in the cluster of `kafka`"),
    ("job.coordinator.**", "fixed: the coordinator topic is in the cluster of `kafka`"),
    ("job.systemstreampartition.**", "fixed: task i reads partition i of every input"),
    ("job.**", "not a setting: remove it"),
    ("cluster-manager.container.memory.mb", "`containers.memory`, with a unit: 512MiB"),
    ("cluster-manager.container.retry.count", "`containers.max_restarts`"),
    ("cluster-manager.container.retry.window.ms", "`containers.restart_window`, with a unit: 5m"),
    ("cluster-manager.container.request.timeout.ms", "`containers.host_affinity`, with a unit: 5s"),
    ("cluster-manager.**", "`containers` and `spark.conf`"),
    ("yarn.container.count", "`containers.count`"),
    ("yarn.container.memory.mb", "`containers.memory`, with a unit: 512MiB"),
    ("yarn.**", "`containers` and `spark.conf`"),
    ("systems.*.samza.factory", "fixed: Kafka is the only system; its keys are in `kafka`"),
    ("systems.*.samza.key.serde", "`key` at entries of `inputs` and `outputs`"),
    ("systems.*.samza.msg.serde", "`value` at entries of `inputs` and `outputs`"),
    ("systems.*.samza.offset.default", "`start` at an entry of `inputs`"),
    ("systems.*.consumer.zookeeper.connect", "`kafka.bootstrap.servers`"),
    ("systems.*.consumer.bootstrap.servers", "`kafka.bootstrap.servers`"),
    ("systems.*.producer.bootstrap.servers", "`kafka.bootstrap.servers`"),
    ("systems.*.consumer.auto.offset.reset", "`start` at an entry of `inputs`"),
    ("systems.*.consumer.**", "`kafka.consumer`, a map"),
    ("systems.*.producer.**", "`kafka.producer`, a map"),
    ("systems.*.streams.*.samza.key.serde", "`key` at an entry of `inputs` or `outputs`"),
    ("systems.*.streams.*.samza.msg.serde", "`value` at an entry of `inputs` or `outputs`"),
    ("systems.*.streams.*.samza.bootstrap", "`bootstrap: true` at an entry of `inputs`"),
    ("systems.*.streams.*.samza.offset.default", "`start` at an entry of `inputs`"),
    ("systems.*.streams.*.samza.reset.offset", "`samzapy checkpoint set JOB.yaml --to-earliest`"),
    ("systems.*.streams.**", "keys at an entry of `inputs` or `outputs`"),
    ("systems.**", "`kafka`, a map of librdkafka's keys"),
    ("streams.*.samza.bootstrap", "`bootstrap: true` at an entry of `inputs`"),
    ("streams.*.samza.broadcast", "`broadcast: true` at an entry of `inputs`"),
    ("streams.*.samza.key.serde", "`key` at an entry of `inputs` or `outputs`"),
    ("streams.*.samza.msg.serde", "`value` at an entry of `inputs` or `outputs`"),
    ("streams.*.samza.offset.default", "`start` at an entry of `inputs`"),
    ("streams.**", "keys at an entry of `inputs` or `outputs`"),
    (
        "serializers.registry.**",
        "not needed: `key` and `value` name their serde in place (string, integer, json, bytes, avro:…, module:Class)",
    ),
    ("serializers.**", "`key` and `value`, which name their serde in place"),
    ("stores.*.factory", "`engine` of the store: rocksdb or memory"),
    ("stores.*.key.serde", "`key` of the store"),
    ("stores.*.msg.serde", "`value` of the store"),
    ("stores.*.changelog.**", "`changelog` of the store: true, false or a topic"),
    ("stores.*.changelog", "`changelog` of the store: true, false or a topic"),
    ("stores.*.side.inputs.**", "`side_inputs` (not implemented yet)"),
    ("stores.*.side.inputs", "`side_inputs` (not implemented yet)"),
    ("stores.*.rocksdb.ttl.ms", "`ttl` of the store"),
    ("stores.*.rocksdb.**", "`containers.memory`, one budget for all stores"),
    ("stores.*.container.**", "`containers.memory`, one budget for all stores"),
    ("stores.*.write.batch.size", "`commit.max_uncommitted`"),
    ("stores.*.object.cache.size", "`containers.memory`, one budget for all stores"),
    ("stores.default.changelog.**", "`changelog` of each store"),
    ("metrics.**", "fixed: metrics are at /metrics of the web listener (`web`)"),
    ("serdes.**", "`key` and `value`, which name their serde in place"),
)


def _pattern(key: str) -> re.Pattern[str]:
    return re.compile(re.escape(key).replace(r"\.\*\*", r"\..+").replace(r"\*", r"[^.]+"))


_PATTERNS = tuple((_pattern(key), ours) for key, ours in SAMZA)


def ours_for(path: tuple[str | int, ...], value: Any = None) -> tuple[str, str] | None:
    """Samza's key that stands at a path, and what to write instead; None if it is not Samza's.

    Samza's keys are dotted; in YAML they may come nested as well, so the scalars below are looked at too.
    """
    start = ".".join(str(part) for part in path)
    for key in (start, *(f"{start}.{rest}" for rest in _below(value))):
        for pattern, ours in _PATTERNS:
            if pattern.fullmatch(key):
                return key, ours
    return None


def _below(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            rests = list(_below(item)) if isinstance(item, dict) else []
            yield from (f"{key}.{rest}" for rest in rests) if rests else (str(key),)
