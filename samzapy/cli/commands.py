"""Which commands there are, and where each is: its module is imported when the command is asked for, and not to list it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from samzapy.cli.help import Command, Family, with_help

PACKAGE = "samzapy.cli."
# name: (module here and attribute, the first sentence of its help)
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run:run", "Run a job in the foreground."),
    "stop": ("change:stop", "Stop the running job after a final commit; exit code 3 if it is not running."),
    "scale": ("change:scale", "Change the number of containers; only tasks that have to move are moved."),
    "restart": ("change:restart", "Restart the containers, one after the other, each on the host that has its state; new code of the task is loaded."),
    "pause": ("pause:pause", "Pause the running job: it processes nothing until `samzapy resume JOB.yaml`."),
    "resume": ("pause:resume", "Let a paused job continue where it stopped."),
    "commit": ("pause:commit", "Let every container of the running job commit now, and wait until all have: before an upgrade, or a copy of an output."),
    "validate": ("validate:validate", "Show all errors of a job file; exit code 2 if there are any."),
    "status": ("inspect:status", "Status of the running job; exit code 3: it is not running, or has no coordinator yet; 4: it does not answer."),
    "top": ("top:top", "What the running job does, every second until Ctrl-C: rates, shares of the loop's time, lag; exit code 3 if it is not running."),
    "ui": ("ui:ui", "The job's page: prints its address, and opens it where there is a display."),
    "debug": ("debug:app", "Look inside the running job's containers; nothing is changed by it."),
    "lag": ("lag:lag", "The lag of the job in each input partition, whether it runs or not."),
    "plan": ("plan:plan", "What `run` would do: tasks, containers, hosts, topics to create."),
    "topics": ("inspect:topics", "The topics that the job needs: expected and actual; exit code 4 if one is wrong or lost, or an input or output is missing."),
    "reset": ("reset:reset", "Delete all state and checkpoints of a stopped job: the next run reads each input from its `start`."),
    "send": ("records:send", "Send lines from stdin as records."),
    "tail": ("tail:tail", "Show records as a read_committed reader sees them: partition@offset, key, value, headers."),
    "init": ("init:init", "Create a working example job in a new directory: task, job file, unit test, README."),
    "schema": ("schema:schema", "Print the JSON Schema of the job file."),
    "doctor": ("doctor:doctor", "Check this machine, or a job, and print a fix for each problem; exit code 1 if a job could not run."),
    "demo": ("demo:demo", "A demonstration: a word count on Spark and a real Kafka; one container is killed, and the result is checked."),
    "chaos": ("chaos:chaos", "Run a copy of the job with faults, and compare its results with a run without."),
    "jobs": ("jobs:jobs", "The jobs of a Kafka cluster: which run, where, and how the last run of each ended."),
    "completion": ("completion:completion", "Print a script with which a shell completes commands, options, files, and names of stores, topics and tasks."),
    "checkpoint": ("checkpoint:app", "Show a job's checkpoints, and set where it continues."),
    "state": ("state:app", "Show, export, check, rebuild and delete a job's stores."),
    "dlq": ("dlq:app", "Show dead letters, replay or discard them."),
    "dev": ("dev:app", "A real Kafka and a real Spark on this machine, for development."),
}
# the groups in which `--help` lists them
GROUPS: dict[str, tuple[str, ...]] = {
    "Write a job": ("init", "validate", "schema", "plan", "topics", "doctor"),
    "Run a job": ("run", "stop", "scale", "restart", "pause", "resume", "commit", "reset"),
    "See what it does": ("status", "top", "ui", "debug", "lag", "jobs", "state", "checkpoint", "dlq"),
    "Records": ("send", "tail"),
    "Try and test": ("demo", "chaos", "dev", "completion"),
}
OPTIONS: dict[str, Any] = {"no_args_is_help": True, "add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class CommandGroup(TyperGroup):
    """The commands by name."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = Commands()

    def format_commands(self, _: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), COMMANDS[name][1]) for name in names])


class Commands(Mapping[str, Any]):
    """Name to command; each is built once."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _built(name, COMMANDS[name][0])
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS


def command_in(arguments: list[str]) -> str:
    """The command that these arguments name; "" if they name none."""
    return next((word for word in arguments if not word.startswith("-")), "")


def import_command(arguments: list[str]) -> None:
    """Import the module of the command that these arguments name, if they name one."""
    name = command_in(arguments)
    if name in COMMANDS:
        import_module(PACKAGE + COMMANDS[name][0].partition(":")[0])


def _built(name: str, home: str) -> Any:
    module, _, attribute = home.partition(":")
    found = getattr(import_module(PACKAGE + module), attribute)
    app = typer.Typer(**OPTIONS)
    if isinstance(found, typer.Typer):
        with_help(found)
        app.add_typer(found, name=name, cls=Family)
    else:
        app.command(name, cls=Command)(found)
    return typer.main.get_group(app).commands[name]
