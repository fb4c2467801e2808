"""The interfaces between code that decides and code that acts: log, stores, clock, control, launcher.

Each has a real and an in-memory implementation that pass the same suite (tests/contract). What the running part (`container`,
`coordinator`) needs from outside is in this file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from samzapy.api.errors import LogError
from samzapy.api.store import KeyValueStore
from samzapy.model.access import Access
from samzapy.model.caution import Caution, Piece
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.stamp import StoreStamp

# -- the log: Kafka, or samzapy.testing.memory_log -------------------------------------------------------------------------------


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
        """Read these partitions from these next offsets, in addition to what is assigned. None of them is paused.

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
            ClusterUnreachable: no answer in time. TopicMissing.
        """

    def bounds_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """As `bounds`, for many partitions, with two requests per broker.

        Raises:
            ClusterUnreachable: no answer in time. TopicMissing: names one that does not exist.
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


Delivered = Callable[[int], None]
# (topic, value, key, partition or −1, timestamp in ms or 0, headers or None)
Outgoing = tuple[str, bytes | None, bytes | None, int, int, Sequence[tuple[str, bytes | None]] | None]


class TransactionalProducer(Protocol):
    """One producer with a transactional.id. Order of calls: init, then (begin, send…, flush, commit | abort) for ever.

    Any other order raises InDoubt (a second `init`: LogError) and does nothing, so that no record sent outside a transaction is lost silently.
    """

    def init(self) -> None:
        """Fence every earlier producer of this id and have its open transaction decided; both are done when this returns.

        Raises:
            ClusterUnreachable, NotAuthorized, LogError.
        """

    def begin(self) -> None: ...

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int = -1,
        timestamp_ms: int = 0,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        delivered: Delivered | None = None,
    ) -> None:
        """Queue a record; partition −1: by the key's murmur2 hash; timestamp 0: now. Waits while the queue is full.

        `delivered` is called with the record's offset, at the latest before `flush` returns. Any error poisons the transaction.
        """

    def send_all(self, records: Sequence[Outgoing]) -> None:
        """`send` for each, in order: the records of a task's hooks come in batches."""

    def flush(self) -> None:
        """Wait until the broker has everything.

        Raises:
            TransactionAborted: abort it (RecordRejected: because of a record, with its topic). Fenced. InDoubt.
        """

    def commit(self) -> bool:
        """Commit; True: clean. False: committed, but suspicious (slow, retried, reconnected): the next `begin` needs a new producer.

        Raises:
            TransactionAborted: it can be aborted, none of it becomes visible (RecordRejected: because of a record, with its topic). Fenced.
            InDoubt: it is not known whether it was committed.
        """

    def abort(self) -> bool:
        """Abort; False: the next `begin` needs a new producer (with Kafka always).

        Raises:
            Fenced. InDoubt.
        """

    def close(self) -> None:
        """Close without deciding anything; an open transaction is decided by the next init of its id, or by its timeout."""


class PlainProducer(Protocol):
    """An idempotent producer outside transactions, for the outputs of at_least_once. After `close` every call but `close` raises InDoubt."""

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int = -1,
        timestamp_ms: int = 0,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> None: ...

    def send_all(self, records: Sequence[Outgoing]) -> None:
        """`send` for each, in order."""

    def poll(self) -> None:
        """Serve delivery reports, without waiting."""

    def flush(self) -> None:
        """Wait until all is acknowledged.

        Raises:
            LogError: a record was not delivered; named. RecordRejected: because of the record itself.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it should be: partitions, and the settings (name → value as Kafka prints it) that samzapy requires."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as it is. `topic_id` is Kafka's own id: a topic that was deleted and made again has another."""

    name: str
    topic_id: str
    partitions: int
    replication: int
    config: Mapping[str, str]

    @property
    def max_message_bytes(self) -> int:
        return int(self.config.get("max.message.bytes", 1048588))


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

    def broker_setting(self, name: str) -> str | None:
        """A setting of a broker; None if it has none of that name, or does not show it to this user."""

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        """Those of the named topics that exist, with their settings."""

    def outlines(self, names: Iterable[str], timeout_s: float) -> dict[str, TopicOutline]:
        """Those of the named topics that exist: one request, for which `timeout_s` seconds are waited.

        Raises:
            ClusterUnreachable: no answer in time. NotAuthorized, LogError: another answer.
        """

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The current read_committed ends, with one request per broker; partitions that do not exist are left out.

        Raises:
            ClusterUnreachable: no answer in time. LogError: another answer than an end.
        """

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The current ends, open transactions included. `Consumer.bounds` gives less later only while a transaction is open."""

    def create(self, specs: Iterable[TopicSpec]) -> None:
        """Create each (replication min(3, brokers), min.insync.replicas 2 where replication ≥ 2); one that exists by then is left alone."""

    def grow(self, name: str, partitions: int) -> None:
        """Raise a topic's number of partitions to `partitions`; existing ones stay unchanged."""

    def delete(self, names: Iterable[str]) -> None: ...

    def missing_access(self, wanted: Iterable[Access]) -> list[Access]:
        """The wanted operations that Kafka does not allow this user; those that cannot be known yet are left out. Changes nothing."""


