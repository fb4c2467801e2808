"""The time of a partition of an internal topic: what the marks of the tasks that write it say. Pure, as partition_watermark.py is, which says what time is for.

The records of such a partition come from several tasks, and none of them says how far the others are. So its time is the minimum of what all
these tasks have said; one that has said nothing yet holds it, and one that is idle is left out, up to the first pane that its open windows will still
give. It moves when a mark is read, never with a record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from samzapy.container.partition_watermark import TimeRules
from samzapy.model.event_time import END, NEVER, PartitionMark
from samzapy.model.marks import ACTIVE, ENDED, IDLE, Mark, marks_from_bytes
from samzapy.model.offsets import TopicPartition


class MarkedPartition:
    """The time of one partition of an internal topic.

    Args:
        writers: the tasks that write it.
        mark: of the checkpoint.
        run_id: of this run: only its own tasks can end it.
        before_return: called before it counts again after it was idle.
        topic_id: of the topic; marks are sealed with it.

    Attributes:
        as of `PartitionWatermark`, where they mean something here.
    """

    __slots__ = (
        "_before_return", "_newest", "_run_id", "_topic_id", "_writers", "ahead", "at_s", "ended", "has_more", "idle", "leap", "now_ms", "position", "proved",
        "quiet", "rules", "seen_ms", "topic_partition", "watermark",
    )  # fmt: skip

    def __init__(
        self,
        topic_partition: TopicPartition,
        writers: Collection[str],
        mark: PartitionMark,
        run_id: str,
        now_ms: Callable[[], int],
        before_return: Callable[[], object] = lambda: None,
        topic_id: str = "",
    ) -> None:
        self._topic_id = topic_id
        self.topic_partition = topic_partition
        self.rules = TimeRules()
        self.now_ms = now_ms
        self._writers = sorted(writers)
        self._run_id = run_id
        self._before_return = before_return
        self._newest: Mapping[str, Mark] = dict(mark.marks or {})
        self.proved, self.has_more, self.leap, self.ahead, self.seen_ms = True, False, None, 0, 0
        self.position, self.at_s = -1, 0.0
        self.quiet = END  # no record moves it
        self.idle = self.ended = False
        self.watermark = NEVER
        self._combine()

    @property
    def newest(self) -> int:
        return self.watermark

    @property
    def mark(self) -> PartitionMark:
        """What the checkpoint keeps."""
        return PartitionMark(marks=dict(self._newest))

    def heard(self, data: bytes | None) -> None:
        """A record with marks. Of tasks that do not write this topic they mean nothing; and what a task said before stands: its time never goes back.

        Raises:
            ValueError: it holds no marks.
        """
        known = dict(self._newest)
        for task, mark in marks_from_bytes(data, self._topic_id).items():
            before = known.get(task, Mark()).time
            if task in self._writers:
                known[task] = replace(mark, time=max((time for time in (mark.time, before) if time is not None), default=None))
        self._newest = known
        self._combine()

    def _combine(self) -> None:
        marks = [self._newest.get(task) or Mark() for task in self._writers]
        going = [mark for mark in marks if mark.state != IDLE and not self._is_end(mark)]
        idle = [mark for mark in marks if mark.state == IDLE]
        self.ended = bool(marks) and not going and not idle
        firsts = [mark.first for mark in idle if mark.first is not None]
        is_idle = not going and bool(idle) and not firsts
        if self.idle and not is_idle:
            self._before_return()
        self.idle = is_idle
        times = [NEVER if mark.time is None else mark.time for mark in (going or idle)]
        self.watermark = END if self.ended else min([min(times) if going else max(times), *firsts]) if times else NEVER

    def others(self, task: str) -> int:
        """How far the tasks that write it are, without this one: those that are not idle, or, if all are, those that are."""
        marks = [self._newest.get(other) or Mark() for other in self._writers if other != task]
        going = [mark for mark in marks if mark.state != IDLE and not self._is_end(mark)]
        times = [NEVER if mark.time is None else mark.time for mark in (going or marks) if not self._is_end(mark)]
        return (min if going else max)(times, default=NEVER)

    def _is_end(self, mark: Mark) -> bool:
        """Whether a task has brought all that it will bring in this run."""
        return mark.state == ENDED and mark.run == self._run_id

    def held_by(self) -> str:
        """The task that its time waits for."""
        waits = [(held, task) for task in self._writers if (held := self._held_at(self._newest.get(task) or Mark())) is not None]
        return min(waits)[1] if waits else ""

    def is_idle(self, task: str) -> bool:
        """Whether a task that writes it is idle, as it has said."""
        return (self._newest.get(task) or Mark()).state == IDLE

    def _held_at(self, mark: Mark) -> int | None:
        if mark.state == IDLE:
            return mark.first
        return None if self._is_end(mark) else NEVER if mark.time is None else mark.time

    # -- what moves the time of other partitions does not move this one ------------------------------------------------------------------

    def advance(self, time: int) -> None:
        """Records say nothing of how far those are that are still to come."""

    def clock_is(self, now_ms: int, now_s: float) -> None:
        """Nor does the clock."""

    def go_to(self, time: int) -> None:
        """Nor does a test: it moves the inputs' time."""

    def active(self) -> None:
        """Whether it is idle is said by marks."""

    def doubt(self) -> None:
        """As `active`."""

    def stands(self, position: int, has_more: bool, now_s: float) -> None:
        """Where the first record is that is not processed, for people."""
        if position != self.position or has_more:
            self.position, self.at_s = position, now_s
        self.has_more = has_more

    def wants_answer(self, now_s: float) -> bool:
        return False

    def answered(self, end: int, asked_s: float) -> None:
        raise AssertionError("nobody asks where an internal topic ends")

    def save(self) -> tuple[object, ...]:
        """Its time as it is, for `go_back`."""
        return self._newest, self.idle, self.ended, self.watermark

    def go_back(self, saved: Any) -> None:
        """The marks since `save` were undone with their run, and will come again."""
        self._newest, self.idle, self.ended, self.watermark = saved


def said(time: int, is_idle: bool, has_ended: bool, run_id: str, first: int | None = None) -> Mark:
    """What a task says of itself."""
    state = ENDED if has_ended else IDLE if is_idle else ACTIVE
    return Mark(None if time == NEVER else time, state, run_id if has_ended else "", first if state == IDLE else None)
