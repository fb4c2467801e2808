"""The envelopes that tasks are given: structs, because one is made for each record and a struct is made in a third of the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from samzapy.api.envelope import IncomingMessageEnvelope, SystemStreamPartition
from samzapy.native import hot_path

_NOT_YET: Any = object()


class RecordEnvelope(IncomingMessageEnvelope[Any, Any], msgspec.Struct, eq=False, gc=False):
    """A record, decoded. The garbage collector does not look into it, which saves a quarter of the time to make one. So an envelope that a task
    puts into its own message is never freed; any other is."""

    key: Any
    message: Any
    system_stream_partition: SystemStreamPartition
    _record: Any


class LazyEnvelope(RecordEnvelope):
    """A record that is decoded when its key or value is first asked for."""

    _decode_key: Callable[[bytes], Any]
    _decode_value: Callable[[bytes], Any]
    _key: Any = _NOT_YET
    _message: Any = _NOT_YET

    @property  # type: ignore[misc]
    def key(self) -> Any:
        found = self._key
        if found is _NOT_YET:
            data = self._record.key()
            found = self._key = None if data is None else self._decode_key(data)
        return found

    @property  # type: ignore[misc]
    def message(self) -> Any:
        found = self._message
        if found is _NOT_YET:
            data = self._record.value()
            found = self._message = None if data is None else self._decode_value(data)
        return found


if hot_path is not None:
    hot_path.fill_envelopes(RecordEnvelope)
