"""A task's context (stores, partitions, metrics) and what it may request from its container."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, overload

from samzapy.api.envelope import HeadersToSend, OutgoingMessageEnvelope, SystemStreamPartition
from samzapy.api.store import KeyValueStore


class Counter(Protocol):
    """A whole number that only grows. It starts at 0 with each container process: an abort does not take back what was added, a restart does."""

    def inc(self, amount: int = 1) -> None:
        """Add `amount`, 0 or more. What is no number raises TypeError; a negative one, and a count beyond 64 bits, ValueError."""

    @property
    def value(self) -> int:
        """The current number."""


class Gauge(Protocol):
    """A number that can go up and down. It starts at 0.0 with each container process."""

    def set(self, value: float) -> None:
        """Replace the number. What is no number raises TypeError. NaN and infinity are shown as NaN in `/metrics` and as null in JSON."""

    @property
    def value(self) -> float:
        """The current number."""


class Timer(Protocol):
    """Durations in seconds, kept as their count, sum and maximum since the container process started."""

    def update(self, seconds: float) -> None:
        """Add one duration, in seconds. What is no number raises TypeError; NaN and infinity, ValueError."""


class Metrics(Protocol):
    """A task's own metrics, by name.

    In `init`: `self.refused = context.metrics.counter("refused")`; then in `process`: `self.refused.inc()`.

    `/metrics` shows a counter as `samzapy_user_<name>_total`, a gauge as `samzapy_user_<name>`, a timer as `samzapy_user_<name>_seconds_count` and
    `samzapy_user_<name>_seconds_sum`, with the labels job, container and task. A name has letters, digits, "_", "." and "-", at most 100; any
    other raises ValueError. So does a second metric that would have the same name in `/metrics` ("a.b" and "a-b"), and one beyond 1,000 of a task, or 20,000
    of a container: for counts by key, use a store.
    """

    def counter(self, name: str) -> Counter:
        """The counter of that name. The first call makes it, later calls return the same one."""

    def gauge(self, name: str) -> Gauge:
        """The gauge of that name. The first call makes it, later calls return the same one."""

    def timer(self, name: str) -> Timer:
        """The timer of that name. The first call makes it, later calls return the same one."""


@dataclass(frozen=True, slots=True)
class JobInfo:
    """Which job a task belongs to.

    Attributes:
        name, id: of the job, from the job file.
        run_id: random; each `samzapy run` has its own.
    """

    name: str
    id: str
    run_id: str


class TaskContext(Protocol):
    """What a task is told about itself. `init` is given it and may keep it, for example as `self.context`.

    Attributes:
        task_name: "Partition 3": the task that reads partition 3 of every input.
        partitions: the input partitions that the task reads.
        params: the job file's `params`; not to be changed.
        job: name and id of the job, and the id of the run.
        metrics: the task's own counters, gauges and timers.
    """

    task_name: str
    partitions: tuple[SystemStreamPartition, ...]
    params: Mapping[str, Any]
    job: JobInfo
    metrics: Metrics

    @property
    def watermark(self) -> int:
        """The task's event time, in milliseconds since 1970: all records with an earlier time have come, if none is later than the
        `watermark_delay` of the job file's `inputs[].time` allows. It is the minimum over the task's input partitions, changes only between two hooks,
        and never goes back. -2**63: nothing is known yet. 2**63-1: a bounded run (`--until-end`) has read everything.

        Raises:
            TaskError: no input has a `time`.
        """

    def get_store(self, name: str) -> KeyValueStore:
        """The task's store of that name.

        Raises:
            TaskError: the job file has no such store.
        """


class RequestScope(enum.Enum):
    """Which tasks a request to the coordinator concerns."""

    CURRENT_TASK = "current_task"
    ALL_TASKS_IN_CONTAINER = "all_tasks_in_container"


class TaskCoordinator(Protocol):
    """A task's requests to its container. A request takes effect when the hook that made it returns.

    Both methods raise TaskError if they are called from another thread than the one that runs the hooks.
    """

    def commit(self, scope: RequestScope = RequestScope.CURRENT_TASK) -> None:
        """Commit now instead of at the next `commit.interval`. A commit always covers the whole container, whatever the scope."""

    def shutdown(self, scope: RequestScope = RequestScope.CURRENT_TASK) -> None:
        """Stop this task, or all tasks of the container, after a commit, for the rest of the run. They stay stopped even if another container gets
        them, after a crash or `scale`. The next `samzapy run` starts them at the record after the last one that they processed."""


class MessageCollector(Protocol):
    """Where a task sends its records."""

    @overload
    def send(self, to: OutgoingMessageEnvelope, /) -> None: ...
    @overload
    def send(
        self,
        to: str,
        message: Any,
        /,
        key: Any = None,
        *,
        partition: int | None = None,
        partition_key: Any = None,
        timestamp: int | None = None,
        headers: HeadersToSend | None = None,
    ) -> None: ...
    def send(self, to: OutgoingMessageEnvelope | str, /, *message: Any, **rest: Any) -> None:
        """Send a record when the hook returns. If the hook raises, nothing is sent.

        `send("visit-counts", 3, key="ada")` means `send(OutgoingMessageEnvelope("visit-counts", 3, key="ada"))`; the other arguments too
        are those of OutgoingMessageEnvelope.

        Raises:
            UnknownOutput: `outputs` does not list the topic.
            SerdeError: the output's serde cannot encode the key or the value.
            RecordTooLarge: the record is larger than its topic allows (`max.message.bytes`).
            TaskError: the topic has no such partition, or this is not the thread that runs the hooks.
            TypeError, ValueError: as OutgoingMessageEnvelope.
        """
