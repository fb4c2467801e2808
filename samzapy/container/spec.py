"""A container's settings, as values: made once by the wiring from the job file, never looked up per record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samzapy.api.serde import Serde
from samzapy.api.task import StreamTask
from samzapy.container.partition_watermark import TimeRules
from samzapy.model import lease_times
from samzapy.model.checkpoint import MAX_BYTES
from samzapy.model.job_model import TaskModel
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.model.timed import MARK, plain, put_ms, timed
from samzapy.plan.local_store import ChangelogFacts
from samzapy.ports import Change, Message, Outgoing, StoreDirectory, StoreEngine, TaskStore


@dataclass(frozen=True, slots=True)
class TimeSpec:
    """The event time of an input: `of(envelope)` gives a record's, in milliseconds since 1970, and raises where it has none."""

    of: Callable[[Any], int]
    rules: TimeRules


@dataclass(frozen=True, slots=True)
class Between:
    """What makes an input a topic between two stages of a program.

    Attributes:
        sources: the topics that the tasks read which write it.
        writers: these tasks' names.
        partitions: how many it has.
        timed: whether its records have an event time.
    """

    sources: tuple[str, ...]
    writers: tuple[str, ...]
    partitions: int
    timed: bool


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input topic: its id now, its serdes, where a first start begins, what to do when the next offset is gone, its event time, and whether it is
    an internal one.

    `fills`: stores with a changelog that are made of this input, and need all of its records from where a first start begins; `table`: the store,
    one of them or not, that has nothing but the newest value of each of its keys; "": there is none. `delete_retention_ms`: for how long a compacted
    topic keeps deletions; None: it is not compacted.
    """

    topic: str
    topic_id: str
    key_serde: Serde
    value_serde: Serde
    start: str = "earliest"
    bootstrap: bool = False
    on_out_of_range: str = "fail"
    time: TimeSpec | None = None
    fills: frozenset[str] = frozenset()
    table: str = ""
    delete_retention_ms: int | None = None
    between: Between | None = None


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """An output topic: its serdes, partition count, and the largest record it takes, in bytes.

    `keeps_from_ms`: Kafka deletes records whose own timestamps are older, as its `retention.ms` was when the container started; 0: it deletes none.
    """

    topic: str
    key_serde: Serde
    value_serde: Serde
    partitions: int
    max_record_bytes: int
    keeps_from_ms: int = 0


@dataclass(kw_only=True, frozen=True, slots=True)
class StoreSpec:
    """A store: changelog topic (None: a scratch store), its id and tombstone retention, serde names for checks.

    `ttl_ms`: how long an entry is kept after its last put; None: for ever.
    `open_directory(task)` gives the task's generations on this host, `make(task, engine)` the typed store over an engine.
    """

    name: str
    changelog: str | None
    topic_id: str
    delete_retention_ms: int
    key_serde: str
    value_serde: str
    open_directory: Callable[[str], StoreDirectory]
    make: Callable[[str, StoreEngine | None], TaskStore]
    ttl_ms: int | None = None

    def identity(self, job: Job, task: str) -> StoreIdentity:
        """The store's identity, for one of the job's tasks."""
        value_serde = self.value_serde if self.ttl_ms is None else self.value_serde + MARK
        return StoreIdentity(job.name, job.id, task, self.name, self.key_serde, value_serde)

    def values_of(self, run: Sequence[Message]) -> list[bytes | None]:
        """The values in records of its changelog, in the local form."""
        if self.ttl_ms is None:
            return [message.value() for message in run]
        return [None if (value := message.value()) is None else timed(value, message.timestamp()[1]) for message in run]

    def to_send(self, partition: int, changes: Sequence[Change]) -> list[Outgoing]:
        """The records of its changelog for changes in the local form."""
        topic = self.changelog or ""
        if self.ttl_ms is None:
            return [(topic, value, key, partition, 0, None) for key, value in changes]
        return [
            (topic, None, key, partition, 0, None) if value is None else (topic, plain(value), key, partition, put_ms(value), None)
            for key, value in changes
        ]

    def stamp(self, job: Job, task: str, position: int, sequence: int, as_of_ms: int) -> StoreStamp:
        """The stamp of the task's store once it has everything before `position` of its changelog."""
        return StoreStamp(self.identity(job, task), self.topic_id, position, sequence, as_of_ms)

    def changelog_of(self, partition: int) -> TopicPartition:
        """The partition of its changelog that the task of that partition writes (topic "" for a scratch store)."""
        return TopicPartition(self.changelog or "", partition)

    def facts(self, partition: TopicPartition, start: int, barrier: int) -> ChangelogFacts:
        """Its changelog partition as it is now. `barrier`: where reading ends."""
        return ChangelogFacts(partition.topic, partition.partition, self.topic_id, start, barrier, self.delete_retention_ms)


