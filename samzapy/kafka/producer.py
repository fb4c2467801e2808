"""ports.TransactionalProducer over confluent-kafka.

Asynchronous errors need no callback per record: measured, a record that the broker rejects puts the transaction into a state in
which `commit_transaction` demands an abort (test_a_record_that_the_broker_rejects_poisons_the_transaction_without_any_callback). An
error of `produce()` itself is not noticed by librdkafka's transaction, so this class remembers it as `_poison`
(test_a_commit_reports_success_without_the_records_that_produce_refused). Measured: after a rejection the next `produce()` fails with no
more than "erroneous state"; only the library's log then says that a record was the cause
(test_that_a_record_itself_was_refused_is_told_whatever_is_done_next). If a later version words it otherwise, the poison record is not
identified and the job stops after three aborts.

A commit whose EndTxn may still be on its way is `suspicious`: librdkafka has no KIP-890 part 2, so a delayed EndTxn would
decide the next transaction of the same producer epoch. The owner then makes a new producer. Measured (tests/recovery/test_end_txn.py): when
the connection breaks while an EndTxn waits for its response, librdkafka sends it again within some 10 ms, `commit_transaction` reports
success, and neither `error_cb` nor the duration shows it; only the library's own log does. So a commit is clean only if that log has one
request and one response without an error. If a later version words it otherwise, every commit becomes suspicious: slower, but nothing is lost.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from samzapy.api.errors import REFUSED, InDoubt, LogError, TransactionAborted
from samzapy.kafka.client import CLOSED, Looked, Settings, served
from samzapy.kafka.errors import end_error, flush_too_late, init_error, record_error, rejection, transaction_error, undelivered
from samzapy.kafka.listener import Listener
from samzapy.kafka.logins import Refusals
from samzapy.kafka.making import making
from samzapy.kafka.sending import larger_than_queue, send_all_of
from samzapy.model.key_partition import CLIENTS_PARTITIONER
from samzapy.ports import Delivered, Outgoing

Headers = Sequence[tuple[str, bytes | None]] | None

FORCED = {"acks": "all", "enable.idempotence": True, "partitioner": CLIENTS_PARTITIONER, "allow.auto.create.topics": False}
BATCH_BYTES = 1_000_000
DEFAULTS = {
    "batch.size": BATCH_BYTES,
    "queue.buffering.max.messages": 1_000_000,
    "retry.backoff.ms": 10,
    "message.max.bytes": 100_000_000,  # each topic's own limit decides, and is checked at put and send
}
TRANSACTIONAL = {"linger.ms": 20}
POLL_EVERY = 1000  # records between two polls of the delivery queue
INIT_TIMEOUT_S = 60.0
INIT_LOOK_S = 5.0  # while an init waits: seconds between two checks whether a login was refused
SUSPICIOUS_S = 1.0
FLUSH_LOOK_S = 0.2  # while a flush waits: seconds between two checks whether it can still succeed
ASKED_ONCE = ["NO_ERROR"]


class KafkaTransactionalProducer:
    """One producer of one transactional.id. `rejected` is called when Kafka refused a record, or a batch."""

    def __init__(self, settings: Settings, transactional_id: str, timeout_ms: int, rejected: Callable[[], None] = lambda: None) -> None:
        self._id = transactional_id
        self._rejected = rejected
        self._timeout_ms = timeout_ms
        self._timeout_s = timeout_ms / 1000
        self._disturbed = False
        self._poison: LogError | None = None
        self._sent = 0
        self.waited_s = 0.0
        self._is_open = False  # whether there is a transaction
        self._is_empty = True  # no record was sent in the transaction: then no request ends it
        self._timed: set[str] = set()  # topics of the transaction's records whose timestamp the task gave
        self._heard = Listener()
        self._looked = Looked()
        own = {"transactional.id": transactional_id, "client.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        self._refusals = Refusals(settings)
        callbacks = {"error_cb": self._on_error, "logger": self._heard, "debug": ",".join(filter(None, (settings.get("debug"), "eos")))}
        with making():
            self._producer = Producer({**DEFAULTS, **TRANSACTIONAL, **settings, **FORCED, **own, **callbacks})
        self._produce = self._producer.produce
        self._slow_s = min(SUSPICIOUS_S, float(settings.get("socket.timeout.ms", 60_000)) / 1000)

    def _on_error(self, error: KafkaError) -> None:
        self._disturbed = True
        self._refusals.heard(error)

    def init(self) -> None:
        deadline = time.monotonic() + INIT_TIMEOUT_S
        while True:
            try:
                served(self._producer.init_transactions, max(1.0, min(INIT_LOOK_S, deadline - time.monotonic())))
                self._refusals.forget()
                return
            except KafkaException as error:
                cause = error.args[0]
                if cause.code() == KafkaError._TIMED_OUT and time.monotonic() < deadline:
                    self._look_whether_refused()
                    continue  # the same call goes on where it was
                if not cause.retriable() or time.monotonic() >= deadline:
                    raise init_error(cause, f"init_transactions of {self._id}", self._timeout_ms) from None
                self._wait_a_little(f"init_transactions of {self._id}", 0.05)

    def _wait_a_little(self, doing: str, seconds: float) -> None:
        """Wait before the next attempt; serving the client may raise a fatal error."""
        try:
            served(self._producer.poll, seconds)
        except KafkaException as error:
            raise init_error(error.args[0], doing, self._timeout_ms) from None

    def _look_whether_refused(self) -> None:
        with contextlib.suppress(KafkaException):  # a fatal one is raised by `init` itself
            served(self._producer.poll, 0)
        refused = self._refusals.error(f"init_transactions of {self._id}")
        if refused is not None:
            raise refused from None

    def begin(self) -> None:
        self._poison, self._disturbed, self._is_empty = None, False, True
        self._heard.next_transaction()
        self._timed.clear()
        try:
            served(self._producer.begin_transaction)
        except KafkaException as error:
            raise transaction_error(error.args[0], f"begin of {self._id}") from None
        self._is_open = True

    def send(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int = -1, timestamp_ms: int = 0, headers: Headers = None,
        delivered: Delivered | None = None,
    ) -> None:  # fmt: skip
        self._is_empty = False
        was_empty = False
        while True:
            try:
                self._sent += 1
                if self._sent >= POLL_EVERY:
                    self._sent = 0
                    served(self._producer.poll, 0)
                if delivered is None and not timestamp_ms and headers is None:
                    self._produce(topic, value, key, partition)
                else:
                    self._produce_with(topic, value, key, partition, timestamp_ms, headers, delivered)
                return
            except BufferError:  # back-pressure: the queue is full
                if was_empty:
                    raise larger_than_queue(topic, value, key) from None
                was_empty = not len(self._producer)
                if not was_empty and not self._wait_for_room():
                    return
            except KafkaException as error:
                self._check_open()
                if not self._looked.again(error, self._producer, topic, partition):
                    self._poison = self._poison or record_error(error.args[0], topic, partition, key, self._timed, self._timeout_s)
                    return

    def _wait_for_room(self) -> bool:
        """Whether it is worth trying again: after a fatal error nothing leaves the queue any more."""
        began = time.monotonic()
        try:
            served(self._producer.poll, 0.1)
        except KafkaException as error:
            self._poison = self._poison or transaction_error(error.args[0], f"sending with {self._id}", timed=self._timed)
            return False
        self.waited_s += time.monotonic() - began
        return True

    def _check_open(self) -> None:
        if not self._is_open:
            raise InDoubt(f"producer {self._id}: no transaction is open.", "Call begin first.")

    def send_all(self, records: Sequence[Outgoing]) -> None:
        self._is_empty = self._is_empty and not records
        send_all_of(self._produce, self.send, records, self._timed)
        self._sent += len(records)
        if self._sent < POLL_EVERY:  # `flush` serves what is left
            return
        self._sent = 0
        try:
            served(self._producer.poll, 0)
        except KafkaException as error:
            self._poison = self._poison or transaction_error(error.args[0], f"sending with {self._id}", timed=self._timed)

    def _produce_with(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int, timestamp_ms: int, headers: Headers,
        delivered: Delivered | None,
    ) -> None:  # fmt: skip
        if timestamp_ms:
            self._timed.add(topic)
        reported = None if delivered is None else self._reporting(delivered)
        self._produce(topic, value, key, partition, reported, None, timestamp_ms, list(headers) if headers else None)

    def _reporting(self, delivered: Delivered) -> Callable[[KafkaError | None, Any], None]:
        def on_delivery(error: KafkaError | None, message: Any) -> None:
            if error is None:
                delivered(message.offset())
            else:
                found = record_error(error, message.topic(), message.partition(), message.key(), self._timed, self._timeout_s)
                self._poison = self._poison or found

        return on_delivery

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        try:
            yield
        except REFUSED:
            self._rejected()
            raise

    def flush(self) -> None:
        self._check_open()
        with self._listening():
            self._flush()

    def _flush(self) -> None:
        # Flush in short steps: once a record was refused, the rest of the queue is never sent, so a single flush would wait until the
        # timeout (measured: test_records_queued_after_a_refused_record_are_not_waited_for). `failed` comes from the library's log.
        deadline = time.monotonic() + self._timeout_s
        try:
            while served(self._producer.flush, max(0.0, min(FLUSH_LOOK_S, deadline - time.monotonic()))) and not self._heard.failed:
                if time.monotonic() >= deadline:
                    doing = f"flush of {self._id}"
                    raise flush_too_late(doing, self._timeout_s, self._refusals.error(doing))
        except KafkaException as error:  # a fatal error of the client is raised by any call that serves its events
            raise transaction_error(error.args[0], f"flush of {self._id}", timed=self._timed) from None

        # A refused record first: only the library's log says that a record was the cause, later errors just say "erroneous state".
        if self._heard.rejected:
            raise self._heard_rejection()
        self._raise_poison()
        if self._heard.failed:  # records that are still on their way belong to it: nobody may take them for written
            raise undelivered(TransactionAborted(f"{self._id}: {self._heard.failed}.", ""), None, self._forbidden())
        self._refusals.forget()

    def _raise_poison(self) -> None:
        if self._poison is None:
            return
        with contextlib.suppress(KafkaException):  # serve the log first; an error that this raises comes after the poison and says less
            served(self._producer.poll, 0)
        rejected = self._heard_rejection() if self._heard.rejected else None
        raise undelivered(self._poison, rejected, self._forbidden())

    def _forbidden(self) -> str:
        return f"{self._id}: {self._heard.forbidden}" if self._heard.forbidden else ""

    def _heard_rejection(self) -> TransactionAborted:
        heard = self._heard
        return rejection(f"{self._id}: {heard.rejected}", heard.rejected_name, heard.rejected_topic, self._timed)

    def commit(self) -> bool:
        self._check_open()
        with self._listening():
            self._raise_poison()
            self._heard.end_txn.clear()
            quick = self._decide("commit", self._producer.commit_transaction)
        return quick and self._heard.end_txn == ([] if self._is_empty else ASKED_ONCE)

    def abort(self) -> bool:
        """Never clean: measured, after an abort that followed a rejected record the next transaction of the same producer fails with
        skipped sequence numbers (test_a_producer_whose_record_was_refused_leaves_a_gap_that_fails_its_next_transaction)."""
        self._check_open()
        self._decide("abort", self._producer.abort_transaction)
        return False

    def _decide(self, doing: str, call: Callable[[float], Any]) -> bool:
        started = time.monotonic()
        retried = False
        while True:
            try:
                served(call, self._timeout_s)
                break
            except KafkaException as error:
                cause = error.args[0]
                if not cause.retriable() or time.monotonic() - started >= self._timeout_s:
                    is_known = bool(self._heard.rejected or self._heard.forbidden or self._poison is not None)
                    raise end_error(cause, f"{doing} of {self._id}", self._timed, self._timeout_s, is_known) from None
                retried = True
                self._wait_a_little(f"{doing} of {self._id}", 0.02)
        self._is_open = False
        took_s = time.monotonic() - started
        try:
            served(self._producer.poll, 0)  # serve the log up to now: it decides whether the commit is clean
        except KafkaException:  # a fatal error, after the decision: the decision is valid, this producer is not
            return False
        return not (retried or self._disturbed or took_s >= self._slow_s)

    def close(self) -> None:
        """Drop queued records and decide nothing; librdkafka's threads end with the object."""
        with contextlib.suppress(KafkaException):  # it may be fenced; it is closed in any case
            if self._producer is not CLOSED:
                served(lambda: self._producer.purge(in_queue=True, in_flight=True, blocking=False))
                served(self._producer.poll, 0)
        self._is_open = False
        self._produce, self._producer = CLOSED.produce, CLOSED
