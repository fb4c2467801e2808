"""The log: Kafka, or samzapy.testing.memory_log. Both pass the same suite (tests/contract)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, Self

from samzapy.api.errors import LogError, NoLeader
from samzapy.model.acls import Access
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ports.producers import PlainProducer, TransactionalProducer

DEFAULT_DELETE_RETENTION_MS = 86_400_000
START_ITS_BROKER = (
    "Start the broker that holds it. Until then, a partition with replication 1 cannot be read or written; after that, a running job goes on by itself."
)


def no_leader(partitions: Iterable[TopicPartition]) -> NoLeader:
    """What is raised for partitions that exist and that no broker leads."""
    return NoLeader(f"no broker leads {', '.join(map(str, sorted(partitions)))}: the broker that holds it is down.", START_ITS_BROKER)


class Message(Protocol):
    """A record as the client library hands it out (confluent_kafka.Message has just these methods)."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def timestamp(self) -> tuple[int, int]:
        """(kind, milliseconds since 1970)."""

    def headers(self) -> list[tuple[str, bytes | None]] | None: ...


class Fetch(Enum):
    """How much a consumer fetches at a time; it may be far more after decompression."""

    USUAL = "as the job file says"
    LITTLE = "at most 64 KiB of a partition"
    LEAST = "one batch of records"


class Closing(Protocol):
    """An object that is closed when its `with` block ends."""

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Consumer(Closing, Protocol):
    """Reads assigned partitions, read_committed. Never joins a group, never resets an offset by itself, never commits by itself.

    `unassign`, `seek`, `pause` and `resume` ignore partitions that are not assigned. After `close` nothing is assigned.

    Not defined: which of several partitions a poll serves first; whether a position has passed the markers and aborted records after the
    last record handed out; whether a partition that is out of range is reported while it is paused, and what it does after the report
    until it is assigned or sought again.
    """

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these next offsets, in addition to what is assigned. None of them is paused. One that no broker leads
        brings nothing until one does.

        Raises:
            TopicMissing: no such partition. LogError: one is assigned already; nothing was done. RuntimeError: the consumer is closed.
        """

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these. Their fetched records are not handed out any more; a pause ends."""

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Go on from these next offsets; records fetched before the seek are not handed out any more; a pause ends."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out nothing of these, until `resume`, `seek` or `unassign`."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Message]:
        """Up to `max_records` records; waits at most `timeout_s` seconds for the first and not at all for more.

        If it raises, no records are lost: those that came with the error were handed out before.

        Raises:
            BatchUnreadable: the position stays before it.
            OffsetOutOfRange: names partition, position and bounds. TopicMissing, NotAuthorized, LogError: waiting would not help.
            RuntimeError: the consumer is closed.
        """

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Next offset of each assigned partition: after the last record handed out, and after markers and aborted records that follow, if known.

        Raises:
            KeyError: one is not assigned.
        """

    def bounds(self, partition: TopicPartition) -> Bounds:
        """Start and read_committed end (the last stable offset), as the broker answers now.

        Raises:
            ClusterUnreachable: no answer in time (NoLeader: no broker leads it). TopicMissing.
        """

    def bounds_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """As `bounds`, for many partitions, with two requests per broker.

        Raises:
            ClusterUnreachable: no answer in time (NoLeader: no broker leads one; named). TopicMissing: names one that does not exist.
        """

    def high_watermark(self, partition: TopicPartition) -> int:
        """The end at the last fetch, open transactions included; -1 while it is not known. Sends no request."""

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int:
        """The offset of the first record at or after that time; the end if none."""

    def mirror(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit these positions for the consumer group, without waiting and without raising: for Kafka's tools, never read back."""


def assigned_already(partitions: Iterable[TopicPartition]) -> LogError:
    """The error of `Consumer.assign`: two readers of one partition through one consumer would move each other's position."""
    return LogError(f"{', '.join(map(str, partitions))}: assigned already to this consumer.", "Seek in it, or unassign it first.")


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it should be: partitions, and the settings (name → value as Kafka prints it) that samzapy requires."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)


