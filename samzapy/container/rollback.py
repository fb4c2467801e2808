"""After an abort: the container loses what a crash would lose, and reads again from the checkpoint.

The transactions that follow are so small that a poison record is found (plan/refused_record_search.py).
"""

from __future__ import annotations

import logging

from samzapy.api.errors import LogError, TaskError, TransactionAborted
from samzapy.container.commits import Commits, passed
from samzapy.container.failure import named
from samzapy.container.flushing import Flushing
from samzapy.container.generations import begin_empty
from samzapy.container.hooks import Hooks
from samzapy.container.inputs import Inputs
from samzapy.container.joining import Joining
from samzapy.container.ownership import Ownership
from samzapy.container.spec import ContainerSpec
from samzapy.container.tasks import Tasks
from samzapy.container.timers import Schedule
from samzapy.container.transaction import Transaction
from samzapy.model.states import TaskState
from samzapy.model.transaction_contents import Contents
from samzapy.plan.on_error_policy import ends_job
from samzapy.plan.refused_record_search import Culprit, Decision, GiveUp, NoCulprit, PoisonSearch

LOG = logging.getLogger("samzapy.container")
WINDOW = "window"  # the row of the table of duties


class RollBack:
    """Takes a container back to its checkpoints."""

    def __init__(
        self,
        *,
        spec: ContainerSpec,
        own: Ownership,
        transaction: Transaction,
        search: PoisonSearch,
        inputs: Inputs,
        hooks: Hooks,
        tasks: Tasks,
        commits: Commits,
        joining: Joining,
        schedule: Schedule,
        flushing: Flushing,
    ) -> None:
        self._spec = spec
        self._own = own
        self._transaction = transaction
        self._search = search
        self._inputs = inputs
        self._hooks = hooks
        self._tasks = tasks
        self._commits = commits
        self._joining = joining
        self._schedule = schedule
        self._flushing = flushing

    def after(self, error: TransactionAborted) -> None:
        """Abort, and begin all tasks again.

        Raises:
            TimestampRefused: the clock is to blame, so no record is searched for.
            TaskError, LogError: it would be aborted again; nothing of what was aborted is held any more, whoever stops the container now.
        """
        # Asked before anything is dropped: the decision is about what the transaction held.
        ends = passed(self._inputs.tasks(), self._inputs.positions(self._transaction.unprocessed))
        contents = self._transaction.contents(ends)
        decision = self._search.aborted(contents, error)
        readers = [] if contents.last is None else [i.task.name for i in self._inputs.readers.get(contents.last[:2], ())]
        LOG.warning("a transaction of %d records was aborted: %s", contents.records, error)
        self._commits.slow.look(contents)
        if self._own.producer is not None and self._transaction.is_open:
            self._own.decided(self._own.producer.abort())

        self.forget()
        self._joining.stop()
        tasks = [t for t in self._tasks.held.values() if t.state != TaskState.STOPPED]
        for task in tasks:
            for name, store in task.stores.items():
                store.discard()
                if name in task.scratch:
                    begin_empty(task, self._spec.stores[name])
            task.counts.go_back()
            for task_input in task.inputs:
                task_input.counts_go_back()
        self._inputs.drop(tasks)
        self._inputs.read_only(self._search.suspects)
        self._raise_if_final(decision, contents, error, readers)

        self.reset_timers()
        if contents.has_window:
            self._schedule.bring_forward(WINDOW)  # what it did was undone as well
        try:
            self._joining.begin(tasks)
        except TransactionAborted as again:  # what init() put; not for ever, as no record is in it
            self.after(again)

    def drop(self) -> None:
        """Drop what is in no commit, because the container starts over, or ends. What its commit showed of the brokers is kept."""
        contents = self._transaction.contents()
        self._search.in_doubt(contents)
        self._commits.slow.look(contents)
        self.forget()

    def forget(self) -> None:
        """Drop what is in no commit, without deciding anything."""
        self._transaction.forget()
        self._hooks.forget()
        self._commits.count_what_is_dropped()

    def reset_timers(self) -> None:
        """Every duty is an interval away."""
        self._flushing.begin(self._schedule.reset())

    def _raise_if_final(self, decision: Decision, contents: Contents, error: TransactionAborted, readers: list[str]) -> None:
        if isinstance(decision, NoCulprit):
            raise error
        if isinstance(decision, GiveUp):
            at = f" at record {contents.last}" if contents.records == 1 and contents.last is not None else ""
            kind = TaskError if decision.is_final else LogError
            raise kind(f"{decision.why}{at}; the last reason: {error.message}", error.remedy) from error
        if isinstance(decision, Culprit) and ends_job(self._spec.on_error):
            raise named(", ".join(readers), "what it sends or stores", error, str(decision.record), decision.attempts) from error
