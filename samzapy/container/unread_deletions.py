"""Looks, when a task starts, whether it may have missed deletions in the topics that fill its tables (plan/unread_deletions.py)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from samzapy.container.task_instance import TaskInstance
from samzapy.model.checkpoint import BY_COMMAND, Checkpoint
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.plan.unread_deletions import Unread, by_topic, tell
from samzapy.ports import Clock, Consumer

LOG = logging.getLogger("samzapy.inputs")


def look_for_unread_deletions(
    task: TaskInstance, old: Checkpoint, committed_ms: int, empty: Collection[str], bounds: Mapping[TopicPartition, Bounds], consumer: Consumer, clock: Clock
) -> list[dict[str, str]]:  # fmt: skip
    """Leave in a task that starts what is told of its inputs; returns what is new.

    Args:
        old: the checkpoint that it starts with, and `committed_ms`, its record's time.
        empty: stores that begin empty: they are filled from the topics' starts.
    """
    new, now_ms = [], clock.now_ms()
    for task_input in task.inputs:
        spec, partition = task_input.spec, task_input.partition
        place, stores = str(partition), sorted(spec.fills - set(empty))
        mark = old.inputs.get(place) or old.left.get(place)
        if mark is None or mark.topic_id != spec.topic_id or not stores or place in task.unread_deletions:
            continue
        stopped_ms = now_ms - committed_ms if place in old.inputs and old.incarnation != BY_COMMAND else None
        unread = Unread(position=mark.next_offset, end=bounds[partition].end, stopped_ms=stopped_ms, kept_ms=spec.delete_retention_ms)
        # A task that has nothing to do commits nothing. If the record at its position is there and young, all after it came later, and nothing is gone.
        if unread.may_lack_deletions and consumer.offset_for_time(partition, now_ms - unread.oldest_ms) > mark.next_offset:
            task.unread_deletions[place] = told = tell(task.name, partition.topic, place, unread, stores, spec.table if spec.table in stores else "")
            new.append(told)
    return new


def warn_of_unread_deletions(told: Iterable[Mapping[str, str]]) -> None:
    """A line for each topic."""
    for one in by_topic(told):
        LOG.warning("%s %s", one["sentence"], one["remedy"])
