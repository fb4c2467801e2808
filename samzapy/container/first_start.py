"""T5, first half: a task without a checkpoint is at its first start only if nothing shows that it has committed before."""

from __future__ import annotations

from collections.abc import Collection

from samzapy.api.errors import StateRefused
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Startpoint
from samzapy.plan.checkpoint_orders import decides
from samzapy.plan.restore import emptied


def refuse_emptied(
    task: TaskInstance, spec: ContainerSpec, start: int, order: Startpoint | None, truncated: Collection[TopicPartition]
) -> None:
    """Asked before its stores are opened.

    Args:
        start: the log start of its checkpoint partition.
        order: the `checkpoint set` that this start would carry out.
        truncated: the changelog partitions whose log start is above 0.

    Raises:
        StateRefused: there is no checkpoint, and records of its checkpoint partition were deleted.
    """
    if task.checkpoint is not None:
        return
    own = (s.changelog_of(task.model.partition) for s in spec.stores.values() if s.changelog)
    lost = [str(partition) for partition in own if partition in truncated]
    whole = order if decides(order, task.model.inputs) else None  # one for some inputs leaves the others at their start
    refusal = emptied(spec.job.group_id, str(spec.checkpoint_of(task.model)), start, whole, lost)
    if refusal is not None:
        raise StateRefused(f"{task.name}: {refusal.reason}", refusal.remedy)


def refuse_orphans(task: TaskInstance, spec: ContainerSpec, order: Startpoint | None) -> None:
    """Asked when its stores are restored: a changelog's state must belong to a checkpoint that names it, else it would be counted again, or is old.

    Raises:
        StateRefused: there is state that no checkpoint names, and the order does not decide about it.
    """
    if decides(order, task.model.inputs):
        return
    known = task.checkpoint.stores if task.checkpoint is not None else {}
    for name, restored in task.restored.items():
        if name in known or not restored.records:
            continue
        partition = spec.stores[name].changelog_of(task.model.partition)
        if task.checkpoint is None:
            raise StateRefused(
                f"{task.name}: there is no checkpoint in {spec.checkpoint_of(task.model)}, but {partition} holds "
                f"{restored.records} records of state: processing the inputs again would count twice.",
                "Run `samzapy reset JOB.yaml` to delete the state and start over, or set where every input continues: "
                "`samzapy checkpoint set JOB.yaml --to-latest --keep-state` (or `--to-datetime`, `--to-offset`).",
            )
        raise StateRefused(
            f"{task.name}: store {name!r} is new to the checkpoint, but {partition} holds {restored.records} records: they are of another job's "
            "store, or of one that was dropped by a command that did not finish.",
            f"To start store {name!r} empty, remove it from `stores:`, run `samzapy state drop JOB.yaml {name} --execute`, and put it back; "
            "or give it another `changelog`.",
        )
