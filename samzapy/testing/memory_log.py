"""Kafka in memory, as far as samzapy relies on it: transactions, isolation, fencing, markers, topic ids.

What is kept true, because the protocol stands on it (tests/contract/test_log.py runs the same probes on a real broker):
a record takes an offset when it is sent, whatever becomes of its transaction; a commit or abort writes a marker that takes an offset in
every partition the transaction touched; a read_committed reader sees nothing at or behind the first offset of an open transaction; `init`
of a transactional.id fences earlier producers of that id and has their open transaction decided, visibly, before it returns.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from samzapy.api.errors import Fenced, InDoubt, LogError, OffsetOutOfRange, TopicMissing, TransactionAborted
from samzapy.model.murmur2 import murmur2
from samzapy.model.offsets import Bounds, TopicPartition, next_offset
from samzapy.ports import Clock, Delivered, Outgoing, TopicFacts, TopicSpec

Headers = Sequence[tuple[str, bytes | None]] | None
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"
DEFAULT_MAX_MESSAGE_BYTES = 1048588
CREATE_TIME = 1


@dataclass(slots=True, eq=False)
class _Transaction:
    producer: str
    state: str = OPEN
    partitions: set[TopicPartition] = field(default_factory=set)


class MemoryMessage:
    """A record as a consumer hands it out."""

    __slots__ = ("_headers", "_key", "_offset", "_place", "_timestamp_ms", "_value", "transaction")

    def __init__(
        self, place: TopicPartition, offset: int, key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Headers,
        transaction: _Transaction | None,
    ) -> None:  # fmt: skip
        self._place = place
        self._offset = offset
        self._key = key
        self._value = value
        self._timestamp_ms = timestamp_ms
        self._headers = headers
        self.transaction = transaction

    def topic(self) -> str:
        return self._place.topic

    def partition(self) -> int:
        return self._place.partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return CREATE_TIME, self._timestamp_ms

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self._headers) if self._headers else None


@dataclass(slots=True)
class _Partition:
    start: int = 0
    end: int = 0
    records: list[MemoryMessage] = field(default_factory=list)  # ascending offsets, with holes
    open_since: dict[_Transaction, int] = field(default_factory=dict)  # first offset of each open transaction

    def stable_end(self) -> int:
        """The last stable offset: the first offset of the oldest open transaction, or the end."""
        return min(self.open_since.values(), default=self.end)

    def first_index(self, offset: int) -> int:
        low, high = 0, len(self.records)
        while low < high:
            middle = (low + high) // 2
            if self.records[middle].offset() < offset:
                low = middle + 1
            else:
                high = middle
        return low


@dataclass(slots=True)
class _Topic:
    topic_id: str
    config: dict[str, str]
    partitions: list[_Partition]


class MemoryCluster:
    """The broker. Thread-safe; time comes from the clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.cluster_id = "memory"
        self.lock = threading.RLock()
        self.arrived = threading.Condition(self.lock)
        self.group_offsets: dict[str, dict[TopicPartition, int]] = {}
        self._topics: dict[str, _Topic] = {}
        self._producer_epochs: dict[str, int] = {}
        self._open: dict[str, _Transaction] = {}
        self._faults: dict[str, list[str]] = {}

    # -- topics --------------------------------------------------------------------------------------------------------------------

    def create(self, spec: TopicSpec) -> None:
        with self.lock:
            if spec.name not in self._topics:
                self._topics[spec.name] = _Topic(secrets.token_hex(8), dict(spec.config), [_Partition() for _ in range(spec.partitions)])

    def delete(self, name: str) -> None:
        with self.lock:
            self._topics.pop(name, None)

    def add_partitions(self, name: str, count: int) -> None:
        with self.lock:
            partitions = self._topic(name).partitions
            partitions.extend(_Partition() for _ in range(count - len(partitions)))

    def facts(self, name: str) -> TopicFacts | None:
        with self.lock:
            topic = self._topics.get(name)
            return None if topic is None else TopicFacts(name, topic.topic_id, len(topic.partitions), 1, dict(topic.config))

    def delete_records(self, place: TopicPartition, before: int) -> None:
        """Move the start of the log; what lay before it is gone."""
        with self.lock:
            partition = self.partition(place)
            partition.start = max(partition.start, min(before, partition.end))
            partition.records = [r for r in partition.records if r.offset() >= partition.start]

    def compact(self, name: str, drop_tombstones: bool = False) -> None:
        """Keep the newest committed record of each key; nothing at or behind the last stable offset is touched."""
        with self.lock:
            for partition in self._topic(name).partitions:
                stable = partition.stable_end()
                newest = {r.key(): r.offset() for r in partition.records if r.offset() < stable and _is_visible(r)}
                partition.records = [
                    r for r in partition.records
                    if r.offset() >= stable
                    or (_is_visible(r) and newest[r.key()] == r.offset() and not (drop_tombstones and r.value() is None))
                ]  # fmt: skip

    def _topic(self, name: str) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            raise TopicMissing(f"topic {name} does not exist.", "Create it.")
        return topic

    def partition(self, place: TopicPartition) -> _Partition:
        partitions = self._topic(place.topic).partitions
        if not 0 <= place.partition < len(partitions):
            raise TopicMissing(f"{place} does not exist: the topic has {len(partitions)} partitions.", "")
        return partitions[place.partition]

    # -- writing -------------------------------------------------------------------------------------------------------------------

    def append(
        self, topic: str, partition: int, key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Headers,
        transaction: _Transaction | None,
    ) -> int:  # fmt: skip
        with self.lock:
            found = self._topic(topic)
            limit = int(found.config.get("max.message.bytes", DEFAULT_MAX_MESSAGE_BYTES))
            size = len(key or b"") + len(value or b"") + 70
            if size > limit:
                raise LogError(f"a record of {size} bytes for {topic}, which takes {limit}.", "")
            if partition < 0:
                partition = murmur2(key) % len(found.partitions) if key is not None else secrets.randbelow(len(found.partitions))
            place = TopicPartition(topic, partition)
            log = self.partition(place)
            offset = log.end
            log.records.append(MemoryMessage(place, offset, key, value, timestamp_ms or self.clock.now_ms(), headers, transaction))
            log.end = next_offset(offset)
            if transaction is not None:
                transaction.partitions.add(place)
                log.open_since.setdefault(transaction, offset)
            else:
                self.arrived.notify_all()
            return offset

    def init_producer(self, transactional_id: str) -> int:
        with self.lock:
            before = self._open.get(transactional_id)
            if before is not None:
                self.decide(before, ABORTED)
            self._producer_epochs[transactional_id] = self._producer_epochs.get(transactional_id, 0) + 1
            return self._producer_epochs[transactional_id]

    def check_producer(self, transactional_id: str, epoch: int) -> None:
        if self._producer_epochs.get(transactional_id) != epoch:
            raise Fenced(f"producer {transactional_id}: a newer one of the same id has taken over.", "")

    def open_transaction(self, transactional_id: str) -> _Transaction:
        with self.lock:
            return self._open.setdefault(transactional_id, _Transaction(transactional_id))

    def decide(self, transaction: _Transaction, state: str) -> None:
        """Commit or abort: a marker in every partition it touched."""
        with self.lock:
            transaction.state = state
            for place in transaction.partitions:
                if place.topic in self._topics:
                    log = self.partition(place)
                    log.end = next_offset(log.end)
                    log.open_since.pop(transaction, None)
            self._open.pop(transaction.producer, None)
            self.arrived.notify_all()

    def expire(self, transactional_id: str) -> None:
        """A transaction timeout: the open transaction is aborted and its producer fenced."""
        with self.lock:
            transaction = self._open.get(transactional_id)
            if transaction is not None:
                self.decide(transaction, ABORTED)
                self._producer_epochs[transactional_id] += 1

    # -- faults on purpose ---------------------------------------------------------------------------------------------------------

    def fail_next(self, call: str, kind: str) -> None:
        """The next `call` (send, flush, commit, abort, init) of a transactional producer goes wrong.

        Kinds: `aborted` (must be aborted), `in_doubt_committed` and `in_doubt_lost` (the reply is lost; it was, or was not, carried out),
        `fenced`, `suspicious` (commit and abort: done, but slow).
        """
        self._faults.setdefault(call, []).append(kind)

    def fault(self, call: str) -> str:
        with self.lock:
            waiting = self._faults.get(call)
            return waiting.pop(0) if waiting else ""

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def bounds(self, place: TopicPartition) -> Bounds:
        with self.lock:
            log = self.partition(place)
            return Bounds(log.start, max(log.start, log.stable_end()))

    def read(self, place: TopicPartition, position: int, limit: int) -> tuple[list[MemoryMessage], int]:
        """Committed records from `position`, and the position behind them (markers and aborted records passed)."""
        with self.lock:
            log = self.partition(place)
            stable = max(log.start, log.stable_end())
            if not log.start <= position <= max(stable, log.end):
                raise OffsetOutOfRange(f"{place}: position {position} lies outside [{log.start}, {stable}).", "Choose where to go on.")
            found: list[MemoryMessage] = []
            for index in range(log.first_index(position), len(log.records)):
                record = log.records[index]
                if record.offset() >= stable:
                    break
                if _is_visible(record):
                    if len(found) == limit:
                        return found, next_offset(found[-1].offset()) if found else position
                    found.append(record)
            return found, max(position, stable)


