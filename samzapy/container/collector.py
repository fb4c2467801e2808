"""What hooks send, held until the hook has returned and then until the next release: the producer is given records by the batch. What a
hook sent that raised is dropped."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from samzapy.api.envelope import Headers, HeadersToSend, OutgoingMessageEnvelope, SystemStream
from samzapy.api.errors import RecordTooLarge, TaskError, UnknownOutput, other_thread, shortened
from samzapy.container.spec import OutputSpec
from samzapy.model.murmur2 import murmur2
from samzapy.model.names import KAFKA
from samzapy.ports import Outgoing

RECORD_OVERHEAD_BYTES = 100  # batch header, record header and varints, rounded up
SendAll = Callable[[Sequence[Outgoing]], None]
ENVELOPE: Any = object()  # in place of a message: an envelope is sent, which has its own
_Output = tuple[OutputSpec, Callable[[Any], bytes], Callable[[Any], bytes], int]  # with its serdes' encode, and its limit in bytes


class Collector:
    """The collector of a container's hooks. `pending` holds what is to be released; up to `_kept` its hooks have returned."""

    __slots__ = ("_kept", "_kept_size", "_outputs", "_size", "_thread", "pending")

    def __init__(self, outputs: Mapping[str, OutputSpec]) -> None:
        self._outputs: dict[object, _Output] = {}  # a topic is named as text, or as a stream
        for topic, o in outputs.items():
            self._outputs[topic] = self._outputs[SystemStream(KAFKA, topic)] = o, o.key_serde.encode, o.value_serde.encode, o.max_record_bytes
        self._thread = get_ident()
        self.pending: list[Outgoing] = []
        self._size = self._kept = self._kept_size = 0

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
        sent_headers: Headers | None = None
        has_options = partition is not None or partition_key is not None or timestamp is not None or headers is not None
        if type(to) is str and message is not ENVELOPE and not has_options:
            found = self._outputs.get(to)
        else:
            if message is ENVELOPE:
                envelope = _alone(to, key is not None or has_options)
            else:
                envelope = OutgoingMessageEnvelope(to, message, key, partition, partition_key, timestamp, headers)  # type: ignore[arg-type]
            found = self._outputs.get(envelope.system_stream)
            key, message, timestamp, sent_headers = envelope.key, envelope.message, envelope.timestamp, envelope.headers
            partition, partition_key = envelope.partition, envelope.partition_key
        if found is None:
            raise _unknown(to)
        output, encode_key, encode_value, limit = found
        key_bytes = None if key is None else encode_key(key)
        value = None if message is None else encode_value(message)
        size = (0 if key_bytes is None else len(key_bytes)) + (0 if value is None else len(value)) + RECORD_OVERHEAD_BYTES
        if sent_headers:
            size += sum(len(name) + len(data or b"") + 10 for name, data in sent_headers)
        if size > limit:
            raise RecordTooLarge(
                f"a record of {size} bytes for topic {output.topic}, key {shortened(key)}: the topic's limit is {limit} bytes.",
                f"Send less in one record, or raise max.message.bytes of {output.topic}.",
            )
        if partition is None:
            partition = -1 if partition_key is None else murmur2(encode_key(partition_key)) % output.partitions
        elif not 0 <= partition < output.partitions:
            raise TaskError(
                f"a record for partition {partition} of {output.topic}, which has {output.partitions}.", "Partitions count from 0."
            )
        self._size += size
        self.pending.append((output.topic, value, key_bytes, partition, timestamp or 0, sent_headers))

    def keep(self) -> int:
        """The hook returned: its records will be released. Returns how many records wait now."""
        self._kept, self._kept_size = len(self.pending), self._size
        return self._kept

    def drop(self) -> None:
        """The hook raised: its records are dropped."""
        del self.pending[self._kept :]
        self._size = self._kept_size

    def release(self, send_all: SendAll) -> int:
        """Hand the records of hooks that have returned to the producer, in order. Returns their bytes."""
        send_all(self.pending)
        size = self._size
        self.clear()
        return size

    def clear(self) -> None:
        """Drop all waiting records."""
        self.pending.clear()
        self._size = self._kept = self._kept_size = 0


def _alone(to: Any, has_more: bool) -> OutgoingMessageEnvelope:
    """The envelope that was given without a message; `has_more`: something else was given beside it."""
    if not isinstance(to, OutgoingMessageEnvelope):
        raise TypeError(f"send takes a topic and a message, or an OutgoingMessageEnvelope(topic, message, key=…), not {shortened(to)} alone")
    if has_more:
        raise TypeError("send takes nothing beside an envelope: key, partition, timestamp and headers are given to the envelope")
    return to


def _unknown(to: OutgoingMessageEnvelope | str) -> UnknownOutput:
    named = to.system_stream if isinstance(to, OutgoingMessageEnvelope) else to
    system, stream = named if isinstance(named, SystemStream) else (KAFKA, named)
    if system != KAFKA:
        return UnknownOutput(f"a send to {system}.{stream}: there is no system {system!r}.", f'Use SystemStream("{KAFKA}", …).')
    return UnknownOutput(
        f"a send to topic {stream}, which the job file does not list.", f"Add `- {{topic: {stream}}}` with its serdes under `outputs:`."
    )
