"""The transaction coordinator of the in-memory Kafka: a state machine over plain values that returns the markers to be written.

As Kafka's for clients without KIP-890 part 2, which librdkafka is: an epoch lasts for all transactions of one producer, so a request of an
earlier transaction that comes late is taken for one of the current transaction. What happens in a state, and what is refused, is the table
of `end` and the three lines of `init`, `add` and `time_out`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from samzapy.model.offsets import TopicPartition
from samzapy.testing.memory_partition import Answer, Refused, State


class Phase(Enum):
    """Kafka's states of a transactional.id. PREPARE: decided, markers still to be written; COMPLETE: all of them written."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARING = {Phase.PREPARE_COMMIT: Phase.COMPLETE_COMMIT, Phase.PREPARE_ABORT: Phase.COMPLETE_ABORT}
# what becomes of EndTxn(commit), and of EndTxn(abort), outside an ongoing transaction; None: done already, fine
ENDED: dict[tuple[Phase, bool], Answer | None] = {
    (Phase.EMPTY, True): Answer.INVALID_TXN_STATE,
    (Phase.EMPTY, False): Answer.INVALID_TXN_STATE,
    (Phase.PREPARE_COMMIT, True): Answer.CONCURRENT_TRANSACTIONS,
    (Phase.PREPARE_COMMIT, False): Answer.INVALID_TXN_STATE,
    (Phase.PREPARE_ABORT, True): Answer.INVALID_TXN_STATE,
    (Phase.PREPARE_ABORT, False): Answer.CONCURRENT_TRANSACTIONS,
    (Phase.COMPLETE_COMMIT, True): None,
    (Phase.COMPLETE_COMMIT, False): Answer.INVALID_TXN_STATE,
    (Phase.COMPLETE_ABORT, True): Answer.INVALID_TXN_STATE,
    (Phase.COMPLETE_ABORT, False): None,
}


class Session(NamedTuple):
    """A producer as the broker knows it; `transactional_id` is empty for one that is idempotent only."""

    transactional_id: str
    producer_id: int
    epoch: int


class Marker(NamedTuple):
    """To be written into a partition: the transaction's end."""

    session: Session
    topic_partition: TopicPartition
    state: State


@dataclass(slots=True)
class Transactional:
    """One transactional.id."""

    session: Session
    phase: Phase = Phase.EMPTY
    timeout_s: float = 60.0
    number: int = 0  # of its transactions
    partitions: dict[TopicPartition, None] = field(default_factory=dict)  # in the order of their coming: a set's order is not repeatable


class TransactionCoordinator:
    """Which transactions there are and how far each is."""

    def __init__(self) -> None:
        self._known: dict[str, Transactional] = {}
        self._producer_ids = 0

    def new_producer_id(self) -> int:
        self._producer_ids += 1
        return self._producer_ids

    def look(self, transactional_id: str) -> Transactional | None:
        return self._known.get(transactional_id)

    def init(self, transactional_id: str, timeout_s: float) -> tuple[Session | None, list[Marker]]:
        """A new epoch: (session, no markers); or, with a transaction under way, (None, the markers that abort it): ask again later."""
        known = self._known.get(transactional_id)
        if known is None:
            known = self._known[transactional_id] = Transactional(Session(transactional_id, self.new_producer_id(), -1))
        if known.phase in PREPARING:
            return None, []
        if known.phase is Phase.ONGOING:
            return None, self._fence(known)
        known.session = known.session._replace(epoch=known.session.epoch + 1)
        known.phase, known.timeout_s = Phase.EMPTY, timeout_s
        return known.session, []

    def add(self, session: Session, partition: TopicPartition) -> Transactional:
        """A partition joins the transaction; the first one begins it.

        Raises:
            Refused: fenced, or the last transaction's markers are not written yet.
        """
        known = self._alive(session, f"adding {partition} to the transaction of {session.transactional_id}")
        if known.phase in PREPARING:
            raise Refused(Answer.CONCURRENT_TRANSACTIONS, f"adding {partition} to the transaction of {session.transactional_id}")
        if known.phase is not Phase.ONGOING:
            known.phase = Phase.ONGOING
            known.number += 1
            known.partitions.clear()
        known.partitions[partition] = None
        return known

    def verify(self, session: Session, partition: TopicPartition) -> None:
        """A partition that has nothing of this producer open asks, before it takes a record, whether it is in the transaction.

        Raises:
            Refused: it is not.
        """
        known = self._alive(session, f"a record for {partition}")
        if known.phase in PREPARING:
            raise Refused(Answer.CONCURRENT_TRANSACTIONS, f"a record for {partition}")
        if known.phase is not Phase.ONGOING or partition not in known.partitions:
            raise Refused(Answer.INVALID_TXN_STATE, f"a record for {partition}")

    def end(self, session: Session, commit: bool) -> list[Marker]:
        """Commit or abort: the decision. Returns the markers to be written; none if it was decided so before.

        Raises:
            Refused: see ENDED.
        """
        doing = f"{'commit' if commit else 'abort'} of {session.transactional_id}"
        known = self._alive(session, doing)
        if known.phase is Phase.ONGOING:
            return self._decide(known, Phase.PREPARE_COMMIT if commit else Phase.PREPARE_ABORT)
        refusal = ENDED[known.phase, commit]
        if refusal is not None:
            raise Refused(refusal, doing)
        return []

    def time_out(self, transactional_id: str, number: int | None = None) -> list[Marker]:
        """The transaction of that number (or whichever there is) has been open for too long: its producer is fenced, it is aborted."""
        known = self._known.get(transactional_id)
        if known is None or known.phase is not Phase.ONGOING or number not in (None, known.number):
            return []
        return self._fence(known)

    def wrote(self, marker: Marker) -> None:
        """A marker is written; with the last one the transaction is complete."""
        known = self._known[marker.session.transactional_id]
        known.partitions.pop(marker.topic_partition, None)
        if not known.partitions and known.phase in PREPARING:
            known.phase = PREPARING[known.phase]

    def _fence(self, known: Transactional) -> list[Marker]:
        known.session = known.session._replace(epoch=known.session.epoch + 1)
        return self._decide(known, Phase.PREPARE_ABORT)

    def _decide(self, known: Transactional, phase: Phase) -> list[Marker]:
        known.phase = phase
        state = State.COMMITTED if phase is Phase.PREPARE_COMMIT else State.ABORTED
        return [Marker(known.session, partition, state) for partition in known.partitions]

    def _alive(self, session: Session, doing: str) -> Transactional:
        known = self._known.get(session.transactional_id)
        if known is None or known.session != session:
            raise Refused(Answer.PRODUCER_FENCED, doing)
        return known
