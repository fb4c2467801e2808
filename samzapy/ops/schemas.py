"""A job's schemas in its Schema Registry: what a run needs before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from samzapy.api.errors import SamzapyError
from samzapy.config.schema import Settings
from samzapy.wiring.serdes import Serdes, connected, read, subject, written


def prepare_schemas(settings: Settings, folders: Sequence[Path]) -> None:
    """Ask the registry for what the job writes with, and register that if the job file says so; of a job that only reads, whether it answers.

    Raises:
        ConfigurationError: a schema is not registered, or is refused. RegistryUnreachable, NotAuthenticated.
    """
    if settings.schema_registry is None:
        return
    Serdes(settings, folders).ready(register=settings.schema_registry.register_)
    if not any(written(settings)):
        _ask_for_inputs(settings)


def what_schemas_lack(settings: Settings, folders: Sequence[Path]) -> SamzapyError | None:
    """Why a run started now would be refused because of its schemas; None: it would not. Registers nothing."""
    found = settings.schema_registry
    if found is None:
        return None
    try:
        serdes = Serdes(settings, folders)
        for place in written(settings):
            serdes.registered(*place).refuse_unfit(may_register=found.register_)
        if not any(written(settings)):
            _ask_for_inputs(settings)
    except SamzapyError as error:
        return error
    return None


def _ask_for_inputs(settings: Settings) -> None:
    registry = connected(settings.schema_registry)
    for _, topic, part in list(read(settings))[:1]:
        registry.newest(subject("", topic, part, ""))
