"""A job's own modules, imported before its container registers.

A container's lease begins when it registers. An import may take longer than a lease lasts, and may hold the interpreter's lock, so that no
thread can send heartbeats meanwhile. What is wrong with the modules can be told to the coordinator only after that: so it is raised later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from samzapy.config import user_import
from samzapy.config.checks_together import serdes, time_functions
from samzapy.config.fields import CLASS, RECORD
from samzapy.config.registered import is_registered
from samzapy.config.schema import Settings
from samzapy.wiring.serdes import Serdes
from samzapy.wiring.tasks import Tasks, tasks_of

AVRO = "avro:"  # a file


def imported(settings: Settings, document: Mapping[str, Any], folders: Sequence[Path], made: Serdes) -> Callable[[], Tasks]:
    """Import all of a job's modules, whose folders are in `sys.path`. Returns a function that returns what the job runs, or raises as `tasks_of`."""
    for _, name in (*serdes(document), *time_functions(document)):
        module = name.removeprefix(RECORD)
        if CLASS.fullmatch(module) and not name.startswith(AVRO) and not is_registered(name):
            with suppress(Exception, SystemExit):  # whoever needs it imports it again, and says what is wrong
                user_import.import_module(module.partition(":")[0])
    try:
        found = tasks_of(settings, folders, serdes=made)
    except Exception as error:  # noqa: BLE001  raised again by whoever asks
        return _raising(error)
    return lambda: found


def _raising(error: Exception) -> Callable[[], Tasks]:
    def ask() -> Tasks:
        raise error

    return ask
