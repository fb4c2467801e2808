"""Which tasks the container is to have: what the coordinator topic says, what the coordinator instructs, and how the container gets there.

The coordinator topic alone says what a container owns. The coordinator's instructions say what it should release, so that another may own it,
and of which tasks it should keep warm copies. A task that was released stays released until a newer record: until then the topic still gives it
to this container.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from samzapy import failpoints
from samzapy.api.errors import Superseded
from samzapy.container.commit_due import MOVE
from samzapy.container.commits import Commits
from samzapy.container.joining import Joining
from samzapy.container.ownership import Ownership
from samzapy.container.standby import Standbys
from samzapy.container.tasks import Tasks
from samzapy.model.states import TaskState
from samzapy.plan.bounded_run import has_container_finished
from samzapy.ports import Supervision

LOG = logging.getLogger("samzapy.container")


class AssignedTasks:
    """Follows the coordinator topic and the coordinator's instructions.

    Attributes:
        epoch: of the record of the coordinator topic that this container has adopted.
        released: tasks of that record that were released.
    """

    def __init__(
        self,
        number: int,
        own: Ownership,
        tasks: Tasks,
        joining: Joining,
        standbys: Standbys,
        commits: Commits,
        supervision: Supervision,
    ) -> None:
        self._number = number
        self._own = own
        self._tasks = tasks
        self._joining = joining
        self._standbys = standbys
        self._commits = commits
        self._supervision = supervision
        self.epoch = 0
        self.released: set[str] = set()

    def apply_instructions(self) -> None:
        """Adopt a newer record, release what is asked for, and start what is owned and not there.

        Raises:
            Superseded: another incarnation, or container, owns what this one holds.
        """
        instructions = self._supervision.instructions()
        self._tasks.models.update(instructions.models)
        if instructions.epoch > self._own.epoch:
            self._own.check()
        if self._own.epoch != self.epoch:
            self._adopt()
        self._release(instructions.release)

        held, models = self._tasks.held, self._tasks.models
        self._standbys.follow({n: models[n] for n in instructions.standby if n in models and n not in held})

        # One group at a time: what comes meanwhile is started when these tasks run.
        if not self._joining.is_on:
            # A record may name a task of which the coordinator has not told yet: its next answer does.
            missing = [n for n in self._own.named if n in models and n not in held and n not in self.released and n not in instructions.release]
            if missing:
                self._joining.start(missing)

    def _adopt(self) -> None:
        # A task is given to another only after this container released it: if not, somebody believes that this container is dead.
        lost = sorted(set(self._tasks.held) - set(self._own.named))
        if lost:
            raise Superseded(
                f"container {self._number}: {', '.join(lost)} was assigned to another container before this one released it.", ""
            )
        self.epoch = self._own.epoch
        self.released.clear()
        self._supervision.report(True)

    def _release(self, wanted: Collection[str]) -> None:
        names = [n for n in self._own.named if n in wanted and n not in self.released]
        if not names:
            return
        if any(t.name in names for t in self._joining.tasks):
            self._joining.stop()  # those that stay are started again

        # Commit before close: what is reported as released must be in Kafka, because the next owner may start at once.
        leaving = [self._tasks.held[n] for n in names if n in self._tasks.held]
        if any(t.state != TaskState.STOPPED for t in leaving):
            self._commits.commit(MOVE)
            failpoints.hit("move.commit.before_release")
        for task in leaving:
            if task.state != TaskState.STOPPED:
                self._tasks.stop(task)
            del self._tasks.held[task.name]
        self._tasks.share_memory()
        self.released.update(names)
        failpoints.hit("move.released.before_ack")
        LOG.info("released %s", ", ".join(names))
        self._supervision.report(True)

    @property
    def are_starting(self) -> bool:
        """Whether tasks that the container owns have not been started yet."""
        return self._joining.is_on or any(n not in self._tasks.held and n not in self.released for n in self._own.named)

    @property
    def have_finished(self) -> bool:
        """Whether every task that the container owns has stopped by itself: nothing is left to do."""
        states = [task.state for task in self._tasks.held.values()]
        return has_container_finished(states, has_released=bool(self.released), are_starting=self.are_starting)
