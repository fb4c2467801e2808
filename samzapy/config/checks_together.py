"""What several keys must be together, and what is in free maps (`kafka`, `spark.conf`, store names).

Each check looks only at what is well formed by itself, so that one error does not hide the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from samzapy.config import spark_keys
from samzapy.config.fields import CLASS, MAX_STORE_NAME, STORE_NAME, foreign_letter, suggested_name
from samzapy.config.kafka_keys import CLIENT, GROUPS, refusal
from samzapy.config.key_errors import Finding
from samzapy.config.plain_scalars import read_scalar
from samzapy.config.program import check_program
from samzapy.config.registered import is_registered, schema_file
from samzapy.config.registry_check import check_registry
from samzapy.config.scalars import shown
from samzapy.config.schema import CommitSettings, ContainerSettings, Section
from samzapy.config.secrets import is_secret
from samzapy.config.tree import Route
from samzapy.config.units import format_duration
from samzapy.config.web_check import check_web
from samzapy.model.names import JOB_ID, JOB_NAME, KAFKAS_OWN, TOPIC_NAME, Job, is_a_jobs_own

MAX_TOPIC_NAME = 249
MAX_CLIENT_INTEGER = (1 << 31) - 1  # librdkafka wraps what is beyond: 4294968296 would be read as 1000
SOCKET_TIMEOUT = "socket.timeout.ms"
SHORTEST_TRANSACTION_MS, LONGEST_TRANSACTION_MS = 1000, 2**31 - 1  # of librdkafka's transaction.timeout.ms
MAX_SCHEMA_BYTES = 1 << 20
_SERVER = re.compile(r"(?:[A-Za-z_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
S = TypeVar("S", bound=Section)


def check_together(document: Mapping[str, Any]) -> list[Finding]:
    """All findings on a document with references resolved."""
    return [
        *_nul_characters(document, ()),
        *_kafka(document),
        *_socket_timeout(document),
        *_token(document),
        *_spark_conf(_map(_map(document, "spark"), "conf")),
        *_times(document),
        *_bootstrap(document),
        *_listed_twice(document, "inputs"),
        *_listed_twice(document, "outputs"),
        *_broadcast(document),
        *_input_times(document),
        *_store_names(document),
        *_topics(document),
        *check_program(document),
        *check_registry(document, serdes(document)),
        *check_web(document),
    ]


def _nul_characters(value: Any, path: Route) -> Iterator[Finding]:
    """Texts with the character that ends a text for the system and for Kafka's client; `params` are the user's own."""
    if isinstance(value, str) and "\0" in value:
        yield Finding(path, f"holds a NUL character: {shown(value)}", "Remove it (\\0 within double quotes).")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from () if (*path, key) == ("params",) else _nul_characters(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _nul_characters(item, (*path, number))


def check_avro_files(document: Mapping[str, Any], folders: Sequence[Path]) -> Iterator[Finding]:
    """Schema files that are in none of the folders, or hold no JSON."""
    for path, name in serdes(document):
        file = schema_file(name) if is_registered(name) else name.removeprefix("avro:") if name.startswith("avro:") else ""
        wrong = _wrong_schema(file, folders) if file else None
        if wrong:
            yield Finding(path, *wrong)


def _wrong_schema(file: str, folders: Sequence[Path]) -> tuple[str, str] | None:
    try:
        place = next((folder / file for folder in folders if (folder / file).is_file()), None)
    except OSError as error:
        return f"schema file {shown(file)} cannot be looked at: {error.strerror}", "The path is from the job file's folder or the working directory."
    if place is None:
        return f"schema file {file!r} does not exist", "The path is from the job file's folder or the working directory."
    try:
        with place.open("rb") as opened:
            raw = opened.read(MAX_SCHEMA_BYTES + 1)
        if len(raw) > MAX_SCHEMA_BYTES:
            return f"schema file {file!r} is larger than {MAX_SCHEMA_BYTES >> 10} KiB", f"{_kind(file)} is a page of JSON."
        json.loads(raw)
    except OSError as error:
        return f"schema file {file!r} cannot be read: {error.strerror}", "Check the file's permissions."
    except (ValueError, RecursionError) as error:
        return f"schema file {file!r} is not JSON: {error}", f"{_kind(file)} is a JSON document."
    return None


def _kind(file: str) -> str:
    return "A JSON Schema" if file.endswith(".json") else "An Avro schema"


def serdes(document: Mapping[str, Any]) -> Iterator[tuple[Route, str]]:
    """Every serde that is named, with its path."""
    for path, section in (*_entries(document, "inputs"), *_entries(document, "outputs"), *_stores(document)):
        for key in ("key", "value"):
            if isinstance(section.get(key), str):
                yield (*path, key), section[key]


def time_functions(document: Mapping[str, Any]) -> Iterator[tuple[Route, str]]:
    """Every function that `inputs[].time.from` names, with its path."""
    for path, entry in _entries(document, "inputs"):
        source = _map(entry, "time").get("from")
        if isinstance(source, str) and CLASS.fullmatch(source):
            yield (*path, "time", "from"), source


def _kafka(document: Mapping[str, Any]) -> Iterator[Finding]:
    kafka = _map(document, CLIENT)
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


def _socket_timeout(document: Mapping[str, Any]) -> Iterator[Finding]:
    """A transactional producer cannot be made when a request may take longer than its transaction."""
    commit, kafka = _section(document, "commit", CommitSettings, "timeout"), _map(document, CLIENT)
    side = _map(kafka, "producer")
    path: Route = (CLIENT, "producer", SOCKET_TIMEOUT) if SOCKET_TIMEOUT in side else (CLIENT, SOCKET_TIMEOUT)
    given = side.get(SOCKET_TIMEOUT, kafka.get(SOCKET_TIMEOUT))
    value = read_scalar(given) if isinstance(given, str) else given
    if commit and isinstance(value, int) and value > commit.timeout_ms:
        text = f"{SOCKET_TIMEOUT} ({value}ms) must not be longer than commit.timeout ({format_duration(commit.timeout_ms)})"
        yield Finding(path, text, f"Write at most {commit.timeout_ms}, or set a longer commit.timeout.")


def _token(document: Mapping[str, Any]) -> Iterator[Finding]:
    """With OAUTHBEARER and nothing that gives a token, the client waits for one for ever and says nothing."""
    kafka = _map(document, CLIENT)
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
        for server in value.split(","):
            match = _SERVER.fullmatch(server.strip())
            if match is None or (match["port"] and not 0 < int(match["port"]) < 65536):
                yield Finding(path, f"expected host:port, found {shown(server.strip())}", 'Separate servers by commas: "a:9092,b:9092".')


def _spark_conf(conf: Mapping[str, Any]) -> Iterator[Finding]:
    for key, value in conf.items():
        path = ("spark", "conf", key)
        message, hint = spark_keys.refusal(key)
        if message:
            yield Finding(path, message, hint, at_key=True)
        elif isinstance(value, Mapping | list):
            yield Finding(path, f"expected text, a number or true/false, found {shown(value)}", "Spark's keys are dotted.")


def _times(document: Mapping[str, Any]) -> Iterator[Finding]:
    commit = _section(document, "commit", CommitSettings, "interval", "timeout")
    containers = _section(document, "containers", ContainerSettings, "lease", "heartbeat")
    if commit and not SHORTEST_TRANSACTION_MS <= commit.timeout_ms <= LONGEST_TRANSACTION_MS:
        text = f"{format_duration(commit.timeout_ms)} is outside of what the Kafka client takes"
        yield Finding(_given(document, ("commit", "timeout"), ("commit", "timeout")), text, "Set 1s to 24d.")
    if commit and 3 * commit.interval_ms >= commit.timeout_ms:
        path = _given(document, ("commit", "interval"), ("commit", "timeout"))
        interval, timeout = format_duration(commit.interval_ms), format_duration(commit.timeout_ms)
        text = f"three intervals ({interval}) must be shorter than commit.timeout ({timeout})"
        yield Finding(path, text, f"Set commit.timeout above {format_duration(3 * commit.interval_ms)}, or a shorter interval.")
    if containers and 2 * containers.heartbeat_ms >= containers.lease_ms:
        path = _given(document, ("containers", "lease"), ("containers", "heartbeat"))
        lease, heartbeat = format_duration(containers.lease_ms), format_duration(containers.heartbeat_ms)
        text = f"two heartbeats ({heartbeat}) must be shorter than the lease ({lease})"
        yield Finding(path, text, f"Set containers.lease above {format_duration(2 * containers.heartbeat_ms)}, or a shorter heartbeat.")
    if commit and containers and containers.lease_ms >= commit.timeout_ms:
        path = _given(document, ("containers", "lease"), ("commit", "timeout"))
        lease, timeout = format_duration(containers.lease_ms), format_duration(commit.timeout_ms)
        yield Finding(
            path, f"the lease ({lease}) must be shorter than commit.timeout ({timeout})", "Shorten the lease or lengthen the timeout."
        )


def _bootstrap(document: Mapping[str, Any]) -> Iterator[Finding]:
    for path, entry in _entries(document, "inputs"):
        if entry.get("bootstrap") is True and entry.get("start") == "latest":
            text = "a bootstrap input is read to its end before the others; from latest there is nothing to read"
            yield Finding((*path, "start"), text, "Remove `start`, or `bootstrap`.")


def _listed_twice(document: Mapping[str, Any], name: str) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for path, entry in _entries(document, name):
        topic = entry.get("topic")
        if isinstance(topic, str) and topic in first:
            yield Finding(
                (*path, "topic"), f"topic {topic!r} is listed twice in {name}", f"It is {name}.{first[topic]} already; remove one."
            )
        elif isinstance(topic, str):
            first[topic] = int(path[1])


def _broadcast(document: Mapping[str, Any]) -> Iterator[Finding]:
    entries = list(_entries(document, "inputs"))
    if entries and all(entry.get("broadcast") is True for _, entry in entries):
        hint = "The partitions of an input that is not broadcast determine the number of tasks."
        yield Finding(("inputs", 0, "broadcast"), "every input is broadcast", hint)


def _input_times(document: Mapping[str, Any]) -> Iterator[Finding]:
    """How late records may be is a fact about the topic that nobody can guess; and one task's inputs do the same when nothing comes."""
    timed = [(path, entry["time"]) for path, entry in _entries(document, "inputs") if isinstance(entry.get("time"), Mapping)]
    for path, time in timed:
        if time.get("from", "processing") != "processing" and time.get("watermark_delay") is None:
            hint = "How much older than the newest record of its partition may a record be? For example 5s; 0s if never."
            yield Finding((*path, "time", "watermark_delay"), "missing required key 'watermark_delay'", hint)
    if len({time.get("when_idle", "hold") for _, time in timed}) > 1:
        path = (*timed[-1][0], "time", "when_idle")
        yield Finding(path, "the inputs of a task differ in when_idle", "Write the same for all inputs with a time.")


