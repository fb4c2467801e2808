"""What hooks send, held until the hook has returned and then until the next release: the producer is given records by the batch. What a
hook sent that raised is dropped."""

from __future__ import annotations

import logging
from _thread import get_ident
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from samzapy.api.envelope import LAST_TIME, Headers, HeadersToSend, OutgoingMessageEnvelope, SystemStream
from samzapy.api.errors import RecordTooLarge, TaskError, UnknownOutput, other_thread, shortened
from samzapy.container.spec import OutputSpec
from samzapy.model.event_time import as_utc
from samzapy.model.key_partition import partition_of_key
from samzapy.model.names import KAFKA
from samzapy.native import hot_path
from samzapy.ports import Outgoing

LOG = logging.getLogger("samzapy.container")
TOPIC = itemgetter(0)  # of an Outgoing
RECORD_OVERHEAD_BYTES = 100  # batch header, record header and varints, rounded up
SendAll = Callable[[Sequence[Outgoing]], None]
ENVELOPE: Any = object()  # in place of a message: an envelope is sent, which has its own
# Its topic, its key serde's `quick_encode` or `encode`, its value serde's `encode`, and its limit in bytes.
_Output = tuple[OutputSpec, str, Callable[[Any], bytes], Callable[[Any], bytes], int]


class Collector:
    """The collector of a container's hooks.

    Attributes:
        pending: what is to be released; the same list for ever.
        sent: records handed to the producer, by topic, since the container was made.
        kept: how many of them are of hooks that have returned. The hot loop writes it: a hook returned, its records will be released.
    """

    __slots__ = ("_keeps_from", "_only", "_outputs", "_size", "_thread", "kept", "pending", "sent")

    def __init__(self, outputs: Mapping[str, OutputSpec]) -> None:
        self._outputs: dict[object, _Output] = {}  # a topic is named as text, or as a stream
        for topic, o in outputs.items():
            quick_key = getattr(o.key_serde, "quick_encode", o.key_serde.encode)
            self._outputs[topic] = self._outputs[SystemStream(KAFKA, topic)] = o, o.topic, quick_key, o.value_serde.encode, o.max_record_bytes
        self._thread = get_ident()
        self._keeps_from = {topic: o.keeps_from_ms for topic, o in outputs.items()}
        self._only = next(iter(outputs)) if len(outputs) == 1 else ""
        self.sent: Counter[str] = Counter()
        self.pending: list[Outgoing] = []
        self._size = self.kept = 0

    def send(
        self,
        to: OutgoingMessageEnvelope | str,
        message: Any = ENVELOPE,
        /,
        key: Any = None,
        *,
        partition: int | None = None,
        partition_key: Any = None,
        timestamp: int | None = None,
        headers: HeadersToSend | None = None,
    ) -> None:
        """Encode, check, and hold until the hook returns."""
        if get_ident() != self._thread:
            raise TaskError(*other_thread("collector.send()"))
        has_options = partition is not None or partition_key is not None or headers is not None
        if message is ENVELOPE:
            self._send_envelope(_alone(to, key is not None or timestamp is not None or has_options))
            return
        if has_options or type(to) is not str or (timestamp is not None and (type(timestamp) is not int or not 0 < timestamp <= LAST_TIME)):
            self._send_envelope(OutgoingMessageEnvelope(to, message, key, partition, partition_key, timestamp, headers))  # type: ignore[arg-type]
            return
        found = self._outputs.get(to)
        if found is None:
            raise _unknown(to)
        output, topic, quick_key, encode_value, limit = found
        if key is None:
            key_bytes, size = None, RECORD_OVERHEAD_BYTES
        else:
            try:
                key_bytes = quick_key(key)
            except (TypeError, ValueError):  # the careful one says what is wrong, or takes it all the same
                key_bytes = output.key_serde.encode(key)
            size = len(key_bytes) + RECORD_OVERHEAD_BYTES
        if message is None:
            value = None
        else:
            value = encode_value(message)
            size += len(value)
        if size > limit:
            raise _too_large(output, size, key)
        self._size += size
        self.pending.append((topic, value, key_bytes, -1, timestamp or 0, None))

    def _send_envelope(self, envelope: OutgoingMessageEnvelope) -> None:
        found = self._outputs.get(envelope.system_stream)
        if found is None:
            raise _unknown(envelope)
        output, topic, _, encode_value, limit = found
        encode_key, key, partition = output.key_serde.encode, envelope.key, envelope.partition
        key_bytes = None if key is None else encode_key(key)
        value = None if envelope.message is None else encode_value(envelope.message)
        size = _size(value, key_bytes, envelope.headers)
        if size > limit:
            raise _too_large(output, size, key)
        if partition is None:
            partition = -1 if envelope.partition_key is None else partition_of_key(encode_key(envelope.partition_key), output.partitions)
        elif not 0 <= partition < output.partitions:
            raise TaskError(f"a record for partition {partition} of {topic}, which has {output.partitions} partitions.", "Partitions count from 0.")
        self._size += size
        self.pending.append((topic, value, key_bytes, partition, envelope.timestamp or 0, envelope.headers))

    def send_bytes(self, topic: str, value: bytes, key: bytes, time: int, headers: list[tuple[str, bytes | None]], share: int = 1) -> None:
        """A record that is encoded already; its key chooses the partition. `share`: it may have this part of the topic's limit, one in so many.

        Raises:
            RecordTooLarge: the topic does not take it, or it is more than its share.
        """
        output, _, _, _, limit = self._outputs[topic]
        size = _size(value, key, headers)
        if size > limit:
            raise _too_large(output, size, key)
        if size > limit // share:
            raise RecordTooLarge(f"a record of {size} bytes for topic {topic} is more than 1/{share} of the topic's limit of {limit} bytes.", "")
        self._size += size
        self.pending.append((topic, value, key, -1, time, headers))

    def keep(self) -> None:
        """The hook returned: its records will be released."""
        self.kept = len(self.pending)

    def drop(self) -> None:
        """The hook raised: its records are dropped."""
        self._size -= sum(_size(value, key, headers) for _, value, key, _, _, headers in self.pending[self.kept :])
        del self.pending[self.kept :]

    def release(self, send_all: SendAll) -> int:
        """Hand the records of hooks that have returned to the producer, in order. Returns their bytes."""
        topic, _, _, _, timestamp, _ = self.pending[0] if self.pending else ("", None, None, 0, 0, None)  # one of each batch is looked at
        if 0 < timestamp < self._keeps_from[topic]:
            self._tell_of_old_times(topic, timestamp)
        send_all(self.pending)
        if self._only:
            self.sent[self._only] += len(self.pending)
        else:
            self.sent.update(map(TOPIC, self.pending))
        size = self._size
        self.clear()
        return size

    def take(self, topics: Collection[str]) -> list[Outgoing]:
        """The records for these topics, which are released in another way, in order; all hooks have returned."""
        taken = [record for record in self.pending if record[0] in topics]
        if taken:
            self.sent.update(map(TOPIC, taken))
            self.pending[:] = [record for record in self.pending if record[0] not in topics]
            self.kept = len(self.pending)
        return taken

    def _tell_of_old_times(self, topic: str, timestamp: int) -> None:
        """Once: Kafka takes such records, and deletes them some minutes later."""
        self._keeps_from[topic] = 0
        LOG.warning(
            "records for topic %s have timestamps such as %s, which are older than its retention.ms: Kafka deletes them within minutes. "
            "With Kafka's own tools, set retention.ms=-1 for it, which keeps all its records; or send them with the time of sending "
            "(`.to(…, timestamps=\"send\")` in a program)",
            topic,
            as_utc(timestamp),
        )

    def clear(self) -> None:
        """Drop all waiting records."""
        self.pending.clear()
        self._size = self.kept = 0


