"""The tasks that a container holds, and what is done with a whole task between two records: window, end of stream, requests, stopping.

A bounded run at its end: inputs.py says which tasks have read all; `advance` calls their end of stream, and commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from samzapy import failpoints
from samzapy.api.errors import TaskError
from samzapy.container.commit_due import ASKED, END, RECORD
from samzapy.container.commits import Commits
from samzapy.container.firing_retries import Firing
from samzapy.container.hooks import Hooks
from samzapy.container.inputs import Inputs
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInput, TaskInstance
from samzapy.container.task_metrics import Room, TaskMetrics
from samzapy.container.transaction import Transaction
from samzapy.model.job_model import TaskModel
from samzapy.model.states import TaskState
from samzapy.plan.store_memory import of_each_store
from samzapy.ports import Supervision


class Tasks:
    """The tasks: being started, running, or stopped by themselves.

    Args:
        held: by name; made empty by the caller, filled and emptied here.
        end_offsets: by str(TopicPartition), for `--until-end`; None: run for ever.

    Attributes:
        models: every task of the job that this container has heard of.
    """

    def __init__(
        self,
        *,
        spec: ContainerSpec,
        held: dict[str, TaskInstance],
        end_offsets: Mapping[str, int] | None,
        transaction: Transaction,
        inputs: Inputs,
        hooks: Hooks,
        commits: Commits,
        supervision: Supervision,
        firing: Firing,
    ) -> None:
        self._spec = spec
        self.held = held
        self.models: dict[str, TaskModel] = dict(spec.tasks)
        self._end_offsets = end_offsets
        self._transaction = transaction
        self._inputs = inputs
        self._hooks = hooks
        self._commits = commits
        self._supervision = supervision
        self._firing = firing
        self._metrics: dict[str, TaskMetrics] = {}
        self._room = Room()
        self._unread_deletions: dict[str, dict[str, dict[str, str]]] = {}
        self._scratch = frozenset(name for name, store in spec.stores.items() if store.changelog is None)

    # -- coming and going --------------------------------------------------------------------------------------------------------------

    def add(self, name: str) -> TaskInstance:
        """A task that is to be restored; its stores have no engine yet."""
        model, ends = self.models[name], self._end_offsets
        stores = {store: s.make(name, None) for store, s in self._spec.stores.items()}
        metrics = self._metrics.setdefault(name, TaskMetrics(self._room))
        task = TaskInstance(model=model, stores=stores, metrics=metrics, scratch=self._scratch, state=TaskState.RESTORING)
        task.unread_deletions = self._unread_deletions.setdefault(name, {})
        specs = self._spec.inputs
        task.inputs = [
            TaskInput(p, specs[p.topic], task, None if ends is None or specs[p.topic].between else ends[str(p)]) for p in model.inputs
        ]
        self.held[name] = task
        return task

    def share_memory(self) -> None:
        """Each open store gets the same part of the container's memory: a container may get more tasks than it was planned with, or fewer. Called when tasks
        have come or gone."""
        stores = [store for task in self.held.values() if task.state != TaskState.STOPPED for store in task.stores.values()]
        for store in stores if self._spec.store_memory_bytes else ():
            store.limit_memory(of_each_store(self._spec.store_memory_bytes, len(stores)))

    def drop(self, tasks: Iterable[TaskInstance]) -> None:
        """As if these had never been added."""
        for task in tasks:
            close_stores(task)
            self.held.pop(task.name, None)

    def drop_all(self) -> None:
        """Of all tasks: what was not committed is gone, as after a crash."""
        self._inputs.drop(list(self.held.values()))
        self.drop(list(self.held.values()))

    def stop(self, task: TaskInstance) -> None:
        """After its final commit: no more records, close(), stores closed."""
        self._inputs.drop([task])
        task.state = TaskState.STOPPED
        for store in task.stores.values():
            store.refuse_writes()
        try:
            self._hooks.close(task)
        finally:
            for store in task.stores.values():
                store.flush()
                store.close()
        self._supervision.report(False)

    def stop_all(self) -> list[TaskError]:
        """`stop` those that have not stopped; the errors that their close() raised."""
        errors = []
        for task in self.held.values():
            if task.state != TaskState.STOPPED:
                try:
                    self.stop(task)
                except TaskError as error:
                    errors.append(error)
        return errors

    # -- hooks by the clock, and what hooks ask for --------------------------------------------------------------------------------------

    def window(self) -> None:
        """window() of every task that runs."""
        self._commits.commit_while_searching(RECORD)
        for task in self._inputs.tasks():
            if task.state == TaskState.RUNNING and not task.ended:
                self._transaction.has_window = True
                self._hooks.window(task)
                if self._hooks.requests.pending:
                    self.apply_requests(task)
        self._commits.commit_while_searching(RECORD)

    def apply_requests(self, task: TaskInstance | None) -> None:
        """Do what hooks asked for; `task`: whose hook it was (None: of several)."""
        requests = self._hooks.requests
        if requests.fire_requested:
            self._fire()
            return
        closing = [
            t for t in self.held.values() if t.live and (requests.shutdown_all or t.closing or (requests.shutdown_task and t is task))
        ]
        requests.clear()
        for one in closing:
            one.ended = True  # committed with what it did: wherever else it is started in this run, it stays stopped
        self._commits.commit(ASKED)
        for one in closing:
            self.stop(one)

    def _fire(self) -> None:
        """A unit of the windows of each task that has some which are due. What else was asked for is done when all have fired."""
        requests = self._hooks.requests
        requests.fire_requested = False
        self._commits.commit_while_searching(RECORD)
        for task in self._inputs.tasks():
            if task.is_due:
                self._transaction.has_window = True
                self._firing.fire(task)
        self._commits.commit_while_searching(RECORD)
        requests.pending = any((requests.fire_requested, requests.commit_requested, requests.shutdown_all, requests.shutdown_task))

    # -- gates and ends ----------------------------------------------------------------------------------------------------------------

    @property
    def are_watched(self) -> bool:
        """Whether a task waits for a bootstrap gate, or reads towards an end."""
        is_bounded = self._end_offsets is not None
        return any((is_bounded and not t.ended) or any(i.gate is not None for i in t.inputs) for t in self._inputs.tasks())

    def advance(self) -> None:
        """Open bootstrap gates; call end_of_stream where all inputs have ended, and commit that with the run's id."""
        finished = self._inputs.advance(self._inputs.positions(self._transaction.unprocessed), self._end_offsets is not None)
        if not finished:
            return
        if any(task.is_due for task in finished):
            self._hooks.requests.fire()  # before the next batch; then it is looked at again
            return
        self._commits.commit_while_searching(RECORD)
        for task in finished:
            self._hooks.end_of_stream(task)
            self._hooks.requests.clear()
            task.ended = True

        # The checkpoint with the run's id says that the task has ended, so it comes before close(): a crash between them calls neither again.
        failpoints.hit("end.final_commit.before")
        self._commits.commit(END)
        failpoints.hit("end.final_commit.after")
        for task in finished:
            self.stop(task)


def close_stores(task: TaskInstance) -> None:
    """Without what is not committed."""
    for store in task.stores.values():
        store.discard()
        store.close()
