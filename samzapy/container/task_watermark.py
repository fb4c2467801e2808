"""How far the watermark is: that of a stage of a task is the minimum over its partitions that are not idle, that of the task the minimum over its stages.

Pure, as partition_watermark.py is, which says what that is for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from samzapy.container.marked_partition import MarkedPartition
from samzapy.container.partition_watermark import ADVANCE, LEAP_RECORDS, PartitionWatermark
from samzapy.model.event_time import END, NEVER
from samzapy.model.offsets import TopicPartition

TimedPartition = PartitionWatermark | MarkedPartition


class StageTime:
    """The event time of a stage of a task: of what its inputs, or some of them, feed. Most tasks have one.

    Args:
        name: of the stage: its timed inputs.
        watermark: that of the checkpoint.

    Attributes:
        is_held: whether windows of it are open for which others wait whose time is not known here (streams/idle_windows.py): then it does not stand still.
    """

    def __init__(self, name: str, watermark: int = NEVER) -> None:
        self.name = name
        self.partitions: list[TimedPartition] = []
        self._reached = watermark
        self._was_quiet = False  # no partition was active when the watermark was last looked at
        self.is_held: Callable[[], bool] = lambda: False
        self._pace_s: float | None = None  # with ADVANCE: up to when a quiet stage has gone on, in monotonic seconds

    @property
    def is_at_end(self) -> bool:
        """Whether a bounded run has read all of it."""
        return bool(self.partitions) and all(partition.ended for partition in self.partitions)

    @property
    def is_by_clock(self) -> bool:
        """Whether it is the clock's time: that moves by itself, and is no reason for a commit."""
        return all(partition.rules.by_clock for partition in self.partitions)

    @property
    def follows_clock(self) -> bool:
        """Whether nothing but the clock moves it now."""
        has_such = any(partition.rules.by_clock for partition in self.partitions)
        return has_such and all(partition.rules.by_clock or partition.idle or partition.ended for partition in self.partitions)

    @property
    def is_idle(self) -> bool:
        """Whether none of its partitions has anything to read, as the broker said."""
        return bool(self.partitions) and all(partition.idle and partition.proved for partition in self.partitions)

    @property
    def watermark(self) -> int:
        """All records before this time have come. END at the end of a bounded run."""
        if self.is_at_end:
            return END
        self._look()
        return self._reached

    @property
    def kept(self) -> int:
        """What the checkpoint keeps: never END, since a later run goes on where this one's records were."""
        if not self.is_at_end:
            self._look()
        return self._reached

    def before_return(self) -> None:
        """A partition that was idle is about to count again: what the others have reached until now stands."""
        self._look()
        if self._was_quiet:
            for partition in self.partitions:
                partition.doubt()

    def save_own(self) -> tuple[object, ...]:
        """Its own time as it is, without its partitions', for `go_back_own`."""
        return self._reached, self._was_quiet

    def go_back_own(self, saved: Any) -> None:
        """The records since `save_own` were undone, and will come again."""
        self._reached, self._was_quiet = saved

    def _look(self) -> None:
        partitions = self.partitions
        if len(partitions) == 1:  # nearly always
            at = partitions[0].watermark
            if at > self._reached and at != END:
                self._reached = at
            if not partitions[0].idle:
                self._was_quiet = False
                return
        going = [partition for partition in partitions if not partition.idle and not partition.ended]
        self._was_quiet = not going
        if any(partition.idle and not partition.proved for partition in partitions):
            return
        marks = [partition.watermark for partition in (going or partitions) if not partition.ended]
        if marks:
            self._reached = max(self._reached, min(marks) if going else max(marks))

    def follow(self, now_s: float) -> None:
        """Once a second: a quiet stage whose rules say so goes on at the pace of the clock. The monotonic one: a wall clock may be set."""
        self._look()
        partitions = [partition for partition in self.partitions if not partition.ended]
        follows = self._was_quiet and partitions and all(partition.proved and partition.rules.when_idle == ADVANCE for partition in partitions)
        follows = follows or (self.is_idle and self.is_held())
        if follows and self._pace_s is not None and self._reached != NEVER:
            passed_ms = int((now_s - self._pace_s) * 1000)
            self._reached += passed_ms
            self._pace_s += passed_ms / 1000
        else:
            self._pace_s = now_s if follows else None

    def go_on(self, time: int) -> None:
        """While it is idle: others who wait for its windows have come to this time."""
        self._reached = max(self._reached, time)

    def status(self, now_s: float, now_ms: int) -> dict[str, object]:
        """For people: by stage its watermark, how old that is, the records that were too far ahead, and what is waited for."""
        at = None if self._reached == NEVER else self._reached
        return {
            self.name: {
                "watermark": at,
                "behind_ms": None if at is None else now_ms - at,
                "ahead": sum(partition.ahead for partition in self.partitions),
                "waits_for": self.waits_for(now_s),
            }
        }

    def waits_for(self, now_s: float) -> str:
        """Which partition holds the watermark, and why; "" if it has not been waited for."""
        if not self.partitions or self.is_at_end:
            return ""
        unproved = [partition for partition in self.partitions if partition.idle and not partition.proved]
        if unproved:
            return f"{unproved[0].topic_partition}, idle so far: the broker is asked whether it has records"
        going = [partition for partition in self.partitions if not partition.idle and not partition.ended]
        if not going:
            known = [partition.at_s for partition in self.partitions if partition.position >= 0]
            silent = f"any input: none has had a record{f' for {_lasting(now_s - max(known))}' if known else ' since the start'}"
            return silent if all(partition.rules.when_idle == ADVANCE for partition in self.partitions) else f"{silent}; with `when_idle: advance` time would go on"
        slowest = min(going, key=lambda partition: partition.watermark)
        return _why(slowest, now_s)


