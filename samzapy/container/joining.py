"""Tasks that join: T1 to T5 in steps, between which the container's other tasks go on, then T6.

Start, restart after something went wrong, start after a crash, and a task that comes from another container are the same code. Steps are
taken between two batches, and in a long batch between two records; T6 changes what is read, so it waits for the end of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from samzapy.container.standby import Standbys
from samzapy.container.starter import Starter
from samzapy.container.task_instance import TaskInstance
from samzapy.container.task_start import TaskStart
from samzapy.container.tasks import Tasks
from samzapy.ports import Clock, Supervision

RESTORE_S = 0.05  # of restoring at a time while a batch is processed; one step may take longer


class Joining:
    """The tasks that are being started, if any; one group at a time.

    Args:
        new_starter: one for each group.
    """

    def __init__(
        self,
        new_starter: Callable[[], Starter],
        task_start: TaskStart,
        tasks: Tasks,
        standbys: Standbys,
        supervision: Supervision,
        clock: Clock,
    ) -> None:
        self._new_starter = new_starter
        self._task_start = task_start
        self._tasks = tasks
        self._standbys = standbys
        self._supervision = supervision
        self._clock = clock
        self.tasks: Sequence[TaskInstance] = ()
        self._starter: Starter | None = None
        self._steps: Generator[bool, None, None] | None = None  # None while tasks wait for T6

    @property
    def is_on(self) -> bool:
        return bool(self.tasks)

    def start(self, names: Sequence[str]) -> None:
        """T1 to T5 begin for these tasks."""
        tasks = [self._tasks.add(name) for name in names]
        self._tasks.share_memory()
        for task in tasks:
            self._standbys.leave(task.name)
        self._starter = self._new_starter()
        self.tasks, self._steps = tasks, self._starter.steps(tasks)
        self._supervision.report(True)

    def restore(self, seconds: float = RESTORE_S, wait_s: float = 0.0) -> None:
        """Steps of T1 to T5: one, and more while the time lasts and none has to wait. A step waits at most `wait_s` seconds for records."""
        if self._steps is None or self._starter is None:
            return
        self._starter.may_wait(wait_s)
        until = self._clock.monotonic() + seconds
        try:
            for got_on in self._steps:
                if not got_on or self._clock.monotonic() >= until:
                    return
        except BaseException:
            self.stop()  # a generator that raised is at its end, which must not count as done
            raise
        self._steps = None

    def finish(self) -> None:
        """T6, if all steps are done; only between two batches."""
        if self.tasks and self._steps is None:
            tasks, self.tasks = self.tasks, ()
            self.begin(tasks)

    def begin(self, tasks: Sequence[TaskInstance]) -> None:
        """T6 for these tasks, which may have run before."""
        self._task_start.begin(tasks)
        self._supervision.report(True)

    def stop(self) -> None:
        """Give up starting; whoever still owns the tasks starts them again."""
        tasks, steps = self.tasks, self._steps
        self.tasks, self._steps = (), None
        if steps is not None:
            steps.close()
        self._tasks.drop(tasks)
