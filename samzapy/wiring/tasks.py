"""What a job runs, as task objects: a StreamTask of the user's, or a program of streams. What programs need is imported for programs only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samzapy.api.task import StreamTask
from samzapy.config.schema import Settings
from samzapy.config.task_class import import_task_class
from samzapy.wiring.serdes import Serdes


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a job runs.

    Attributes:
        make: makes a task object.
        operators: of a program, what of its operators must not change while there is state: subject → how it is now.
        tables: of a program, the store that keeps a topic as a table: topic → store. None: it is no program.
        key_of: of a program, by store that has more in its keys than a record's key: what of them is that.
    """

    make: Callable[[], StreamTask]
    operators: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] | None = None
    key_of: Mapping[str, Callable[[bytes], bytes | None]] = field(default_factory=dict)


def tasks_of(settings: Settings, folders: Sequence[Path], app: Any = None, *, check: bool = False, serdes: Serdes | None = None) -> Tasks:
    """What a job runs. `app`: its program, where that is not imported by its name; `check`: functions are checked for changing what they are given;
    `serdes`: the job's, if there are some already.

    Raises:
        ConfigurationError: it cannot be imported, or is not the program that the settings were made of.
    """
    if settings.task is not None:
        return Tasks(import_task_class(settings.task, folders))
    from samzapy.wiring.program import program_tasks

    return program_tasks(settings, folders, app, check, serdes)
