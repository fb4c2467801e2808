"""Reads of a log up to an end that was fixed before: of any partition, the coordinator topic, the checkpoint topic. Over the Consumer port.

When a read ends: at a record at or after the end's last offset, or when the position has reached the end (no record ever comes from
the offsets of markers and aborted records). It is an error, not an end, if the position does not move for
`PATIENCE_S` seconds. Deadlines are on progress, never on the total.

Readers that may not write read up to the current read_committed end; a restore reads up to its barrier.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf

from samzapy.api.errors import ClusterUnreachable, StateRefused
from samzapy.model.barrier import BARRIER_KEY, barrier_from_bytes
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, UnreadableCheckpoint, checkpoint_from_bytes
from samzapy.model.commands_told import find_program
from samzapy.model.offsets import Bounds, TopicPartition, last_offset_before
from samzapy.model.ownership import LEASE_KEY, LeaseRecord, Ledger, UnreadableRecord
from samzapy.ports import Clock, Consumer, Message

PATIENCE_S = 30.0
FETCH_S = 0.02
BATCH = 2000


def read_to_end(consumer: Consumer, partition: TopicPartition, clock: Clock, start: int | None = None) -> Iterator[Sequence[Message]]:
    """Batches of the records of `partition` from `start` (default: the log's start) to the read_committed end as it is now.

    Raises:
        ClusterUnreachable: no progress for 30 s.
    """
    bounds = consumer.bounds(partition)
    begin = bounds.start if start is None else max(start, bounds.start)
    return read_ranges(consumer, {partition: (begin, bounds.end)}, clock)


def read_ranges(
    consumer: Consumer, ranges: Mapping[TopicPartition, tuple[int, int]], clock: Clock, patience_s: float = PATIENCE_S
) -> Iterator[Sequence[Message]]:
    """Batches of the records of several partitions, each in its own [start, end); records after an end are left out.

    Raises:
        ClusterUnreachable: no progress for `patience_s`.
    """
    open_ends = {p: end for p, (start, end) in ranges.items() if start < end}
    if not open_ends:
        return
    consumer.assign({p: ranges[p][0] for p in open_ends})
    positions = {p: ranges[p][0] for p in open_ends}
    last_progress = clock.monotonic()
    try:
        while open_ends:
            batch = [m for m in consumer.poll(BATCH, 0.05) if _within(m, open_ends)]
            if batch:
                yield batch
            now_at = consumer.positions(open_ends)
            seen = {TopicPartition(m.topic(), m.partition()): m.offset() for m in batch}
            done = [p for p, end in open_ends.items() if now_at[p] >= end or seen.get(p, -1) >= last_offset_before(end)]
            if batch or now_at != {p: positions[p] for p in now_at}:
                last_progress = clock.monotonic()
            positions.update(now_at)
            if done:
                consumer.unassign(done)
                for partition in done:
                    del open_ends[partition]
            elif clock.monotonic() - last_progress > patience_s:
                stuck = ", ".join(f"{p} at {positions[p]} of {end}" for p, end in open_ends.items())
                raise ClusterUnreachable(
                    f"nothing more arrived in {patience_s:.0f} s while reading {stuck}.", "Check the brokers; then run this again."
                )
    finally:
        consumer.unassign(open_ends)


def true_end(
    consumer: Consumer, partition: TopicPartition, wanted: float, clock: Clock, wait_s: float = FETCH_S
) -> Generator[bool, None, int]:
    """The end, as far as it matters whether `wanted` is reached. Where an open transaction hides it, only a fetch tells.

    In steps: each waits at most `wait_s`.

    Raises:
        ClusterUnreachable: nothing was told for 30 s.
    """
    visible = end = consumer.bounds(partition).end
    if visible >= wanted:
        return visible
    consumer.assign({partition: visible})
    deadline = clock.monotonic() + PATIENCE_S
    try:
        while (end := consumer.high_watermark(partition)) < visible:
            if clock.monotonic() > deadline:
                raise ClusterUnreachable(f"the end of {partition} could not be read within {PATIENCE_S:.0f} s.", "Check the brokers.")
            consumer.poll(1, wait_s)
            yield False
    finally:
        consumer.unassign([partition])
    return end


def decided_bounds(consumer: Consumer, partition: TopicPartition, clock: Clock, wanted: float = inf) -> Bounds:
    """The bounds once all before `wanted` (default: all that is written now) is decided; they end before `wanted` only if the log does.

    A commit is seen in one partition a moment before it is in another. So who was told by one what is in the other waits for it here.

    Raises:
        ClusterUnreachable: a transaction was open for 30 s.
    """
    steps, goal = true_end(consumer, partition, wanted, clock), None
    while goal is None:
        try:
            next(steps)
        except StopIteration as stopped:
            goal = min(wanted, stopped.value)
    deadline = clock.monotonic() + PATIENCE_S
    while (bounds := consumer.bounds(partition)).end < goal:
        if clock.monotonic() > deadline:
            raise ClusterUnreachable(
                f"{partition}: a transaction is open at offset {bounds.end}, and has been for at least {PATIENCE_S:.0f} s; the records after it cannot be read.",
                f"Find the program that has it open: {find_program(partition.topic, partition.partition)}. Then run this again.",
            )
        clock.sleep(FETCH_S)
    return bounds


def only_deletions(consumer: Consumer, partition: TopicPartition, start: int, end: int, clock: Clock) -> bool:
    """Whether every change in [start, end) of a changelog partition is a deletion; barriers and records without a key are no changes.

    Raises:
        ClusterUnreachable: no progress for 30 s.
    """
    found = True
    for batch in read_ranges(consumer, {partition: (start, end)}, clock):
        found = found and all(m.value() is None for m in batch if m.key() not in (None, BARRIER_KEY))
    return found


def _within(message: Message, ends: Mapping[TopicPartition, int]) -> bool:
    end = ends.get(TopicPartition(message.topic(), message.partition()))
    return end is not None and message.offset() < end


# -- the coordinator topic -------------------------------------------------------------------------------------------------------------


def read_ledger(consumer: Consumer, topic: str, clock: Clock) -> Ledger:
    """The coordinator topic, folded up to the read_committed end that is fetched when this is called.

    Of each key the newest record counts: what it replaced may be anything. Where the newest one cannot be read, who asks the ledger for that
    record gets StateRefused; whoever needs others goes on.

    Raises:
        ClusterUnreachable: no progress for 30 s. TopicMissing.
    """
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    partition = TopicPartition(topic, 0)
    bounds = consumer.bounds(partition)
    for batch in read_ranges(consumer, {partition: (bounds.start, bounds.end)}, clock):
        for message in batch:
            key = message.key()
            if key is not None:
                newest[key] = message.offset(), message.value()
    ledger = Ledger(start=bounds.start)
    for key, (offset, value) in newest.items():
        _apply(ledger, topic, key, offset, value)
    return ledger


def read_lease(consumer: Consumer, topic: str, clock: Clock) -> LeaseRecord | None:
    """The newest lease alone. What else the topic holds may be unreadable: `samzapy reset`, the way out of that, asks only who is alive.

    Raises:
        StateRefused: the lease cannot be read. ClusterUnreachable, TopicMissing: as `read_ledger`.
    """
    ledger, newest, at = Ledger(), None, 0
    for batch in read_to_end(consumer, TopicPartition(topic, 0), clock):
        for message in batch:
            if message.key() == LEASE_KEY:
                newest, at = message.value(), message.offset()
    _apply(ledger, topic, LEASE_KEY, at, newest)
    return ledger.lease


def _apply(ledger: Ledger, topic: str, key: bytes, offset: int, value: bytes | None) -> None:
    try:
        ledger.apply(key, value)
    except UnreadableRecord as error:
        refusal = StateRefused(
            f"{topic} at {offset}: {error}; another samzapy version or another application wrote it.",
            "Use the version that wrote it; or stop every run of the job and delete that topic alone with `samzapy reset JOB.yaml --coordinator --execute`: "
            "state, checkpoints and inputs are kept; only repeat a `checkpoint set` that no start has carried out yet, with --reset-state if it had that.",
        )
        ledger.cannot_read(key, refusal)


# -- the checkpoint topic --------------------------------------------------------------------------------------------------------------


class NewestCheckpoints:
    """Of each partition of a checkpoint topic the newest checkpoint among the records that were taken."""

    def __init__(self) -> None:
        self._newest: dict[TopicPartition, bytes | None] = {}
        self._written_ms: dict[TopicPartition, int] = {}

    def take(self, messages: Iterable[Message]) -> None:
        """The next records, in the order of their partitions."""
        for message in messages:
            if message.key() == CHECKPOINT_KEY:
                partition = TopicPartition(message.topic(), message.partition())
                self._newest[partition], self._written_ms[partition] = message.value(), message.timestamp()[1]

    def written_ms(self, partition: TopicPartition) -> int:
        """When it was written, in milliseconds since 1970; 0: there is none."""
        return self._written_ms.get(partition, 0)

    def bytes_of(self, partition: TopicPartition) -> bytes | None:
        """As it was written; None: there is none."""
        return self._newest.get(partition)

    def of(self, partition: TopicPartition) -> Checkpoint | None:
        """The checkpoint; None: there is none.

        Raises:
            StateRefused: it cannot be read.
        """
        data = self.bytes_of(partition)
        try:
            return None if data is None else checkpoint_from_bytes(data)
        except UnreadableCheckpoint as error:
            raise StateRefused(
                f"the newest checkpoint in {partition} cannot be read: {error}.",
                "Use the samzapy version that wrote it, or run `samzapy reset JOB.yaml` to begin with empty state.",
            ) from None


def newest_checkpoints(consumer: Consumer, partitions: Collection[TopicPartition], clock: Clock) -> NewestCheckpoints:
    """The newest checkpoints in these partitions, up to their read_committed ends as they are now.

    Raises:
        ClusterUnreachable: no progress for 30 s. TopicMissing.
    """
    newest = NewestCheckpoints()
    bounds = consumer.bounds_of(partitions)
    for batch in read_ranges(consumer, {partition: (b.start, b.end) for partition, b in bounds.items()}, clock):
        newest.take(batch)
    return newest


def read_checkpoint(consumer: Consumer, partition: TopicPartition, clock: Clock) -> Checkpoint | None:
    """The newest checkpoint in this partition of a checkpoint topic.

    Raises:
        StateRefused: it cannot be read. ClusterUnreachable: no progress for 30 s. TopicMissing.
    """
    return newest_checkpoints(consumer, [partition], clock).of(partition)


def owners_known(consumer: Consumer, topic: str, partitions: int, clock: Clock) -> tuple[dict[int, tuple[str, ...]], int]:
    """The owners that a checkpoint topic names: the tasks of each container number, and the highest epoch. Unreadable records are
    ignored here: the start of their tasks refuses them.

    Raises:
        ClusterUnreachable: no progress for 30 s.
    """
    newest: dict[TopicPartition, bytes | None] = {}
    epoch = 0
    bounds = consumer.bounds_of(TopicPartition(topic, p) for p in range(partitions))
    for batch in read_ranges(consumer, {partition: (b.start, b.end) for partition, b in bounds.items()}, clock):
        for message in batch:
            if message.key() == CHECKPOINT_KEY:
                newest[TopicPartition(message.topic(), message.partition())] = message.value()
            elif message.key() == BARRIER_KEY:
                with suppress(ValueError):
                    epoch = max(epoch, barrier_from_bytes(message.value()).epoch)
    tasks: dict[int, tuple[str, ...]] = {}
    for data in newest.values():
        with suppress(UnreadableCheckpoint):
            checkpoint = checkpoint_from_bytes(data or b"")
            epoch = max(epoch, checkpoint.epoch)
            tasks[checkpoint.container] = (*tasks.get(checkpoint.container, ()), checkpoint.task)
    return tasks, epoch
