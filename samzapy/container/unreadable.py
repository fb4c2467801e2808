"""A batch of an input that cannot be read: `on_error` applies to it as to one record that cannot be decoded."""

from __future__ import annotations

from samzapy.api.errors import BatchUnreadable
from samzapy.container.failure import FAIL
from samzapy.container.inputs import Inputs
from samzapy.container.processing import Loop, Processing
from samzapy.model.offsets import TopicPartition


class Unread:
    """What is known of such a batch, as a record: where it begins."""

    def __init__(self, batch: BatchUnreadable) -> None:
        self._batch = batch

    def topic(self) -> str:
        return self._batch.topic

    def partition(self) -> int:
        return self._batch.partition

    def offset(self) -> int:
        return self._batch.begin

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes | None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 0, -1

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return None


def pass_by(batch: BatchUnreadable, on_error: str, inputs: Inputs, processing: Processing, loop: Loop) -> None:
    """Go on after the batch, which is counted as skipped, or set aside without key and value, as one record.

    Raises:
        BatchUnreadable: with `on_error: fail`; all that came before it is committed.
    """
    place = TopicPartition(batch.topic, batch.partition)
    if on_error == FAIL:
        loop.commit()
        raise batch
    for lane in inputs.lanes.get(place, ()):
        if lane.resume_at < batch.end:
            processing.settle(lane, Unread(batch), batch, 1)
    inputs.go_on(place, batch.end)
