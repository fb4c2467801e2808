"""A consumer that can be replaced by a new one without its users noticing: for one that has fallen silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ports import Closing, Consumer, Message


class RenewableConsumer(Closing):
    """ports.Consumer over the newest that `make` made."""

    def __init__(self, make: Callable[[], Consumer]) -> None:
        self._make = make
        self._now = make()

    def renew(self) -> None:
        """A new one, to which nothing is assigned, in place of the old."""
        fresh = self._make()
        old, self._now = self._now, fresh
        old.close()

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
