"""The job file as types. An alias is the YAML key, the attribute carries the unit; descriptions and examples are what the reference shows.

What one key must be is said by its type (`fields`); what several must be together is said in `checks_together`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from samzapy.config.fields import (
    Ahead,
    Changelog,
    ClassName,
    Containers,
    Directory,
    Duration,
    DurationOrZero,
    Engine,
    Flag,
    Guarantee,
    Idle,
    JobId,
    JobName,
    Memory,
    OutOfRange,
    Params,
    Partitions,
    Policy,
    Serde,
    Size,
    SparkMaster,
    SparkProperties,
    Start,
    Times,
    TimeSource,
    Topic,
    WhenIdle,
    properties,
)
from samzapy.config.kafka_keys import GROUPS, JAVA, LOADS_CODE, OWNED
from samzapy.config.registry_settings import SchemaRegistrySettings
from samzapy.config.section import Section as Section
from samzapy.config.section import known_keys as known_keys
from samzapy.config.web_settings import TlsSettings, TokenSettings, WebSettings
from samzapy.model import lease_times

DEFAULT_STATE_DIR = "~/.samzapy/state"

_SCALARS: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
_REFUSED = {"not": {"enum": sorted({*OWNED, *LOADS_CODE, *(k for k, v in JAVA.items() if k != v)})}}
_GROUP: dict[str, Any] = {"type": "object", "propertyNames": _REFUSED, "additionalProperties": _SCALARS}
KafkaProperties = Annotated[
    dict[str, Any],
    BeforeValidator(properties),
    WithJsonSchema(
        {
            "type": "object",
            "required": ["bootstrap.servers"],
            "propertyNames": _REFUSED,
            "properties": {"bootstrap.servers": {"type": "string", "minLength": 1}, **dict.fromkeys(GROUPS, _GROUP)},
            "additionalProperties": _SCALARS,
        }
    ),
]


class TimeSettings(Section):
    """An input's event time."""

    source: TimeSource = Field(
        alias="from",
        description="A record's time: record (Kafka's timestamp), processing (the clock when it is processed), a field of the value (milliseconds since 1970, or "
        "a datetime with a time zone), or module:function, called with the value.",
        examples=["record"],
    )
    watermark_delay_ms: DurationOrZero | None = Field(
        None,
        alias="watermark_delay",
        description="How much older than the newest record of its partition a record may be. Required, except with `from: processing`.",
        examples=["5s"],
    )
    idle_timeout_ms: Idle = Field(
        300_000,
        alias="idle_timeout",
        description="After this long without a record, samzapy asks the broker whether the partition holds more records. If it holds none, the watermark "
        "does not wait for this partition. `never`: the watermark always waits for it.",
    )
    when_idle: WhenIdle = Field(
        "hold", description="What the watermark does when no partition has records. hold: it stops; advance: it goes on at the pace of the clock."
    )
    max_ahead_ms: Ahead = Field(
        3_600_000, alias="max_ahead", description="How far ahead of the clock a partition's time may be, and how far one record may move it ahead; `any`: no limit."
    )


class InputSettings(Section):
    """A topic that tasks read."""

    topic: Topic = Field(description="The topic.", examples=["page-views"])
    key: Serde = Field(
        "bytes", description="Serde of keys: string, integer, json, bytes, avro:<schema file>, registry, registry:<schema file>, record:module:Class, module:Class."
    )
    value: Serde = Field("bytes", description="Serde of values. If a JSON object has a key twice, the last value counts, without an error.")
    start: Start = Field("earliest", description="Where a task starts to read an input that its checkpoint does not have: earliest or latest.")
    bootstrap: Flag = Field(
        False,
        description="true: a task reads this input to its end before its other inputs. A job without stores, or with a store that has `changelog: false`, "
        "reads it again at each start: `process` is called, and only what it puts into stores without a changelog has an effect. If you add a store with a "
        "changelog later, the input is read once more, to fill that store.",
    )
    broadcast: Flag = Field(False, description="Every task reads all partitions of the topic.")
    on_out_of_range: OutOfRange = Field(
        "fail", description="What to do when the next offset is no longer in the topic: fail, earliest or latest."
    )
    time: TimeSettings | None = Field(None, description="Event time: what a record's time is, and how far out of order records may be; see `context.watermark`.")


class OutputSettings(Section):
    """A topic that tasks send to; others are refused when sending."""

    topic: Topic = Field(description="The topic.", examples=["page-view-counts"])
    key: Serde = Field("bytes", description="Serde of keys.")
    value: Serde = Field("bytes", description="Serde of values.")
    partitions: Partitions | None = Field(
        None, description="`samzapy topics --create` and `samzapy run --create-topics` create the topic, with so many partitions; without this they do not."
    )


