"""Bounded reading of a log over the Consumer port: from a start to an end that was fixed before.

Why it ends, and ends right: a reader is done at a record at or behind the end's last offset, or when its position has reached the end
(markers and aborted records occupy offsets that no record will ever come from). It is an error, not an end, when nothing moves for
`PATIENCE_S` seconds. Deadlines are on progress, never on the total.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from math import inf

from samzapy.api.errors import ClusterUnreachable
from samzapy.model.offsets import Bounds, TopicPartition, last_offset_before
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
    """Batches of the records of several partitions, each in its own [start, end); records behind an end are left out.

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
                    f"nothing more came in {patience_s:.0f} s while reading {stuck}.", "Check the brokers; then run this again."
                )
    finally:
        consumer.unassign(open_ends)


def true_end(consumer: Consumer, place: TopicPartition, wanted: float, clock: Clock, wait_s: float = FETCH_S) -> Generator[bool, None, int]:
    """The end, as far as it matters whether `wanted` is reached. Where an open transaction hides it, only a fetch tells.

    In steps: each waits at most `wait_s`.

    Raises:
        ClusterUnreachable: nothing was told for 30 s.
    """
    visible = end = consumer.bounds(place).end
    if visible >= wanted:
        return visible
    consumer.assign({place: visible})
    deadline = clock.monotonic() + PATIENCE_S
    try:
        while (end := consumer.high_watermark(place)) < visible:
            if clock.monotonic() > deadline:
                raise ClusterUnreachable(f"the end of {place} could not be read within {PATIENCE_S:.0f} s.", "Check the brokers.")
            consumer.poll(1, wait_s)
            yield False
    finally:
        consumer.unassign([place])
    return end


def decided_bounds(consumer: Consumer, place: TopicPartition, clock: Clock, wanted: float = inf) -> Bounds:
    """The bounds once all before `wanted` (default: all that is written now) is decided; they end before `wanted` only if the log does.

    A commit is seen in one partition a moment before it is in another. So who was told by one what is in the other waits for it here.

    Raises:
        ClusterUnreachable: a transaction was open for 30 s.
    """
    steps, goal = true_end(consumer, place, wanted, clock), None
    while goal is None:
        try:
            next(steps)
        except StopIteration as told:
            goal = min(wanted, told.value)
    deadline = clock.monotonic() + PATIENCE_S
    while (bounds := consumer.bounds(place)).end < goal:
        if clock.monotonic() > deadline:
            raise ClusterUnreachable(
                f"{place}: a transaction is open at {bounds.end}, for at least {PATIENCE_S:.0f} s; the records after it cannot be read.",
                "Find out whose it is, with Kafka's own tools; then run this again.",
            )
        clock.sleep(FETCH_S)
    return bounds


def _within(message: Message, ends: Mapping[TopicPartition, int]) -> bool:
    end = ends.get(TopicPartition(message.topic(), message.partition()))
    return end is not None and message.offset() < end
