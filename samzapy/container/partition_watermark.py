"""The event time of an input partition: how far it has come, and which records of it a task may wait for. Pure: the caller tells of records, of
the wall clock, and of the broker's answers.

The time of a partition is that of its newest record; its watermark is that, less the disorder that its input allows. The task's watermark W says that
all records before W have come: it is the minimum over its partitions, and never goes back.

Two things must not stop it or drag it along:

- A partition that has no more records would hold it for ever. It is *idle* and left out, once the broker has said, when asked after the task had stood
  still there for `idle_timeout`, that this is the end. Silence alone proves nothing: the client may be busy with other partitions, and a
  consumer's position may be beyond records that are fetched and not processed. A partition that never had a record is idle at the second such answer,
  without that time: else the first windows of a new topic would wait for partitions that nobody writes. A partition that was idle before a start, or
  while no other was active, holds the watermark until the broker has said so again: its backlog may have come meanwhile.
- A record with a wrong clock, far ahead, would make all others late. A *leap* counts when 99 further records of its partition have not
  contradicted it, or one that comes 10 seconds later or more (silence confirms nothing), and no partition gets further ahead of the wall clock than `max_ahead`.

Processing time is the wall clock's. Time that is ahead of the clock (it was set back, or another host's was ahead) does not stand still until the clock
has caught up: it goes on at half the pace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from samzapy.model.event_time import END, NEVER, Leap, PartitionMark
from samzapy.model.offsets import TopicPartition

LEAP_RECORDS = 100  # the leap itself and 99 further ones
LEAP_MS = 10_000
ASK_S = 1.0  # between two questions about a partition that may be idle
ASK_AGAIN_S = 5.0  # between two about a partition that is idle, while others move
HOLD, ADVANCE = "hold", "advance"


@dataclass(frozen=True, slots=True)
class TimeRules:
    """What an input says about its time, in milliseconds.

    Attributes:
        delay_ms: how much older than the newest a record of the same partition may be.
        idle_ms: how long a partition without records is waited for; None: for ever.
        max_ahead_ms: how far ahead of the clock a record may be; None: any time counts at once.
        when_idle: what time does when all partitions are idle: HOLD, or ADVANCE at the pace of the clock.
        by_clock: its time is the clock's (processing time), whether records come or not.
    """

    delay_ms: int = 0
    idle_ms: int | None = 300_000
    max_ahead_ms: int | None = 3_600_000
    when_idle: str = HOLD
    by_clock: bool = False


class PartitionWatermark:
    """The time of one partition.

    Args:
        now_ms: the wall clock, asked only about records that may be ahead of it; also an attribute.
        before_return: called before a partition that was idle counts again.

    Attributes:
        newest: the newest time that counts; NEVER: none yet.
        idle: whether it is left out of the minimum.
        proved: of an idle partition, whether the broker has said so since that last came in doubt.
        ended: whether a bounded run has read all of it.
        quiet: a record of at most this time changes nothing: the hot loop compares with it.
        ahead: how many records were leaps, since the container started.
        position, at_s: the first offset that is not processed, and since when (monotonic seconds) it is that.
    """

    __slots__ = (
        "_allowed_ms", "_asked_s", "_before_return", "_clock_s", "_limit", "_seen_at", "ahead", "at_s", "ended", "has_more", "idle", "leap",
        "newest", "now_ms", "position", "proved", "quiet", "rules", "seen_ms", "topic_partition",
    )  # fmt: skip

    def __init__(
        self,
        topic_partition: TopicPartition,
        rules: TimeRules,
        mark: PartitionMark,
        now_ms: Callable[[], int],
        before_return: Callable[[], object] = lambda: None,
    ) -> None:
        self.topic_partition = topic_partition
        self.rules = rules
        self.now_ms = now_ms
        self._before_return = before_return
        self.newest, self.idle, self.seen_ms, self.leap = mark.newest, mark.idle, mark.seen_ms, mark.leap
        self.proved = False
        self.ended = False
        self.ahead = 0
        self.position = -1
        self.at_s = 0.0
        self.has_more = False
        self._asked_s = float("-inf")
        self._clock_s: float | None = None  # of processing time: up to when it has followed the clock, in monotonic seconds
        self._allowed_ms = END if rules.max_ahead_ms is None else rules.max_ahead_ms
        self._limit = NEVER
        self._seen_at = self.newest
        self.quiet = NEVER
        self._set_limits()

    @property
    def watermark(self) -> int:
        """All records of the partition before this time have come, as far as its rules go."""
        return END if self.ended else NEVER if self.newest == NEVER else self.newest - self.rules.delay_ms

    @property
    def mark(self) -> PartitionMark:
        """What the checkpoint keeps."""
        return PartitionMark(self.newest, self.idle, self.seen_ms, self.leap)

    # -- records ---------------------------------------------------------------------------------------------------------------------

    def advance(self, time: int) -> None:
        """A record of this time was processed. Callers skip this where `time <= quiet`."""
        if time <= self._limit and time - self.newest <= self._allowed_ms:
            self.newest = self.quiet = time
            return
        now_ms = self.now_ms()
        self.active()
        if self.leap is not None and time < self.leap.time - self._allowed_ms:
            self.leap = None  # its clock was wrong
        if self.leap is not None:
            self._weigh(self.leap, time, now_ms)
        if self._is_leap(time, now_ms):
            self.ahead += 1
            if self.leap is None:
                self.leap = Leap(time, now_ms)
        else:
            self._move(time, now_ms)
        self._set_limits(now_ms)

    def plain_times(self) -> tuple[int, int]:
        """Two times: a record after the first and before the second does nothing but become the newest. Of several such, only the newest need be told."""
        if self.quiet == NEVER or self.ended:
            return NEVER, NEVER
        return self.newest, min(self._limit, self.newest + self._allowed_ms) + 1

    def _is_leap(self, time: int, now_ms: int) -> bool:
        """Whether a record is further ahead than the clock explains."""
        if self.rules.max_ahead_ms is None:
            return False
        if self.newest == NEVER:
            return time > now_ms
        return time - self.newest > self._allowed_ms + max(0, now_ms - self.seen_ms)

    def _weigh(self, leap: Leap, time: int, now_ms: int) -> None:
        """A record that agrees with the leap."""
        records, low = leap.records + 1, leap.low
        if records > LEAP_RECORDS // 2:
            low = time if low is None else min(low, time)
        self.leap = replace(leap, records=records, low=low)
        if records >= LEAP_RECORDS or now_ms - leap.since_ms >= LEAP_MS:
            self.leap = None
            self._move(leap.time if low is None else max(leap.time, low), now_ms)

    def _move(self, time: int, now_ms: int) -> None:
        time = min(time, now_ms + self._allowed_ms)
        if time > self.newest:
            self.newest = self._seen_at = time
            self.seen_ms = now_ms

    def _set_limits(self, now_ms: int | None = None) -> None:
        """What the hot loop compares with. Only what moves time by little, and not beyond the clock, goes the short way."""
        is_plain = not self.idle and self.leap is None and self.newest != NEVER
        self.quiet = self.newest if is_plain else NEVER
        if not is_plain:
            self._limit = NEVER
        elif now_ms is not None:
            self._limit = now_ms + self._allowed_ms

    def clock_is(self, now_ms: int, now_s: float) -> None:
        """The wall clock and the monotonic one, told once a second, and before each batch where the partition's time is the clock's."""
        if self.rules.by_clock and (time := self._processing_time(now_ms, now_s)) > self.newest:
            self.newest = time
            self._set_limits()
        if self.newest != self._seen_at:
            self.seen_ms, self._seen_at = now_ms, self.newest

    def _processing_time(self, now_ms: int, now_s: float) -> int:
        if self._clock_s is None or self.newest == NEVER:
            self._clock_s = now_s
            return now_ms
        passed_ms = int((now_s - self._clock_s) * 500) * 2  # even, for half of it; the rest counts the next time
        self._clock_s += passed_ms / 1000
        return now_ms if now_ms >= self.newest else self.newest + passed_ms // 2

    @property
    def ahead_of_clock_ms(self) -> int:
        """How far processing time is ahead of this host's clock; 0: it is not, or its time is of records."""
        return max(0, self.newest - self.now_ms()) if self.rules.by_clock and self.newest != NEVER else 0

    def go_to(self, time: int) -> None:
        """Its time is at least this, without a record, whatever the clock says: for tests of jobs."""
        self.active()
        self.newest = max(self.newest, time)
        self._set_limits()

    def save(self) -> tuple[object, ...]:
        """Its time as it is, for `go_back`."""
        return self.newest, self.idle, self.seen_ms, self.leap, self.quiet, self.ahead, self._limit, self._seen_at

    def go_back(self, saved: Any) -> None:
        """What it was told of records since `save` was undone with them."""
        self.newest, self.idle, self.seen_ms, self.leap, self.quiet, self.ahead, self._limit, self._seen_at = saved

    # -- idle ------------------------------------------------------------------------------------------------------------------------

    def active(self) -> None:
        """It has something to read, or was given a record: it counts again."""
        if self.idle:
            self._before_return()
            self.idle = False
            self._set_limits()

    def doubt(self) -> None:
        """Whether it still stands at its end must be asked again."""
        self.proved = False

    def stands(self, position: int, has_more: bool, now_s: float) -> None:
        """Where the first record is that is not processed, and whether there is one as far as the client knows, or the partition is paused."""
        self.has_more = has_more
        if has_more:
            self.active()
        if position != self.position or has_more:
            self.position, self.at_s = position, now_s

    def wants_answer(self, now_s: float) -> bool:
        """Whether the broker is to be asked where the partition ends."""
        idle_ms = self.rules.idle_ms
        if idle_ms is None or self.has_more or self.ended or self.rules.by_clock or self.position < 0:
            return False
        if self.idle:
            return not self.proved or now_s - self._asked_s >= ASK_AGAIN_S
        silent_s = 0.0 if self.is_empty else idle_ms / 1000
        return now_s - self.at_s >= silent_s and now_s - self._asked_s >= ASK_S

    def answered(self, end: int, asked_s: float) -> None:
        """The broker, asked at this time, said that what can be read ends there; nothing was processed since.

        An answer before the silence was long enough proves nothing about it.
        """
        before, self._asked_s = self._asked_s, asked_s
        idle_ms = self.rules.idle_ms
        if end > self.position or idle_ms is None:
            self.stands(self.position, True, asked_s)
            self.has_more = False  # it is looked at again
        elif self.idle:
            self.proved = True
        elif asked_s - self.at_s >= idle_ms / 1000 or (self.is_empty and before >= self.at_s):
            self.idle = self.proved = True
            self._set_limits()

    @property
    def is_empty(self) -> bool:
        """The partition never had a record, as far as is known: it is idle as soon as the broker has said twice that there is none."""
        return self.position == 0 and self.newest == NEVER
