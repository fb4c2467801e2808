"""The job model: which task reads which partitions, and which container runs which tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from samzapy.model.offsets import TopicPartition


@dataclass(frozen=True, slots=True)
class TaskModel:
    """A task: its name, the partition that its stores use in their changelogs and the checkpoint topic, and the inputs it reads."""

    name: str
    partition: int
    inputs: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class JobModel:
    """All tasks, and for each container number the names of its tasks."""

    tasks: Mapping[str, TaskModel]
    containers: Mapping[int, tuple[str, ...]]

    def tasks_of(self, container: int) -> tuple[TaskModel, ...]:
        return tuple(self.tasks[name] for name in self.containers[container])

    def to_json(self) -> dict[str, object]:
        return {
            "tasks": {t.name: {"partition": t.partition, "inputs": [list(i) for i in t.inputs]} for t in self.tasks.values()},
            "containers": {str(n): list(names) for n, names in self.containers.items()},
        }
