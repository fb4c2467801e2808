"""`samzapy send`: put records into a topic; and what it shares with tail.py, which shows what is in one.

What is sent is checked first: of a file every line before the first is sent; of a pipe or terminal, which has no end to wait for, each line
as it comes.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from samzapy.api.errors import ConfigurationError, TopicMissing
from samzapy.cli.common import AsJson, print_json, say
from samzapy.cli.lines import BadLine, LineForm, Record, records_of
from samzapy.cli.loading import load
from samzapy.config.kafka_check import not_servers
from samzapy.config.registered import is_registered
from samzapy.config.schema import Settings
from samzapy.kafka.log import KafkaLog
from samzapy.model.names import TOPIC_NAME
from samzapy.ops.shown import serdes_by_topic
from samzapy.plan.internal_topics import command_that_makes
from samzapy.ports import Log, PlainProducer, TopicFacts, TopicSpec
from samzapy.serde.basic import shown
from samzapy.serde.record_keys import as_key
from samzapy.serde.registry import serde_named
from samzapy.wiring.clients import kafka_log
from samzapy.wiring.job_topics import job_of
from samzapy.wiring.serdes import KEY, VALUE, Serdes

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", show_default=False)]
Servers = Annotated[str, typer.Option("--kafka", metavar="HOST:PORT", envvar="KAFKA_BOOTSTRAP", help="The brokers.")]
JobFiles = Annotated[
    list[Path] | None,
    typer.Option("--file", metavar="MORE.yaml", help="With --job: a file whose keys override the job file's; may be repeated.", show_default=False),
]
JobSets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="With --job: override one key, e.g. id=test; may be repeated.", show_default=False),
]
SERDES = "string, integer, json, bytes, avro:<schema file>, record:module:Class, or module:Class; with --job also registry and registry:<schema file>"
Find = Callable[[str, str, str], Any]  # a serde by its name, for a topic's keys or values
MESSAGE_TIMEOUT_MS = 30_000
SERVE_EVERY = 100


# -- send ------------------------------------------------------------------------------------------------------------------------------


def send(
    topic: Topic,
    servers: Servers = "localhost:9092",
    keyed: Annotated[bool, typer.Option("--key", help="Lines are key<TAB>value; without this, values only.")] = False,
    key_serde: Annotated[str | None, typer.Option(help=f"How keys are written: {SERDES}; string by default.", show_default=False)] = None,
    value_serde: Annotated[
        str | None,
        typer.Option(help=f"How values are written: {SERDES}; string by default. All but string and bytes are read as JSON.", show_default=False),
    ] = None,
    null_marker: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A value of exactly this text is a tombstone.", show_default=False)
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="If the topic does not exist, create it with this many partitions.", show_default=False)
    ] = None,
    compact: Annotated[bool, typer.Option("--compact", help="With --partitions: create it compacted, so that it keeps the newest record of each key.")] = False,
    job_file: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.yaml", help="A job that has this topic: its Kafka, and its serdes for the topic.", show_default=False),
    ] = None,
    more: JobFiles = None,
    sets: JobSets = None,
    as_json: AsJson = False,
) -> None:
    """Send lines from stdin as records."""
    if key_serde is not None and not keyed:
        raise ConfigurationError("--key-serde without --key: the lines have no keys.", "Add --key, and write key<TAB>value.")
    if compact and not (keyed and partitions):
        raise ConfigurationError("--compact is for a new topic whose records have keys.", "Add --key and --partitions N.")
    if not TOPIC_NAME.fullmatch(topic):
        raise ConfigurationError(f"{topic!r} is not a topic name.", "Letters, digits, '.', '_' and '-', at most 249 of them.")
    log, servers, names, _, find = of_job(job_file, topic, servers, more, sets)
    key_serde, value_serde = key_serde or names[0] or "string", value_serde or names[1] or "string"
    facts = facts_of(log, topic, servers) if partitions is None else _if_there(log, topic)
    if facts is not None and "compact" in facts.config.get("cleanup.policy", "") and not keyed:
        raise ConfigurationError(f"{topic} is compacted: its records need a key.", "Add --key, and write key<TAB>value.")
    form = LineForm(
        (value_serde, find(value_serde, topic, VALUE)),
        (key_serde, find(key_serde, topic, KEY)) if keyed else None,
        None if null_marker is None else null_marker.encode(),
    )
    if facts is not None:
        form = replace(form, max_bytes=facts.max_message_bytes)
    source = sys.stdin.buffer
    creates = None if facts is not None or partitions is None else TopicSpec(topic, partitions, {"cleanup.policy": "compact"} if compact else {})
    count = send_lines(source, stat.S_ISREG(os.fstat(source.fileno()).st_mode), form, topic, log, creates=creates)
    say(f"sent {count} record{'' if count == 1 else 's'} to {topic}")
    if as_json:
        print_json({"topic": topic, "sent": count})


def send_lines(
    source: IO[bytes], is_file: bool, form: LineForm, topic: str, log: Log, tell: Callable[[str], None] = say, creates: TopicSpec | None = None
) -> int:
    """Send the lines of `source`; returns how many there were. `creates`: the topic is not there, and is created so once there is a line to send, or there
    are no lines at all.

    Raises:
        ConfigurationError: some lines are no records. They were all told; of a file nothing was sent, of a stream the others were.
        LogError: a record was not delivered.
    """
    bad: list[BadLine] = []

    def note(line: BadLine) -> None:
        bad.append(line)
        tell(str(line))

    remedy = "Fix these lines; see `samzapy send --help` for the format."
    if is_file:
        at = source.tell()
        lines = sum(1 for _ in records_of(source, form, note)) + len(bad)
        if bad:
            raise ConfigurationError(f"{len(bad)} of {lines} lines are not records; nothing was sent.", remedy)
        source.seek(at)
    records = records_of(source, form, note)
    first = next(records, None)
    if creates and (first is not None or not bad):
        _create(log, creates)
        tell(f"created {topic} with {creates.partitions} partition{'' if creates.partitions == 1 else 's'}{', compacted' if creates.config else ''}")
    count = 0
    if first is not None:
        producer = log.plain_producer("samzapy-send")
        try:
            count = _send_all(producer, topic, chain([first], records))
        finally:
            producer.flush()
            producer.close()
    if bad and not count:
        raise ConfigurationError(f"{len(bad)} of {len(bad)} lines are not records; nothing was sent.", remedy)
    if bad:
        raise ConfigurationError(f"{len(bad)} of {count + len(bad)} lines are not records; the other {count} were sent.", remedy)
    return count


def _send_all(producer: PlainProducer, topic: str, records: Iterator[Record]) -> int:
    count = 0
    for count, (key, value) in enumerate(records, 1):
        producer.send(topic, value, key)
        if count % SERVE_EVERY == 0:
            producer.poll()
    return count


# -- tail too --------------------------------------------------------------------------------------------------------------------------


def serdes_of(settings: Settings, topic: str) -> tuple[str, str]:
    """The serdes of keys and values that a job has for a topic: an input, an output, a store's changelog.

    Raises:
        ConfigurationError: the job has no such topic.
    """
    found = serdes_by_topic(settings)
    if topic not in found:
        raise ConfigurationError(
            f"{job_of(settings)} has no topic {topic} with serdes.", f"It has: {', '.join(sorted(found))}. For other topics leave out --job; see --value-serde."
        )
    return found[topic]


def log_of(servers: str) -> Log:
    """Clients of the Kafka at these servers, without a job.

    Raises:
        ConfigurationError: they are not HOST:PORT.
    """
    if wrong := not_servers(servers):
        raise ConfigurationError(f"--kafka: expected HOST:PORT, found {shown(wrong[0])}.", "Separate several by commas: a:9092,b:9092.")
    client = {"bootstrap.servers": servers}
    return KafkaLog(client, client, client, commit_timeout_ms=60_000, lease_ms=MESSAGE_TIMEOUT_MS)


def _create(log: Log, spec: TopicSpec) -> None:
    with log.admin() as admin:
        admin.create([spec])


def _if_there(log: Log, topic: str) -> TopicFacts | None:
    with log.admin() as admin:
        return admin.topics([topic]).get(topic)


def facts_of(log: Log, topic: str, servers: str) -> TopicFacts:
    facts = _if_there(log, topic)
    if facts is None:
        raise TopicMissing(f"there is no topic {topic} at {servers}.", f"Create it: `{command_that_makes(topic, servers)}`, or see --kafka.")
    return facts


def of_job(
    file: Path | None, topic: str, servers: str, more: list[Path] | None = None, sets: list[str] | None = None
) -> tuple[Log, str, tuple[str | None, str | None], Find, Find]:
    """Kafka, its servers, the names of the topic's serdes, and what finds those, to read and to write: as a job has them, if one is given."""
    if file is None:
        if more or sets:
            raise ConfigurationError("--file and --set change a job file, and none is given.", "Add --job JOB.yaml.")
        return log_of(servers), servers, (None, None), _serde, _serde
    loaded = load(file, more, sets)
    names = serdes_of(loaded.settings, topic)
    servers = str(loaded.settings.kafka_client["bootstrap.servers"])
    serdes = Serdes(loaded.settings, loaded.folders)
    return kafka_log(loaded.settings), servers, names, serdes.of, serdes.to_write


def _serde(name: str, topic: str, part: str) -> Any:
    if is_registered(name):
        raise ConfigurationError(
            f"serde {name} needs a Schema Registry, and only a job file names one.", "Give a job that has the topic: `--job JOB.yaml`."
        )
    found = serde_named(name, [Path.cwd()])
    return as_key(found) if part == KEY else found
