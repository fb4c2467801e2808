"""The records of the job's inputs and outputs, as a read_committed reader sees them: the newest, or those after a cursor. Bounded in records, bytes and
time; commits nothing and belongs to no group."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeVar

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, OffsetOutOfRange
from samzapy.config.schema import Settings
from samzapy.model.offsets import Bounds, TopicPartition, next_offset
from samzapy.ops.shown import shown_headers
from samzapy.ports import Clock, Consumer, Log, Message
from samzapy.readers import read_ranges
from samzapy.web.record_fields import RecordFields
from samzapy.web.route_errors import NotFound
from samzapy.wiring.serdes import KEY, VALUE

FIRST, NOW = "first", "now"  # else from the newest on
MAX_PARTITIONS = 64
MAX_READ, MAX_BYTES, MAX_S = 5_000, 8 << 20, 3.0  # of one request
MAX_TEXT, MAX_HEADERS, MAX_HEADER = 2_000, 20, 200
WAIT_S, IDLE_S, PATIENCE_S = 10.0, 30.0, 5.0
T = TypeVar("T")


class Tap:
    """Reads topics of a job for people."""

    def __init__(self, settings: Settings, fields: RecordFields, log: Log, clock: Clock) -> None:
        self._fields, self._log, self._clock = fields, log, clock
        self._topics = {i.topic: ("input", i.key, i.value) for i in settings.inputs}
        self._topics |= {o.topic: ("output", o.key, o.value) for o in settings.outputs if o.topic not in self._topics}
        self._lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._closes: threading.Timer | None = None

    def topics(self) -> dict[str, Any]:
        """The topics that can be read here."""
        return {"items": [{"topic": name, "kind": kind, "key": key, "value": value} for name, (kind, key, value) in self._topics.items()]}

    def records(self, topic: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """Some records, and the cursor behind the last one.

        Raises:
            NotFound: this job neither reads nor writes such a topic. ConfigurationError: it has too many partitions, or the cursor is none.
        """
        if topic not in self._topics:
            raise NotFound(f"{topic[:100]!r} is neither an input nor an output of this job")
        return self._with_consumer(lambda consumer: self._records(consumer, topic, query))

    # -- inside --------------------------------------------------------------------------------------------------------------------------

    def _with_consumer(self, read: Callable[[Consumer], T]) -> T:
        """One consumer for all who look, one after the other; closed when nobody has looked for a while."""
        if not self._lock.acquire(timeout=WAIT_S):
            raise ClusterUnreachable("other requests are reading topics.", "Ask again in some seconds.")
        try:
            if self._closes is not None:
                self._closes.cancel()
            self._consumer = self._consumer or self._log.restore_consumer("tap")
            try:
                return read(self._consumer)
            except Exception:
                self._close()
                raise
            finally:
                self._closes = threading.Timer(IDLE_S, self._close_idle)
                self._closes.daemon = True
                self._closes.start()
        finally:
            self._lock.release()

    def _close_idle(self) -> None:
        if self._lock.acquire(blocking=False):  # else somebody looks
            try:
                self._close()
            finally:
                self._lock.release()

    def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _records(self, consumer: Consumer, topic: str, query: Mapping[str, Any]) -> dict[str, Any]:
        bounds = consumer.bounds_of(self._partitions(topic, str(query["partition"])))
        limit, text = int(query["limit"]), str(query["contains"]).casefold()
        at, is_last = self._begin(bounds, query, limit)
        found, read, size, until = list[dict[str, Any]](), 0, 0, time.monotonic() + MAX_S
        ranges = {p: (at[p], b.end) for p, b in bounds.items()}
        passed_over = sum(max(0, at[p] - self._cursor(query, p, at[p])) for p in at)
        is_over = False
        try:
            with closing(read_ranges(consumer, ranges, self._clock, PATIENCE_S)) as batches:  # type: ignore[type-var]
                for batch in batches:
                    for message in batch:
                        at[TopicPartition(message.topic(), message.partition())] = next_offset(message.offset())
                        read, size = read + 1, size + len(message.value() or b"") + len(message.key() or b"")
                        row = self._row(topic, message, text)
                        has_it = [row[part].pop("is_found", True) for part in ("key", "value")]
                        if any(has_it):
                            found.append(row)
                        is_over = (len(found) >= limit and not is_last) or read >= MAX_READ or size >= MAX_BYTES or time.monotonic() >= until
                        if is_over:
                            break
                    if is_over:
                        break
        except OffsetOutOfRange:  # removed by age just now
            is_over = True
        if not is_over:
            at = {p: b.end for p, b in bounds.items()}
        items = sorted(found, key=lambda row: (row["at_ms"], row["partition"], row["offset"]))
        return {
            "topic": topic, "items": items[-limit:], "next": ",".join(f"{p.partition}:{offset}" for p, offset in sorted(at.items())),
            "read": read, "behind": sum(max(0, b.end - at[p]) for p, b in bounds.items()), "passed_over": passed_over, "partitions": len(bounds),
        }  # fmt: skip

    def _partitions(self, topic: str, chosen: str) -> list[TopicPartition]:
        if chosen and not re.fullmatch(r"\d{1,9}", chosen, re.ASCII):
            raise ConfigurationError(f"partition={chosen[:50]!r} is no number.", "")
        one = int(chosen) if chosen else -1
        with self._log.admin() as admin:
            facts = admin.topics([topic]).get(topic)
        if facts is None or one >= facts.partitions:
            raise NotFound(f"there is no {topic}" + (f"[{one}]" if one >= 0 else ""))
        if one < 0 and facts.partitions > MAX_PARTITIONS:
            raise ConfigurationError(f"{topic} has {facts.partitions} partitions, and at most {MAX_PARTITIONS} are read at once.", "Choose one of them.")
        return [TopicPartition(topic, n) for n in (range(facts.partitions) if one < 0 else [one])]

    def _begin(self, bounds: Mapping[TopicPartition, Bounds], query: Mapping[str, Any], limit: int) -> tuple[dict[TopicPartition, int], bool]:
        """Where to begin in each partition; and whether the newest are wanted."""
        if query["after"]:
            return {p: min(max(b.start, self._cursor(query, p, b.start)), b.end) for p, b in bounds.items()}, False
        if query["from"] == NOW:
            return {p: b.end for p, b in bounds.items()}, False
        if query["from"] == FIRST:
            return {p: b.start for p, b in bounds.items()}, False
        share = 2 * max(1, -(-limit // len(bounds)))  # half of the offsets may be of markers
        share = max(share, MAX_READ // (2 * len(bounds))) if query["contains"] else share
        return {p: max(b.start, b.end - share) for p, b in bounds.items()}, True

    @staticmethod
    def _cursor(query: Mapping[str, Any], partition: TopicPartition, otherwise: int) -> int:
        """The offset in the cursor.

        Raises:
            ConfigurationError: that is no cursor.
        """
        text = str(query["after"])
        if not text:
            return otherwise
        if not re.fullmatch(r"\d{1,9}:\d{1,18}(,\d{1,9}:\d{1,18})*", text, re.ASCII):
            raise ConfigurationError(f"after={text[:50]!r} is no cursor.", "Give what `next` of the answer before has.")
        return next((int(at) for n, _, at in (part.partition(":") for part in text.split(",")) if int(n) == partition.partition), otherwise)

    def _row(self, topic: str, message: Message, find: str) -> dict[str, Any]:
        _, key, value = self._topics[topic]
        headers = shown_headers((message.headers() or ())[:MAX_HEADERS], MAX_HEADER)
        return {
            "partition": message.partition(), "offset": message.offset(), "at_ms": max(0, message.timestamp()[1]),
            "key": self._fields.field(key, topic, KEY, message.key(), MAX_TEXT, find),
            "value": self._fields.field(value, topic, VALUE, message.value(), MAX_TEXT, find), "headers": headers,
        }  # fmt: skip
