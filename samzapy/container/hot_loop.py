"""The hot loop: records of one partition, in a row, given to their task. Nothing is done per record that can be done per run of records.

There are two, which do the same: this one, and one in C (samzapy/native/hot_path.c), which is used where it was built.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from samzapy.container.collector import Collector
from samzapy.container.envelopes import RecordEnvelope
from samzapy.container.failure import refuse_returned
from samzapy.container.requests import Requests
from samzapy.container.task_instance import TaskInput
from samzapy.native import hot_path
from samzapy.ports import Clock, Message

RELEASE_RECORDS = 1000  # records that hooks have sent: then they are handed to the producer


class HotLoop(Protocol):
    """Gives records to a task, from `begin` on, until one is of another partition, one fails, or something may be due between two records: a hook asked
    for something, much waits to be sent, or it is `look_at`, in monotonic seconds. Returns the index after the last one.

    What a record's hook put and sent is kept when the hook has returned. If one raises, or a serde does, that is raised here.

    Attributes:
        index: of the record under way, also while it fails.
    """

    @property
    def index(self) -> int: ...

    def __call__(self, task_input: TaskInput, batch: list[Message], begin: int, end: int, look_at: float) -> int: ...


class PythonHotLoop:
    """The loop in Python."""

    __slots__ = ("_collector", "_now", "_requests", "index")

    def __init__(self, collector: Collector, requests: Requests, clock: Clock) -> None:
        self._collector, self._requests, self._now = collector, requests, clock.monotonic
        self.index = 0

    def __call__(self, task_input: TaskInput, batch: list[Message], begin: int, end: int, look_at: float) -> int:
        collector, requests, now, pending, make_envelope = self._collector, self._requests, self._now, self._collector.pending, RecordEnvelope
        process, ssp, decode_key, decode_value = task_input.process, task_input.ssp, task_input.decode_key, task_input.decode_value
        marks = [(store.writes, store.scans, store.keep) for store in task_input.stores]
        topic, partition = batch[begin].topic(), batch[begin].partition()
        for index, message in enumerate(batch[begin:end], begin):
            if message.partition() != partition or message.topic() != topic:
                return index
            self.index = index
            key, value = message.key(), message.value()
            returned = process(
                make_envelope(None if key is None else decode_key(key), None if value is None else decode_value(value), ssp, message),
                collector,
                requests,
            )
            if returned is not None:
                refuse_returned("process", returned)
            for writes, scans, keep in marks:  # as `task.keep`, without a call where no store was scanned
                if scans:
                    keep()
                else:
                    writes.clear()
            collector.kept = kept = len(pending)
            task_input.processed += 1
            if requests.pending or kept >= RELEASE_RECORDS or now() >= look_at:
                return index + 1
        return end


def hot_loop(collector: Collector, requests: Requests, clock: Clock) -> HotLoop:
    """The loop in C, or else the one in Python."""
    if hot_path is None:
        return PythonHotLoop(collector, requests, clock)
    now = clock.monotonic
    compiled: HotLoop = hot_path.HotLoop(collector, requests, now, now is time.monotonic, RecordEnvelope, refuse_returned, RELEASE_RECORDS)
    return compiled


def in_a_row(batch: Sequence[Message], begin: int, end: int) -> Sequence[Message]:
    """The records from `begin` on that are of the same partition, up to `end`."""
    return batch[begin : end_of_row(batch, begin, end)]


def end_of_row(batch: Sequence[Message], begin: int, end: int) -> int:
    """The index after these records."""
    if hot_path is not None and type(batch) is list:
        return hot_path.in_a_row(batch, begin, end)  # type: ignore[no-any-return]
    topic, partition = batch[begin].topic(), batch[begin].partition()
    for index in range(begin + 1, min(end, len(batch))):
        if batch[index].partition() != partition or batch[index].topic() != topic:
            return index
    return min(end, len(batch))
