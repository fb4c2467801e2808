"""Event time in the running container: what the input partitions are told of records, of the consumer's positions, of the clock and of the broker.

What follows from that is decided in partition_watermark.py.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from samzapy.container.inputs import Inputs
from samzapy.container.marked_partition import MarkedPartition
from samzapy.container.marks import Marks
from samzapy.container.partition_watermark import PartitionWatermark
from samzapy.container.requests import Requests
from samzapy.container.settled_clock import SettledClock
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInput, TaskInstance
from samzapy.container.task_watermark import TaskTime, TimedPartition
from samzapy.model.event_time import MILLISECONDS, NEVER, PartitionMark, as_utc, looks_like_seconds
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Clock, Message

LOG = logging.getLogger("samzapy.inputs")
FAR_AHEAD_MS = 10_000


class Times:
    """The event time of a container's tasks.

    Attributes:
        is_on: whether any input has a time.
    """

    def __init__(self, spec: ContainerSpec, run_id: str, inputs: Inputs, clock: Clock, requests: Requests, marks: Marks) -> None:
        self.is_on = any(one.time is not None or one.between is not None for one in spec.inputs.values())
        self._sets = spec.timed
        self._run_id = run_id
        self._marks = marks
        self._inputs = inputs
        self._requests = requests
        self._clock = clock
        self._wall = SettledClock(clock)
        self._warned: set[str] = set()  # topics whose times look like seconds
        self._new: set[str] = set()  # topics that came to inputs whose time has begun
        self._ahead: set[TopicPartition] = set()  # whose processing time is far ahead of the clock

    def begin(self, task: TaskInstance) -> None:
        """The task's time is that of its checkpoint. Before its `init`."""
        timed = [i for i in task.inputs if i.spec.time is not None or i.spec.between is not None]
        task.said, task.announced = {}, set()
        if not timed:
            return
        task.time = time = TaskTime()
        marks = {one.partition: task.committed.inputs[str(one.partition)].time for one in timed}
        partitions = [self._partition(one, marks[one.partition] or PartitionMark(), time) for one in timed]
        new = [partition for partition, mark in marks.items() if mark is None]
        time.begin(partitions, self._sets, task.committed.watermarks, new)
        self._warn_of_new(time, new)

    def _partition(self, task_input: TaskInput, mark: PartitionMark, time: TaskTime) -> TimedPartition:
        spec, partition, now_ms = task_input.spec, task_input.partition, self._wall.now_ms
        if spec.between is not None:
            task_input.watermark = MarkedPartition(partition, spec.between.writers, mark, self._run_id, now_ms, time.before_return, spec.topic_id)
        elif spec.time is not None:
            task_input.watermark = PartitionWatermark(partition, spec.time.rules, mark, now_ms, time.before_return)
        if task_input.watermark is None:
            raise AssertionError(f"{partition} has no time")
        return task_input.watermark

    def before(self, batch: Sequence[Message]) -> None:
        """These records are processed next: idle partitions that have something to read count again, and where that is in doubt the broker is asked."""
        now_s, now_ms = self._clock.monotonic(), self._wall.now_ms()
        in_doubt = False
        read: set[tuple[str, int]] | None = None
        for time in self._times():
            for partition in time.partitions:
                if partition.rules.by_clock:
                    partition.clock_is(now_ms, now_s)
                if partition.idle:
                    read = {(m.topic(), m.partition()) for m in batch} if read is None else read
                    of = partition.topic_partition
                    if (of.topic, of.partition) in read or self._inputs.high_watermark(of) > partition.position >= 0:
                        partition.active()
            in_doubt = in_doubt or any(partition.idle and not partition.proved for partition in time.partitions)
        if in_doubt:
            self.look(batch)
        if self._marks.is_on:
            self._marks.announce(self._tasks())
        if any(task.is_due for task in self._tasks()):
            self._requests.fire()

    def look(self, unprocessed: Sequence[Message]) -> None:
        """Once a second: who stands where; and the broker is asked about those that may be idle. `unprocessed`: of the batch."""
        now_s, now_ms = self._clock.monotonic(), self._wall.now_ms()
        positions = self._inputs.positions(unprocessed)
        asked: dict[TopicPartition, list[TimedPartition]] = {}
        for task in self._tasks():
            here = positions[task.name]
            for task_input in task.inputs:
                watermark, partition = task_input.watermark, task_input.partition
                if watermark is None:
                    continue
                watermark.clock_is(now_ms, now_s)
                self._warn_of_seconds(watermark)
                self._warn_of_clock(watermark)
                has_more = self._inputs.is_paused(partition) or self._inputs.high_watermark(partition) > here[partition]
                watermark.stands(here[partition], has_more, now_s)
                if watermark.wants_answer(now_s) and self._inputs.high_watermark(partition) >= 0:
                    asked.setdefault(partition, []).append(watermark)
        if asked:
            asked_s = self._clock.monotonic()
            for partition, end in self._inputs.ends_now(list(asked), asked_s).items():
                for watermark in asked[partition]:
                    watermark.answered(end, asked_s)
        for time in self._times():
            for stage in time.stages:
                stage.follow(now_s)

    def _warn_of_new(self, time: TaskTime, new: Sequence[TopicPartition]) -> None:
        """Once for a topic that comes to inputs whose time has begun: its records of before are late."""
        for stage in time.stages:
            begun = stage.watermark != NEVER
            for partition in stage.partitions:
                of = partition.topic_partition
                is_joining = isinstance(partition, PartitionWatermark) and of in new and not partition.rules.by_clock
                if begun and is_joining and of.topic not in self._new:
                    self._new.add(of.topic)
                    LOG.warning(
                        "%s has had no event time so far, and that of the other inputs has reached %s: its records with earlier times come too late for "
                        "windows that have closed. To count them, stop the job, run `samzapy reset JOB.yaml --execute`, and start the job again: the "
                        "reset deletes all state and checkpoints, and each input is read again from its `start`",
                        of, as_utc(stage.watermark),
                    )  # fmt: skip

    def _warn_of_seconds(self, partition: TimedPartition) -> None:
        """Once for a topic, unless a later record of the partition already says otherwise."""
        topic = partition.topic_partition.topic
        if not isinstance(partition, PartitionWatermark) or partition.leap is not None or not looks_like_seconds(partition.newest) or topic in self._warned:
            return
        self._warned.add(topic)
        LOG.warning(
            "event time of %s is %s, so its windows hardly ever end: its records' times look like seconds. %s",
            partition.topic_partition, as_utc(partition.newest), MILLISECONDS,
        )  # fmt: skip

    def _warn_of_clock(self, partition: TimedPartition) -> None:
        """Once while processing time is far ahead of the clock."""
        if not isinstance(partition, PartitionWatermark) or not partition.rules.by_clock:
            return
        ahead_ms = partition.ahead_of_clock_ms
        if ahead_ms < FAR_AHEAD_MS:
            self._ahead.discard(partition.topic_partition)
        elif partition.topic_partition not in self._ahead:
            self._ahead.add(partition.topic_partition)
            LOG.warning(
                "processing time of %s is %.0f s ahead of this host's clock: that clock was set back, or the task was on a host whose clock is ahead; "
                "time goes on at half the pace until the clock has caught up",
                partition.topic_partition, ahead_ms / 1000,
            )  # fmt: skip

    def _tasks(self) -> list[TaskInstance]:
        return [task for task in self._inputs.tasks() if task.time is not None]

    def _times(self) -> list[TaskTime]:
        return [task.time for task in self._inputs.tasks() if task.time is not None]
