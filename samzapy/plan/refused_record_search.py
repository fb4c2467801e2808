"""The search for a poison record, with which no transaction can be committed: a state machine over plain values.

A broker that refuses a record, or demands an abort, does not say which input record caused it. So after an abort the same records are
processed again in transactions of an eighth as many (half, if the reason is not in a record), and so on. What commits is done; a record that
is alone in its transaction, when the broker refuses that for a reason in a record, is the culprit. An abort costs some ten commits (a new
producer, all records fetched again), hence the eighth. How large they are is decided in plan/transaction_size.py, which also makes them smaller where
brokers are slow: that searches for no record.

Until the records that the aborted transaction held, the suspects, are committed, the container reads nothing else, and transactions do not grow:
other partitions may bring more records than such small transactions can take, and the suspects would wait for their turn without end. After
that, two commits in a row make transactions four times as large again; the search is over when that is back where it began.

A known culprit that is read again later does not slow down other records: transactions grow in the meantime, and it is skipped when it comes.

Why it ends: every abort but of a single record makes the transactions smaller, every commit leaves fewer suspects, and three aborts at which
neither happens are the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from samzapy.api.errors import RecordRejected, SamzapyError, TimestampRefused, TransactionAborted
from samzapy.model.dead_letter import Origin
from samzapy.model.offsets import TopicPartition
from samzapy.model.transaction_contents import Contents
from samzapy.plan.on_error_policy import is_tried_again
from samzapy.plan.transaction_size import HALF, SHRINK_BY, SLOW, TransactionSize

MAX_ABORTS = 3
MAX_NAMED = 3
NOT_OF_A_RECORD = (
    "Kafka refuses something that belongs to no record: what a hook other than `process` or the end of a window sent or stored, or a mark of event time"
)
Suspects = Mapping[TopicPartition, int]  # by partition: the records before this offset


@dataclass(frozen=True, slots=True)
class Replay:
    """Read again from the checkpoint, in transactions of at most `limit` records."""

    limit: int


@dataclass(frozen=True, slots=True)
class Culprit:
    """The record alone is refused, or ended its container, so often: `on_error` applies to it."""

    record: Origin
    error: SamzapyError
    attempts: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Nothing gets on any more."""

    why: str
    is_final: bool = False  # the cause lies in what the job writes: a restart would not help


@dataclass(frozen=True, slots=True)
class NoCulprit:
    """The error stands as it is: no record is at fault, and nothing that the job does would help."""


Decision = Replay | Culprit | GiveUp | NoCulprit


