"""The only module that adds 1 to an offset or subtracts 1.

Ranges are half-open, as in Kafka: a *next offset* is what to read next, an *end offset* is the next offset after the last readable record.
"""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a Kafka topic; prints as Kafka's tools do."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Bounds(NamedTuple):
    """The offsets of a partition for a read_committed reader: [start, end)."""

    start: int
    end: int


def next_offset(offset: int) -> int:
    """The position after the record at `offset`."""
    return offset + 1


def last_offset_before(end: int) -> int:
    """The highest offset that [0, end) contains."""
    return end - 1


def lag(end: int, position: int) -> int:
    """How many offsets are still to be read: read_committed end − next offset, never below 0."""
    return max(0, end - position)
