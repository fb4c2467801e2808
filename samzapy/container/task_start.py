"""T6: tasks whose stores are restored and whose checkpoint is committed begin to run. After an abort tasks begin again by the same code."""

from __future__ import annotations

from collections.abc import Sequence

from samzapy.container.cautious_processing import culprits_of
from samzapy.container.commit_due import START
from samzapy.container.commits import Commits
from samzapy.container.facts import RESTORED, Facts
from samzapy.container.first_offsets import is_read_each_time, read_from
from samzapy.container.hooks import Hooks
from samzapy.container.inputs import Inputs
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInput, TaskInstance
from samzapy.container.tasks import close_stores
from samzapy.container.times import Times
from samzapy.model.caution import Caution
from samzapy.model.states import TaskState
from samzapy.plan.refused_record_search import PoisonSearch
from samzapy.ports import Consumer


class TaskStart:
    """Begins tasks at their checkpoints.

    Args:
        consumer: asked for bounds only.
        caution: what the coordinator knows of records that ended containers.
    """

    def __init__(
        self,
        *,
        spec: ContainerSpec,
        run_id: str,
        caution: Caution,
        consumer: Consumer,
        inputs: Inputs,
        hooks: Hooks,
        commits: Commits,
        search: PoisonSearch,
        times: Times,
        facts: Facts,
    ) -> None:
        self._spec = spec
        self._run_id = run_id
        self._caution = caution
        self._consumer = consumer
        self._inputs = inputs
        self._hooks = hooks
        self._commits = commits
        self._search = search
        self._times = times
        self._facts = facts

    def begin(self, tasks: Sequence[TaskInstance]) -> None:
        """New task objects, `init()`, inputs at the checkpoint. Only between two batches: it changes what is read."""
        # A task that has ended in this run stays stopped, wherever it is started.
        going = []
        for task in tasks:
            task.ended, task.closing = task.committed.ended_run_id == self._run_id, False
            if task.ended:
                task.state = TaskState.STOPPED
                close_stores(task)
            else:
                going.append(task)
        for task in going:
            self._times.begin(task)
            for store, restored in task.restored.items():
                self._facts.tell(RESTORED, task=task.name, store=store, **restored.to_json())
            self._hooks.init(task)

        # A partition that others read already goes back to where these begin. The others go on where they stand (`Inputs.assign`), and what they did is
        # committed before.
        if any((p.topic, p.partition) in self._inputs.readers for t in going for p in t.model.inputs):
            self._commits.commit(START)
        begins = {t.name: {i.partition: self._offset_to_read(i) for i in t.inputs} for t in going}
        self._inputs.assign(going, begins)

        # Condemned records lie ahead, or were decided before this start.
        for partition, begin in [at for partitions in begins.values() for at in partitions.items()] if self._caution.condemned else ():
            self._search.condemn(culprits_of(self._caution, partition, begin))
        self._commits.commit_while_searching(START)

    def _offset_to_read(self, task_input: TaskInput) -> int:
        """The committed offset, or one before it (first_offsets.py)."""
        is_from_start = is_read_each_time(task_input.spec, self._spec.stores.values())
        start = self._consumer.bounds(task_input.partition).start if is_from_start else None
        return read_from(task_input.task.committed.inputs[str(task_input.partition)], start)
