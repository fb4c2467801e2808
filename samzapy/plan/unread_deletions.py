"""Deletions that a task can no longer read: compaction removes them from a topic once they are older than its `delete.retention.ms`.

A task that was stopped for longer goes on after its last commit, and the topic has neither the entry nor its deletion any more. So the entry
stays in the task's table. What was removed cannot be known, only that something may have been; who runs the job is told of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from samzapy.plan.duration import duration

NAMED = 5  # other partitions of the topic

@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """The offsets of an input partition that a task has still to read when it starts.

    Attributes:
        position: the next offset of the state that it starts with.
        end: the partition's end offset. It counts what was removed, too.
        stopped_ms: how long ago a task committed that state; None: not known, because the partition was no input then, or a command wrote since.
        kept_ms: the topic's `delete.retention.ms`; None: it is not compacted.
    """

    position: int
    end: int
    stopped_ms: int | None
    kept_ms: int | None

    @property
    def oldest_ms(self) -> int:
        """The age from which on a deletion may be gone: half of what the topic says, as for local stores; clocks differ, and reading takes time."""
        return (self.kept_ms or 0) // 2

    @property
    def may_lack_deletions(self) -> bool:
        """Whether this alone leaves room for doubt."""
        is_old = self.stopped_ms is None or self.stopped_ms >= self.oldest_ms
        return self.kept_ms is not None and self.position < self.end and is_old


def tell(task: str, topic: str, topic_partition: str, unread: Unread, stores: Sequence[str], table: str) -> dict[str, str]:
    """What is told of it: what may be wrong, and the way out. `stores`: which the input fills; `table`: the one of a program's table, or ""."""
    since = " (how long after the last commit is not known)" if unread.stopped_ms is None else f", {duration(unread.stopped_ms / 1000)} after the last commit"
    these = f"the table {table!r}" if table else f"store {', '.join(map(repr, stores))}"
    drops = " and ".join(f"`samzapy state drop JOB.yaml {store} --set stores.{store}.changelog=false --execute`" for store in stores)
    return {
        "topic": topic,
        "partition": topic_partition,
        "sentence": f"{task} goes on in {topic_partition} at {unread.position}{since}; the topic keeps deletions for "
        f"{duration((unread.kept_ms or 0) / 1000)} (`delete.retention.ms`). So {these} may still have entries that were deleted meanwhile.",
        "remedy": f"To fill the table again from its topic, stop the job, `samzapy state drop JOB.yaml {table} --execute`, and start the job."
        if table
        else f"To fill a store again that has nothing but this topic's entries, stop the job, {drops}, and start the job: the topic is read from its start.",
    }


def by_topic(told: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """The same, of each topic once."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for one in told:
        found.setdefault(one["topic"], []).append(one)
    return [{**first, "sentence": first["sentence"] + _others([one["partition"] for one in rest])} for first, *rest in found.values()]


def _others(partitions: Sequence[str]) -> str:
    if not partitions:
        return ""
    more = f" and {len(partitions) - NAMED} more" if len(partitions) > NAMED else ""
    return f" The same holds for {', '.join(partitions[:NAMED])}{more}."
