"""When a commit is due, and the words for why one is made.

It is due each `commit.interval`, and sooner when `commit.max_uncommitted` waits for it, or when the following stage does. Others come with what
people, hooks and the container's life ask for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from samzapy.container.marks import Marks
from samzapy.container.task_instance import TaskInstance

COMMIT = "commit"  # the row of the table of duties
INTERVAL, SIZE, ASKED, START, MOVE, END, RECORD, EARLY = "interval", "size", "asked", "start", "move", "end", "record", "early"
ORDERED, PAUSE = "ordered", "pause"  # by people
MOST_HELD = 50_000  # sums of a program
EARLY_S = 0.05  # between an early commit and the one before it, at least


def is_full(tasks: Iterable[TaskInstance], sent_bytes: int, max_uncommitted_bytes: int) -> bool:
    """Whether so much waits for a commit that it must not wait longer. `tasks`: all of the container."""
    held = sent_bytes
    for task in tasks:
        if task.held >= MOST_HELD:
            return True
        for store in task.stores.values():
            held += store.uncommitted_bytes
    return held >= max_uncommitted_bytes


def why_now(is_full: bool) -> str:
    """Why the row of the table makes one."""
    return SIZE if is_full else INTERVAL


def is_due_early(passed_s: float, has_sent: bool, tasks: Collection[TaskInstance], marks: Marks) -> bool:
    """Whether the following stage waits for a commit of these tasks: for records, or for how far a task is. That it has read on is no reason.
    `passed_s`: since the last one."""
    if passed_s < EARLY_S:
        return False
    if has_sent or any(task.held for task in tasks):
        return True
    return any(marks.is_news(task, marks.of(task)) for task in tasks)
