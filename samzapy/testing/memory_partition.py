"""One partition of the in-memory Kafka: records, the producers it knows, open transactions, compaction, retention.

What is kept true: a record takes an offset when it arrives, whatever becomes of its transaction, and so does a marker; a read_committed
reader sees nothing at or after the first offset of an open transaction (the last stable offset); a marker decides all that its producer
has open in this partition, in whichever transaction it was meant; a producer's records are taken in the order of their sequence numbers,
each once; compaction and retention leave offsets as they are. A marker is an offset without a record, so it looks the same before and after
the cleaner took it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from samzapy.api.errors import BatchUnreadable, LogError, OffsetOutOfRange
from samzapy.model.offsets import Bounds, TopicPartition, next_offset

Headers = Sequence[tuple[str, bytes | None]] | None
CREATE_TIME = 1


class Answer(Enum):
    """How a broker refuses a producer's request; Kafka's names."""

    CONCURRENT_TRANSACTIONS = "the last transaction of this producer still has markers to be written"
    PRODUCER_FENCED = "a newer producer has the same transactional.id, or the transaction timed out"
    INVALID_TXN_STATE = "the producer has no such transaction open"
    OUT_OF_ORDER_SEQUENCE = "records of this producer that came before are missing"
    MESSAGE_TOO_LARGE = "the record is larger than the topic takes"
    INVALID_TIMESTAMP = "the record's time is too far from the broker's"
    INVALID_RECORD = "a compacted topic takes no record without a key"


class Refused(LogError):
    """A request was answered with a refusal. Clients turn it into what the ports promise; it never leaves them."""

    def __init__(self, answer: Answer, what: str) -> None:
        super().__init__(f"{what}: {answer.value} ({answer.name}).")
        self.answer = answer
        self.topic = ""  # of the record that was refused


class State(Enum):
    """What is known of a record's transaction in its partition."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Part:
    """A transaction's records in one partition, from the first to the marker."""

    first_offset: int
    state: State = State.OPEN


class MemoryMessage:
    """A record as a consumer hands it out."""

    __slots__ = ("_headers", "_key", "_offset", "_timestamp_ms", "_topic_partition", "_value", "part")

    def __init__(
        self, partition: TopicPartition, offset: int, key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Headers,
        part: Part | None,
    ) -> None:  # fmt: skip
        self._topic_partition = partition
        self._offset = offset
        self._key = key
        self._value = value
        self._timestamp_ms = timestamp_ms
        self._headers = headers
        self.part = part

    def topic(self) -> str:
        return self._topic_partition.topic

    def partition(self) -> int:
        return self._topic_partition.partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return CREATE_TIME, self._timestamp_ms

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """As the client does, it raises SystemError for a name that is not UTF-8."""
        headers = list(self._headers or ())
        try:
            b"".join(name.encode() for name, _ in headers)
        except UnicodeEncodeError as error:
            raise SystemError("a header's name is not UTF-8") from error
        return headers or None

    @property
    def state(self) -> State:
        return State.COMMITTED if self.part is None else self.part.state


@dataclass(slots=True)
class _Writer:
    """What a partition remembers of a producer."""

    epoch: int
    next_sequence: int | None = None  # None: nothing came yet, any is fine
    last_offset: int = -1