def _is_visible(record: MemoryMessage) -> bool:
    return record.transaction is None or record.transaction.state == COMMITTED


class MemoryConsumer:
    """ports.Consumer over a MemoryCluster."""

    def __init__(self, cluster: MemoryCluster, group_id: str) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._positions: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._turn = 0

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        for place in positions:
            self._cluster.partition(place)
        self._positions.update(positions)

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        for place in list(partitions):
            self._positions.pop(place, None)
            self._paused.discard(place)

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        self._positions.update({p: at for p, at in positions.items() if p in self._positions})

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._paused.update(p for p in partitions if p in self._positions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._paused.difference_update(partitions)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[MemoryMessage]:
        with self._cluster.lock:
            batch = self._take(max_records)
            if not batch and timeout_s > 0:
                self._cluster.clock.sleep(timeout_s) if not _is_real(self._cluster.clock) else self._cluster.arrived.wait(timeout_s)
                batch = self._take(max_records)
            return batch

    def _take(self, max_records: int) -> list[MemoryMessage]:
        places = [p for p in self._positions if p not in self._paused]
        if not places:
            return []
        self._turn = (self._turn + 1) % len(places)
        batch: list[MemoryMessage] = []
        for place in places[self._turn :] + places[: self._turn]:
            found, position = self._cluster.read(place, self._positions[place], max_records - len(batch))
            batch.extend(found)
            self._positions[place] = position
            if len(batch) >= max_records:
                break
        return batch

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: self._positions[p] for p in partitions}

    def bounds(self, partition: TopicPartition) -> Bounds:
        return self._cluster.bounds(partition)

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int:
        with self._cluster.lock:
            log = self._cluster.partition(partition)
            end = log.stable_end()
            return next((r.offset() for r in log.records if r.timestamp()[1] >= timestamp_ms and r.offset() < end), end)

    def mirror(self, positions: Mapping[TopicPartition, int]) -> None:
        with self._cluster.lock:
            self._cluster.group_offsets.setdefault(self._group_id, {}).update(positions)

    def close(self) -> None:
        self._positions.clear()


