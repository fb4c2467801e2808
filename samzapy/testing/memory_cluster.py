"""The broker's side of Kafka in memory: topics, requests of producers, reading, cleaning, and faults on purpose.

It answers as Kafka 4 answers librdkafka (tests/contract/test_log.py runs the same probes on both). A commit is decided when its EndTxn has
returned; its markers, and so what readers see, may come later, partition by partition. Everything that depends on time goes by the clock
given; everything that goes wrong by itself is drawn from the Chance given, and without one nothing does. With a trace every request is told
in one line, so two runs can be compared.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.plan.transaction_timeout import LIMIT_AS_SHIPPED_MS
from samzapy.ports import Clock, no_leader
from samzapy.ports.log import DEFAULT_DELETE_RETENTION_MS
from samzapy.testing.memory_chance import Chance
from samzapy.testing.memory_network import EVERYBODY, MARKER, MemoryNetwork, Reply
from samzapy.testing.memory_partition import Answer, Headers, MemoryMessage, Refused
from samzapy.testing.memory_topics import MemoryTopics, Topic
from samzapy.testing.memory_transactions import Marker, Session, TransactionCoordinator

T = TypeVar("T")

DEFAULT_MAX_MESSAGE_BYTES = 1048588
DEFAULT_AFTER_MAX_MS = 3_600_000
DEFAULT_RETENTION_MS = 604_800_000
RECORD_OVERHEAD_BYTES = 70
FAULT_CALLS = ("send", "flush", "commit", "abort", "init")
FAULT_KINDS = ("aborted", "in_doubt_committed", "in_doubt_lost", "fenced", "suspicious")


class MemoryCluster(MemoryTopics):
    """The broker. Thread-safe."""

    def __init__(self, clock: Clock, chance: Chance | None = None, trace: Callable[[str], None] | None = None) -> None:
        super().__init__(chance or Chance(secrets.randbits(64)))
        self.clock = clock
        self.cluster_id = "memory"
        self.longest_transaction_ms = LIMIT_AS_SHIPPED_MS
        self.arrived = threading.Condition(self.lock)
        self.network = MemoryNetwork(clock, self.chance, trace)
        self.group_offsets: dict[str, dict[TopicPartition, int]] = {}
        self.clients_ahead_ms = 0  # how far the clocks of all clients' hosts are ahead of the brokers'
        self._transactions = TransactionCoordinator()
        self._faults: dict[str, list[str]] = {}

    # -- requests of producers -----------------------------------------------------------------------------------------------------

    def new_producer_id(self) -> int:
        with self.lock:
            return self._transactions.new_producer_id()

    def init_producer(self, transactional_id: str, timeout_s: float) -> Session:
        """InitProducerId: earlier producers of the id are fenced, and their open transaction is aborted first.

        Raises:
            Refused: that is still under way; ask again.
        """
        session, markers = self._transactions.init(transactional_id, timeout_s)
        self._send_markers(markers)
        if session is None:
            raise Refused(Answer.CONCURRENT_TRANSACTIONS, f"init_transactions of {transactional_id}")
        return session

    def add_partition(self, session: Session, partition: TopicPartition) -> None:
        """AddPartitionsToTxn; from the first one on the transaction's time runs."""
        self.partition(partition)
        known = self._transactions.add(session, partition)
        if len(known.partitions) == 1:
            number = known.number
            late_s = self.chance.seconds("timeout.late") if self.chance.happens("timeout.late") else 0.0
            self.network.later(
                known.timeout_s + late_s,
                f"timeout of transaction {number} of {session.transactional_id}",
                lambda: self._send_markers(self._transactions.time_out(session.transactional_id, number)),
            )

    def produce(
        self, session: Session, sequence: int, partition: TopicPartition, key: bytes | None, value: bytes | None, timestamp_ms: int,
        headers: Headers,
    ) -> int:  # fmt: skip
        """Take a record. Returns its offset.

        Raises:
            Refused: it may not, or not any more, be written. TopicMissing.
        """
        topic, log = self._topic(partition.topic), self.partition(partition)
        size = len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES
        if size > int(topic.config.get("max.message.bytes", DEFAULT_MAX_MESSAGE_BYTES)):
            raise Refused(Answer.MESSAGE_TOO_LARGE, f"a record of {size} bytes for {partition}")
        if key is None and topic.cleaned_by("compact"):
            raise Refused(Answer.INVALID_RECORD, f"a record for {partition}")
        now_ms = self.clock.now_ms()
        created_ms = timestamp_ms or now_ms + self.clients_ahead_ms
        if created_ms - now_ms > int(topic.config.get("message.timestamp.after.max.ms", DEFAULT_AFTER_MAX_MS)):
            at, now = (time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(ms / 1000)) for ms in (created_ms, now_ms))
            raise Refused(Answer.INVALID_TIMESTAMP, f"a record of {at} for {partition} (here it is {now}; `now=` of a Harness sets its clock)")
        transactional = session.transactional_id != ""
        if transactional and not log.has_open(session.producer_id):
            self._transactions.verify(session, partition)
        offset = log.append(session.producer_id, session.epoch, sequence, key, value, created_ms, headers, transactional)
        if not transactional:
            self.arrived.notify_all()
        return offset

    def end_transaction(self, session: Session, commit: bool) -> None:
        """EndTxn: when it returns the transaction is decided; readers learn of it by its markers.

        Raises:
            Refused.
        """
        self._send_markers(self._transactions.end(session, commit))

    def _send_markers(self, markers: Sequence[Marker]) -> None:
        for marker in markers:
            what = f"marker {marker.state.value} of {marker.session.transactional_id} for {marker.topic_partition}"
            if self.network.planned(MARKER):
                self.network.hold(MARKER, what, partial(self._write, marker))
            elif self.chance.happens("marker.late"):
                self.network.later(self.chance.seconds("marker.late"), what, partial(self._write, marker))
            else:
                self._write(marker)

    def _write(self, marker: Marker) -> None:
        partition, session = marker.topic_partition, marker.session
        topic = self._topics.get(partition.topic)
        if topic is not None and partition.partition < len(topic.partitions):
            topic.partitions[partition.partition].mark(session.producer_id, session.epoch, marker.state)
        self._transactions.wrote(marker)
        self.arrived.notify_all()

    # -- the way here --------------------------------------------------------------------------------------------------------------

    def ask(self, request: str, what: object, origin: str, action: Callable[[], T]) -> Reply[T]:
        """One try of a request that does `action`: see MemoryNetwork.carry."""
        with self.lock:
            return self.network.carry(request, what, origin, action)

    def wait(self, seconds: float) -> None:
        """Let time pass for a client that reads: on a machine's clock it is woken when something comes."""
        if seconds > 0 and self.clock.monotonic is time.monotonic:
            with self.lock:
                due = self.network.next_due()
                self.arrived.wait(seconds if due is None else max(0.0, min(seconds, due - time.monotonic())))
        else:
            self.rest(seconds)

    def rest(self, seconds: float) -> None:
        """Let all of that time pass; nobody is kept from the cluster meanwhile."""
        if seconds > 0:
            self.clock.sleep(seconds)

    def run_due(self) -> None:
        """Do what is due by now; any request does so too."""
        with self.lock:
            self.network.run_due()

    def next_due(self) -> float | None:
        """When the next thing will happen by itself, on the clock's monotonic scale: how far a scheduler may jump."""
        with self.lock:
            return self.network.next_due()

    # -- faults on purpose ---------------------------------------------------------------------------------------------------------

    def fail_next(self, call: str, kind: str) -> None:
        """The next `call` (send, flush, commit, abort, init) of a transactional producer goes wrong for its caller.

        Kinds: `aborted` (must be aborted), `in_doubt_committed` and `in_doubt_lost` (the reply is lost; it was, or was not, carried out),
        `fenced`, `suspicious` (commit and abort: done, but slow).
        """
        if call not in FAULT_CALLS or kind not in FAULT_KINDS:
            raise ValueError(f"{kind!r} of {call!r}: calls are {', '.join(FAULT_CALLS)}, kinds {', '.join(FAULT_KINDS)}")
        with self.lock:
            self._faults.setdefault(call, []).append(kind)

    def fault(self, call: str) -> str:
        with self.lock:
            waiting = self._faults.get(call)
            return waiting.pop(0) if waiting else ""

    def forget_faults(self) -> None:
        """What was to go wrong on purpose does not, nobody is cut off any more, and what was held arrives."""
        with self.lock:
            self._faults.clear()
            self.network.forget()

    def disturb_next(self, request: str, fate: str) -> None:
        """The next request of that kind (init, add, produce, end, bounds, admin) goes astray: `request_lost`, `reply_lost`, `slow`, or
        `held` until `deliver_held`. For `marker` only `held`: the next marker waits, one partition each."""
        with self.lock:
            self.network.plan(request, fate)

    def deliver_held(self, request: str) -> int:
        """Requests or markers that were held on purpose arrive now. Returns how many."""
        with self.lock:
            self.network.run_due()
            return self.network.deliver_held(request)

    def stray_end(self, transactional_id: str, commit: bool) -> str:
        """An EndTxn of this id's current producer arrives that nobody waits for: one sent again, or late. Returns why it was refused."""
        with self.lock:
            self.network.run_due()
            known = self._transactions.look(transactional_id)
            try:
                self.end_transaction(known.session if known else Session(transactional_id, -1, -1), commit)
            except Refused as refused:
                return refused.answer.name
            return ""

    def cut_off(self, seconds: float, origin: str = EVERYBODY) -> None:
        """Nobody, or no client of one MemoryLog's `origin`, reaches the cluster for so long; 0 ends it."""
        with self.lock:
            self.network.cut_off(seconds, origin)

    def expire(self, transactional_id: str) -> None:
        """A transaction timeout, now: the open transaction is aborted and its producer fenced."""
        with self.lock:
            self._send_markers(self._transactions.time_out(transactional_id))

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def bounds(self, partition: TopicPartition) -> Bounds:
        with self.lock:
            self.network.run_due()
            log = self.partition(partition)
            if partition in self._leaderless:
                raise no_leader([partition])
            return log.bounds()

    def dump(self) -> dict[TopicPartition, list[tuple[int, bytes | None, bytes | None, str]]]:
        """Everything there is, for an oracle: per partition (offset, key, value, open | committed | aborted)."""
        with self.lock:
            self.network.run_due()
            return {
                log.topic_partition: [(r.offset(), r.key(), r.value(), r.state.value) for r in log.records]
                for topic in self._topics.values()
                for log in topic.partitions
            }

    def fetchable(self, wanted: int, origin: str) -> int:
        """How many records a poll may bring now."""
        self.network.run_due()
        if self.network.is_cut_off(origin) or self.chance.happens("fetch.empty"):
            return 0
        return self.chance.between(1, wanted) if self.chance.happens("fetch.short") else wanted

    def read(self, partition: TopicPartition, position: int, limit: int) -> tuple[list[MemoryMessage], int]:
        """Committed records from `position`, and the position after them (markers and aborted records passed)."""
        with self.lock:
            return self.partition(partition).read(position, limit) if partition not in self._leaderless else ([], position)

    # -- cleaning ------------------------------------------------------------------------------------------------------------------

    def spoil(self, partition: TopicPartition, begin: int, end: int) -> None:
        """The records at these offsets are a batch that no client can decompress."""
        with self.lock:
            self.partition(partition).unreadable.append((begin, end))

    def delete_records(self, partition: TopicPartition, before: int) -> None:
        """Move the start of the log; what lay before it is gone."""
        with self.lock:
            self.network.run_due()
            self.partition(partition).delete_before(before)

    def compact(self, name: str, drop_tombstones: bool = False, before: Mapping[int, int] | None = None) -> None:
        """Keep the newest committed record of each key, in each partition below its offset in `before` and its last stable offset.

        What is younger than `min.compaction.lag.ms` stays, and so does what it replaces.
        A tombstone goes when `delete.retention.ms` have passed since a compaction met it first, or at once if so told.
        """
        with self.lock:
            self.network.run_due()
            topic = self._topic(name)
            stay_ms = 0 if drop_tombstones else int(topic.config.get("delete.retention.ms", DEFAULT_DELETE_RETENTION_MS))
            lag_ms = int(topic.config.get("min.compaction.lag.ms", 0))
            for log in topic.partitions:
                old = log.first_younger(self.clock.now_ms() - lag_ms) if lag_ms else log.end
                log.compact(min((before or {}).get(log.topic_partition.partition, log.end), old), self.clock.now_ms(), stay_ms)

    def clean(self) -> None:
        """What the broker's cleaners do now and then: each topic by its cleanup.policy, a compacted one up to an offset drawn by chance."""
        with self.lock:
            self.network.run_due()
            for name, topic in self._topics.items():
                if topic.cleaned_by("compact"):
                    self.compact(name, before={} if self.chance.quiet else self._dirty(topic))
                retention_ms = int(topic.config.get("retention.ms", DEFAULT_RETENTION_MS))
                if topic.cleaned_by("delete") and retention_ms >= 0:
                    for log in topic.partitions:
                        log.expire(self.clock.now_ms() - retention_ms)

    def _dirty(self, topic: Topic) -> dict[int, int]:
        return {log.topic_partition.partition: self.chance.between(log.start, log.bounds().end) for log in topic.partitions}