class Log(Protocol):
    """Makes clients of one cluster."""

    def consumer(self, group_id: str, name: str, small: bool = False) -> Consumer:
        """`small`: it fetches few bytes at a time, which may be many more after decompression."""

    def restore_consumer(self, name: str) -> Consumer:
        """For bulk reads to a barrier or an end: does not wait for batches to fill."""

    def transactional_producer(self, transactional_id: str) -> TransactionalProducer: ...
    def plain_producer(self, name: str) -> PlainProducer: ...
    def admin(self) -> Admin: ...


# -- stores ------------------------------------------------------------------------------------------------------------------------

Change = tuple[bytes, bytes | None]


class Scan(Protocol):
    """Entries of an engine in key order over a fixed view. `close` releases the view; so does the end."""

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    def __next__(self) -> tuple[bytes, bytes]: ...
    def close(self) -> None: ...


class StoreEngine(Protocol):
    """Committed bytes of one store of one task: RocksDB or memory. Keys are in their sorting form."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, from_key: bytes | None = None, to_key: bytes | None = None) -> Scan:
        """from_key <= key < to_key, ascending; None = open."""

    def write(self, changes: Iterable[Change], stamp: StoreStamp) -> None:
        """All changes and the stamp in one atomic batch (None deletes). Not flushed: a crash may lose a suffix of whole batches."""

    def stamp(self) -> StoreStamp | None:
        """The stamp of the newest batch; None in an empty store."""

    def flush(self, wait: bool = True) -> None:
        """Everything written survives a crash when this returns; without `wait`, some time later."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of one generation directory: an opened engine with its stamp, or why it cannot be used.

    `locked`: another process has it open. `path` is for messages.
    """

    generation: str
    path: str
    engine: StoreEngine | None
    stamp: StoreStamp | None
    locked: bool = False
    problem: str = ""


class StoreDirectory(Protocol):
    """The generations of one store of one task on this host."""

    def claims(self) -> list[Claim]:
        """Open every generation that is not set aside. The caller closes the engines that it does not use."""

    def create(self) -> tuple[str, StoreEngine]:
        """A new, empty generation: its name and engine."""

    def set_aside(self, claim: Claim, reason: str) -> None:
        """Mark a generation as not to be used again, under its lock if that is free, and close it; the cleaner removes it later."""

    def clean(self) -> None:
        """Remove generations that were set aside and that no process has open."""


class TaskStore(KeyValueStore, Protocol):
    """One store of one task: the task's typed view, over uncommitted overlays (live, frozen) and a read cache, over an engine.

    The methods below are the container's; a task sees only KeyValueStore.
    """

    name: str
    stamp: StoreStamp | None

    @property
    def uncommitted_bytes(self) -> int:
        """Bytes of keys and values in the live overlay."""

    @property
    def changed(self) -> bool:
        """Whether the live overlay has changes."""

    def keep(self) -> None:
        """The hook returned: its writes stay; iterators it opened are closed."""

    def undo(self) -> None:
        """The hook raised: its writes since the last `keep` are undone; iterators it opened are closed."""

    def freeze(self) -> Sequence[Change]:
        """C0: the live overlay becomes the frozen one. Returns its changes as changelog records: (log key, value), None for a deletion."""

    def apply(self, stamp: StoreStamp) -> None:
        """C5, C6: the frozen overlay is committed, and `stamp` has its changelog position. The engine may get both later."""

    @property
    def unwritten(self) -> int:
        """How many committed entries the engine does not have yet."""

    @property
    def must_write_out(self) -> bool:
        """Whether the committed entries that the engine does not have take too much memory."""

    def write_out(self, max_entries: int | None = None) -> bool:
        """Write committed entries to the engine, at most `max_entries` (None: all). True: the write-out that was under way is done.

        Raises:
            InDoubt, StoreProblem: the engine could not take them; nothing is lost, the changelog has them.
        """

    def discard(self) -> None:
        """Abort: drop live and frozen overlays and the read cache; committed changes stay."""

    def load(self, records: Sequence[Change], stamp: StoreStamp) -> None:
        """Restore: write changelog records (log keys) and their position, in one batch."""

    def attach(self, engine: StoreEngine) -> None:
        """Use this engine from now on; an earlier one has been closed."""

    def refuse_writes(self) -> None:
        """From now on put and delete raise StoreClosed (during `close()`)."""

    def flush(self) -> None:
        """Everything applied survives a crash when this returns."""

    def start_flush(self) -> None:
        """Start a flush of the engine without waiting for it."""

    def close(self) -> None:
        """Write out committed changes and close the engine. Closing twice does nothing."""


# -- time, chance, control -----------------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Time, passed as an argument: `monotonic` (seconds) for durations, `now_ms` (milliseconds since 1970) for stamps and for people."""

    def monotonic(self) -> float: ...
    def now_ms(self) -> int: ...
    def sleep(self, seconds: float) -> None: ...
    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait until the event is set, at most `seconds`."""


class Joinable(Protocol):
    """Work that runs beside its caller."""

    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


Spawn = Callable[[str, Callable[[], None]], Joinable]  # begin this work beside its caller, under this name


@dataclass(frozen=True, slots=True)
class Assignment:
    """The coordinator's answer to a container that registers. Which tasks it owns is in the coordinator topic."""

    run_id: str
    end_offsets: Mapping[str, int] | None = None  # by str(TopicPartition); only with --until-end
    caution: Caution = field(default_factory=Caution)


