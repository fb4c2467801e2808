"""Which task reads which partitions: task i reads partition i of every input, and every partition of a broadcast input."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from samzapy.api.errors import ConfigurationError
from samzapy.model.job_model import TaskModel
from samzapy.model.names import task_name
from samzapy.model.offsets import TopicPartition


def group(partitions: Mapping[str, int], broadcast: Collection[str], has_stores: bool) -> dict[str, TaskModel]:
    """Tasks by name, in order, from the partition count of each input topic.

    Raises:
        ConfigurationError: inputs of unequal partition counts in a job with stores (records of one key would meet different stores).
    """
    counts = {topic: n for topic, n in partitions.items() if topic not in broadcast}
    if has_stores and len(set(counts.values())) > 1:
        counted = ", ".join(f"{topic} has {n}" for topic, n in sorted(counts.items()))
        raise ConfigurationError(
            f"inputs of unequal partition counts: {counted}; task i reads partition i of each, and the job has stores.",
            "Give the topics the same number of partitions, or mark the small one `broadcast: true`.",
        )
    tasks = max(counts.values(), default=1)
    everywhere = tuple(TopicPartition(topic, p) for topic in partitions if topic in broadcast for p in range(partitions[topic]))
    return {
        task_name(i): TaskModel(task_name(i), i, (*(TopicPartition(topic, i) for topic, n in counts.items() if i < n), *everywhere))
        for i in range(tasks)
    }
