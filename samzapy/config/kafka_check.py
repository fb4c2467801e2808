"""The section `kafka`: keys that a job file may not set, servers, and values that the clients could not work with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from samzapy.config.kafka_keys import CLIENT, GROUPS, refusal
from samzapy.config.key_errors import Finding
from samzapy.config.parts import map_at, section_of
from samzapy.config.plain_scalars import read_scalar
from samzapy.config.scalars import shown
from samzapy.config.schema import CommitSettings, ContainerSettings
from samzapy.config.secrets import is_secret
from samzapy.config.tree import Route
from samzapy.config.units import format_duration

MAX_CLIENT_INTEGER = (1 << 31) - 1  # librdkafka wraps what is beyond: 4294968296 would be read as 1000
QUEUE = "queue.buffering.max.kbytes"
LEAST_QUEUE_KIB = 2048
TOO_SMALL = {  # the least value, and what a smaller one does; 0 means without limit
    "queue.buffering.max.messages": (1000, "sending would wait for the brokers after every few records"),
    "connections.max.idle.ms": (10_000, "the client would close connections that it is using"),
}
_SERVER = re.compile(r"(?:[A-Za-z_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]=]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)


def check_kafka(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Keys, servers, and what the clients need of several keys together."""
    yield from _keys(document)
    yield from _socket_timeout(document)
    yield from _linger(document)
    yield from _queue(document)
    yield from _token(document)


def _keys(document: Mapping[str, Any]) -> Iterator[Finding]:
    kafka = map_at(document, CLIENT)
    if isinstance(document.get(CLIENT), Mapping) and kafka.get("bootstrap.servers") is None:
        yield Finding(
            ("kafka", "bootstrap.servers"), "missing required key 'bootstrap.servers'", 'Add bootstrap.servers: "localhost:9092".'
        )
    for key, value in kafka.items():
        if key in GROUPS and isinstance(value, Mapping):
            for inner, item in value.items():
                yield from _kafka_property((CLIENT, key, inner), item)
        elif key in GROUPS and value is not None:
            yield Finding((CLIENT, key), f"expected a map, found {shown(value)}", f"Write {key}: {{linger.ms: 5}}.")
        else:
            yield from _kafka_property((CLIENT, key), value)


def _kafka_property(path: Route, value: Any) -> Iterator[Finding]:
    key = str(path[-1])
    refused = refusal(key)
    if refused:
        yield Finding(path, *refused, at_key=True)
    elif key == "bootstrap.servers":
        yield from _servers(path, value)
    elif isinstance(value, Mapping | list):
        inner = next(iter(value), "…") if isinstance(value, Mapping) else ""
        hint = f"Kafka's keys are dotted: write {key}.{inner}." if isinstance(value, Mapping) else "Write one text, with commas."
        yield Finding(path, f"expected text, a number or true/false, found {shown(value)}", hint)
    elif isinstance(value, int) and abs(value) > MAX_CLIENT_INTEGER and not (key.startswith("sasl.") or is_secret(path)):
        yield Finding(path, f"{value} is too large for Kafka's client", f"Write at most {MAX_CLIENT_INTEGER}.")
    elif key in TOO_SMALL and type(number := read_scalar(value) if isinstance(value, str) else value) is int:
        least, then = TOO_SMALL[key]
        if 0 < number < least:
            yield Finding(path, f"{key} ({number}) is too small: {then}", f"Write at least {least}, or leave it out.")


def _socket_timeout(document: Mapping[str, Any]) -> Iterator[Finding]:
    """A transactional producer cannot be made when a request may take longer than its transaction."""
    commit = section_of(document, "commit", CommitSettings, "timeout")
    for path, value in _of_producers(document, "socket.timeout.ms"):
        if commit and value > commit.timeout_ms:
            text = f"socket.timeout.ms ({value}ms) must not be longer than commit.timeout ({format_duration(commit.timeout_ms)})"
            yield Finding(path, text, f"Write at most {commit.timeout_ms}, or set a longer commit.timeout.")


def _linger(document: Mapping[str, Any]) -> Iterator[Finding]:
    """A producer cannot be made when a record waits for others longer than it may take in all: `commit.timeout`, and outside of transactions the lease."""
    commit, containers = section_of(document, "commit", CommitSettings, "timeout"), section_of(document, "containers", ContainerSettings, "lease", "heartbeat")
    if commit is None or containers is None:
        return
    name, longest_ms = min((("commit.timeout", commit.timeout_ms), ("containers.lease", containers.lease_ms)), key=lambda found: found[1])
    for key in ("linger.ms", "queue.buffering.max.ms"):
        for path, value in _of_producers(document, key):
            if value >= longest_ms:
                text = f"{key} ({value}ms) must be shorter than {name} ({format_duration(longest_ms)})"
                yield Finding(path, text, "Write a few milliseconds: a record waits that long for others of its batch. A commit sends all waiting records at once.")


def _queue(document: Mapping[str, Any]) -> Iterator[Finding]:
    """A record that is larger than the client's queue would wait for ever."""
    for path, value in _of_producers(document, QUEUE):
        if value < LEAST_QUEUE_KIB:
            yield Finding(path, f"{value} KiB is too small a queue: a record of 1 MiB has to fit", f"Write at least {LEAST_QUEUE_KIB}, or leave it out.")


def _of_producers(document: Mapping[str, Any], key: str) -> Iterator[tuple[Route, float]]:
    """The number that producers get for a key, and where it is."""
    kafka = map_at(document, CLIENT)
    side = map_at(kafka, "producer")
    given = side.get(key, kafka.get(key))
    value = read_scalar(given) if isinstance(given, str) else given
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield ((CLIENT, "producer", key) if key in side else (CLIENT, key)), value


def _token(document: Mapping[str, Any]) -> Iterator[Finding]:
    """With OAUTHBEARER and nothing that gives a token, the client waits for one for ever and says nothing."""
    kafka = map_at(document, CLIENT)
    key = next((key for key in ("sasl.mechanism", "sasl.mechanisms") if str(kafka.get(key, "")).upper() == "OAUTHBEARER"), None)
    gives = str(kafka.get("sasl.oauthbearer.method", "")).lower() == "oidc" or str(kafka.get("enable.sasl.oauthbearer.unsecure.jwt", "")).lower() == "true"
    if key and not gives:
        hint = "Set `sasl.oauthbearer.method: oidc` with `sasl.oauthbearer.token.endpoint.url`, `sasl.oauthbearer.client.id` and `…client.secret`."
        yield Finding((CLIENT, key), "with OAUTHBEARER a key must say where tokens come from", hint)


def _servers(path: Route, value: Any) -> Iterator[Finding]:
    if value is None:
        return
    if len(path) > 2:
        yield Finding(path, "a job uses one Kafka cluster only", "Write it once, in `kafka`.", at_key=True)
    elif not isinstance(value, str) or not value.strip():
        hint = 'Write one text, with commas: "a:9092,b:9092".'
        yield Finding(path, f"expected host:port, found {shown(value)}", hint)
    else:
        for server in not_servers(value):
            yield Finding(path, f"expected host:port, found {shown(server)}", 'Separate servers by commas: "a:9092,b:9092".')


def not_servers(text: str) -> list[str]:
    """Of servers with commas between them, those that are not HOST:PORT."""
    found = []
    for server in map(str.strip, text.split(",")):
        match = _SERVER.fullmatch(server)
        if match is None or (match["port"] and not 0 < int(match["port"]) < 65536):
            found.append(server)
    return found
