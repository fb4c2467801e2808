"""What goes into a task and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Headers = Sequence[tuple[str, bytes | None]]


class SystemStream(NamedTuple):
    """A stream of a system: `SystemStream("kafka", "page-views")` is the Kafka topic `page-views`."""

    system: str
    stream: str


class SystemStreamPartition(NamedTuple):
    """One partition of a stream. Prints as `kafka.page-views.0`."""

    system: str
    stream: str
    partition: int

    def __str__(self) -> str:
        return f"{self.system}.{self.stream}.{self.partition}"


class IncomingMessageEnvelope:
    """One record as a task sees it.

    Attributes:
        key: the key, decoded by the input's key serde; None where the record has none.
        message: the value, decoded by the input's value serde; None for a tombstone.
        system_stream_partition: where it came from.
    """

    __slots__ = ("_record", "key", "message", "system_stream_partition")

    def __init__(self, key: Any, message: Any, system_stream_partition: SystemStreamPartition, record: Any) -> None:
        self.key = key
        self.message = message
        self.system_stream_partition = system_stream_partition
        self._record = record

    @property
    def offset(self) -> int:
        """The record's offset in its partition."""
        return self._record.offset()  # type: ignore[no-any-return]

    @property
    def timestamp(self) -> int:
        """The record's timestamp in milliseconds since 1970, as the topic keeps it (create or append time)."""
        return self._record.timestamp()[1]  # type: ignore[no-any-return]

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The record's headers, in order; decoded only when asked for."""
        return self._record.headers() or []

    @property
    def system(self) -> str:
        """The system's name: `kafka`."""
        return self.system_stream_partition.system

    @property
    def stream(self) -> str:
        """The topic."""
        return self.system_stream_partition.stream

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.system_stream_partition.partition

    def __repr__(self) -> str:
        return f"IncomingMessageEnvelope({self.system_stream_partition}@{self.offset}, key={self.key!r}, message={self.message!r})"


class OutgoingMessageEnvelope:
    """One record to send.

    Args:
        system_stream: where to; its topic must be listed under `outputs`.
        message: the value, encoded by the output's value serde; None is a tombstone.
        key: the key, encoded by the output's key serde.
        partition: the partition's number; by default the hash (murmur2, as Java's clients) of the partition key or key decides.
        partition_key: decides the partition in place of the key; encoded by the key serde.
        timestamp: milliseconds since 1970; by default the time of sending.
        headers: (name, bytes) pairs.
    """

    __slots__ = ("headers", "key", "message", "partition", "partition_key", "system_stream", "timestamp")

    def __init__(
        self,
        system_stream: SystemStream,
        message: Any,
        key: Any = None,
        partition: int | None = None,
        partition_key: Any = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> None:
        self.system_stream = system_stream
        self.message = message
        self.key = key
        self.partition = partition
        self.partition_key = partition_key
        self.timestamp = timestamp
        self.headers = headers