class TaskTime:
    """The times of one task: its partitions, and its stages. A plain task has one stage, of all its inputs with a time. A program has one for each set of inputs
    that feeds windows or an internal topic: what comes after an internal topic must not hold up what comes before it.

    Attributes:
        partitions: the input partitions that have a time, those of internal topics too.
        stages: in the order of their names.
    """

    def __init__(self) -> None:
        self.partitions: list[TimedPartition] = []
        self.stages: list[StageTime] = []

    def begin(
        self, partitions: Sequence[TimedPartition], sets: Collection[Sequence[str]] | None, known: Mapping[str, int], new: Collection[TopicPartition]
    ) -> None:
        """Its partitions, the topics of each of its stages (None: one of all), the watermarks of the checkpoint by stage, and those partitions
        that no commit of this task has had a time of."""
        self.partitions = list(partitions)
        all_topics = [partition.topic_partition.topic for partition in partitions]
        names = sorted({stage_name(topics) for topics in ([all_topics] if sets is None else sets)})
        for name in names:
            of = set(name.split("+"))
            fed = [partition for partition in partitions if partition.topic_partition.topic in of]
            if fed:  # a task has no part in a topic with fewer partitions
                stage = StageTime(name, known[name] if name in known else _not_kept(name, fed, known, new))
                stage.partitions.extend(fed)
                self.stages.append(stage)

    def before_return(self) -> None:
        """A partition that was idle is about to count again (`StageTime.before_return`)."""
        for stage in self.stages:
            stage.before_return()

    def of(self, topics: Collection[str]) -> StageTime | None:
        """The stage that is fed by these topics."""
        name = stage_name(list(topics))
        return next((stage for stage in self.stages if stage.name == name), None)

    @property
    def watermark(self) -> int:
        """How far all of the task has come."""
        return min((stage.watermark for stage in self.stages), default=NEVER)

    @property
    def is_by_clock(self) -> bool:
        """Whether all of it is the clock's time."""
        return all(stage.is_by_clock for stage in self.stages)

    @property
    def kept(self) -> dict[str, int]:
        """What the checkpoint keeps, by stage: also that a stage has not begun, while another has."""
        kept = {stage.name: stage.kept for stage in self.stages}
        return kept if any(at != NEVER for at in kept.values()) else {}

    def save(self) -> Any:
        """The times as they are, for `go_back`."""
        return [stage.save_own() for stage in self.stages], [partition.save() for partition in self.partitions]

    def go_back(self, saved: Any) -> None:
        """What was processed since `save` was undone, and will come again."""
        stages, partitions = saved
        for stage, own in zip(self.stages, stages, strict=True):
            stage.go_back_own(own)
        for partition, one in zip(self.partitions, partitions, strict=True):
            partition.go_back(one)

    def status(self, now_s: float, now_ms: int) -> dict[str, object]:
        """For people, by stage (`StageTime.status`)."""
        return {name: told for stage in self.stages for name, told in stage.status(now_s, now_ms).items()}


def _not_kept(name: str, fed: Sequence[TimedPartition], known: Mapping[str, int], new: Collection[TopicPartition]) -> int:
    """The watermark of a stage that the checkpoint does not have. It is of a program that has changed: time does not go back under state that stands. But
    older versions left out a stage that had not begun, because a partition of it had brought nothing."""
    if any(partition.newest == NEVER and partition.topic_partition not in new for partition in fed):
        return NEVER
    of = set(name.split("+"))
    return max((at for other, at in known.items() if not of.isdisjoint(other.split("+"))), default=NEVER)


def _why(partition: TimedPartition, now_s: float) -> str:
    """What is to be said of the partition that holds the watermark."""
    if isinstance(partition, MarkedPartition):
        if partition.has_more:
            return f"{partition.topic_partition}, which has records to be read"
        held_by = partition.held_by()
        return f"{held_by}, which writes {partition.topic_partition}{', and is idle with open windows' if partition.is_idle(held_by) else ''}"
    if partition.rules.by_clock:
        ahead_s = partition.ahead_of_clock_ms / 1000
        return f"the clock: time is {_lasting(ahead_s)} ahead of it, and goes on at half the pace until it has caught up" if ahead_s >= 1 else ""
    if partition.has_more:
        return f"{partition.topic_partition}, which has records to be read"
    idle = "never counts as idle" if partition.rules.idle_ms is None else f"idle after {partition.rules.idle_ms / 1000:g} s"
    if partition.leap is not None and partition.leap.records < LEAP_RECORDS:
        return f"{partition.topic_partition}, whose newest record is too far ahead to count until others agree with it"
    if partition.is_empty and partition.rules.idle_ms is not None:
        return f"{partition.topic_partition}, which never had a record: ignored once its broker has confirmed that twice"
    if partition.position < 0:  # nobody has said where it stands: `at_s` means nothing yet
        return f"{partition.topic_partition}, not read yet since the start"
    return f"{partition.topic_partition}, silent for {_lasting(now_s - partition.at_s)}, {idle}"


def _lasting(seconds: float) -> str:
    """A time in words: 29 s, 4 min, 13 h 34 min.

    >>> _lasting(119.4), _lasting(300.0), _lasting(48_837.0)
    ('119 s', '5 min', '13 h 33 min')
    """
    if seconds < 120:
        return f"{max(0.0, seconds):.0f} s"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def stage_name(topics: Sequence[str]) -> str:
    """The stage of a task that has these timed inputs."""
    return "+".join(sorted(set(topics)))
