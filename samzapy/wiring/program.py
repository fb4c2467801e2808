"""A job's program of streams: the sections of a job file that it stands for, and its task objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.config import key_schema
from samzapy.config.errors import ConfigError
from samzapy.config.key_errors import Finding
from samzapy.config.schema import InputSettings, OutputSettings, Settings, StageSettings, StoreSettings
from samzapy.config.task_class import import_program
from samzapy.model.names import Job
from samzapy.streams.app import App
from samzapy.streams.expand import Sections, check_names, sections
from samzapy.streams.graph import Graph, Keeps, Repartition
from samzapy.streams.operators.rows import key_in_row
from samzapy.streams.program import Program
from samzapy.streams.window_nodes import windows_of
from samzapy.wiring.job_topics import job_of
from samzapy.wiring.serdes import VALUE, Serdes
from samzapy.wiring.tasks import Tasks


def expand(document: Mapping[str, Any], folders: Sequence[Path]) -> tuple[dict[str, Any], list[Finding]]:
    """The sections that the program of a document stands for, or what is wrong with it."""
    name, streams, stores = str(document["app"]), document.get("streams") or {}, document.get("stores") or {}
    try:
        app = import_app(name, folders)
        findings = [*check_names(app.graph, streams, stores), *_check_keys(app.graph, folders)]
        return ({}, findings) if findings else (sections(app.graph, streams, stores, job_in(document)).to_json(), [])
    except ConfigError as error:
        return {}, [Finding(("app",), problem.message.rstrip("."), problem.hint) for problem in error.problems]
    except ConfigurationError as error:
        return {}, [Finding(("app",), error.message.rstrip("."), error.remedy)]


def _check_keys(graph: Graph, folders: Sequence[Path]) -> Iterator[Finding]:
    """Operators that look up state by keys of an Avro schema whose equal values have several forms in bytes: the file is not known when they are defined."""
    for node in graph:
        looks_up = isinstance(node, Keeps) or (isinstance(node, Repartition) and node.how == "key_by")
        if looks_up and (why := key_schema.why_no_key_file(node.key.serde, folders)):
            yield Finding(("app",), f"{node.title} at {node.where}: keys of kind {node.key} cannot be looked up: {why}", key_schema.REMEDY)


def import_app(name: str, folders: Sequence[Path]) -> App:
    """The program that `app: module:name` names.

    Raises:
        ConfigurationError: it cannot be imported, or is no App.
    """
    found = import_program(name, folders)
    if not isinstance(found, App):
        raise ConfigurationError(f"{name} is {type(found).__name__}, not an App.", "Name the variable of the module that is an App().")
    return found


def graph_of(settings: Settings, folders: Sequence[Path]) -> tuple[Graph, Mapping[str, str]]:
    """The graph of a job's program, and where its streams really are.

    Raises:
        ConfigurationError: the job has a task, and no program; or the program cannot be imported.
    """
    if settings.app is None:
        raise ConfigurationError(f"{settings.job} has a `task`, not an `app`: there is no graph.", "Only programs of samzapy.streams have one.")
    streams = {name: str(given.topic) for name, given in settings.streams.items() if given.topic}
    return import_app(settings.app, folders).graph, streams


def program_tasks(settings: Settings, folders: Sequence[Path], app: App | None, check: bool, serdes: Serdes | None) -> Tasks:
    """What a job with a program runs; see `tasks_of`."""
    app = import_app(str(settings.app), folders) if app is None else app
    streams = {name: given.model_dump(exclude_none=True) for name, given in settings.streams.items()}
    stores = {name: {"engine": store.engine} for name, store in settings.stores.items()}
    found = sections(app.graph, streams, stores, str(job_of(settings)))
    _refuse_other_program(settings, found)
    found_serdes = serdes or Serdes(settings, folders)
    program = Program(app.graph, found.topics, lambda name: found_serdes.of(name, "", VALUE), check=check)
    return Tasks(program.task, found.operators, found.tables, {window.name: key_in_row for window in windows_of(app.graph)})


def job_in(document: Mapping[str, Any]) -> str:
    """A job's name and id, of its job file."""
    return str(Job(str(document["job"]), str(document.get("id") or "1")))


def _refuse_other_program(settings: Settings, found: Sections) -> None:
    """The driver made the topics and the job model of its own copy of the program."""
    here = (
        tuple(InputSettings.model_validate(entry) for entry in found.inputs),
        tuple(OutputSettings.model_validate(entry) for entry in found.outputs),
        {name: StoreSettings.model_validate(entry) for name, entry in found.stores.items()},
        StageSettings.model_validate(found.stages),
    )
    there = (settings.inputs, settings.outputs, settings.stores, settings.stages or StageSettings.model_validate({}))
    for what, own, theirs in zip(("inputs", "outputs", "stores", "stages"), here, there, strict=True):
        if own != theirs:
            raise ConfigurationError(
                f"{settings.app}: the program on this host has other {what} than the one that the run was started with.",
                "Put the same files on all hosts, stop the job and start it again.",
            )
