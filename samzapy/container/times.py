"""Event time in the running container: what the lanes are told of records, of the consumer's positions, of the clock and of the broker.

What follows from that is decided in lane_time.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from samzapy.container.inputs import Inputs
from samzapy.container.lane_time import LaneTime
from samzapy.container.requests import Requests
from samzapy.container.spec import ContainerSpec
from samzapy.container.stage_time import StageTime, stage_name
from samzapy.container.task_instance import TaskInstance
from samzapy.model.event_time import NEVER, LaneMark
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Clock, Message


class Times:
    """The event time of a container's tasks.

    Attributes:
        is_on: whether any input has a time.
    """

    def __init__(self, spec: ContainerSpec, inputs: Inputs, clock: Clock, requests: Requests) -> None:
        self.is_on = any(one.time is not None for one in spec.inputs.values())
        self._inputs = inputs
        self._requests = requests
        self._clock = clock

    def begin(self, task: TaskInstance) -> None:
        """The task's time is that of its checkpoint. Before its `init`."""
        timed = [i for i in task.inputs if i.spec.time is not None]
        if not timed:
            return
        topics = [i.partition.topic for i in timed]
        known = [w for name, w in task.committed.watermarks.items() if not set(name.split("+")).isdisjoint(topics)]
        task.time = stage = StageTime(stage_name(topics), max(known, default=NEVER))
        for task_input in timed:
            mark = task.committed.inputs[str(task_input.partition)].time or LaneMark()
            rules = task_input.spec.time.rules  # type: ignore[union-attr]  # `timed`
            task_input.lane = LaneTime(task_input.partition, rules, mark, self._clock.now_ms, stage.before_return)
            stage.lanes.append(task_input.lane)

    def before(self, batch: Sequence[Message]) -> None:
        """These records are processed next: idle lanes that have something to read count again, and where that is in doubt the broker is asked."""
        now_ms = self._clock.now_ms()
        in_doubt = False
        read: set[tuple[str, int]] | None = None
        for stage in self._stages():
            for lane in stage.lanes:
                if lane.rules.by_clock:
                    lane.clock_is(now_ms)
                if lane.idle:
                    read = {(m.topic(), m.partition()) for m in batch} if read is None else read
                    if (lane.partition.topic, lane.partition.partition) in read or self._inputs.high_watermark(lane.partition) > lane.position >= 0:
                        lane.active()
            in_doubt = in_doubt or any(lane.idle and not lane.proved for lane in stage.lanes)
        if in_doubt:
            self.look(batch)
        if any(task.is_due for task in self._tasks()):
            self._requests.fire()

    def look(self, unprocessed: Sequence[Message]) -> None:
        """Once a second: who stands where; and the broker is asked about those that may be idle. `unprocessed`: of the batch."""
        now_s, now_ms = self._clock.monotonic(), self._clock.now_ms()
        positions = self._inputs.positions(unprocessed)
        asked: dict[TopicPartition, list[LaneTime]] = {}
        for task in self._tasks():
            here = positions[task.name]
            for task_input in task.inputs:
                lane, partition = task_input.lane, task_input.partition
                if lane is None:
                    continue
                lane.clock_is(now_ms)
                has_more = self._inputs.is_paused(partition) or self._inputs.high_watermark(partition) > here[partition]
                lane.stands(here[partition], has_more, now_s)
                if lane.wants_answer(now_s) and self._inputs.high_watermark(partition) >= 0:
                    asked.setdefault(partition, []).append(lane)
        if asked:
            asked_s = self._clock.monotonic()
            for partition, end in self._inputs.ends_now(list(asked), asked_s).items():
                for lane in asked[partition]:
                    lane.answered(end, asked_s)
        for stage in self._stages():
            stage.follow(now_ms)

    def _tasks(self) -> list[TaskInstance]:
        return [task for task in self._inputs.tasks() if task.time is not None]

    def _stages(self) -> list[StageTime]:
        return [task.time for task in self._inputs.tasks() if task.time is not None]
