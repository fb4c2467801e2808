"""The event time of a job under test: the part of the harness that moves it and looks at it."""

from __future__ import annotations

import warnings
from datetime import datetime

from samzapy.container.container import Container
from samzapy.model.event_time import MILLISECONDS, NEVER, as_utc, in_ms, looks_like_seconds
from samzapy.model.names import task_name
from samzapy.testing.harness_job import HarnessJob, named
from samzapy.testing.manual_clock import ManualClock


def clock_at(now: int | datetime | None, over: EventTime | None) -> ManualClock:
    """The clock of the harness `over`, or a new one that starts at `now`; None: always at the same time."""
    if over is not None:
        if now is not None:
            raise ValueError("`now` is for the first harness only: the second shares its clock")
        return over.clock
    return ManualClock() if now is None else ManualClock(in_ms(now) if isinstance(now, datetime) else int(now))


class EventTime:
    """The harness's methods for event time."""

    _job: HarnessJob
    _has_warned = False
    clock: ManualClock

    @property
    def container(self) -> Container:
        """The running container."""
        raise NotImplementedError

    def run(self, commit: bool = True) -> None:
        """Process every record."""
        raise NotImplementedError

    def time_passes(self, topic: str, until: int | datetime) -> None:
        """Move the event time of all partitions of an input to `until` (milliseconds since 1970, or a datetime with a time zone) without a record.
        Windows that are due then fire at the next `run()`; in a program of several stages they fire now, in all stages.

        Raises:
            ConfigurationError: no input has that name, or it has no `time`.
        """
        named("input with a `time`", topic, {i.topic: i for i in self._job.settings.inputs if i.time is not None})
        at = in_ms(until) if isinstance(until, datetime) else until
        has_stages = bool(self._job.topics.internal)
        self.run(commit=has_stages)  # what was sent before comes before, in each stage
        for task in self.container.tasks.values():
            for task_input in task.inputs:
                if task_input.watermark is not None and task_input.partition.topic == topic:
                    task_input.watermark.go_to(at + task_input.watermark.rules.delay_ms)
        if has_stages:
            self.run()  # a following stage hears of it with a commit: what is sent next comes after that

    def late(self, name: str) -> int:
        """How many records were too late for all their windows in the window operator of that name: over all tasks, since the container started.

        Raises:
            ConfigurationError: the job's program has no windows of that name.
        """
        counts: dict[str, int] = {}
        for task in self.container.tasks.values():
            for window, late in getattr(task.user, "late", {}).items():
                counts[window] = counts.get(window, 0) + late
        return named("window", name, counts)

    def watermark(self, task: int = 0) -> int | None:
        """The watermark of a task (a number from 0), in milliseconds since 1970; None: nothing is known yet.

        Raises:
            ConfigurationError: there is no such task, or it has no input with a `time`.
        """
        tasks = {name: one.time for name, one in self.container.tasks.items() if one.time is not None}
        at = named("task with event time", task_name(task), tasks).watermark
        return None if at == NEVER else at

    def _warn_of_times(self, container: Container) -> None:
        """Warn once, at the line of the test, of times that look like seconds, or of records that do not move event time because they are after the
        harness's clock."""
        if not self._has_warned and (told := self._wrong_times(container)):
            self._has_warned = True
            warnings.warn(told, stacklevel=4)

    def _wrong_times(self, container: Container) -> str:
        now_ms = self.clock.now_ms()
        in_seconds = [at for task in container.tasks.values() if task.time is not None for at in task.time.kept.values() if looks_like_seconds(at)]
        if in_seconds:
            return f"event time is {as_utc(max(in_seconds))}: the records' times look like seconds that are read as milliseconds. {MILLISECONDS}"
        partitions = [one.watermark for task in container.tasks.values() for one in task.inputs if one.watermark is not None]
        topics = sorted({partition.topic_partition.topic for partition in partitions if partition.leap is not None and partition.leap.time > now_ms})
        if not topics:
            return ""
        return (
            f"records of {', '.join(topics)} have times after the harness's clock, which stands at {as_utc(now_ms)}: event time does not follow them yet. "
            "Start the clock later: Harness(…, now=…), in milliseconds or as a datetime."
        )
