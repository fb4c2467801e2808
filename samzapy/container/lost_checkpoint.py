"""A checkpoint that was lost: a task without one is at its first start only if nothing shows that it has committed before; else it is refused.

plan/start_refusals.py decides that; here it gets the facts. plan/local_store.py asks it about a local store and its changelog.
"""

from __future__ import annotations

from collections.abc import Collection

from samzapy.api.errors import StateRefused
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Startpoint
from samzapy.plan.checkpoint_orders import decides
from samzapy.plan.start_refusals import emptied, one_partition, orphaned


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
    refusal = emptied(spec.job.group_id, one_partition(task.model), str(spec.checkpoint_of(task.model)), start, whole, lost)
    if refusal is not None:
        raise StateRefused(f"{task.name}: {refusal.reason}", refusal.remedy)


def refuse_orphans(task: TaskInstance, spec: ContainerSpec, order: Startpoint | None) -> None:
    """Asked when its stores are restored.

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
        checkpoints, has_checkpoint = str(spec.checkpoint_of(task.model)), task.checkpoint is not None
        refusal = orphaned(
            task.name, spec.job.group_id, one_partition(task.model), checkpoints, has_checkpoint, name, str(partition), restored.records
        )
        raise StateRefused(refusal.reason, refusal.remedy)
