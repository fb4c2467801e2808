"""ports.Consumer over confluent-kafka: assigned partitions, read_committed, offsets that only the framework decides.

`position()` is what stands for a partition's next offset: measured, it passes commit markers and aborted records as soon as they are
fetched (test_aborted_records_are_never_seen_and_positions_pass_them), and is −1001 until something was
(test_a_position_is_unknown_until_something_was_fetched), where the offset that was assigned still holds. A partition that is assigned anew (after a roll
back) hands out nothing that was fetched before: librdkafka drops it by the assignment's version.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from samzapy.api.errors import BatchUnreadable, ClusterUnreachable, LogError, NoLeader, OffsetOutOfRange, TopicMissing
from samzapy.kafka.client import REQUEST_TIMEOUT_S, Settings, asked, quiet
from samzapy.kafka.errors import MISSING, UNREACHABLE, log_error
from samzapy.kafka.logins import Refusals
from samzapy.kafka.making import making
from samzapy.kafka.open_files import used_up
from samzapy.kafka.unreadable_batches import CODES, end_of_batch
from samzapy.model.commands_told import choose_offset
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.native import hot_path
from samzapy.ports import Closing, Fetch, Message, assigned_already, no_leader

T = TypeVar("T")

FORCED = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": False,
    "allow.auto.create.topics": False,
    "check.crcs": True,
}
# fetch.queue.backoff.ms is 1000 by default: a consumer whose queue is full then idles for up to a second (measured:
# test_a_consumer_whose_queue_was_full_idles_for_fetch_queue_backoff)
DEFAULTS = {"fetch.queue.backoff.ms": 5, "queued.min.messages": 50_000}
RESTORE = {"fetch.wait.max.ms": 10}
LITTLE_BYTES = 64 << 10
# Nothing is fetched while something waits to be handed out. With LEAST a broker answers with one batch of one partition: measured with 100 records of
# 20 MB that take 92 KB in the topic, a consumer takes 172 MB instead of 2 GB (test_small_fetches_bound_what_compressed_records_take); and a fetch
# for each batch is slow where batches are small, the more so if it waits at brokers that have nothing new.
LEAST = {"fetch.message.max.bytes": 1, "queued.min.messages": 1, "fetch.queue.backoff.ms": 1, "fetch.wait.max.ms": 10}


def less(fetch: Fetch, settings: Settings) -> dict[str, Any]:
    """The client's settings for fetching this much, where the job file has these."""
    if fetch is Fetch.LEAST:
        return LEAST
    if fetch is Fetch.LITTLE:
        wanted = settings.get("fetch.message.max.bytes", settings.get("max.partition.fetch.bytes", LITTLE_BYTES))
        return {"fetch.message.max.bytes": min(int(wanted), LITTLE_BYTES), "queued.min.messages": 1, "fetch.queue.backoff.ms": 1}
    return {}


def _has_error(batch: Sequence[Any]) -> bool:
    for message in batch:  # a loop: it takes half the time of any(…)  # noqa: SIM110
        if message.error() is not None:
            return True
    return False


has_error: Callable[[Sequence[Any]], bool] = _has_error if hot_path is None else hot_path.has_error


