"""The job model: which task reads which partitions, and which container runs which tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from samzapy.model.offsets import TopicPartition


@dataclass(frozen=True, slots=True)
class TaskModel:
    """A task: its name, the partition that its stores use in their changelogs and the checkpoint topic, and the inputs it reads."""

    name: str
    partition: int
    inputs: tuple[TopicPartition, ...]

    def to_json(self) -> dict[str, object]:
        return {"partition": self.partition, "inputs": [list(i) for i in self.inputs]}


@dataclass(frozen=True, slots=True)
class JobModel:
    """All tasks, and for each container number the names of its tasks."""

    tasks: Mapping[str, TaskModel]
    containers: Mapping[int, tuple[str, ...]]

    def to_json(self) -> dict[str, object]:
        return {
            "tasks": {t.name: t.to_json() for t in self.tasks.values()},
            "containers": {str(n): list(names) for n, names in self.containers.items()},
        }


def tasks_from_json(raw: Mapping[str, Any]) -> dict[str, TaskModel]:
    """Tasks by name, as `to_json` wrote them."""
    return {
        name: TaskModel(name, int(t["partition"]), tuple(TopicPartition(str(topic), int(p)) for topic, p in t["inputs"]))
        for name, t in raw.items()
    }