class StoreSettings(Section):
    """A key-value store of each task."""

    key: Serde = Field(
        "bytes", description="Serde of keys. `range`, `prefix` and `all` give entries in the order of the keys' bytes, integers in the order of the numbers."
    )
    value: Serde = Field("bytes", description="Serde of values.")
    engine: Engine = Field("rocksdb", description="rocksdb (on disk) or memory (restored from the changelog at every start).")
    changelog: Changelog = Field(
        True,
        description="true: the changelog is the topic `<job>-<id>-<store>-changelog`; a name: it is the topic of that name; false: none, the store is "
        "empty at every start.",
    )
    ttl_ms: Duration | None = Field(
        None, alias="ttl",
        description="How long an entry is kept after its last put, by the clock; for ever by default. A later change also applies to what is there already.",
    )


class StreamSettings(Section):
    """Where a stream of an `app` is."""

    topic: Topic | None = Field(None, description="The topic, if its name is not that of the stream in the program.", examples=["page-views"])
    start: Start | None = Field(None, description="As `inputs[].start`.")
    on_out_of_range: OutOfRange | None = Field(None, description="As `inputs[].on_out_of_range`.")


class InternalSettings(Section):
    """An internal topic between two stages of an `app`."""

    topic: Topic
    key: Serde = "bytes"
    value: Serde = "bytes"
    partitions: Partitions | None = None
    timed: Flag = False
    everywhere: Flag = False
    sources: tuple[str, ...] = ()
    sums: str = ""


class StageSettings(Section):
    """What an `app` says of its stages; nobody writes it.

    Attributes:
        internal: the internal topics, by name; `sources`: the topics that the tasks read which write them; `everywhere`: each record is written
            for every task, into its partition; `sums`: of what there may be partial sums in it, and whether they are made (streams/combining.py).
        together: topics whose records meet by key in one task, so that they must have equally many partitions.
        keeps: by store, the topics whose keys decide which task has an entry; none: every task has its own of each key. Broadcast tables are left out.
        timed: topics over which a time goes: that of windows, or of what is written into an internal topic.
    """

    internal: dict[str, InternalSettings] = Field(default_factory=dict)
    together: tuple[tuple[str, ...], ...] = ()
    keeps: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    timed: tuple[tuple[str, ...], ...] = ()


class CommitSettings(Section):
    """When and how work is committed."""

    interval_ms: Duration = Field(
        1000, alias="interval", description="Time from the beginning of one commit to that of the next; three times this must be less than `timeout`."
    )
    guarantee: Guarantee = Field(
        "exactly_once",
        description="exactly_once: outputs are in the transaction; at_least_once: outputs are sent immediately. State is exact with both.",
    )
    timeout_ms: Duration = Field(60_000, alias="timeout", description="How long a transaction may take; at most the brokers' `transaction.max.timeout.ms`.")
    max_uncommitted_bytes: Size = Field(
        64 << 20,
        alias="max_uncommitted",
        description="A container commits early when its uncommitted store changes and the records sent since the last commit reach this size together.",
    )


class OnErrorSettings(Section):
    """What to do about a record that cannot be processed."""

    retries: Times = Field(0, description="How often the record is retried before `then` applies, after 10 ms, 20 ms and so on, up to 1 s.")
    then: Policy = Field(
        "fail",
        description="fail: stop the job and name the record; skip: count it and go on; dead_letter: write it to the topic"
        " `<job>-<id>-dead-letter`, see `samzapy dlq`.",
    )


class ContainerSettings(Section):
    """The processes that run tasks."""

    count: Containers = Field(1, description="How many containers.")
    memory_bytes: Memory = Field(
        512 << 20,
        alias="memory",
        description="One budget per container, for uncommitted changes, caches of stores and RocksDB's write buffers. Python and libraries need more "
        "memory besides.",
    )
    host_affinity_ms: DurationOrZero = Field(
        5000, alias="host_affinity", description="How long a restarted container, or a new run, waits for a slot on the host that has the state, and how long a "
        "slot must be free before a container that was parked for lack of a slot gets it. Spark itself waits for at least 5 s.",
    )
    standby: Times = Field(0, description="How many warm copies of each task's stores are kept, each on another host; none where there is one host.")
    max_restarts: Times = Field(8, description="How many restarts of one container within `restart_window` are allowed; one more ends the job.")
    restart_window_ms: Duration = Field(300_000, alias="restart_window", description="The time over which `max_restarts` counts.")
    heartbeat_ms: Duration = Field(
        lease_times.HEARTBEAT_MS, alias="heartbeat", description="Time between a container's reports to the coordinator; two times this must be less than `lease`."
    )
    lease_ms: Duration = Field(
        lease_times.LEASE_MS,
        alias="lease",
        description="After this long without a heartbeat of a container, its tasks go to others; also how long a coordinator counts as alive. Less than "
        "`commit.timeout`.",
    )


class StateSettings(Section):
    """Where local stores are."""

    dir: Directory = Field(
        DEFAULT_STATE_DIR, validate_default=True,
        description="The directory; ~ is the home directory of the user that runs the container, and a path that begins with neither ~ nor / counts from "
        "the directory in which `samzapy` is started. All jobs of the user share it: delete it only while none of them runs. While one job is stopped, "
        "its folder there, `<id of the Kafka cluster>/<host>/<job>-<id>`, may be deleted.",
    )


