"""The consumer of a container's inputs. It can be replaced under those who hold it: one that has fallen silent, or that fetches little at a
time because the container was started after a death that may have been for lack of memory.

After the first such death it fetches little, which costs hardly any speed and is enough for all but extremely compressed records. After
a second one soon after it takes single batches, but only until what lay ahead of the last commit must be done: where batches are small, that
is slower than many inputs grow.

Replacing changes what is being read, so whoever sees a reason only notes it, and the run loop replaces the consumer between two batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from samzapy.api.errors import BatchUnreadable, OffsetOutOfRange, SamzapyError
from samzapy.model.caution import Caution
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ports import Clock, Closing, Consumer, Fetch, Message

LOG = logging.getLogger("samzapy.container")
LEAST_S = 30.0
GATHER_S = 0.05
GATHER_BYTES = 1 << 20
NEXT_S = 0.01


def _how_ended(caution: Caution) -> str:
    """Why it fetches less than usual: its own end, or, if it has none, that of another container, whose record it may get."""
    if caution.why:
        return f"an earlier process of this container ended itself ({caution.why})"
    who = "this container" if caution.deaths else "another container of the job"
    return f"an earlier process of {who} ended and reported no error; a record or lack of memory may be the reason"


class InputConsumer(Closing):
    """ports.Consumer over the newest that `make` made.

    Args:
        make: a consumer that fetches this much at a time.
        caution: what the container was told of deaths before it.
        number: of the container, for the log.

    Attributes:
        stalled: why it seems to have fallen silent.
        fetch: how much it fetches at a time.
        must_grow: it may fetch more now.
    """

    def __init__(self, make: Callable[[Fetch], Consumer], caution: Caution, clock: Clock, number: int) -> None:
        self._make = make
        self._clock = clock
        self._number = number
        self._ended = _how_ended(caution)
        began = clock.monotonic()
        self._least_until = began + (min(LEAST_S, caution.watch_s) if caution.deaths > 1 else 0.0)
        self._little_until = began + caution.watch_s
        self.fetch = self._fetch()
        self._begin(make(self.fetch))
        if self.fetch is not Fetch.USUAL:
            LOG.info("container %d: %s", number, self.why_slow())

    def _begin(self, consumer: Consumer) -> None:
        self._now = consumer
        self.stalled: list[str] = []
        self.must_grow = False
        self._trouble: SamzapyError | None = None  # met while single batches were gathered

    def _fetch(self) -> Fetch:
        now = self._clock.monotonic()
        return Fetch.LEAST if now < self._least_until else Fetch.LITTLE if now < self._little_until else Fetch.USUAL

    def renew(self, positions: Mapping[TopicPartition, int]) -> None:
        """A new one in place of the old, to read these from these offsets. If the broker does not answer the new one, the old one stays."""
        for why in self.stalled:
            LOG.warning("container %d: %s. The container makes a new Kafka consumer, and reads on from its tasks' next offsets", self._number, why)
        fetch = self._fetch()
        fresh = self._make(fetch)
        try:
            fresh.assign(positions)
        except SamzapyError:
            fresh.close()
            raise
        self._now.close()
        if self.must_grow:
            LOG.info("container %d has not died again; it fetched %s at a time, and fetches %s now", self._number, self.fetch.value, fetch.value)
        self.fetch = fetch
        self._begin(fresh)

    def why_slow(self) -> str:
        """For the status: that it fetches less than usual, and why; "" otherwise."""
        if self.fetch is Fetch.USUAL:
            return ""
        for_s = (self._least_until if self.fetch is Fetch.LEAST else self._little_until) - self._clock.monotonic()
        return f"{self._ended}: the container fetches {self.fetch.value} at a time, for {max(for_s, 0.0):.0f} s more"

    def check_size(self) -> None:
        """Whether it has fetched so little for long enough."""
        self.must_grow = self.fetch is not self._fetch()

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Message]:
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble
        records = self._now.poll(max_records, timeout_s)
        return self._gathered(list(records), max_records) if records and self.fetch is Fetch.LEAST else records

    def _gathered(self, records: list[Message], max_records: int) -> Sequence[Message]:
        """These and those of the next batches, as long as they are small: each turn of the loop reports to the coordinator what it processes."""
        until, size = self._clock.monotonic() + GATHER_S, sum(map(_size, records))
        while len(records) < max_records and size < GATHER_BYTES and self._clock.monotonic() < until:
            try:
                more = self._now.poll(max_records - len(records), NEXT_S)
            except SamzapyError as error:  # what came before it is handed out first
                self._trouble = error
                break
            if not more:
                break
            records += more
            size += sum(map(_size, more))
        return records

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self._now.assign(positions)

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        gone = list(partitions)
        self._forget_trouble(gone)
        self._now.unassign(gone)

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        self._forget_trouble(positions)
        self._now.seek(positions)

    def _forget_trouble(self, partitions: Collection[TopicPartition]) -> None:
        """What was met in these partitions is met again, if it is read again: by the position, which is another one from now on."""
        trouble = self._trouble
        here = isinstance(trouble, BatchUnreadable) and TopicPartition(trouble.topic, trouble.partition) in partitions
        if here or (isinstance(trouble, OffsetOutOfRange) and any(partition.topic == trouble.topic for partition in partitions)):
            self._trouble = None

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._now.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._now.resume(partitions)

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._now.positions(partitions)

    def bounds(self, partition: TopicPartition) -> Bounds:
        return self._now.bounds(partition)

    def bounds_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        return self._now.bounds_of(partitions)

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._now.high_watermark(partition)

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int:
        return self._now.offset_for_time(partition, timestamp_ms)

    def mirror(self, positions: Mapping[TopicPartition, int]) -> None:
        self._now.mirror(positions)

    def close(self) -> None:
        self._now.close()


def _size(message: Message) -> int:
    return len(message.key() or b"") + len(message.value() or b"")
