"""When a commit is due, and the words for why one is made.

`due` decides: each `commit.interval`, and sooner when `commit.max_uncommitted` waits for it, when the search for a poison record has as many records
as it may, or when the following stage waits. duties.py, processing.py and early_commits.py ask it. Others come with what people, hooks and the container's
life ask for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from samzapy.container.marks import Marks
from samzapy.container.task_instance import TaskInstance

COMMIT = "commit"  # the row of the table of duties
INTERVAL, SIZE, ASKED, START, MOVE, END, RECORD, EARLY = "interval", "size", "asked", "start", "move", "end", "record", "early"
ORDERED, PAUSE = "ordered", "pause"  # by people; RECORD: one is searched for, or ends the job
MOST_SUMS = 50_000  # that programs hold
EARLY_S = 0.05  # between an early commit and the one before it, at least


def is_full(tasks: Iterable[TaskInstance], sent_bytes: int, max_uncommitted_bytes: int) -> bool:
    """Whether so much waits for a commit that it must not wait longer. `tasks`: all of the container."""
    held = sent_bytes
    for task in tasks:
        if task.held >= MOST_SUMS:
            return True
        for store in task.stores.values():
            held += store.uncommitted_bytes
    return held >= max_uncommitted_bytes


def due(*, is_interval_over: bool = False, is_full: bool = False, is_search_full: bool = False, is_early: bool = False) -> str:
    """Why a commit is due; "": none is. Where there are several reasons, the first of these.

    Args:
        is_full: `is_full` says so.
        is_search_full: the transaction holds as many records as the search for a poison record allows.
        is_interval_over: `commit.interval` has passed since the last one.
        is_early: `is_due_early` says so.
    """
    if is_full:
        return SIZE
    if is_search_full:
        return RECORD
    if is_interval_over:
        return INTERVAL
    return EARLY if is_early else ""


def is_due_early(has_records: bool, passed_s: float, has_sent: bool, tasks: Collection[TaskInstance], marks: Marks) -> bool:
    """Whether the following stage waits for a commit of these tasks: for records, or for how far a task is. That it has read on is no reason.
    While the container has records to process, `commit.interval` decides.

    Args:
        has_records: whether the last poll brought some.
        passed_s: since the last commit.
        has_sent: whether records went to the following stage since the last early one.
    """
    if has_records or passed_s < EARLY_S:
        return False
    if has_sent or any(task.held for task in tasks):
        return True
    return any(marks.is_news(task, marks.of(task)) for task in tasks)