class KafkaConsumer(Closing):
    """One consumer; used by one thread."""

    def __init__(self, settings: Settings, group_id: str, client_id: str) -> None:
        self._refusals = Refusals(settings)
        own = {"group.id": group_id, "client.id": client_id, "error_cb": self._refusals.heard}
        with making():
            self._consumer = Consumer(quiet({**DEFAULTS, **settings, **FORCED, **own}))
        self._settings = {**settings, **FORCED, "group.id": group_id, "client.id": client_id}
        self._assigned: dict[TopicPartition, int] = {}
        self._known: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._trouble: tuple[TopicPartition, LogError] | None = None  # what a poll met beside records that it handed out

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these from these offsets. An unknown partition would be silent for ever, so the broker is asked first."""
        twice = sorted(p for p in positions if p in self._assigned)
        if twice:
            raise assigned_already(twice)
        self._check_there([partition for partition in positions if partition not in self._known])
        if positions:
            asked("assign", lambda: self._consumer.incremental_assign([ClientPartition(p.topic, p.partition, at) for p, at in positions.items()]))
        self._assigned.update(positions)

    def _check_there(self, partitions: Sequence[TopicPartition]) -> None:
        try:
            self.bounds_of(partitions)
        except NoLeader:  # it is there; and the others?
            for partition in partitions:
                with contextlib.suppress(NoLeader):
                    self.bounds(partition)

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Measured: librdkafka keeps a pause over `incremental_unassign` and `incremental_assign`, so it is ended first: test_consumer_sequences."""
        gone = [p for p in partitions if p in self._assigned]
        if gone:
            self.resume(gone)
            asked("unassign", lambda: self._consumer.incremental_unassign([ClientPartition(*p) for p in gone]))
            for partition in gone:
                del self._assigned[partition]
            if self._trouble is not None and self._trouble[0] in gone:
                self._trouble = None

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """As a new assignment: that is what makes librdkafka drop what it fetched before."""
        here = {p: at for p, at in positions.items() if p in self._assigned}
        self.unassign(here)
        self.assign(here)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Only what is assigned: librdkafka would keep the pause for an assignment to come."""
        here = [ClientPartition(*p) for p in partitions if p in self._assigned]
        if here:
            asked("pause", lambda: self._consumer.pause(here))
            self._paused.update(TopicPartition(p.topic, p.partition) for p in here)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        here = [ClientPartition(*p) for p in partitions if p in self._assigned]
        if here:
            asked("resume", lambda: self._consumer.resume(here))
            self._paused.difference_update(TopicPartition(p.topic, p.partition) for p in here)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Message]:
        """`consume(n, t)` would wait all of t unless n came; so: wait for one, then take what is there.

        What it raises was met alone: records that came with it are handed out first, because the position has passed them.
        """
        if self._trouble is not None:
            (_, trouble), self._trouble = self._trouble, None
            raise trouble
        if self._refusals.is_heard:
            self._look_whether_refused()
        first = self._consumer.poll(timeout_s)
        if first is None:
            return ()
        batch: list[Any] = self._consumer.consume(max_records - 1, 0) if max_records > 1 else []
        batch.insert(0, first)
        return self._without_errors(batch) if has_error(batch) else batch

    def _look_whether_refused(self) -> None:
        """The library goes on trying for ever, and says nothing: so each partition's broker is asked, and only if one cannot be, raise."""
        try:
            for partition in self._assigned or self._known:
                self.bounds(partition)
        except ClusterUnreachable:
            refused = self._refusals.error("reading from Kafka")
            if refused is None:
                raise
            raise refused from None
        self._refusals.forget()

    def _without_errors(self, batch: Sequence[Any]) -> Sequence[Message]:
        good: list[Message] = []
        for message in batch:
            error = message.error()
            if error is None:
                good.append(message)
            elif self._trouble is None and (trouble := self._judge(error, message)) is not None:
                self._trouble = TopicPartition(message.topic() or "", message.partition()), trouble
        return good or self.poll(1, 0.0)

    def _judge(self, error: KafkaError, message: Any) -> LogError | None:
        """What waiting will not mend; the rest librdkafka retries by itself."""
        code = error.code()
        if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return self._out_of_range(TopicPartition(message.topic(), message.partition()))
        if code in CODES:
            return self._unreadable(TopicPartition(message.topic(), message.partition()), message.offset(), error)
        if code in UNREACHABLE:
            return None
        if code in MISSING:
            remedy = "It was deleted while it was read. Do not make it again by hand: `samzapy topics JOB.yaml` says what can be done."
            return TopicMissing(f"{message.topic()}: {error.str()}.", remedy)
        return log_error(error, f"reading {message.topic() or 'from Kafka'}")

    def _unreadable(self, partition: TopicPartition, first: int, error: KafkaError) -> LogError | None:
        """Of a batch whose first offset is this, as far as it was not read before."""
        if partition not in self._assigned:
            return None
        try:
            begin = max(first, self.positions([partition])[partition])
            return BatchUnreadable(*partition, begin, end_of_batch(self._settings, partition, first, begin), error.str())
        except LogError as unknown:
            return unknown

    def _out_of_range(self, partition: TopicPartition) -> LogError | None:
        """Measured: what an earlier assignment met may be told after a seek; where we stand in range, we go on: test_consumer_sequences."""
        if partition not in self._assigned:
            return None
        try:
            bounds, at = self.bounds(partition), self.positions([partition])[partition]
            if bounds.start <= at <= bounds.end:
                is_paused = partition in self._paused
                self.seek({partition: at})
                self.pause([partition] if is_paused else [])  # whoever paused it does not know of this seek
                return None
        except LogError as unknown:
            return unknown
        return OffsetOutOfRange(
            f"input {partition}: the next offset, {at}, is not between the topic's start, {bounds.start}, and its end, {bounds.end}: records were removed before "
            "they were read, or the topic lost its end.",
            f"Set `on_out_of_range: earliest` or `latest` for this input, or choose an offset: {choose_offset(partition.topic, partition.partition)}",
            partition.topic,
        )

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = {p: self._assigned[p] for p in partitions}
        if not wanted:
            return {}
        at = asked("position", lambda: self._consumer.position([ClientPartition(*p) for p in wanted]))
        return {
            p: assigned if partition.offset == OFFSET_INVALID else max(partition.offset, 0)
            for (p, assigned), partition in zip(wanted.items(), at, strict=True)
        }

    def bounds(self, partition: TopicPartition) -> Bounds:
        doing = f"the bounds of {partition}"
        answer = self._asked_of(partition, doing, lambda: self._consumer.get_watermark_offsets(ClientPartition(*partition), REQUEST_TIMEOUT_S, False))
        if answer is None:
            raise ClusterUnreachable(f"{doing}: no answer in {REQUEST_TIMEOUT_S:.0f} s.", used_up() or "Check that the brokers run.")
        self._known.add(partition)
        return Bounds(answer[0], max(answer))

    def _asked_of(self, partition: TopicPartition, doing: str, call: Callable[[], T]) -> T:
        """Measured: a client that knew the topic before it grew says that there is no such partition, until it has looked again:
        test_log_grows."""
        try:
            return asked(doing, call)
        except TopicMissing:
            self._look_at(partition)
            return asked(doing, call)

    def _look_at(self, partition: TopicPartition) -> None:
        """Measured: of a partition that no broker leads, the client says that there is none; its metadata say that there is:
        test_a_partition_whose_broker_is_down."""
        found = asked(f"looking at {partition.topic}", lambda: self._consumer.list_topics(partition.topic, timeout=REQUEST_TIMEOUT_S))
        there = found.topics[partition.topic].partitions.get(partition.partition)
        if there is not None and there.leader < 0:
            raise no_leader([partition])

    def bounds_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """Measured: `offsets_for_times` takes Kafka's own -2 and -1 as times, and answers with the start and the visible end
        (test_bounds_of_many_partitions_are_those_of_each). A partition that it cannot answer for is asked for alone."""
        wanted = list(dict.fromkeys(partitions))
        found: dict[TopicPartition, Bounds] = {}
        if len(wanted) > 1:
            starts, ends = self._all_at(wanted, OFFSET_BEGINNING), self._all_at(wanted, OFFSET_END)
            found = {
                partition: Bounds(starts[partition], max(starts[partition], ends[partition])) for partition in starts.keys() & ends.keys()
            }
            self._known.update(found)
        return {partition: found[partition] if partition in found else self.bounds(partition) for partition in wanted}

    def _all_at(self, partitions: Sequence[TopicPartition], time: int) -> dict[TopicPartition, int]:
        """Those that were answered for."""
        asking = [ClientPartition(p.topic, p.partition, time) for p in partitions]
        try:
            answers = self._consumer.offsets_for_times(asking, timeout=REQUEST_TIMEOUT_S)
        except KafkaException:
            return {}  # then each is asked for, which says what is the matter with it
        return {TopicPartition(a.topic, a.partition): int(a.offset) for a in answers if a.error is None and a.offset >= 0}

    def high_watermark(self, partition: TopicPartition) -> int:
        return max(int(self._consumer.get_watermark_offsets(ClientPartition(*partition), cached=True)[1]), -1)

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int:
        asked_for = ClientPartition(partition.topic, partition.partition, timestamp_ms)
        doing = "offsets for a time"
        found = self._asked_of(partition, doing, lambda: self._consumer.offsets_for_times([asked_for], timeout=REQUEST_TIMEOUT_S))[0]
        if found.error is not None:
            raise log_error(found.error, f"the offset of {partition} at {timestamp_ms}")
        return found.offset if found.offset >= 0 else self.bounds(partition).end

    def mirror(self, positions: Mapping[TopicPartition, int]) -> None:
        """For Kafka's lag tools only; nothing reads it back, so a failure does not matter."""
        if positions:
            with contextlib.suppress(KafkaException, LogError, RuntimeError):  # RuntimeError: it is closed
                self._consumer.commit(offsets=[ClientPartition(p.topic, p.partition, at) for p, at in positions.items()], asynchronous=True)

    def close(self) -> None:
        self._assigned.clear()
        self._consumer.close()
