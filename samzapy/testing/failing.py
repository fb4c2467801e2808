"""What an error of the task does to a harness: as to a job, whose next run begins at the record that failed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from samzapy.api.errors import SamzapyError, TaskError

F = TypeVar("F", bound=Callable[..., Any])


def ends_the_run(method: F) -> F:
    """For methods of a harness that process records: where the task's error is raised, the container has committed what came before, and ended. After a
    run that has come to its end they begin a new one."""

    @wraps(method)
    def called(self: Any, *given: Any, **named: Any) -> Any:
        if self._until_end and self._container is not None and self._container.finished:
            self.stop()
        try:
            return method(self, *given, **named)
        except TaskError:
            with contextlib.suppress(SamzapyError):  # the first error is told, as a job does
                self.stop()
            self.crash()
            raise

    return cast(F, called)
