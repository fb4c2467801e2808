"""What a hook asks of its container; looked at when the hook has returned."""

from __future__ import annotations

from samzapy.api.context import RequestScope


class Requests:
    """The `coordinator` argument of the hooks. `pending` is True from the first request until `clear`."""

    __slots__ = ("commit_requested", "pending", "shutdown_all", "shutdown_task")

    def __init__(self) -> None:
        self.clear()

    def commit(self, scope: RequestScope = RequestScope.CURRENT_TASK) -> None:
        """Commit the container when this hook returns (a commit is always the whole container's, whatever the scope)."""
        RequestScope(scope)
        self.commit_requested = self.pending = True

    def shutdown(self, scope: RequestScope = RequestScope.CURRENT_TASK) -> None:
        """Stop this task, or all tasks of the container, after a commit, for the rest of the run."""
        if RequestScope(scope) is RequestScope.CURRENT_TASK:
            self.shutdown_task = True
        else:
            self.shutdown_all = True
        self.pending = True

    def add(self, other: Requests) -> None:
        """Ask for what the other asks for, too."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) or getattr(other, name))

    def clear(self) -> None:
        self.commit_requested = self.shutdown_task = self.shutdown_all = self.pending = False
