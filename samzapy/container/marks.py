"""What a container's tasks say of themselves in internal topics: how far each is, at the cut of a commit, after all that it sent before.

A mark is in the transaction that also has the task's records and its checkpoint with the same times. So those who read it have read all that the
task sent before; and what it still sends comes from records after the cut, which are of that time or later.

The clock moves always, so a time that only the clock moves is told in whole seconds: else a job without records would write without pause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from samzapy import failpoints
from samzapy.container.marked_partition import said
from samzapy.container.ownership import Ownership
from samzapy.container.spec import Between, ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.model.event_time import NEVER
from samzapy.model.marks import IDLE, MARKS_KEY, Mark, marks_to_bytes

STEP_MS = 1000  # of a time that the clock moves: a window of the following stage may fire as much later, unless it ends with a second, as most do
Said = Mapping[str, Mark]  # by internal topic


class Marks:
    """Decides and sends the marks of a container's tasks.

    Attributes:
        is_on: whether the job has internal topics.
    """

    def __init__(self, spec: ContainerSpec, run_id: str, own: Ownership) -> None:
        self._between: Mapping[str, Between] = spec.between
        self._topic_ids = {topic: spec.inputs[topic].topic_id for topic in self._between}
        self._run_id = run_id
        self._own = own
        self.is_on = bool(self._between)

    def of(self, task: TaskInstance) -> Said:
        """What the task has to say now, of each internal topic that it writes."""
        found: dict[str, Mark] = {}
        for topic, between in self._between.items():
            fed = [i for i in task.inputs if i.partition.topic in between.sources]
            if fed and task.user is not None:
                found[topic] = self._mark(task, topic, between, all(i.ended for i in fed))
        return found

    def _mark(self, task: TaskInstance, topic: str, between: Between, has_ended: bool) -> Mark:
        before = task.said.get(topic, Mark()).time
        stage = task.time.of(between.sources) if task.time is not None and between.timed else None
        if stage is None:
            return said(NEVER, False, has_ended, self._run_id)
        at, is_firing = task.user.reached(topic, stage)  # type: ignore[union-attr]  # a program's
        if stage.follows_clock and at != NEVER:
            at -= at % STEP_MS
        at = max(at, NEVER if before is None else before)  # what it has said stands
        if not stage.is_idle or is_firing:
            return said(at, False, has_ended and not is_firing, self._run_id)
        return said(at, True, has_ended, self._run_id, task.user.still_to_come(topic))  # type: ignore[union-attr]

    def is_news(self, task: TaskInstance, now: Said) -> bool:
        """Whether the following stage does not know this of the task. Of a topic without time they need only hear of the end."""
        return any(mark != task.said.get(topic, None if self._between[topic].timed else Mark()) for topic, mark in now.items())

    def send(self, tasks: Iterable[tuple[TaskInstance, Said]]) -> None:
        """Into each partition of an internal topic the marks of the tasks that have news; in the open transaction."""
        news: dict[str, dict[str, Mark]] = {}
        for task, now in tasks:
            for topic, mark in now.items():
                if self.is_news(task, {topic: mark}):
                    news.setdefault(topic, {})[task.name] = mark
        for topic, marks in news.items():
            self._send(topic, marks)
            failpoints.hit("marks.sent")

    def announce(self, tasks: Iterable[TaskInstance]) -> None:
        """Before their next records: tasks that were idle, and are not any more, are waited for again."""
        for task in tasks:
            for topic, mark in task.said.items():
                if mark.state == IDLE and topic not in task.announced:
                    now = self.of(task).get(topic)
                    if now is not None and now.state != IDLE:
                        task.announced.add(topic)
                        self._send(topic, {task.name: Mark(mark.time)})

    def _send(self, topic: str, marks: Mapping[str, Mark]) -> None:
        data, producer = marks_to_bytes(marks, self._topic_ids[topic]), self._own.open()
        for partition in range(self._between[topic].partitions):
            producer.send(topic, data, MARKS_KEY, partition)
