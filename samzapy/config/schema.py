"""The job file's settings, typed. YAML keys are the aliases; attribute names carry the unit (`interval_ms`, `memory_bytes`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr, field_validator

from samzapy.config.units import byte_count, milliseconds
from samzapy.model.names import JOB_ID, JOB_NAME, TOPIC_NAME

NOT_BUILT = "known, not yet built"


def _topic(value: object) -> str:
    if not isinstance(value, str) or not TOPIC_NAME.fullmatch(value):
        raise ValueError(f"expected a Kafka topic name (letters, digits, '.', '_' and '-', at most 249), found {value!r}")
    return value


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Duration = Annotated[int, BeforeValidator(milliseconds)]
Size = Annotated[int, BeforeValidator(byte_count)]
Topic = Annotated[StrictStr, BeforeValidator(_topic)]


class Section(BaseModel):
    """A map of the job file."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


class InputSettings(Section):
    """One input topic."""

    topic: Topic = Field(description="The Kafka topic.")
    key: StrictStr = Field("bytes", description="Serde of the keys: string, integer, json, bytes, avro:<schema file>, module:Class.")
    value: StrictStr = Field("bytes", description="Serde of the values.")
    start: Literal["earliest", "latest"] = Field("earliest", description="Where a first start reads from.")
    bootstrap: StrictBool = Field(False, description="Read to its end before the task's other inputs.")
    broadcast: StrictBool = Field(False, description="Every task reads every partition.")
    on_out_of_range: Literal["fail", "earliest", "latest"] = Field(
        "fail", description="What to do when the topic no longer holds the next offset, or was replaced."
    )


class OutputSettings(Section):
    """One output topic."""

    topic: Topic = Field(description="The Kafka topic.")
    key: StrictStr = Field("bytes", description="Serde of the keys.")
    value: StrictStr = Field("bytes", description="Serde of the values.")
    partitions: StrictInt | None = Field(None, ge=1, le=100_000, description="How many partitions `samzapy topics --create` gives it.")


class StoreSettings(Section):
    """One store of each task."""

    key: StrictStr = Field("bytes", description="Serde of the keys.")
    value: StrictStr = Field("bytes", description="Serde of the values.")
    engine: Literal["rocksdb", "memory"] = Field("rocksdb", description="Where committed entries are kept.")
    changelog: StrictBool | StrictStr = Field(
        True, description="true: <job>-<id>-<store>-changelog; a topic's name; false: a scratch store, emptied at every start."
    )

    @field_validator("changelog")
    @classmethod
    def _changelog(cls, value: bool | str) -> bool | str:
        return _topic(value) if isinstance(value, str) else value


class CommitSettings(Section):
    """How work becomes durable."""

    interval_ms: Duration = Field(1000, alias="interval", ge=10, description="Time between two commits.")
    guarantee: Literal["exactly_once", "at_least_once"] = Field(
        "exactly_once", description="What holds for outputs; state is exact with both."
    )
    timeout_ms: Duration = Field(60_000, alias="timeout", ge=1000, description="The transaction's time limit.")
    max_uncommitted_bytes: Size = Field(
        64 << 20, alias="max_uncommitted", ge=1 << 16, description="Uncommitted bytes of a container that bring a commit forward."
    )


class OnErrorSettings(Section):
    """What happens to a record whose decoding or process() raises."""

    retries: StrictInt = Field(0, ge=0, description="How often it is tried again.")
    then: Literal["fail", "skip", "dead_letter"] = Field(
        "fail", description="fail: the job stops, the record is named; skip: it is passed by, and counted."
    )

    @field_validator("retries")
    @classmethod
    def _retries(cls, value: int) -> int:
        if value:
            raise ValueError(f"retries are {NOT_BUILT}")
        return value

    @field_validator("then")
    @classmethod
    def _then(cls, value: str) -> str:
        if value == "dead_letter":
            raise ValueError(f"dead_letter is {NOT_BUILT}")
        return value


class ContainerSettings(Section):
    """The processes that run tasks."""

    count: StrictInt = Field(1, ge=1, le=10_000, description="How many containers.")
    memory_bytes: Size = Field(
        512 << 20, alias="memory", ge=32 << 20, description="One budget a container: read cache, block cache, write buffers."
    )
    host_affinity_ms: Duration = Field(
        5000, alias="host_affinity", description="How long a container waits for the host that has its state."
    )
    standby: StrictInt = Field(0, ge=0, description="Warm copies on other hosts.")
    max_restarts: StrictInt = Field(8, ge=0, description="Restarts of a container within restart_window before the job fails.")
    restart_window_ms: Duration = Field(300_000, alias="restart_window", ge=1000, description="The window of max_restarts.")
    heartbeat_ms: Duration = Field(2000, alias="heartbeat", ge=50, description="Time between two heartbeats of a container.")
    lease_ms: Duration = Field(10_000, alias="lease", ge=200, description="After so long without a heartbeat its tasks are given away.")

    @field_validator("standby")
    @classmethod
    def _standby(cls, value: int) -> int:
        if value:
            raise ValueError(f"standby is {NOT_BUILT}")
        return value


