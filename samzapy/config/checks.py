"""What the schema cannot say: names of serdes, keys that are refused, things that must fit each other. On the plain document, so that
these problems are told together with the schema's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from samzapy.config.document import KeyPath
from samzapy.config.hints import BUILTIN_SERDES, did_you_mean
from samzapy.config.kafka_keys import why_refused
from samzapy.config.schema import Settings

STORE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
Finding = tuple[KeyPath, bool, str, str]  # path, is it about the key, message, hint
CheckClient = Callable[[str, dict[str, object]], str | None]
COMMON_KEYS = (
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location", "ssl.certificate.location",
    "ssl.key.location", "ssl.key.password", "linger.ms", "batch.size", "batch.num.messages", "compression.type", "compression.codec",
    "queued.min.messages", "queued.max.messages.kbytes", "fetch.wait.max.ms", "fetch.min.bytes", "fetch.max.bytes", "message.max.bytes",
    "max.partition.fetch.bytes", "socket.timeout.ms", "socket.keepalive.enable", "request.timeout.ms", "metadata.max.age.ms", "client.rack",
    "broker.address.family", "queue.buffering.max.messages", "queue.buffering.max.kbytes", "statistics.interval.ms", "retries",
    "reconnect.backoff.ms", "debug", "log_level",
)  # fmt: skip


def findings(content: Mapping[str, Any], folders: Sequence[Path]) -> Iterator[Finding]:
    """Everything that can be said of the document without a schema."""
    yield from _kafka(content.get("kafka"))
    for section in ("inputs", "outputs"):
        entries = content.get(section)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                yield from _serdes(entry, (section, index), folders)
        yield from _repeated(entries, section)
    stores = content.get("stores")
    if isinstance(stores, dict):
        yield from _stores(stores, folders)


def _kafka(kafka: Any) -> Iterator[Finding]:
    if not isinstance(kafka, dict):
        return
    if kafka.get("bootstrap.servers") is None:
        yield ("kafka",), False, "bootstrap.servers is missing", "add `bootstrap.servers: HOST:PORT`"
    for path, _, key, _ in client_keys(kafka):
        refused = why_refused(key)
        if refused is not None:
            yield path, True, *refused


def client_keys(kafka: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, str, Any]]:
    """(path, group, key, value) of every librdkafka key; groups are kafka, kafka.producer, kafka.consumer."""
    for key, value in kafka.items():
        if key in ("producer", "consumer") and isinstance(value, dict):
            for inner, inner_value in value.items():
                yield ("kafka", key, inner), f"kafka.{key}", inner, inner_value
        elif not isinstance(value, dict):
            yield ("kafka", key), "kafka", key, value


def client_findings(kafka: Any, check_client: CheckClient) -> Iterator[Finding]:
    """What librdkafka itself says of each key: no connection is opened."""
    for path, group, key, value in client_keys(kafka if isinstance(kafka, dict) else {}):
        if why_refused(key) is None and value is not None and not isinstance(value, list):
            said = check_client(group, {key: value})
            if said:
                yield path, True, said, did_you_mean(key, [k for k in COMMON_KEYS if k != key]) or "see librdkafka's list of properties"


def _serdes(entry: Mapping[str, Any], path: KeyPath, folders: Sequence[Path]) -> Iterator[Finding]:
    for side in ("key", "value"):
        name = entry.get(side)
        if isinstance(name, str):
            wrong = _wrong_serde(name, folders)
            if wrong:
                yield (*path, side), False, *wrong


def _wrong_serde(name: str, folders: Sequence[Path]) -> tuple[str, str] | None:
    if name in BUILTIN_SERDES:
        return None
    if name.startswith("avro:"):
        return _wrong_schema(name.removeprefix("avro:"), folders)
    module, _, cls = name.partition(":")
    if cls.isidentifier() and all(p.isidentifier() for p in module.split(".")):
        return None
    hint = did_you_mean(name, [*BUILTIN_SERDES, "avro:"]) or f"known: {', '.join(BUILTIN_SERDES)}, avro:<schema file>, module:Class"
    return f"unknown serde {name!r}", hint


def _wrong_schema(name: str, folders: Sequence[Path]) -> tuple[str, str] | None:
    place = next((p for p in (Path(f) / name for f in folders) if p.is_file()), None)
    if place is None:
        return f"schema file {name!r} is not found", f"it is looked for in {', '.join(str(f) for f in folders)}"
    try:
        json.loads(place.read_bytes())
    except ValueError as error:
        return f"schema file {name!r} is not JSON: {error}", "an Avro schema is a JSON document"
    return None


def _repeated(entries: Any, section: str) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        topic = entry.get("topic") if isinstance(entry, dict) else None
        if isinstance(topic, str):
            if topic in seen:
                yield (
                    (section, index, "topic"),
                    False,
                    f"topic {topic!r} is listed twice; first as {section}[{seen[topic]}]",
                    "list it once",
                )
            seen.setdefault(topic, index)


def _stores(stores: Mapping[str, Any], folders: Sequence[Path]) -> Iterator[Finding]:
    changelogs: dict[str, str] = {}
    for name, store in stores.items():
        if not STORE_NAME.fullmatch(name):
            yield (
                ("stores", name),
                True,
                f"store name {name!r}: letters, digits, '_' and '-' only, beginning with a letter or digit",
                "it names a topic and a folder",
            )
        if isinstance(store, dict):
            yield from _serdes(store, ("stores", name), folders)
            topic = store.get("changelog")
            if isinstance(topic, str):
                if topic in changelogs:
                    message = f"stores {changelogs[topic]!r} and {name!r} have one changelog, {topic!r}"
                    yield ("stores", name, "changelog"), False, message, "give each a topic of its own"
                changelogs.setdefault(topic, name)


def fit_findings(settings: Settings) -> Iterator[Finding]:
    """Settings that must fit each other."""
    commit, containers = settings.commit, settings.containers
    if 3 * commit.interval_ms >= commit.timeout_ms:
        yield (
            ("commit",),
            False,
            f"three intervals of {commit.interval_ms} ms do not fit into the timeout of {commit.timeout_ms} ms",
            "raise `timeout` or lower `interval`",
        )
    if containers.lease_ms >= commit.timeout_ms:
        yield (
            ("containers",),
            False,
            f"the lease of {containers.lease_ms} ms must be below commit.timeout of {commit.timeout_ms} ms",
            "lower `lease` or raise `commit.timeout`",
        )
    if 2 * containers.heartbeat_ms >= containers.lease_ms:
        yield (
            ("containers",),
            False,
            f"two heartbeats of {containers.heartbeat_ms} ms do not fit into the lease of {containers.lease_ms} ms",
            "lower `heartbeat` or raise `lease`",
        )
    own = {f"{settings.job}-{settings.id}-{name}-changelog": name for name in settings.stores}
    for name, store in settings.stores.items():
        if isinstance(store.changelog, str) and own.get(store.changelog, name) != name:
            message = f"{store.changelog!r} is also the changelog of store {own[store.changelog]!r}"
            yield ("stores", name, "changelog"), False, message, "give each a topic of its own"
