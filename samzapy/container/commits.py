"""A commit as the run loop makes it: at a point between two records, of everything that came before it.

How a commit is written is the committer's. Here is what surrounds it: what hooks sent is handed over first, where each task stands is asked of
the inputs, and afterwards whoever counts by commits is told.
"""

from __future__ import annotations

from collections.abc import Mapping

from samzapy.container.committer import Committer
from samzapy.container.growth import Growth
from samzapy.container.hooks import Hooks
from samzapy.container.inputs import Inputs
from samzapy.container.poison_search import PoisonSearch
from samzapy.container.schedule import Schedule
from samzapy.container.task_instance import TaskInstance
from samzapy.container.transaction import Transaction

COMMIT = "commit"  # the row of the table of duties


class Commits:
    """Commits the tasks that the container reads for."""

    def __init__(
        self,
        *,
        transaction: Transaction,
        inputs: Inputs,
        hooks: Hooks,
        committer: Committer,
        growth: Growth,
        search: PoisonSearch,
        schedule: Schedule,
        tasks: Mapping[str, TaskInstance],
        max_uncommitted_bytes: int,
    ) -> None:
        self._transaction = transaction
        self._inputs = inputs
        self._hooks = hooks
        self._committer = committer
        self._growth = growth
        self._search = search
        self._schedule = schedule
        self._tasks = tasks
        self._max_uncommitted_bytes = max_uncommitted_bytes

    def commit(self, is_last: bool = False) -> None:
        """Commit now, between two records. `is_last`: no other follows.

        Raises:
            StateMismatch, StateRefused: an input of a job with state has grown, or a topic was made again; nothing more is committed.
        """
        self._hooks.release()

        # A partition that is read again for a bootstrap stands before what its task has committed; a checkpoint never goes back.
        tasks = self._inputs.tasks()
        here = self._inputs.positions(self._transaction.unprocessed)
        positions = {t.name: {p: max(at, t.committed.inputs[str(p)].next_offset) for p, at in here[t.name].items()} for t in tasks}

        # Records of an input that has grown may be in the wrong task, and those of a topic that was made again are of another topic: look before
        # they are committed.
        read = {p: at for places in positions.values() for p, at in places.items()}
        committed = {task_input.partition: task_input.committed_offset for t in tasks for task_input in t.inputs}
        self._growth.check(read, committed, must_look=is_last)

        if self._committer.commit(tasks, positions):
            self._search.committed(self._transaction.contents())
            for task in tasks:
                for task_input in task.inputs:
                    task_input.counts_stand()
        self._transaction.committed()
        self._schedule.put_off(COMMIT)

    def is_full(self) -> bool:
        """Whether so much waits for a commit that it must not wait longer."""
        held = self._transaction.sent_bytes
        for task in self._tasks.values():
            for store in task.stores.values():
                held += store.uncommitted_bytes
        return held >= self._max_uncommitted_bytes