@dataclass(slots=True)
class MemoryPartition:
    """The log of one partition."""

    topic_partition: TopicPartition
    start: int = 0
    end: int = 0
    records: list[MemoryMessage] = field(default_factory=list)  # ascending offsets, with holes
    writers: dict[int, _Writer] = field(default_factory=dict)  # by producer id, as the next
    open_parts: dict[int, Part] = field(default_factory=dict)  # in the order of their first offsets
    tombstone_horizon_ms: dict[int, int] = field(default_factory=dict)  # by offset: when a tombstone that was cleaned once may go
    unreadable: list[tuple[int, int]] = field(default_factory=list)  # batches that no client can decompress, as [begin, end)

    # -- writing -------------------------------------------------------------------------------------------------------------------

    def has_open(self, producer_id: int) -> bool:
        return producer_id in self.open_parts

    def append(
        self, producer_id: int, epoch: int, sequence: int, key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Headers,
        transactional: bool,
    ) -> int:  # fmt: skip
        """Take a record; one that is here already is answered with its offset, or −1 if that is long ago.

        Raises:
            Refused: fenced, or out of sequence.
        """
        writer = self.writers.get(producer_id)
        if writer is None or epoch > writer.epoch:
            writer = self.writers[producer_id] = _Writer(epoch, None if writer is None else 0)
        if epoch < writer.epoch:
            raise Refused(Answer.PRODUCER_FENCED, f"a record for {self.topic_partition}")
        expected = writer.next_sequence
        if expected is not None and sequence < expected:
            return writer.last_offset if sequence == expected - 1 else -1
        if expected is not None and sequence > expected:
            raise Refused(Answer.OUT_OF_ORDER_SEQUENCE, f"a record for {self.topic_partition}")
        offset = self.end
        part = self.open_parts.setdefault(producer_id, Part(offset)) if transactional else None
        self.records.append(MemoryMessage(self.topic_partition, offset, key, value, timestamp_ms, headers, part))
        self.end = next_offset(offset)
        writer.next_sequence, writer.last_offset = sequence + 1, offset
        return offset

    def mark(self, producer_id: int, epoch: int, state: State) -> None:
        """Write a marker: whatever that producer has open here is decided. One of an old epoch comes too late and is not written."""
        writer = self.writers.get(producer_id)
        if writer is not None and epoch < writer.epoch:
            return
        if writer is None or epoch > writer.epoch:
            self.writers[producer_id] = _Writer(epoch, 0)
        self.end = next_offset(self.end)
        part = self.open_parts.pop(producer_id, None)
        if part is not None:
            part.state = state

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def stable_end(self) -> int:
        """The last stable offset: the first offset of the oldest open transaction, or the end."""
        return next(iter(self.open_parts.values())).first_offset if self.open_parts else self.end

    def bounds(self) -> Bounds:
        return Bounds(self.start, max(self.start, self.stable_end()))

    def read(self, position: int, limit: int) -> tuple[list[MemoryMessage], int]:
        """Committed records from `position`, and the position after them (markers and aborted records passed)."""
        stable = self.bounds().end
        if not self.start <= position <= max(stable, self.end):
            raise OffsetOutOfRange(
                f"{self.topic_partition}: position {position} is outside [{self.start}, {stable}).",
                "Choose where to go on.",
                self.topic_partition.topic,
            )
        found: list[MemoryMessage] = []
        for index in range(self._index(position), len(self.records)):
            record = self.records[index]
            if record.offset() >= stable:
                break
            bad = next((end for begin, end in self.unreadable if begin <= record.offset() < end), None)
            if bad is not None:
                if not found:
                    raise BatchUnreadable(*self.topic_partition, max(position, record.offset()), bad, "it does not decompress")
                return found, next_offset(found[-1].offset())
            if record.state is State.COMMITTED:
                if len(found) == limit:
                    return found, next_offset(found[-1].offset()) if found else position
                found.append(record)
        return found, max(position, stable)

    def offset_for_time(self, timestamp_ms: int) -> int:
        end = self.bounds().end
        return next((r.offset() for r in self.records if r.timestamp()[1] >= timestamp_ms and r.offset() < end), end)

    def _index(self, offset: int) -> int:
        return bisect_left(self.records, offset, key=MemoryMessage.offset)

    # -- cleaning ------------------------------------------------------------------------------------------------------------------

    def delete_before(self, offset: int) -> None:
        """Move the start of the log; what lay before it is gone."""
        self.start = max(self.start, min(offset, self.end))
        self.records = self.records[self._index(self.start) :]

    def expire(self, oldest_ms: int) -> None:
        """Retention: the start moves to the first record that is young enough, and never past the last stable offset."""
        stable = self.stable_end()
        self.delete_before(min(stable, next((r.offset() for r in self.records if r.timestamp()[1] >= oldest_ms), stable)))

    def first_younger(self, than_ms: int) -> int:
        """The first record written after that time, or the end."""
        return next((r.offset() for r in self.records if r.timestamp()[1] > than_ms), self.end)

    def compact(self, before: int, now_ms: int, tombstones_stay_ms: int) -> None:
        """Below `before` and the last stable offset, keep the newest committed record of each key.

        A tombstone stays for its time after the first cleaning that met it, so that a reader in between learns of the deletion.
        """
        bound = min(before, self.stable_end())
        newest = {r.key(): r.offset() for r in self.records if r.offset() < bound and r.state is State.COMMITTED}
        self.records = [
            r for r in self.records
            if r.offset() >= bound
            or (r.state is State.COMMITTED and newest[r.key()] == r.offset() and not self._expired(r, now_ms, tombstones_stay_ms))
        ]  # fmt: skip

    def _expired(self, record: MemoryMessage, now_ms: int, stay_ms: int) -> bool:
        if record.value() is not None:
            return False
        horizon = min(self.tombstone_horizon_ms.get(record.offset(), now_ms + stay_ms), now_ms + stay_ms)
        self.tombstone_horizon_ms[record.offset()] = horizon
        return now_ms >= horizon
