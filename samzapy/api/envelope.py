"""The records that a task receives and sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Generic, NamedTuple

from samzapy.api.errors import SerdeError
from samzapy.api.type_variables import K, V

Headers = Sequence[tuple[str, bytes | None]]
HeadersToSend = Sequence[tuple[str, bytes | str | None]] | Mapping[str, bytes | str | None]

LAST_TIME = (1 << 63) - 1  # of a record, in milliseconds since 1970


def headers_of(record: Any) -> list[tuple[str, bytes | None]]:
    """The headers of a record of the Kafka client, as (name, value) pairs in order; [] if it has none.

    Raises:
        SerdeError: a header's name is not UTF-8. Kafka accepts any bytes as a name, but the client then returns none of the record's headers.
    """
    try:
        return record.headers() or []
    except (SystemError, UnicodeDecodeError) as error:  # what the client's C code leaves behind
        raise SerdeError(
            f"the headers of {record.topic()}[{record.partition()}]@{record.offset()} cannot be read: the name of one is not UTF-8.",
            "Correct the producer that writes that header. A task that does not read the headers is not affected.",
        ) from error


class SystemStream(NamedTuple):
    """A stream of a system, as in Apache Samza: `SystemStream("kafka", "page-views")` is the Kafka topic `page-views`. The only system is "kafka"."""

    system: str
    stream: str


class SystemStreamPartition(NamedTuple):
    """One partition of a stream. Prints as `kafka.page-views.0`."""

    system: str
    stream: str
    partition: int

    def __str__(self) -> str:
        return f"{self.system}.{self.stream}.{self.partition}"


class IncomingMessageEnvelope(Generic[K, V]):
    """One record as a task sees it. `IncomingMessageEnvelope[str, int]` tells a type checker that keys are str and messages int.

    Attributes:
        key: the key, decoded by the input's key serde; None where the record has none.
        message: the value, decoded by the input's value serde; None for a tombstone.
        system_stream_partition: the topic and partition that it was read from.
    """

    __slots__ = ()

    key: K
    message: V
    system_stream_partition: SystemStreamPartition
    _record: Any

    @property
    def offset(self) -> int:
        """The record's offset in its partition."""
        return self._record.offset()  # type: ignore[no-any-return]

    @property
    def timestamp(self) -> int:
        """The record's Kafka timestamp in milliseconds since 1970: when it was created or appended, by the topic's `message.timestamp.type`; -1 if it has none."""
        return self._record.timestamp()[1]  # type: ignore[no-any-return]

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The record's headers as (name, value) pairs, in order. Each access decodes them again.

        Raises:
            SerdeError: a header's name is not UTF-8, so the client cannot read them.
        """
        return headers_of(self._record)

    @property
    def system(self) -> str:
        """The system's name: `kafka`."""
        return self.system_stream_partition.system

    @property
    def stream(self) -> str:
        """The topic."""
        return self.system_stream_partition.stream

    @property
    def topic(self) -> str:
        """The topic's name; the same as `stream`."""
        return self.system_stream_partition.stream

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.system_stream_partition.partition

    def __repr__(self) -> str:
        return f"IncomingMessageEnvelope({self.system_stream_partition}@{self.offset}, key={self.key!r}, message={self.message!r})"


class OutgoingMessageEnvelope:
    """One record to send. The constructor refuses arguments of a wrong type; key and message are encoded by `MessageCollector.send`.

    Args:
        system_stream: the topic, by name or as a SystemStream; it must be listed under `outputs`.
        message: the value, encoded by the output's value serde; None is a tombstone.
        key: the key, encoded by the output's key serde.
        partition: the partition's number, from 0. By default the hash of the partition key, or else of the key, chooses it (murmur2, as in Kafka's Java
            clients); a record without both goes to a partition that the client chooses.
        partition_key: chooses the partition instead of the key; encoded by the key serde, and not sent.
        timestamp: milliseconds since 1970, 1 or more (Kafka's client treats 0 as the time of sending); by default the time of sending.
        headers: (name, value) pairs, or a dict; a value is bytes, None, or text, which is sent as UTF-8.

    Raises:
        TypeError: an argument has another type.
        ValueError: a timestamp below 1 or beyond 64 bits; a header's name with NUL or half of a surrogate pair.
    """

    __slots__ = ("headers", "key", "message", "partition", "partition_key", "system_stream", "timestamp")

    def __init__(
        self,
        system_stream: SystemStream | str,
        message: Any,
        key: Any = None,
        partition: int | None = None,
        partition_key: Any = None,
        timestamp: int | None = None,
        headers: HeadersToSend | None = None,
    ) -> None:
        self.system_stream = system_stream if type(system_stream) is SystemStream else _stream(system_stream)
        self.message = message
        self.key = key
        self.partition = None if partition is None else _whole("partition", partition)
        self.partition_key = partition_key
        self.timestamp = None if timestamp is None else _time(timestamp)
        self.headers: Headers | None = None if headers is None else _pairs(headers)


def _stream(given: object) -> SystemStream:
    if isinstance(given, str):
        return SystemStream("kafka", given)
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, str) for part in given):
        return SystemStream(*given)
    raise TypeError(f'system_stream: a topic\'s name or SystemStream("kafka", topic) is needed, not {given!r}')


def _whole(what: str, given: object) -> int:
    try:
        if not isinstance(given, bool):
            return index(given)  # type: ignore[arg-type]  # that is what is tried
    except TypeError:
        pass
    raise TypeError(f"{what}: a whole number (int) is needed, not {given!r}")


def _time(given: object) -> int:
    milliseconds = _whole("timestamp, in milliseconds since 1970", given)
    if not 1 <= milliseconds <= LAST_TIME:
        raise ValueError(
            f"timestamp {milliseconds}: it must be milliseconds since 1970, from 1 to {LAST_TIME}; leave it out for the time of sending"
        )
    return milliseconds


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pairs(given: object) -> Headers:
    """The headers as the client accepts them: tuples of text and bytes."""
    if isinstance(given, Mapping):
        given = list(given.items())
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise TypeError(f"headers: a list of (name, bytes) pairs or a dict is needed, not {given!r}")
    found = []
    for pair in given:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(f"headers: a (name, bytes) pair is needed, not {pair!r}")
        if "\0" in pair[0] or not _is_utf8(pair[0]):  # the client cuts the name, or ends the process
            raise ValueError(f"headers: the name {pair[0]!r} has a character that no header's name can have (NUL, or half of a surrogate pair)")
        name, value = pair
        if not (value is None or isinstance(value, bytes | str)):
            raise TypeError(f"headers: the value of {name!r} must be bytes, text or None, not {value!r}")
        if isinstance(value, str) and not _is_utf8(value):
            raise ValueError(f"headers: the value of {name!r} has half of a surrogate pair: {value!r:.100}")
        found.append((name, value.encode() if isinstance(value, str) else value))
    return found
