"""ports.TransactionalProducer and ports.PlainProducer over a MemoryCluster, as librdkafka behaves.

A send never waits: its request goes out at once if it can, else the record lies in the client until the next send, or until a flush, which
waits. `begin` asks nobody and a transaction without records asks nobody either, so a producer that was fenced learns of it from its next
request, and from then on says so at every call. A record that the broker or the client refuses is seen at the flush: it waits for the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import TypeVar

from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt, LogError, RecordRejected, TimestampRefused, TransactionAborted
from samzapy.plan.transaction_timeout import too_long
from samzapy.ports import Delivered, Outgoing
from samzapy.testing.memory_cluster import MemoryCluster
from samzapy.testing.memory_network import SLOW_S
from samzapy.testing.memory_outbox import RETRY_S, Outbox, Waiting
from samzapy.testing.memory_partition import Answer, Headers, Refused
from samzapy.testing.memory_transactions import Session

T = TypeVar("T")

INIT_TIMEOUT_S = 60.0
MAX_MESSAGE_BYTES = 100_000_000  # as the real producer's message.max.bytes: each topic's own limit decides


class MemoryTransactionalProducer:
    """One producer of one transactional.id."""

    def __init__(self, cluster: MemoryCluster, transactional_id: str, timeout_s: float = 60.0, origin: str = "") -> None:
        self._cluster = cluster
        self.waited_s = 0.0  # its queue is never full
        self._id = transactional_id
        self._timeout_s = timeout_s
        self._origin = origin
        self._outbox: Outbox | None = None
        self._is_closed = False
        self._in_transaction = False
        self._poison: LogError | None = None  # what this client refused
        self._refused: LogError | None = None  # what the broker refused
        self._timed: set[str] = set()  # topics of the transaction's records whose timestamp the task gave
        self._fenced: Fenced | None = None

    def init(self) -> None:
        if self._is_closed:
            raise InDoubt("the producer is closed.", "Make a new one.")
        if self._outbox is not None:
            raise LogError(f"init_transactions of {self._id}: it is initialised already.", "Make a new one.")
        self._faulty("init", None)
        self._fenced, self._in_transaction = None, False
        if self._timeout_s * 1000 > self._cluster.longest_transaction_ms:
            raise too_long(round(self._timeout_s * 1000))
        doing = f"init_transactions of {self._id}"
        deadline = self._cluster.clock.monotonic() + INIT_TIMEOUT_S
        try:
            session, _ = self._ask("init", doing, lambda: self._cluster.init_producer(self._id, self._timeout_s), deadline)
        except InDoubt as silence:
            raise ClusterUnreachable(f"{doing}: no answer in {INIT_TIMEOUT_S:.0f} s.", "Check that the brokers run.") from silence
        self._outbox = Outbox(self._cluster, self._origin, session)

    def begin(self) -> None:
        self._check_fenced()
        if self._in_transaction:
            raise InDoubt(f"producer {self._id}: a transaction is open already.", "")
        self._ready().next_transaction()
        self._in_transaction, self._poison, self._refused = True, None, None
        self._timed.clear()

    def send(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int = -1, timestamp_ms: int = 0, headers: Headers = None,
        delivered: Delivered | None = None,
    ) -> None:  # fmt: skip
        outbox = self._current()
        if timestamp_ms:
            self._timed.add(topic)
        if self._cluster.fault("send"):
            self._poison = LogError(f"a record for {topic} was rejected (a fault on purpose).", "")
        elif len(key or b"") + len(value or b"") > MAX_MESSAGE_BYTES:
            self._poison = RecordRejected(f"a record of {len(key or b'') + len(value or b'')} bytes for {topic}: too large.", "", topic)
        self._poison = self._poison or self._refused
        if self._poison is not None:
            return
        try:
            topic_partition = self._cluster.partition_of(topic, key, partition)
            outbox.put(topic_partition, key, value, timestamp_ms, headers, delivered)
        except LogError as error:
            self._note_refusal(outbox, error)
            if delivered is not None:  # whoever wants to know learns of it at the flush
                self._poison = error

    def send_all(self, records: Sequence[Outgoing]) -> None:
        for record in records:
            self.send(*record)

    def flush(self) -> None:
        outbox = self._current()
        self._faulty("flush", outbox)
        deadline = self._cluster.clock.monotonic() + self._timeout_s
        while outbox.waiting:
            is_awaited = any(r.delivered is not None for r in outbox.waiting)
            try:
                outbox.push()
            except LogError as error:
                self._note_refusal(outbox, error)
                if is_awaited:
                    self._poison = self._poison or error
            if outbox.waiting:
                if self._cluster.clock.monotonic() >= deadline:
                    raise InDoubt(f"flush of {self._id}: the brokers did not accept all records within {self._timeout_s:.0f} s.", "")
                self._cluster.rest(outbox.pause_s())
        outbox.report()
        self._check_fenced()
        self._check_accepted(self._poison or self._refused)

    def commit(self) -> bool:
        outbox = self._current()
        self.flush()
        fault = self._faulty("commit", outbox)
        self._check_accepted(self._refused)
        return self._end(outbox, commit=True) and fault != "suspicious"

    def abort(self) -> bool:
        """Never clean, as with the real producer."""
        outbox = self._current()
        self._faulty("abort", outbox)
        outbox.drop()
        self._check_fenced()
        self._end(outbox, commit=False)
        return False

    def close(self) -> None:
        self._outbox, self._in_transaction, self._is_closed = None, False, True

    # -- inside ------------------------------------------------------------------------------------------------------------------------

    def _end(self, outbox: Outbox, commit: bool) -> bool:
        """True: the first try was answered, and soon."""
        started = self._cluster.clock.monotonic()
        clean = True
        if outbox.asked:
            doing = f"{'commit' if commit else 'abort'} of {self._id}"
            _, clean = self._ask("end", doing, lambda: self._cluster.end_transaction(outbox.session, commit), started + self._timeout_s)
        self._in_transaction = False
        return clean and not outbox.disturbed and self._cluster.clock.monotonic() - started < SLOW_S

    def _ask(self, request: str, doing: str, action: Callable[[], T], deadline: float) -> tuple[T, bool]:
        """Ask until there is an answer. Returns it, and whether the first try brought it.

        Raises:
            InDoubt: none until the deadline. Fenced.
        """
        undisturbed = True
        while True:
            try:
                reply = self._cluster.ask(request, doing, self._origin, action)
            except Refused as refused:
                if refused.answer is not Answer.CONCURRENT_TRANSACTIONS:
                    self._fenced = Fenced(f"{doing}: {refused.message}", "")
                    raise self._fenced from None
                self._cluster.rest(RETRY_S)
            else:
                self._cluster.rest(reply.after_s)
                if reply.answers:
                    return reply.answers[0], undisturbed
                undisturbed = False
            if self._cluster.clock.monotonic() >= deadline:
                raise InDoubt(f"{doing}: no answer.", "")

    def _note_refusal(self, outbox: Outbox, error: LogError) -> None:
        outbox.drop()
        if isinstance(error, Refused) and error.answer is Answer.PRODUCER_FENCED:
            self._fenced = Fenced(f"producer {self._id}: {error.message}", "")
        self._refused = self._refused or error

    def _check_fenced(self) -> None:
        if self._fenced is not None:
            raise self._fenced

    def _check_accepted(self, refusal: LogError | None) -> None:
        if refusal is not None and _is_of_the_record(refusal):
            raise _rejection(refusal, f"producer {self._id}: {refusal.message}", self._timed)
        if refusal is not None:
            raise TransactionAborted(f"producer {self._id}: {refusal.message}", "")

    def _ready(self) -> Outbox:
        if self._outbox is None:
            raise InDoubt(f"producer {self._id}: not initialised, or closed.", "Call init first.")
        return self._outbox

    def _current(self) -> Outbox:
        if not self._in_transaction:
            raise InDoubt(f"producer {self._id}: no transaction is open.", "Call begin first.")
        return self._ready()

    def _faulty(self, call: str, outbox: Outbox | None) -> str:
        kind = self._cluster.fault(call)
        if kind == "aborted":
            raise TransactionAborted(f"{call} of {self._id} failed (a fault on purpose).", "")
        if kind == "fenced":
            raise Fenced(f"{call} of {self._id}: fenced (a fault on purpose).", "")
        if kind == "in_doubt_committed" and outbox is not None and outbox.asked:
            self._end(outbox, commit=call == "commit")
        if kind.startswith("in_doubt"):
            raise InDoubt(f"no reply to {call} of {self._id} (a fault on purpose).", "")
        return kind


def _is_of_the_record(error: LogError) -> bool:
    """Whether it would be refused again, whoever sends it."""
    return isinstance(error, RecordRejected) or (
        isinstance(error, Refused) and error.answer in (Answer.MESSAGE_TOO_LARGE, Answer.INVALID_RECORD, Answer.INVALID_TIMESTAMP)
    )


def _rejection(error: LogError, message: str, timed: Set[str]) -> TransactionAborted:
    """`timed`: topics of records whose timestamp the task gave; the others have theirs from the host's clock."""
    topic = _topic_of(error)
    if isinstance(error, Refused) and error.answer is Answer.INVALID_TIMESTAMP and topic not in timed:
        return TimestampRefused(message, "Check the clock of this host.")
    return RecordRejected(message, error.remedy, topic)


