"""A task's context (stores, partitions, metrics) and what it may request from its container."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, overload

from samzapy.api.envelope import HeadersToSend, OutgoingMessageEnvelope, SystemStreamPartition
from samzapy.api.store import KeyValueStore


class Counter(Protocol):
    """A number that only grows."""

    def inc(self, amount: int = 1) -> None:
        """Add `amount`."""

    @property
    def value(self) -> int:
        """What it is now."""


class Gauge(Protocol):
    """A number that is set."""

    def set(self, value: float) -> None:
        """Give it this value."""

    @property
    def value(self) -> float:
        """What it is now."""


class Timer(Protocol):
    """Durations in seconds: count, sum, maximum."""

    def update(self, seconds: float) -> None:
        """Add one duration."""


class Metrics(Protocol):
    """A task's own metrics, by name; shown in `/metrics` as `samzapy_user_<name>` with job, container and task labels.

    In `init`: `self.refused = context.metrics.counter("refused")`; then in `process`: `self.refused.inc()`."""

    def counter(self, name: str) -> Counter:
        """The counter of that name; it is made at the first call."""

    def gauge(self, name: str) -> Gauge:
        """The gauge of that name; it is made at the first call."""

    def timer(self, name: str) -> Timer:
        """The timer of that name; it is made at the first call."""


@dataclass(frozen=True, slots=True)
class JobInfo:
    """Which job a task belongs to. `run_id` is new with every `samzapy run`."""

    name: str
    id: str
    run_id: str


class TaskContext(Protocol):
    """Given to `init`; may be kept."""

    task_name: str
    partitions: tuple[SystemStreamPartition, ...]
    params: Mapping[str, Any]
    job: JobInfo
    metrics: Metrics

    @property
    def watermark(self) -> int:
        """How far the event time of the task's inputs has come, in milliseconds since 1970: all records before it have come, as far as the job
        file's `inputs[].time` says. It never goes back. It moves when `process` has returned; -2**63 while nothing is known, 2**63-1 once a
        bounded run (`--until-end`) has read all.

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
    """A task's requests; each takes effect when the hook that made it returns."""

    def commit(self, scope: RequestScope = RequestScope.CURRENT_TASK) -> None:
        """Commit the container (a commit is always the whole container's)."""

    def shutdown(self, scope: RequestScope = RequestScope.CURRENT_TASK) -> None:
        """Stop this task, or all of the container's, after a commit, for the rest of the run. If they are started again (another
        container after a crash or `scale`) they stay stopped. The next `samzapy run` starts them at the record after the last one."""


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
        """Send when the hook returns; nothing is sent if it raises.

        `send("visit-counts", 3, key="ada")` means `send(OutgoingMessageEnvelope("visit-counts", 3, key="ada"))`; the other arguments are the
        envelope's, too.

        Raises:
            UnknownOutput: `outputs` does not list the topic. SerdeError: key or value does not encode. RecordTooLarge. TypeError, ValueError:
                as OutgoingMessageEnvelope.
        """