@dataclass(frozen=True, slots=True)
class Instructions:
    """The coordinator's instructions to a container, in every response to a heartbeat. Which tasks it owns is only in the coordinator topic.

    Attributes:
        epoch: of the newest record that names this container; one that is not adopted yet makes it read the topic again.
        release: tasks to commit, close and release.
        standby: tasks to keep a warm copy of.
        models: tasks that were added after this container was started, by name.
    """

    epoch: int = 0
    release: frozenset[str] = frozenset()
    standby: tuple[str, ...] = ()
    models: Mapping[str, TaskModel] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Supervision:
    """The run loop's connections to its process: whether to go on, reports, instructions.

    Attributes:
        raise_if_stopped: called during waits; raises to end them.
        report: called when the status has changed and should be reported soon; with True, at once.
        instructions: the newest instructions.
        announce: reports to the coordinator the records about to be processed, or with None that they are done; returns when it has the report.
    """

    raise_if_stopped: Callable[[], None] = lambda: None
    report: Callable[[bool], None] = lambda urgent: None
    instructions: Callable[[], Instructions] = Instructions
    announce: Callable[[Piece | None], None] = lambda piece: None


class Control(Protocol):
    """A container's connection to the coordinator. Every call is retried inside; the answer to a heartbeat has commands and instructions."""

    def register(self, incarnation: str, facts: Mapping[str, Any]) -> Assignment:
        """Ask to be named in the coordinator topic; waits until it is.

        Raises:
            Superseded: this launch was already used or is no longer wanted.
        """

    def heartbeat(self, incarnation: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Report the container's status; the answer is `{"command": "run" | "stop" | "exit", "epoch": …, "release": […], "standby": […], …}`.

        Raises:
            LogError: no answer. Superseded: this incarnation was replaced.
        """

    def finished(self, incarnation: str, report: Mapping[str, Any]) -> bool:
        """The final report: how it ended; best effort. Returns whether the coordinator accepted it."""


class ContainerHandle(Protocol):
    """A launched container as its launcher sees it."""

    def exited(self) -> str | None:
        """None while it runs; else how it ended, as text."""

    def kill(self) -> None:
        """Kill it; returns without waiting."""


class Launcher(Protocol):
    """Starts containers: as child processes or as Spark tasks."""

    def slots(self) -> int | None:
        """How many containers can run at once; None = no limit known. May wait for hosts to register."""

    def hosts(self) -> Mapping[str, int | None]:
        """Hosts that can take containers now, with their slots (None: no limit known), without waiting.

        A host's slots include those in use. Hosts whose executors are being decommissioned are left out.
        """

    def leaving(self) -> Collection[str]:
        """Hosts that are being decommissioned: their containers keep running, but should be moved before the host ends. Without waiting."""

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> ContainerHandle: ...

    def close(self) -> None:
        """End all containers that still run."""
