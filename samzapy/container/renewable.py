"""The consumer of a container's inputs. It can be replaced under those who hold it: one that has fallen silent, or that fetches little at a
time because the container was started after a death that may have been for want of memory.

Replacing changes what is being read, so whoever sees a reason only notes it, and the run loop replaces the consumer between two batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ports import Clock, Closing, Consumer, Message


class RenewableConsumer(Closing):
    """ports.Consumer over the newest that `make` made.

    Args:
        make: a consumer; with True, one that fetches little at a time.
        small_s: for how long, in seconds from now, it is to be one that fetches little.

    Attributes:
        stalled: why it seems to have fallen silent.
        must_grow: it has fetched little for long enough.
    """

    def __init__(self, make: Callable[[bool], Consumer], small_s: float, clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._small_until = clock.monotonic() + small_s
        self._now = self._new()

    def _new(self) -> Consumer:
        self._is_small = self._clock.monotonic() < self._small_until
        self.stalled: list[str] = []
        self.must_grow = False
        return self._make(self._is_small)

    def renew(self) -> None:
        """A new one, to which nothing is assigned, in place of the old."""
        fresh = self._new()
        old, self._now = self._now, fresh
        old.close()

    def check_size(self) -> None:
        """Whether it has fetched little for long enough."""
        self.must_grow = self._is_small and self._clock.monotonic() >= self._small_until

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self._now.assign(positions)

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        self._now.unassign(partitions)

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        self._now.seek(positions)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._now.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._now.resume(partitions)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Message]:
        return self._now.poll(max_records, timeout_s)

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._now.positions(partitions)

    def bounds(self, partition: TopicPartition) -> Bounds:
        return self._now.bounds(partition)

    def bounds_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        return self._now.bounds_of(partitions)

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._now.high_watermark(partition)

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int:
        return self._now.offset_for_time(partition, timestamp_ms)

    def mirror(self, positions: Mapping[TopicPartition, int]) -> None:
        self._now.mirror(positions)

    def close(self) -> None:
        self._now.close()