def _store_names(document: Mapping[str, Any]) -> Iterator[Finding]:
    for name in _map(document, "stores"):
        if not STORE_NAME.fullmatch(name) or len(name) > MAX_STORE_NAME:
            suggested = suggested_name(name)
            hint = "It becomes part of a directory's and a topic's name, so it must not be a path." if "/" in name or ".." in name or "\\" in name else ""
            message = f"expected a store name of letters, digits, '-' and '_', at most {MAX_STORE_NAME}, found {shown(name)}"
            yield Finding(("stores", name), message, hint or foreign_letter(name) or (f"Write {suggested!r}." if suggested else "For example counts."), at_key=True)


def _topics(document: Mapping[str, Any]) -> Iterator[Finding]:
    """No topic has two uses: changelogs are of one store each, and internal topics are neither read nor written by tasks."""
    name, job_id = document.get("job"), document.get("id", "1")
    named = isinstance(name, str) and JOB_NAME.fullmatch(name) and isinstance(job_id, str | int) and JOB_ID.fullmatch(str(job_id))
    job = Job(str(name), str(job_id)) if named else None
    uses: dict[str, str] = {}
    if job:
        uses = {job.checkpoint_topic: "the checkpoint topic", job.coordinator_topic: "the coordinator topic"}
        uses[job.dead_letter_topic] = "the dead-letter topic"
    changelogs: dict[str, str] = {}
    for path, store in _stores(document):
        topic = store.get("changelog", True)
        derived = job.changelog_topic(str(path[1])) if job and topic is True and STORE_NAME.fullmatch(str(path[1])) else None
        topic = derived or topic
        if not isinstance(topic, str) or not TOPIC_NAME.fullmatch(topic):
            if derived and len(derived) > MAX_TOPIC_NAME:
                text = f"its changelog's name would have {len(derived)} characters, Kafka allows {MAX_TOPIC_NAME}"
                yield Finding(path, text, "Shorten the names.", True)
            continue
        where, at_key = ((*path, "changelog"), False) if "changelog" in store else (path, True)
        if topic in changelogs:
            message = f"changelog {topic!r} is also that of store {changelogs[topic]!r}"
            yield Finding(where, message, "Each store has its own changelog: remove `changelog`.", at_key)
        elif topic in uses:
            yield Finding(where, f"{topic!r} is {uses[topic]} of the job", "Remove `changelog`.", at_key)
        elif owner := _owner(topic):
            yield Finding(where, f"{topic!r} is {owner}", "Remove `changelog`.", at_key)
        changelogs.setdefault(topic, str(path[1]))
    uses.update({topic: f"the changelog of store {store!r}" for topic, store in changelogs.items()})
    internal = _map(_map(document, "stages"), "internal")
    uses.update({str(one.get("topic")): f"the internal topic of {name!r}" for name, one in internal.items() if isinstance(one, Mapping)})
    for section in ("inputs", "outputs"):
        for path, entry in _entries(document, section):
            topic = entry.get("topic")
            if topic in uses:
                yield Finding((*path, "topic"), f"{topic!r} is {uses[topic]} of this job", "Read and write other topics only.")
            elif isinstance(topic, str) and (topic in KAFKAS_OWN or (section == "outputs" and is_a_jobs_own(topic))):
                yield Finding((*path, "topic"), f"{topic!r} is {_owner(topic)}", "Read and write other topics only.")


def _owner(topic: str) -> str:
    """Whose topic that is by its name, in words; "" if it may be anybody's."""
    if topic in KAFKAS_OWN:
        return "a topic of Kafka itself"
    return "where a job keeps its positions and its ownership" if is_a_jobs_own(topic) else ""


def _map(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def _entries(document: Mapping[str, Any], name: str) -> list[tuple[Route, Mapping[str, Any]]]:
    items = document.get(name)
    return [((name, i), item) for i, item in enumerate(items if isinstance(items, list) else []) if isinstance(item, Mapping)]


def _stores(document: Mapping[str, Any]) -> list[tuple[Route, Mapping[str, Any]]]:
    return [(("stores", name), store) for name, store in _map(document, "stores").items() if isinstance(store, Mapping)]


def _section(document: Mapping[str, Any], name: str, model: type[S], *keys: str) -> S | None:
    """These keys of a section, all others left at their defaults; None if they are not well formed."""
    try:
        return model.model_validate({key: value for key, value in _map(document, name).items() if key in keys})
    except ValidationError:
        return None


def _given(document: Mapping[str, Any], *paths: tuple[str, str]) -> Route:
    """The first of the paths that the document has."""
    return next((path for path in paths if path[1] in _map(document, path[0])), paths[0])