def _topic_of(error: LogError) -> str:
    return error.topic if isinstance(error, RecordRejected | Refused) else ""


class MemoryPlainProducer:
    """An idempotent producer outside transactions. A record that nobody acknowledged in time is given up, and may still arrive."""

    def __init__(self, cluster: MemoryCluster, timeout_s: float = 10.0, origin: str = "") -> None:
        self._cluster = cluster
        self.waited_s = 0.0  # its queue is never full
        self._timeout_s = timeout_s
        self._origin = origin
        self._error: LogError | None = None
        self._timed: set[str] = set()  # topics of records since the last flush whose timestamp the task gave
        self._is_closed = False
        self._outbox = self._new_outbox()

    def send(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int = -1, timestamp_ms: int = 0, headers: Headers = None
    ) -> None:
        self._check_open()
        if timestamp_ms:
            self._timed.add(topic)
        try:
            topic_partition = self._cluster.partition_of(topic, key, partition)
        except LogError as error:
            self._error = self._error or error
            return
        expires_s = self._cluster.clock.monotonic() + self._timeout_s
        self._carefully(lambda: self._outbox.put(topic_partition, key, value, timestamp_ms, headers, None, expires_s))

    def send_all(self, records: Sequence[Outgoing]) -> None:
        for record in records:
            self.send(*record)

    def poll(self) -> None:
        self._check_open()
        self._carefully(self._outbox.push)

    def flush(self) -> None:
        self._check_open()
        while self._outbox.waiting:
            self.poll()
            self._give_up_old()
            if self._outbox.waiting:
                self._cluster.rest(self._outbox.pause_s())
        self._timed.clear()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close(self) -> None:
        self._outbox.drop()
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise InDoubt("the producer is closed.", "Make a new one.")

    def _carefully(self, doing: Callable[[], None]) -> None:
        """A record that was refused leaves a gap in the sequence: the rest goes on in a new session."""
        try:
            doing()
        except LogError as error:
            is_of_the_record = _is_of_the_record(error)
            reason = _rejection(error, error.message, self._timed) if is_of_the_record else LogError(error.message, error.remedy)
            self._error = self._error or reason
            self._restart(self._outbox.waiting)

    def _give_up_old(self) -> None:
        now = self._cluster.clock.monotonic()
        late = [r for r in self._outbox.waiting if r.expires_s <= now]
        if late:
            self._error = self._error or LogError(
                f"{len(late)} records, the first for {late[0].topic_partition}: not acknowledged in {self._timeout_s:.0f} s.", ""
            )
            self._restart([r for r in self._outbox.waiting if r.expires_s > now])

    def _restart(self, waiting: Sequence[Waiting]) -> None:
        self._outbox = self._new_outbox()
        for record in waiting:
            self._outbox.queue(
                record.topic_partition, record.key, record.value, record.timestamp_ms, record.headers, None, record.expires_s
            )

    def _new_outbox(self) -> Outbox:
        return Outbox(self._cluster, self._origin, Session("", self._cluster.new_producer_id(), 0))
