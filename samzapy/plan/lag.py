"""How far behind a job is, one row for each input partition, as Kafka's tools count it: read_committed end − next offset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import TopicPartition, lag


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One input partition: the task with the most lag, its next offset, the partition's read_committed end, and the lag; the last two None
    where no broker tells."""

    topic_partition: TopicPartition
    task: str
    next_offset: int | None
    end: int | None
    lag: int | None


def has_read_checkpoint(report: Mapping[str, Any]) -> bool:
    """Whether a task has, by its report: before that, its positions mean nothing. A copy's always do."""
    return bool(report.get("sequence", 0) >= 0)


def partition_lags(
    tasks: Mapping[str, TaskModel], at: Mapping[str, Mapping[TopicPartition, int]], ends: Mapping[TopicPartition, int]
) -> list[PartitionLag]:
    """One for each input partition. `at`: by task, the next offsets that are known."""
    readers_of: dict[TopicPartition, list[str]] = {}
    for name, task in tasks.items():
        for partition in task.inputs:
            readers_of.setdefault(partition, []).append(name)
    found = []
    for partition, readers in sorted(readers_of.items()):
        known = [(at[name][partition], name) for name in readers if partition in at.get(name, {})]
        offset, reader = min(known, key=lambda one: one[0]) if known else (None, readers[0])
        end = max(ends[partition], offset or 0) if partition in ends else None  # asked of the broker before a position that has moved since
        found.append(PartitionLag(partition, reader, offset, end, None if offset is None or end is None else lag(end, offset)))
    return found
