"""Fires the windows of programs. Where a unit of them fails, its panes are fired one by one, so that the one that fails is known: it is tried again, and
then `on_error` applies to it as to a record."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from samzapy.api.errors import StateUnreadable, TaskError
from samzapy.container.hooks import Hooks
from samzapy.container.on_error import GivenUpRecords
from samzapy.container.task_instance import TaskInstance
from samzapy.model.failed_pane import FailedPane
from samzapy.plan.on_error_policy import backoff_s, is_tried_again, retries_after
from samzapy.ports import Clock

ALONE = 256  # panes that are fired one by one after a unit has failed


class Firing:
    """Fires units of windows.

    Args:
        retries: how often a pane that fails is tried again.
    """

    def __init__(self, hooks: Hooks, given_up: GivenUpRecords, retries: int, clock: Clock) -> None:
        self._hooks = hooks
        self._given_up = given_up
        self._retries = retries
        self._clock = clock
        self._alone: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # by task object, how many panes are still fired one by one
        self._attempts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # by task object, at the pane that comes next

    def fire(self, task: TaskInstance) -> None:
        """A unit of the task's windows that are due, or less; what is left is asked for again.

        Raises:
            TaskError: with `on_error: fail`, or where no dead letter fits; what fired before is committed. StateUnreadable: whatever `on_error` says.
        """
        user = task.user
        alone = self._alone.get(user, 0)
        try:
            self._hooks.fire(task, alone > 0)
        except StateUnreadable:
            raise
        except TaskError as error:
            self._failed(task, error, alone)
        else:
            self._attempts.pop(user, None)
            if alone:
                self._alone[user] = alone - 1
        if task.is_due:
            self._hooks.requests.fire()

    def _failed(self, task: TaskInstance, error: TaskError, alone: int) -> None:
        user: Any = task.user
        if not alone:
            self._alone[user] = ALONE
            return
        pane: FailedPane | None = user.windows.failed
        if pane is None:  # it was none: a deletion, say
            raise error
        cause = error.__cause__ or error
        attempts = self._attempts.get(user, 0) + 1
        if is_tried_again(attempts, retries_after(cause, self._retries)):
            self._attempts[user] = attempts
            self._clock.sleep(backoff_s(attempts))
            return
        self._attempts.pop(user, None)
        self._given_up.apply_to_pane(task, pane, cause, attempts)
        self._hooks.pass_by(task)