def _is_real(clock: Clock) -> bool:
    import time

    return clock.monotonic is time.monotonic


class MemoryTransactionalProducer:
    """ports.TransactionalProducer over a MemoryCluster."""

    def __init__(self, cluster: MemoryCluster, transactional_id: str) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._epoch = -1
        self._transaction: _Transaction | None = None
        self._poison: Exception | None = None
        self._reports: list[Callable[[], None]] = []

    def init(self) -> None:
        self._faulty("init")
        self._epoch = self._cluster.init_producer(self._id)

    def begin(self) -> None:
        self._cluster.check_producer(self._id, self._epoch)
        if self._transaction is not None:
            raise LogError(f"producer {self._id}: a transaction is open already.", "")
        self._transaction = _Transaction(self._id)
        self._poison = None

    def send(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int = -1, timestamp_ms: int = 0, headers: Headers = None,
        delivered: Delivered | None = None,
    ) -> None:  # fmt: skip
        transaction = self._current()
        if self._cluster.fault("send"):
            self._poison = LogError(f"a record for {topic} was rejected (a fault on purpose).", "")
        if self._poison is not None:
            return
        try:
            self._cluster.check_producer(self._id, self._epoch)
            with self._cluster.lock:
                self._cluster._open[self._id] = transaction
                offset = self._cluster.append(topic, partition, key, value, timestamp_ms, headers, transaction)
        except LogError as error:
            self._poison = error
            return
        if delivered is not None:
            self._reports.append(lambda: delivered(offset))

    def send_all(self, records: Sequence[Outgoing]) -> None:
        for record in records:
            self.send(*record)

    def flush(self) -> None:
        self._current()
        self._faulty("flush")
        reports, self._reports = self._reports, []
        for report in reports:
            report()
        self._raise_poison()

    def commit(self) -> bool:
        transaction = self._current()
        self.flush()
        fault = self._faulty("commit", transaction)
        self._cluster.check_producer(self._id, self._epoch)
        self._cluster.decide(transaction, COMMITTED)
        self._transaction = None
        return fault != "suspicious"

    def abort(self) -> bool:
        transaction = self._current()
        self._faulty("abort", transaction)
        self._cluster.check_producer(self._id, self._epoch)
        self._cluster.decide(transaction, ABORTED)
        self._transaction, self._poison, self._reports = None, None, []
        return False

    def close(self) -> None:
        self._transaction = None

    def _current(self) -> _Transaction:
        if self._transaction is None:
            raise LogError(f"producer {self._id}: no transaction is open.", "Call begin first.")
        return self._transaction

    def _raise_poison(self) -> None:
        if isinstance(self._poison, Fenced):
            raise self._poison
        if self._poison is not None:
            raise TransactionAborted(f"producer {self._id}: {self._poison.args[0]}", "")

    def _faulty(self, call: str, transaction: _Transaction | None = None) -> str:
        kind = self._cluster.fault(call)
        if kind == "aborted":
            raise TransactionAborted(f"{call} of {self._id} failed (a fault on purpose).", "")
        if kind == "fenced":
            raise Fenced(f"{call} of {self._id}: fenced (a fault on purpose).", "")
        if kind == "in_doubt_committed" and transaction is not None:
            self._cluster.decide(transaction, COMMITTED if call == "commit" else ABORTED)
        if kind.startswith("in_doubt"):
            raise InDoubt(f"no reply to {call} of {self._id} (a fault on purpose).", "")
        return kind


