"""A hook's requests to its container; carried out when the hook has returned."""

from __future__ import annotations

from _thread import get_ident

from samzapy.api.context import RequestScope
from samzapy.api.errors import TaskError, other_thread


class Requests:
    """The `coordinator` argument of the hooks. `pending` is True from the first request until `clear`.

    Attributes:
        is_forked: this process is a copy that a hook made of the container's.
    """

    ASKED = ("commit_requested", "fire_requested", "pending", "shutdown_all", "shutdown_task")
    __slots__ = (*ASKED, "__weakref__", "_thread", "is_forked")

    def __init__(self) -> None:
        self._thread = get_ident()
        self.is_forked = False
        self.clear()

    def commit(self, scope: RequestScope = RequestScope.CURRENT_TASK) -> None:
        """Commit the container when this hook returns (a commit is always the whole container's, whatever the scope)."""
        self._check_thread("commit")
        RequestScope(scope)
        self.commit_requested = self.pending = True

    def shutdown(self, scope: RequestScope = RequestScope.CURRENT_TASK) -> None:
        """Stop this task, or all tasks of the container, after a commit, for the rest of the run."""
        self._check_thread("shutdown")
        if RequestScope(scope) is RequestScope.CURRENT_TASK:
            self.shutdown_task = True
        else:
            self.shutdown_all = True
        self.pending = True

    def fire(self) -> None:
        """A program of streams has windows that are due."""
        self.fire_requested = self.pending = True

    def add(self, other: Requests) -> None:
        """Ask for what the other asks for, too."""
        for name in self.ASKED:
            setattr(self, name, getattr(self, name) or getattr(other, name))

    def clear(self) -> None:
        self.commit_requested = self.fire_requested = self.shutdown_task = self.shutdown_all = self.pending = False

    def _check_thread(self, what: str) -> None:
        if get_ident() != self._thread:
            raise TaskError(*other_thread(f"coordinator.{what}()"))
