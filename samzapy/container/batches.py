"""What tasks are given: envelopes of records, and for those that define `process_batch` which records at once. processing.py calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samzapy.container.envelopes import LazyEnvelope, RecordEnvelope
from samzapy.container.task_instance import TaskInput
from samzapy.native import hot_path
from samzapy.ports import Message

MAX_RECORDS = 256
CACHED_RECORDS = 128  # as many decoded records as stay in the processor's cache; a batch is larger only if its hook takes time
CACHED_S = 0.001
MAX_RAW_RECORDS = 1024  # that a program of streams takes at once, as long as that takes no time
QUICK_S = 0.005
LONG_S = 1.0  # commits, heartbeats and what was sent wait while a batch is processed


def envelopes_of(records: Sequence[Message], task_input: TaskInput) -> Sequence[Any]:
    """What `process_batch` is given. Decoding all at once takes half the time of decoding each when it is asked for; but a record that
    cannot be decoded must only fail where it is asked for. A program of streams is given the records as they are, and decodes what it needs."""
    if task_input.task.takes_raw_records:
        return records
    make, ssp, decode_key, decode_value = RecordEnvelope, task_input.ssp, task_input.decode_key, task_input.decode_value
    envelopes: list[RecordEnvelope] = []
    try:
        if hot_path is not None and type(records) is list:
            return hot_path.envelopes(records, make, ssp, decode_key, decode_value)  # type: ignore[no-any-return]
        for record in records:
            key, value = record.key(), record.value()
            envelopes.append(make(None if key is None else decode_key(key), None if value is None else decode_value(value), ssp, record))
    except Exception:  # noqa: BLE001 - whatever a serde raises is raised again where the record is asked for
        return [LazyEnvelope(None, None, ssp, record, decode_key, decode_value) for record in records]
    return envelopes


def envelope_of(record: Message, task_input: TaskInput) -> RecordEnvelope:
    """What `process` is given; the hot loop does the same without a call."""
    key, value = record.key(), record.value()
    return RecordEnvelope(
        None if key is None else task_input.decode_key(key), None if value is None else task_input.decode_value(value), task_input.ssp, record
    )


class BatchSize:
    """How many records a batch may have. It doubles while batches succeed quickly, though beyond `CACHED_RECORDS` only as long as a hook takes time for
    them, halves while one takes longer than a second, and after one that failed its records come alone until one fails alone.

    Attributes:
        limit: records.
    """

    def __init__(self) -> None:
        self.limit = 1
        self._alone = 0  # records of the batch that failed which have not come alone yet

    def succeeded(self, records: int, seconds: float, is_raw: bool = False) -> None:
        """`is_raw`: a program of streams took them, which needs them at once for no other reason than speed."""
        if self._alone:
            self._alone -= records
        elif seconds > LONG_S:
            self.limit = max(1, records // 2)
        elif seconds > QUICK_S and self.limit > MAX_RECORDS:
            self.limit = MAX_RECORDS
        elif records >= self.limit and (is_raw or records < CACHED_RECORDS or seconds >= CACHED_S):
            most = MAX_RAW_RECORDS if is_raw and seconds * 2 <= QUICK_S else max(MAX_RECORDS, self.limit)
            self.limit = min(most, self.limit * 2)
        elif records >= self.limit > CACHED_RECORDS and not is_raw:
            self.limit = CACHED_RECORDS  # as many took no time: an earlier batch was slow by chance

    def failed(self, records: int) -> None:
        self.limit = 1
        self._alone = records if records > 1 else 0


def ran(task_input: TaskInput | None, batch: Sequence[Message], first: int, end: int, since_s: float, now_s: float) -> float:
    """The records of the batch from `first` to `end`, all of one partition, were processed since then; returns the time now."""
    if task_input is not None and first < end:
        task_input.ran(now_s - since_s, batch[first], batch[end - 1])
    return now_s


def only_reader(readers: Sequence[TaskInput], message: Message) -> TaskInput | None:
    """The one task that reads the partition, if this record and those after it are new to it."""
    if len(readers) != 1 or message.offset() < readers[0].resume_at or message.offset() < readers[0].again_until:
        return None
    return readers[0]
