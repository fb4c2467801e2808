"""What `init` of a task is given (api/context.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.api.context import JobInfo, Metrics
from samzapy.api.envelope import SystemStreamPartition
from samzapy.api.errors import TaskError
from samzapy.api.store import KeyValueStore
from samzapy.container.task_metrics import OperatorCounts, TaskMetrics
from samzapy.container.task_watermark import TaskTime
from samzapy.model.job_model import TaskModel
from samzapy.model.names import KAFKA
from samzapy.ports import TaskStore


class Context:
    """What `init` is given."""

    def __init__(
        self,
        model: TaskModel,
        params: Mapping[str, Any],
        job: JobInfo,
        stores: Mapping[str, TaskStore],
        metrics: TaskMetrics,
        *,
        time: TaskTime | None = None,
        counts: OperatorCounts | None = None,
        between: Mapping[str, int] | None = None,
        together: dict[str, Any] | None = None,
    ) -> None:
        self.between = between or {}  # how many partitions the internal topics have
        self.together = {} if together is None else together  # what programs hold of all tasks of the container until a commit
        self.counts = counts or OperatorCounts()  # for the task objects of programs
        self.task_name = model.name
        self.partitions = tuple(SystemStreamPartition(KAFKA, p.topic, p.partition) for p in model.inputs)
        self.params: Mapping[str, Any] = params
        self.job = job
        self.metrics: Metrics = metrics
        self._stores = stores
        self.time = time  # for programs of streams

    @property
    def watermark(self) -> int:
        """How far the task's event time has come (api.context)."""
        if self.time is None:
            raise TaskError(
                f"{self.task_name} asks for the watermark, but no input has a time.",
                "Set it in the job file: `inputs: [{topic: …, time: {from: record, watermark_delay: 5s}}]`.",
            )
        return self.time.watermark

    def get_store(self, name: str) -> KeyValueStore:
        """The task's store of that name."""
        store = self._stores.get(name)
        if store is None:
            there = ", ".join(sorted(self._stores)) or "none"
            raise TaskError(
                f"{self.task_name} asks for store {name!r}; the job file has: {there}.",
                f"Add `{name}: {{key: …, value: …}}` under `stores:`.",
            )
        return store
