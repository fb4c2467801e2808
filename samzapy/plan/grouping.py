"""Which task reads which partitions: task i reads partition i of every input and every internal topic, and every partition of a broadcast input."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from samzapy.api.errors import ConfigurationError
from samzapy.model.job_model import TaskModel
from samzapy.model.names import task_name
from samzapy.model.offsets import TopicPartition
from samzapy.plan.grown_topics import KEEPS_PARTITIONS


def group(
    partitions: Mapping[str, int], broadcast: Collection[str], has_stores: bool, together: Collection[Collection[str]] | None = None,
    internal: Collection[str] = (), so_far: int = 0,
) -> dict[str, TaskModel]:
    """Tasks by name, in order, from the partition count of each topic that is read.

    Args:
        has_stores: whether tasks keep state.
        together: topics whose records meet the same state; None: if there is state, those of all inputs do.
        internal: those between two stages.
        so_far: how many tasks there are at least; some may have no partition.

    Raises:
        ConfigurationError: unequal partition counts of topics that are read together (records of one key would meet different stores).
    """
    counts = {topic: n for topic, n in partitions.items() if topic not in broadcast}
    for met in [counts] if together is None else together:
        if has_stores:
            _refuse_unequal({topic: counts[topic] for topic in met if topic in counts}, internal)
    tasks = max([so_far, *counts.values()]) or 1
    everywhere = tuple(TopicPartition(topic, p) for topic in partitions if topic in broadcast for p in range(partitions[topic]))
    return {
        task_name(i): TaskModel(task_name(i), i, (*(TopicPartition(topic, i) for topic, n in counts.items() if i < n), *everywhere))
        for i in range(tasks)
    }


def _refuse_unequal(counts: Mapping[str, int], internal: Collection[str]) -> None:
    if len(set(counts.values())) > 1:
        counted = ", ".join(f"{'internal topic ' * (topic in internal)}{topic} has {n}" for topic, n in sorted(counts.items()))
        raise ConfigurationError(
            f"the inputs have unequal partition counts: {counted}. Task i reads partition i of each, and the job has stores: records of one key would go to "
            "different tasks.",
            _equal_again(counts, internal),
        )


def _equal_again(counts: Mapping[str, int], internal: Collection[str]) -> str:
    """What to do about unequal partition counts."""
    if not any(topic in internal for topic in counts):
        return (
            "Give the topics the same number of partitions. Or, if one of them is a table that every task may hold whole, broadcast it: in a program with "
            "`app.table(…, broadcast=True)`, else with `broadcast: true` and `bootstrap: true` for that input. Every task then processes every record of that "
            "topic, so never do this to a topic whose records are to be counted once."
        )
    most = max(counts.values())
    inputs = sorted(topic for topic, n in counts.items() if n == most and topic not in internal)
    if not inputs:
        grown = " and ".join(sorted(topic for topic, n in counts.items() if n == most))
        asked = "If the program says `partitions=`, give the same number for all of them."
        return f"{asked} If somebody added partitions to {grown}, nothing is lost. {KEEPS_PARTITIONS}"
    return (
        f"If somebody added partitions to {' and '.join(inputs)}, give the job a new `id`, or run `samzapy reset JOB.yaml`, and read the inputs again from "
        "the start. Otherwise give the internal topics other names in the program."
    )


def refuse_left_out(everywhere: Mapping[str, int], tasks: int) -> None:
    """Refuse topics that have a partition for each task, and are fewer than the tasks are now.

    Raises:
        ConfigurationError: there are some.
    """
    few = {topic: n for topic, n in sorted(everywhere.items()) if n < tasks}
    if few:
        counted = ", ".join(f"{topic} has {n}" for topic, n in few.items())
        raise ConfigurationError(
            f"the job has {tasks} tasks, and a topic of `broadcast` needs a partition for each: {counted}.",
            f"With Kafka's own tools, give {' and '.join(few)} {tasks} partitions, then start the job again: new partitions get "
            "records that are sent from then on.",
        )


def internal_counts(
    inputs: Mapping[str, int], broadcast: Collection[str], asked: Mapping[str, int | None], together: Collection[Collection[str]]
) -> dict[str, int]:
    """How many partitions internal topics get that are not there yet: as asked for, or as the topics whose records they meet, or as the largest
    input."""
    largest = max((count for topic, count in inputs.items() if topic not in broadcast), default=1)
    found: dict[str, int] = {}
    for topic, partitions in asked.items():
        beside = sorted({other for met in together if topic in met for other in met})
        known = [inputs[other] for other in beside if other in inputs] + [count for other in beside if (count := asked.get(other)) is not None]
        found[topic] = partitions or (known[0] if known else largest)
    return found
