"""What several keys must be together, and what is in free maps (`kafka`, `spark.conf`, store names).

Each check looks only at what is well formed by itself, so that one error does not hide the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from samzapy.config import key_schema, spark_keys
from samzapy.config.fields import CLASS, MAX_STORE_NAME, STORE_NAME, foreign_letter, suggested_name
from samzapy.config.kafka_check import check_kafka
from samzapy.config.key_errors import Finding
from samzapy.config.parts import entries_of, first_given, map_at, section_of, stores_of
from samzapy.config.program import check_program
from samzapy.config.registered import is_registered, schema_file
from samzapy.config.registry_check import check_registry
from samzapy.config.scalars import shown
from samzapy.config.schema import CommitSettings, ContainerSettings
from samzapy.config.tree import Route
from samzapy.config.units import format_duration
from samzapy.config.web_check import check_web
from samzapy.model.names import JOB_ID, JOB_NAME, KAFKAS_OWN, TOPIC_NAME, Job, is_a_jobs_own

MAX_TOPIC_NAME = 249
SHORTEST_TRANSACTION_MS, LONGEST_TRANSACTION_MS = 1000, 2**31 - 1  # of librdkafka's transaction.timeout.ms
BROKERS_TAKE_MS = 15 * 60_000  # the default of transaction.max.timeout.ms
MAX_SCHEMA_BYTES = 1 << 20


def check_together(document: Mapping[str, Any]) -> list[Finding]:
    """All findings on a document with references resolved."""
    return [
        *_nul_characters(document, ()),
        *check_kafka(document),
        *_spark_conf(map_at(map_at(document, "spark"), "conf")),
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
    """Schema files that are in none of the folders, or hold no JSON; and those of keys of stores whose equal values have several forms in bytes."""
    for path, name in serdes(document):
        file = schema_file(name) if is_registered(name) else name.removeprefix("avro:") if name.startswith("avro:") else ""
        wrong = _wrong_schema(file, folders) if file else None
        if wrong:
            yield Finding(path, *wrong)
        elif path[0] == "stores" and path[-1] == "key" and (why := key_schema.why_no_key_file(name, folders)):
            yield Finding(path, f"values of {name} cannot be keys of a store: {why}, and state is found by the bytes of its key", key_schema.REMEDY)


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
            return f"schema file {file!r} is larger than {MAX_SCHEMA_BYTES >> 10} KiB", f"{_kind(file)} is usually a page of JSON; is this the right file?"
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
    for path, section in (*entries_of(document, "inputs"), *entries_of(document, "outputs"), *stores_of(document)):
        for key in ("key", "value"):
            if isinstance(section.get(key), str):
                yield (*path, key), section[key]


def time_functions(document: Mapping[str, Any]) -> Iterator[tuple[Route, str]]:
    """Every function that `inputs[].time.from` names, with its path."""
    for path, entry in entries_of(document, "inputs"):
        source = map_at(entry, "time").get("from")
        if isinstance(source, str) and CLASS.fullmatch(source):
            yield (*path, "time", "from"), source


def _spark_conf(conf: Mapping[str, Any]) -> Iterator[Finding]:
    for key, value in conf.items():
        path = ("spark", "conf", key)
        message, hint = spark_keys.refusal(key)
        if message:
            yield Finding(path, message, hint, at_key=True)
        elif isinstance(value, Mapping | list):
            yield Finding(path, f"expected text, a number or true/false, found {shown(value)}", f"Spark's keys have dots: write '{key}.…', with one value each.")


def _times(document: Mapping[str, Any]) -> Iterator[Finding]:
    commit = section_of(document, "commit", CommitSettings, "interval", "timeout")
    containers = section_of(document, "containers", ContainerSettings, "lease", "heartbeat")
    if commit and not SHORTEST_TRANSACTION_MS <= commit.timeout_ms <= LONGEST_TRANSACTION_MS:
        text = f"{format_duration(commit.timeout_ms)} is outside of what the Kafka client takes"
        yield Finding(first_given(document, ("commit", "timeout"), ("commit", "timeout")), text, "Set 1s to 24d.")
    if commit and 3 * commit.interval_ms >= commit.timeout_ms:
        path = first_given(document, ("commit", "interval"), ("commit", "timeout"))
        interval, timeout = format_duration(commit.interval_ms), format_duration(commit.timeout_ms)
        text = f"three times commit.interval (3 x {interval}) must be shorter than commit.timeout ({timeout})"
        remedy = f"Set commit.timeout above {format_duration(3 * commit.interval_ms)}, or a shorter interval."
        if 3 * commit.interval_ms >= BROKERS_TAKE_MS:
            remedy += " The brokers have to allow such a timeout: their transaction.max.timeout.ms is 15m unless set."
        yield Finding(path, text, remedy)
    if containers and 2 * containers.heartbeat_ms >= containers.lease_ms:
        path = first_given(document, ("containers", "lease"), ("containers", "heartbeat"))
        lease, heartbeat = format_duration(containers.lease_ms), format_duration(containers.heartbeat_ms)
        text = f"two times containers.heartbeat (2 x {heartbeat}) must be shorter than containers.lease ({lease})"
        yield Finding(path, text, f"Set containers.lease above {format_duration(2 * containers.heartbeat_ms)}, or a shorter heartbeat.")
    if commit and containers and containers.lease_ms >= commit.timeout_ms:
        path = first_given(document, ("containers", "lease"), ("commit", "timeout"))
        lease, timeout = format_duration(containers.lease_ms), format_duration(commit.timeout_ms)
        yield Finding(
            path, f"the lease ({lease}) must be shorter than commit.timeout ({timeout})", "Shorten the lease or lengthen the timeout."
        )


def _bootstrap(document: Mapping[str, Any]) -> Iterator[Finding]:
    for path, entry in entries_of(document, "inputs"):
        if entry.get("bootstrap") is True and entry.get("start") == "latest":
            text = "a bootstrap input is read to its end before the others; with `start: latest` there is nothing to read"
            yield Finding((*path, "start"), text, "Remove `start`, or `bootstrap`.")


def _listed_twice(document: Mapping[str, Any], name: str) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for path, entry in entries_of(document, name):
        topic = entry.get("topic")
        if isinstance(topic, str) and topic in first:
            yield Finding(
                (*path, "topic"), f"topic {topic!r} is listed twice in {name}", f"It is {name}.{first[topic]} already; remove one."
            )
        elif isinstance(topic, str):
            first[topic] = int(path[1])


def _broadcast(document: Mapping[str, Any]) -> Iterator[Finding]:
    entries = list(entries_of(document, "inputs"))
    if entries and all(entry.get("broadcast") is True for _, entry in entries):
        hint = "The partitions of an input that is not broadcast determine the number of tasks."
        yield Finding(("inputs", 0, "broadcast"), "every input is broadcast", hint)


def _input_times(document: Mapping[str, Any]) -> Iterator[Finding]:
    """How late records may be is a fact about the topic that nobody can guess; and one task's inputs do the same when nothing comes."""
    timed = [(path, entry["time"]) for path, entry in entries_of(document, "inputs") if isinstance(entry.get("time"), Mapping)]
    for path, time in timed:
        if time.get("from", "processing") != "processing" and time.get("watermark_delay") is None:
            hint = "How much older than the newest record of its partition may a record be? For example 5s; 0s if never."
            yield Finding((*path, "time", "watermark_delay"), "missing required key 'watermark_delay'", hint)
    if len({time.get("when_idle", "hold") for _, time in timed}) > 1:
        path = (*timed[-1][0], "time", "when_idle")
        yield Finding(path, "the inputs of a task differ in when_idle", "Write the same for all inputs with a time.")


def _store_names(document: Mapping[str, Any]) -> Iterator[Finding]:
    for name in map_at(document, "stores"):
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
    for path, store in stores_of(document):
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
    internal = map_at(map_at(document, "stages"), "internal")
    uses.update({str(one.get("topic")): f"the internal topic of {name!r}" for name, one in internal.items() if isinstance(one, Mapping)})
    for section in ("inputs", "outputs"):
        for path, entry in entries_of(document, section):
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