def gives_times(config: Mapping[str, str]) -> bool:
    """Whether a topic with these settings gives each record the time at which it arrives, whatever it was sent with."""
    return config.get("message.timestamp.type") == "LogAppendTime"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as it is. `topic_id` is Kafka's own id: a topic that was deleted and made again has another. `leaderless`: the partitions that
    no broker leads now."""

    name: str
    topic_id: str
    partitions: int
    replication: int
    config: Mapping[str, str]
    leaderless: tuple[int, ...] = ()

    @property
    def max_message_bytes(self) -> int:
        return int(self.config.get("max.message.bytes", 1048588))

    @property
    def retention_ms(self) -> int | None:
        """How long a record is kept after its timestamp; None: for ever."""
        kept = int(self.config.get("retention.ms", -1))
        return kept if kept >= 0 and "delete" in self.config.get("cleanup.policy", "delete") else None

    @property
    def gives_times(self) -> bool:
        """Whether its records get the time at which they arrive, whatever they were sent with."""
        return gives_times(self.config)

    @property
    def delete_retention_ms(self) -> int | None:
        """For how long compaction leaves deletions; None: the topic is not compacted."""
        kept = int(self.config.get("delete.retention.ms", DEFAULT_DELETE_RETENTION_MS))
        return kept if "compact" in self.config.get("cleanup.policy", "delete") else None


@dataclass(frozen=True, slots=True)
class TopicOutline:
    """Of a topic what can be known by one request: its id, as in TopicFacts, and how many partitions it has."""

    topic_id: str
    partitions: int


class Admin(Closing, Protocol):
    """Looks at the cluster and creates topics."""

    def cluster_id(self) -> str:
        """Kafka's cluster id.

        Raises:
            ClusterUnreachable: no broker answered in time; names the servers asked.
        """

    def broker_count(self) -> int: ...

    def broker_settings(self, name: str) -> list[str]:
        """A setting of each broker; without those that do not answer, have none of that name, or do not show it to this user."""

    def names(self) -> list[str]:
        """The names of all topics that this user may see."""

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        """Those of the named topics that exist, with their settings."""

    def outlines(self, names: Iterable[str], timeout_s: float) -> dict[str, TopicOutline]:
        """Those of the named topics that exist: one request, for which `timeout_s` seconds are waited.

        Raises:
            ClusterUnreachable: no answer in time. NotAuthorized, LogError: another answer.
        """

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The current read_committed ends, with one request per broker; partitions that do not exist, or whose broker does not answer, are left out.

        Raises:
            ClusterUnreachable: no answer in time. LogError: another answer than an end.
        """

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The current ends, open transactions included. `Consumer.bounds` gives less later only while a transaction is open.

        Raises:
            NoLeader: names a partition that no broker leads. ClusterUnreachable, LogError: as `ends`.
        """

    def leaderless(self, names: Iterable[str]) -> set[TopicPartition]:
        """The partitions of these topics that no broker leads now, by one request.

        Raises:
            ClusterUnreachable: no answer in time. NotAuthorized, LogError: another answer.
        """

    def create(self, specs: Iterable[TopicSpec]) -> None:
        """Create each (replication min(3, brokers), min.insync.replicas 2 where replication ≥ 2); one that exists by then is left alone."""

    def grow(self, name: str, partitions: int) -> None:
        """Raise a topic's number of partitions to `partitions`; existing ones stay unchanged."""

    def delete(self, names: Iterable[str]) -> None: ...

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Remove the records of partitions before these offsets: their starts move there.

        Raises:
            NotAuthorized, ClusterUnreachable, LogError: of some of them it could not be done.
        """

    def missing_access(self, wanted: Iterable[Access]) -> list[Access]:
        """The wanted operations that Kafka does not allow this user; those that cannot be known yet are left out. Changes nothing."""


class Log(Protocol):
    """Makes clients of one cluster."""

    def consumer(self, group_id: str, name: str, fetch: Fetch = Fetch.USUAL) -> Consumer: ...

    def restore_consumer(self, name: str) -> Consumer:
        """For bulk reads to a barrier or an end: does not wait for batches to fill."""

    def transactional_producer(self, transactional_id: str) -> TransactionalProducer: ...
    def plain_producer(self, name: str) -> PlainProducer: ...
    def admin(self) -> Admin: ...