def _size(value: bytes | None, key: bytes | None, headers: Headers | None) -> int:
    """Bytes of a record in its topic, rounded up."""
    size = (0 if key is None else len(key)) + (0 if value is None else len(value)) + RECORD_OVERHEAD_BYTES
    for name, data in headers or ():
        size += len(name) + len(data or b"") + 10
    return size


def _too_large(output: OutputSpec, size: int, key: Any) -> RecordTooLarge:
    return RecordTooLarge(
        f"a record of {size} bytes for topic {output.topic}, key {shortened(key)}: the topic's limit is {output.max_record_bytes} bytes.",
        f"Send less in one record, or raise max.message.bytes of {output.topic}.",
    )


def _alone(to: Any, has_more: bool) -> OutgoingMessageEnvelope:
    """The envelope that was given without a message; `has_more`: something else was given beside it."""
    if not isinstance(to, OutgoingMessageEnvelope):
        raise TypeError(f"send takes a topic and a message, or an OutgoingMessageEnvelope(topic, message, key=…), not {shortened(to)} alone")
    if has_more:
        raise TypeError("send takes nothing besides an envelope: give key, partition, timestamp and headers to the envelope")
    return to


def _unknown(to: OutgoingMessageEnvelope | str) -> UnknownOutput:
    named = to.system_stream if isinstance(to, OutgoingMessageEnvelope) else to
    system, stream = named if isinstance(named, SystemStream) else (KAFKA, named)
    if system != KAFKA:
        return UnknownOutput(f"a send to {system}.{stream}: there is no system {system!r}.", f'Use SystemStream("{KAFKA}", …).')
    return UnknownOutput(
        f"a send to topic {stream}, which the job file does not list.", f"Add `- {{topic: {stream}}}` with its serdes under `outputs:`."
    )


if hot_path is not None:
    Collector.send = hot_path.Send(Collector, Collector.send, ENVELOPE, RECORD_OVERHEAD_BYTES)  # type: ignore[method-assign]