class PoisonSearch:
    """How large transactions may be, and which record is to be skipped.

    Args:
        retries: how often a record that is refused is tried again.
        patience_s: how long brokers may take for a commit.
        checkpoint_topic: where no record is at fault if what is written there is refused.

    Attributes:
        size: of transactions.
        condemned: identified poison records that have not been skipped yet; of several partitions there may be several.
        suspects: what is read before all else, because one of these records is to blame; {}: nothing is.
    """

    def __init__(self, retries: int, patience_s: float = math.inf, checkpoint_topic: str = "") -> None:
        self._retries = retries
        self._patience_s = patience_s
        self._checkpoint_topic = checkpoint_topic
        self.size = TransactionSize()
        self.condemned: dict[Origin, Culprit] = {}
        self.suspects: Suspects = {}
        self._attempts: dict[Origin, int] = {}
        self._strikes = 0

    @property
    def is_on(self) -> bool:
        return self.size.is_searching

    @property
    def limit(self) -> int:
        """Records a transaction."""
        return self.size.limit

    def room(self, held: int) -> int:
        """How many more records the transaction, which holds `held`, may take."""
        return max(1, self.limit - held)

    def is_full(self, held: int) -> bool:
        return held >= self.limit

    def aborted(self, contents: Contents, error: TransactionAborted) -> Decision:
        """The transaction that held this was aborted. Where no record is at fault, none is searched for."""
        decision = self._decide(contents, error)
        self.suspects = contents.ends if isinstance(decision, Replay) and self.is_on else {}
        return decision

    def no_suspects(self) -> None:
        """They do not come any more: others are to be read."""
        self.suspects = {}

    def _decide(self, contents: Contents, error: TransactionAborted) -> Decision:
        if isinstance(error, TimestampRefused):
            return NoCulprit()  # but this host's clock
        if isinstance(error, RecordRejected) and error.topic and error.topic == self._checkpoint_topic:
            return GiveUp(f"{self._checkpoint_topic} no longer accepts checkpoints", True)
        held, last = contents.records, contents.last
        self.size = replace(self.size, good=0)
        if held == 1 and self.size.searched == 1 and last is not None and isinstance(error, RecordRejected):
            if last in contents.skipped:
                return GiveUp(f"record {last} is refused, and cannot be set aside either", True)
            attempts = self._attempts[last] = self._attempts.get(last, 0) + 1
            if is_tried_again(attempts, self._retries):
                return Replay(1)
            culprit = self.condemned[last] = Culprit(last, error, self._attempts.pop(last))
            return culprit
        if held == 0 and isinstance(error, RecordRejected):
            return GiveUp(NOT_OF_A_RECORD, True)
        if held > 1:
            if isinstance(error, RecordRejected) or not self._is_slow(contents):
                self.size = self.size.divided(held, SHRINK_BY if isinstance(error, RecordRejected) else HALF)
            else:
                self.size = self.size.failed(held, self._share(contents))
            return Replay(self.limit)
        self._strikes += 1
        if held == 1:
            self.size = self.size.divided(1, 1)
        if self._strikes >= MAX_ABORTS:
            return GiveUp(f"{MAX_ABORTS} transactions in a row were aborted without progress")
        return Replay(self.limit)

    def in_doubt(self, contents: Contents) -> None:
        """Nobody knows whether the transaction that held this was committed."""
        self.size = self.size.failed(contents.records, self._share(contents))

    def _share(self, contents: Contents) -> float:
        return contents.waited_s / self._patience_s

    def _is_slow(self, contents: Contents) -> bool:
        return self._share(contents) >= SLOW

    def condemn(self, culprits: Iterable[Culprit]) -> None:
        """These were found out before: by the coordinator, which sees which record's container dies."""
        for culprit in culprits:
            self.condemned.setdefault(culprit.record, culprit)

    def verdict(self, record: Origin, skipped: Set[Origin]) -> Culprit | None:
        """This record comes next: what was found of it. Those before it in its partition that did not come are not there any more, but those
        that the open transaction has `skipped`."""
        self.forget(r for r in self.condemned if r[:2] == record[:2] and r.offset < record.offset and r not in skipped)
        return self.condemned.get(record)

    def committed(self, contents: Contents) -> None:
        """The transaction that held this was committed."""
        for record in contents.skipped:
            self.condemned.pop(record, None)
        if not self.is_on or contents.records > 0:  # what hooks other than `process` write again after each abort is no progress
            self._strikes = 0
        self.suspects = {p: until for p, until in self.suspects.items() if contents.ends.get(p, 0) < until}
        was_on, self.size = self.is_on, self.size.committed(contents.records, self._share(contents), may_grow=not self.suspects)
        if was_on and not self.is_on:
            self._attempts.clear()

    def forget(self, records: Iterable[Origin]) -> None:
        """These are no longer ours, or not there any more."""
        for record in list(records):
            self.condemned.pop(record, None)
            self._attempts.pop(record, None)


def searched(suspects: Suspects) -> str:
    """What is said while nothing but these is read."""
    shown = ", ".join(f"{partition} before offset {until}" for partition, until in list(suspects.items())[:MAX_NAMED])
    more = f" and {len(suspects) - MAX_NAMED} more" if len(suspects) > MAX_NAMED else ""
    return f"Kafka refused a transaction: the record to blame is searched for, among those of {shown}{more}; until it is found, nothing else is read"
