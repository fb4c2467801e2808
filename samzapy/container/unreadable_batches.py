"""A batch of an input that cannot be read: `on_error` applies to it as to one record that cannot be decoded."""

from __future__ import annotations

from samzapy.api.errors import BatchUnreadable
from samzapy.container.commit_due import RECORD
from samzapy.container.commits import Commits
from samzapy.container.inputs import Inputs
from samzapy.container.on_error import GivenUpRecords
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


def skip_unreadable(batch: BatchUnreadable, inputs: Inputs, given_up: GivenUpRecords, commits: Commits) -> None:
    """Go on after the batch, which is counted as skipped, or set aside without key and value, as one record.

    Raises:
        BatchUnreadable: with `on_error: fail`; all that came before it is committed.
    """
    partition = TopicPartition(batch.topic, batch.partition)
    readers = inputs.readers.get(partition, ())
    if readers and all(task_input.end is not None and task_input.end <= batch.begin for task_input in readers):
        return  # after the end of the run: nobody reads it there
    if given_up.ends_job:
        commits.commit(RECORD)
        raise batch
    for task_input in readers:
        if task_input.resume_at < batch.end:
            given_up.apply_on_error(task_input, Unread(batch), batch, 1)
    inputs.go_on(partition, batch.end)