class MemoryPlainProducer:
    """ports.PlainProducer over a MemoryCluster: what is sent is there at once."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._error: LogError | None = None

    def send(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int = -1, timestamp_ms: int = 0, headers: Headers = None
    ) -> None:
        try:
            self._cluster.append(topic, partition, key, value, timestamp_ms, headers, None)
        except LogError as error:
            self._error = error

    def send_all(self, records: Sequence[Outgoing]) -> None:
        for record in records:
            self.send(*record)

    def poll(self) -> None:
        """Nothing waits here."""

    def flush(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryAdmin:
    """ports.Admin over a MemoryCluster."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def cluster_id(self) -> str:
        return self._cluster.cluster_id

    def broker_count(self) -> int:
        return 1

    def broker_setting(self, name: str) -> str | None:
        return None

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        found = {name: self._cluster.facts(name) for name in names}
        return {name: facts for name, facts in found.items() if facts is not None}

    def create(self, specs: Iterable[TopicSpec]) -> None:
        for spec in specs:
            self._cluster.create(spec)

    def grow(self, name: str, partitions: int) -> None:
        self._cluster.add_partitions(name, partitions)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._cluster.delete(name)

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryLog:
    """ports.Log over a MemoryCluster."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def consumer(self, group_id: str, name: str) -> MemoryConsumer:
        return MemoryConsumer(self._cluster, group_id)

    def restore_consumer(self, name: str) -> MemoryConsumer:
        return MemoryConsumer(self._cluster, "")

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        return MemoryTransactionalProducer(self._cluster, transactional_id)

    def plain_producer(self, name: str) -> MemoryPlainProducer:
        return MemoryPlainProducer(self._cluster)

    def admin(self) -> MemoryAdmin:
        return MemoryAdmin(self._cluster)