class StateSettings(Section):
    """Local state."""

    dir: StrictStr = Field(
        "~/.samzapy/state", min_length=1, validate_default=True, description="The folder of the local stores, on each host."
    )

    @field_validator("dir")
    @classmethod
    def _expanded(cls, value: str) -> str:
        return str(Path(value).expanduser().absolute())


class SparkSettings(Section):
    """Where containers run."""

    master: StrictStr = Field("local[2]", min_length=1, description="Spark's master URL.")
    conf: dict[str, StrictStr | StrictInt | StrictBool | float] = Field(default_factory=dict, description="Spark's own settings.")


class WebSettings(Section):
    """The listener for people."""

    port: StrictInt = Field(0, ge=0, le=65535, description="0 = any free port.")
    host: StrictStr = Field("127.0.0.1", min_length=1, description="The address to listen on.")


KafkaValue = StrictStr | StrictBool | StrictInt | float


class Settings(Section):
    """A job file."""

    job: StrictStr = Field(description="The job's name: names topics, the group, metrics.")
    id: Annotated[StrictStr, BeforeValidator(_as_text)] = Field("1", description="Tells jobs of one name apart.")
    task: StrictStr = Field(description="module:Class of the task.")
    params: dict[str, Any] = Field(default_factory=dict, description="The task's own settings: context.params.")
    kafka: dict[str, KafkaValue | dict[str, KafkaValue]] = Field(
        description="librdkafka's keys; `producer` and `consumer` override for one side."
    )
    inputs: tuple[InputSettings, ...] = Field(min_length=1, description="Topics to read.")
    outputs: tuple[OutputSettings, ...] = Field((), description="Topics to send to.")
    stores: dict[str, StoreSettings] = Field(default_factory=dict, description="Stores by name.")
    commit: CommitSettings = Field(default_factory=lambda: CommitSettings.model_validate({}), description="How work becomes durable.")
    window_ms: Duration | None = Field(None, alias="window", ge=10, description="How often window() is called; never by default.")
    on_error: OnErrorSettings = Field(
        default_factory=lambda: OnErrorSettings.model_validate({}), description="What happens to bad records."
    )
    containers: ContainerSettings = Field(
        default_factory=lambda: ContainerSettings.model_validate({}), description="The processes that run tasks."
    )
    state: StateSettings = Field(default_factory=lambda: StateSettings.model_validate({}), description="Local state.")
    spark: SparkSettings = Field(default_factory=lambda: SparkSettings.model_validate({}), description="Where containers run.")
    web: WebSettings = Field(default_factory=lambda: WebSettings.model_validate({}), description="The listener for people.")

    @field_validator("job")
    @classmethod
    def _job(cls, value: str) -> str:
        if not JOB_NAME.fullmatch(value):
            raise ValueError(f"expected letters, digits, '_' and '-', beginning with a letter or digit, at most 80, found {value!r}")
        return value

    @field_validator("id")
    @classmethod
    def _id(cls, value: str) -> str:
        if not JOB_ID.fullmatch(value):
            raise ValueError(f"expected letters and digits, found {value!r}")
        return value

    @field_validator("task")
    @classmethod
    def _task(cls, value: str) -> str:
        module, _, name = value.partition(":")
        if not all(part.isidentifier() for part in module.split(".")) or not name.isidentifier():
            raise ValueError(f"expected module:Class, such as jobs.page_views:PageViewCounter, found {value!r}")
        return value

    @property
    def kafka_client(self) -> dict[str, Any]:
        """librdkafka's keys for every client."""
        return {k: v for k, v in self.kafka.items() if not isinstance(v, dict)}

    @property
    def kafka_producer(self) -> dict[str, Any]:
        """… for producers."""
        return {**self.kafka_client, **self._side("producer")}

    @property
    def kafka_consumer(self) -> dict[str, Any]:
        """… for consumers."""
        return {**self.kafka_client, **self._side("consumer")}

    def _side(self, name: str) -> dict[str, Any]:
        side = self.kafka.get(name, {})
        return side if isinstance(side, dict) else {}