@dataclass(frozen=True, slots=True)
class DeadLetterSpec:
    """The job's dead-letter topic, and the largest record it takes, in bytes. A task's dead letters go to its own partition."""

    topic: str
    max_record_bytes: int


@dataclass(kw_only=True, frozen=True, slots=True)
class ContainerSpec:
    """One container of one run. Durations in seconds.

    `timed`: of a program, the topics over which its times go; None: one time goes over all inputs that have one.
    `keyed_inputs` are those whose keys decide which task's state a record meets, with their partition counts when the run was planned; `joined`: those of
    them whose records meet records of others.
    `prepare()` finds what serdes need elsewhere before the first record; it may raise RegistryUnreachable.
    `replaced_files()`: the files of the user's code that are others now than when this process imported them.
    `sweep(held)` removes stores of tasks that are not `held` and left this host long ago; returns whose.
    """

    job: Job
    number: int
    host: str
    make_task: Callable[[], StreamTask]
    params: Mapping[str, Any]
    tasks: Mapping[str, TaskModel]
    inputs: Mapping[str, InputSpec]
    outputs: Mapping[str, OutputSpec]
    stores: Mapping[str, StoreSpec]
    exactly_once: bool = True
    commit_interval_s: float = 1.0
    commit_timeout_s: float = 60.0
    max_uncommitted_bytes: int = 64 << 20
    window_s: float | None = None
    retries: int = 0
    on_error: str = "fail"
    dead_letters: DeadLetterSpec | None = None  # with on_error "dead_letter"
    max_checkpoint_bytes: int = MAX_BYTES  # what the checkpoint topic takes
    lease_s: float = lease_times.LEASE_MS / 1000
    store_memory_bytes: int = 0  # what committed entries of all stores may take in memory; 0: each store keeps the limit that it was made with
    flush_interval_s: float = 10.0
    flush_changes: int = 400_000  # a restart after a crash reads again what was not flushed: one to two seconds of reading
    poll_records: int = 500
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    keyed_inputs: Mapping[str, int] = field(default_factory=dict)
    joined: Collection[str] = ()
    timed: Sequence[Sequence[str]] | None = None
    sweep: Callable[[Collection[str]], Collection[str]] = lambda held: ()
    prepare: Callable[[], None] = lambda: None
    replaced_files: Callable[[], Sequence[str]] = lambda: ()

    @property
    def patience_s(self) -> float:
        """How long brokers may take for a commit. Outside the transaction a record is given up after a lease."""
        return self.commit_timeout_s if self.exactly_once else min(self.commit_timeout_s, self.lease_s)

    @property
    def patience(self) -> str:
        """The same, in words, after the name of the setting."""
        return f"{'commit.timeout' if self.patience_s == self.commit_timeout_s else 'containers.lease'} is {self.patience_s:g} s"

    @property
    def between(self) -> dict[str, Between]:
        """The topics between the stages of a program."""
        return {topic: spec.between for topic, spec in self.inputs.items() if spec.between is not None}

    @property
    def topic_ids(self) -> dict[str, str]:
        """Kafka's ids of the inputs and the changelogs, by name."""
        changelogs = {s.changelog: s.topic_id for s in self.stores.values() if s.changelog}
        return {**changelogs, **{name: spec.topic_id for name, spec in self.inputs.items()}}

    def is_written(self, partition: TopicPartition, tasks: Collection[int]) -> bool:
        """Whether these tasks (the numbers of their partitions) may write there: of internal topics each task has its own partition."""
        return partition.topic in self.outputs or (partition.topic in self.written and partition.partition in tasks)

    @property
    def written(self) -> set[str]:
        """The topics that tasks write, with their positions and their state."""
        changelogs = {s.changelog for s in self.stores.values() if s.changelog}
        return {*self.outputs, self.job.checkpoint_topic, *changelogs, *([self.dead_letters.topic] if self.dead_letters else [])}

    def checkpoint_of(self, task: TaskModel) -> TopicPartition:
        """The partition of the checkpoint topic that is the task's."""
        return TopicPartition(self.job.checkpoint_topic, task.partition)