class SparkSettings(Section):
    """The cluster that runs the containers."""

    master: SparkMaster = Field("local[2]", description="local[n], spark://host:port, yarn or k8s://….")
    conf: SparkProperties = Field(default_factory=dict, description="Spark's own properties.")


class Settings(Section):
    """A job."""

    job: JobName = Field(
        description="Name; part of the names of topics, group and directories. Letters, digits, `-`, `_`; at most 80.", examples=["page-view-counts"]
    )
    id: JobId = Field("1", description="Distinguishes jobs of the same name, such as a copy that runs beside the job. Letters and digits; at most 40.")
    task: ClassName | None = Field(
        None,
        description="The StreamTask: module:Class. The file's folder and the working directory are importable. A job has `task` or `app`.",
        examples=["jobs.page_views:PageViewCounter"],
    )
    app: ClassName | None = Field(
        None,
        description="The program of streams, instead of `task`: module:name of an App. It defines the inputs, outputs and stores.",
        examples=["jobs.top_pages:app"],
    )
    params: Params = Field(default_factory=dict, description="Any names and values; the task reads them as `context.params`.")
    kafka: KafkaProperties = Field(
        description="librdkafka's keys; `bootstrap.servers` is required. The maps `producer` and `consumer` in it override keys for one kind of client.",
        examples=['{bootstrap.servers: "localhost:9092"}'],
    )
    inputs: tuple[InputSettings, ...] = Field(
        (), description="Topics that tasks read. Task i reads partition i of every input. Required with `task`.", examples=["[{topic: page-views}]"]
    )
    outputs: tuple[OutputSettings, ...] = Field((), description="Topics that tasks may send to.")
    stores: dict[str, StoreSettings] = Field(default_factory=dict, description="Stores by name. With `app`: which engine its stores have.")
    streams: dict[str, StreamSettings] = Field(default_factory=dict, description="With `app`: the topics of its streams, by the streams' names in the program.")
    stages: SkipJsonSchema[StageSettings | None] = None
    schema_registry: SchemaRegistrySettings | None = Field(None, description="The Schema Registry, if a serde uses it.")
    commit: CommitSettings = Field(default_factory=lambda: CommitSettings.model_validate({}), description="Commits.")
    window_ms: Duration | None = Field(None, alias="window", description="The interval at which `window()` is called; never by default.")
    on_error: OnErrorSettings = Field(
        default_factory=lambda: OnErrorSettings.model_validate({}),
        description="What to do about a record that cannot be processed: it cannot be decoded, `process` raises or hangs, it kills its process, or Kafka "
        "refuses what was sent for it. Errors in `init`, `window()` and `end_of_stream`, and stored values that cannot be read, always stop the job.",
    )
    containers: ContainerSettings = Field(default_factory=lambda: ContainerSettings.model_validate({}), description="Containers.")
    state: StateSettings = Field({}, validate_default=True, description="Local state.")
    spark: SparkSettings = Field(default_factory=lambda: SparkSettings.model_validate({}), description="Spark.")
    web: WebSettings = Field(default_factory=lambda: WebSettings.model_validate({}), description="The web listener.")

    @property
    def kafka_client(self) -> dict[str, Any]:
        """librdkafka's keys for any client."""
        return {key: value for key, value in self.kafka.items() if key not in GROUPS}

    @property
    def kafka_producer(self) -> dict[str, Any]:
        """librdkafka's keys for producers."""
        return {**self.kafka_client, **self.kafka.get("producer", {})}

    @property
    def kafka_consumer(self) -> dict[str, Any]:
        """librdkafka's keys for consumers."""
        return {**self.kafka_client, **self.kafka.get("consumer", {})}


SECTIONS: dict[str, type[Section]] = {
    "inputs": InputSettings,
    "outputs": OutputSettings,
    "stores": StoreSettings,
    "streams": StreamSettings,
    "schema_registry": SchemaRegistrySettings,
    "commit": CommitSettings,
    "on_error": OnErrorSettings,
    "containers": ContainerSettings,
    "state": StateSettings,
    "spark": SparkSettings,
    "web": WebSettings,
}
LISTS = ("inputs", "outputs")  # their sections stand in lists
# Of a list's entries, and of a section.
NESTED: dict[tuple[str, str], type[Section]] = {("inputs", "time"): TimeSettings, ("web", "tls"): TlsSettings, ("web", "tokens"): TokenSettings}
MAPS = ("stores", "streams")  # their sections stand in maps, by name


def section_at(path: tuple[str | int, ...]) -> type[Section] | None:
    """The section whose keys stand at a path, or None where there is none."""
    if not path:
        return Settings
    if len(path) == 3 and path[0] in LISTS:
        return NESTED.get((str(path[0]), str(path[2])))
    if len(path) == 2 and path[0] not in LISTS and (str(path[0]), str(path[1])) in NESTED:
        return NESTED[str(path[0]), str(path[1])]
    model = SECTIONS.get(str(path[0]))
    depth = 2 if path[0] in LISTS or path[0] in MAPS else 1
    return model if model is not None and len(path) == depth else None
