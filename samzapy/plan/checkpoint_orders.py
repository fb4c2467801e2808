"""`checkpoint set`: which offsets the tasks are to go on from, and what becomes of an order that was given before.

A startpoint is an order to a task, carried out once: its next start commits the offsets together with the startpoint's id, so an id that
is in the checkpoint is spent. There is one record per task; an order that was not carried out yet is not lost when a further one is given
for other partitions, because the new record holds both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from samzapy.api.errors import ConfigurationError
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.ownership import Startpoint

EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: exactly one of these. `name` is `earliest` or `latest`; `time_ms` milliseconds since 1970."""

    name: str = ""
    offset: int | None = None
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which inputs; None: all."""

    topic: str | None = None
    partition: int | None = None

    def holds(self, partition: TopicPartition) -> bool:
        return self.topic in (None, partition.topic) and self.partition in (None, partition.partition)


@dataclass(frozen=True, slots=True)
class Step:
    """One input partition of one task: from (None: there is no checkpoint of it) and to, as next offsets; `chosen`: whether it is set."""

    task: str
    topic_partition: TopicPartition
    before: int | None
    after: int | None
    chosen: bool


def pending(startpoint: Startpoint | None, checkpoint: Checkpoint | None) -> Startpoint | None:
    """The startpoint, if the task's next start has to carry it out."""
    spent = startpoint is None or (checkpoint is not None and checkpoint.startpoint_id == startpoint.id)
    return None if spent else startpoint


def decides(order: Startpoint | None, inputs: Iterable[TopicPartition]) -> bool:
    """Whether a pending order says of every input where to go on: then somebody has decided what belongs to the task's state."""
    return order is not None and all(str(partition) in order.offsets for partition in inputs)


def chosen_partitions(tasks: Mapping[str, TaskModel], choice: Choice, internal: Collection[str] = ()) -> list[TopicPartition]:
    """The input partitions that are to be set. Of the program's internal topics only those that are named.

    Raises:
        ConfigurationError: there are none.
    """
    there = sorted({partition for task in tasks.values() for partition in task.inputs})
    chosen = [partition for partition in there if choice.holds(partition) and (partition.topic not in internal or choice.topic is not None)]
    if not chosen:
        what = " ".join(f"--{k} {v}" for k, v in (("topic", choice.topic), ("partition", choice.partition)) if v is not None)
        topics = ", ".join(
            f"{t} (partitions 0 to {max(p.partition for p in there if p.topic == t)})" for t in sorted({p.topic for p in there})
        )
        raise ConfigurationError(
            f"{what}: the job has no such input partition.",
            f"Its inputs are: {topics}. A removed input continues at its old offset if it is added again: `samzapy checkpoint show JOB.yaml` shows that offset.",
        )
    return chosen


def refuse_part_of_stages(choice: Choice, internal: Collection[str]) -> None:
    """With `--reset-state`, a program with internal topics is set as a whole: the state of a following stage comes from all inputs of all tasks.

    Raises:
        ConfigurationError: some inputs are chosen.
    """
    if internal and choice != Choice():
        raise ConfigurationError(
            f"the program has internal topics ({', '.join(sorted(internal))}): the state of a following stage comes from all inputs and partitions, and is "
            "emptied for all of them.",
            "Leave --topic and --partition out; or keep the state: --keep-state.",
        )


def internal_ends(
    tasks: Mapping[str, TaskModel],
    bounds: Mapping[TopicPartition, Bounds],
    checkpoints: Mapping[str, Checkpoint],
    startpoints: Mapping[str, Startpoint],
    reset: bool,
) -> dict[TopicPartition, int]:
    """Where internal topics go on: at their ends, if the state is emptied, because the stage before sends all of it again; and where nothing says how
    far they were read. Others stay. `bounds`: of those internal partitions that exist."""
    found = {}
    for name, task in tasks.items():
        checkpoint = checkpoints.get(name)
        order = pending(startpoints.get(name), checkpoint)
        for partition in task.inputs:
            if partition in bounds and (reset or standing(partition, checkpoint, order) is None):
                found[partition] = bounds[partition].end
    return found


def resolve(target: Target, bounds: Mapping[TopicPartition, Bounds], at_time: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The next offset that the target means in each partition. `at_time`: the first offset at or after the target's time.

    Raises:
        ConfigurationError: an offset outside of what some partitions hold; all of them named.
    """
    if target.name == EARLIEST:
        return {partition: b.start for partition, b in bounds.items()}
    if target.name == LATEST:
        return {partition: b.end for partition, b in bounds.items()}
    if target.offset is None:
        return {partition: min(max(at_time[partition], b.start), b.end) for partition, b in bounds.items()}
    wrong = [f"{partition} allows {b.start} to {b.end} (its end)" for partition, b in bounds.items() if not b.start <= target.offset <= b.end]
    if wrong:
        raise ConfigurationError(
            f"--to-offset {target.offset} is out of range: {', '.join(wrong)}.",
            "Choose an offset that all of them allow, or name one partition with --topic and --partition.",
        )
    return dict.fromkeys(bounds, target.offset)


def steps(
    tasks: Mapping[str, TaskModel],
    offsets: Mapping[TopicPartition, int],
    checkpoints: Mapping[str, Checkpoint],
    startpoints: Mapping[str, Startpoint],
) -> list[Step]:
    """Every input partition of the tasks that are touched, also those that stay; by task, in the job's order."""
    found = []
    for name, task in tasks.items():
        if not any(partition in offsets for partition in task.inputs):
            continue
        checkpoint = checkpoints.get(name)
        order = pending(startpoints.get(name), checkpoint)
        for partition in task.inputs:
            before = standing(partition, checkpoint, order)
            found.append(Step(name, partition, before, offsets.get(partition, before), partition in offsets))
    return found


def standing(partition: TopicPartition, checkpoint: Checkpoint | None, order: Startpoint | None) -> int | None:
    """Where a task would begin to read this partition: by an order that waits for it, else by its checkpoint."""
    if order is not None and str(partition) in order.offsets:
        return order.offsets[str(partition)]
    mark = checkpoint.inputs.get(str(partition)) if checkpoint is not None else None
    return None if mark is None else mark.next_offset


def new_startpoints(
    startpoint_id: str,
    found: list[Step],
    topic_ids: Mapping[str, str],
    checkpoints: Mapping[str, Checkpoint],
    startpoints: Mapping[str, Startpoint],
    deletes: Callable[[str], bool],
) -> dict[str, Startpoint]:
    """A record for each task: what was chosen, and what an order before it had chosen and no start has carried out yet.

    Args:
        deletes: whether there are deletions in the changelogs of this task that no checkpoint covers.
    """
    result = {}
    for task in dict.fromkeys(step.task for step in found):
        before = pending(startpoints.get(task), checkpoints.get(task))
        chosen = {str(s.topic_partition): s for s in found if s.task == task and s.chosen}
        offsets = {**(before.offsets if before else {}), **{partition: s.after for partition, s in chosen.items() if s.after is not None}}
        ids = {**(before.topic_ids if before else {}), **{partition: topic_ids[s.topic_partition.topic] for partition, s in chosen.items()}}
        result[task] = Startpoint(startpoint_id, offsets, ids, deletes=deletes(task) or (before is not None and before.deletes))
    return result
