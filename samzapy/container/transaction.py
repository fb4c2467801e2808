"""What the container's open transaction holds: one value, which the hot loop, the commit, the roll back and the poison-record search all use.

Between two records this is exact, whoever asks: the records of the batch under way whose effects are in the transaction, those of batches
before it, the condemned records that were skipped in it, the bytes that went to the producer, and whether window() has run in it. So whoever
commits between two records (a duty, a hook's request, a record that is given up) commits exactly what came before that point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from samzapy.container.failure import origin_of
from samzapy.model.dead_letter import Origin
from samzapy.model.offsets import TopicPartition
from samzapy.model.transaction_contents import Contents
from samzapy.ports import Message


class Transaction:
    """The open transaction, and how far the batch under way is processed.

    Attributes:
        is_open: whether the producer has begun a transaction that is not decided; barriers and first checkpoints have theirs, too.
        next_index: of the first record of the batch that is not processed.
        is_shared: one of several tasks is done with the record at `next_index`, and its effects are held.
        sent_bytes: what hooks sent and was handed to the producer, in bytes.
        skipped: condemned records that `on_error` was applied to.
        has_window: whether window() has run.
        waited_s: how long the loop waited for brokers: for room in the producer's queue, and in its commit.
    """

    __slots__ = ("_batch", "_before_batch", "_first_index", "has_window", "is_open", "is_shared", "next_index", "sent_bytes", "skipped", "waited_s")

    def __init__(self) -> None:
        self.is_open = False
        self._batch: Sequence[Message] = ()
        self.next_index = 0
        self.is_shared = False
        self._before_batch = 0  # records of earlier batches
        self._first_index = 0  # of the first record of this batch that is in the transaction
        self._empty()

    @property
    def records(self) -> int:
        """How many records' effects it holds."""
        return self._before_batch + max(0, self.next_index - self._first_index) + self.is_shared

    @property
    def last(self) -> Message | None:
        """The last record of this batch whose effects it holds."""
        at = self.next_index if self.is_shared else self.next_index - 1
        return self._batch[at] if at >= self._first_index else None

    @property
    def unprocessed(self) -> Sequence[Message]:
        """The records of the batch that are still to come."""
        return self._batch[self.next_index :]

    def contents(self, ends: Mapping[TopicPartition, int] = MappingProxyType({})) -> Contents:
        """All of it, for the decision that is made now. `ends`: of each partition of which it holds records, the next offset."""
        last = self.last
        return Contents(self.records, None if last is None else origin_of(last), frozenset(self.skipped), self.has_window, self.waited_s, ends)

    def begin_batch(self, batch: Sequence[Message]) -> None:
        """These records are processed next."""
        self._batch, self.next_index, self._first_index, self.is_shared = batch, 0, 0, False

    def end_batch(self) -> None:
        """All of the batch is processed; its effects stay here until they are committed."""
        self._before_batch = self.records
        self.begin_batch(())

    def committed(self) -> None:
        """What comes now is in the next transaction; the batch goes on."""
        self._before_batch, self._first_index, self.is_shared = 0, self.next_index, False
        self._empty()

    def forget(self) -> None:
        """Nothing of it will be seen, and the batch is given up."""
        self.begin_batch(())
        self._before_batch = 0
        self._empty()

    def _empty(self) -> None:
        self.sent_bytes = 0
        self.skipped: set[Origin] = set()
        self.has_window = False
        self.waited_s = 0.0
