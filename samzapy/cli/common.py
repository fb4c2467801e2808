"""What every command shares: the job file's options, loading with all errors at once, output that is data or a sentence."""

from __future__ import annotations

import json
import logging
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from samzapy.cli.folding import folded
from samzapy.log_output import wait_for_room
from samzapy.printable import printable_json, printable_lines

JobFile = Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job file.", show_default=False)]
MoreFiles = Annotated[
    list[Path] | None, typer.Option("--file", "-f", metavar="MORE.yaml", help="A file whose keys override the job file's; may be repeated.")
]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override one key, e.g. commit.interval=100ms; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON: one document, or one per line where there may be several.")]


_said_to: list[logging.Logger] = []
_called_with: list[str] = []  # the job file of this process's command, and its --file and --set options
_looked_with: list[str] = []  # the same without settings of how the job runs, which those who only look at it need not give
HOW_IT_RUNS = frozenset({
    "commit.interval", "commit.max_uncommitted", "containers.count", "containers.host_affinity", "containers.max_restarts", "containers.memory",
    "containers.restart_window", "containers.standby", "on_error.retries",
})  # fmt: skip
NAMED = re.compile(r"(\bsamzapy (?:status|top|lag|ui|debug [a-z]+|dlq (?:list|show)|checkpoint show) )?JOB\.yaml")  # what is captured only looks


def called_with(words: list[str], sets: list[str] | None = None) -> None:
    """Remember what this process's command was called with: the job file with its --file options, and what was given by --set."""
    first = [named(words[0]), *words[1:]] if words else []
    _called_with[:] = [*first, *(w for one in sets or [] for w in ("--set", one))]
    _looked_with[:] = [*first, *(w for one in sets or [] if one.partition("=")[0].strip() not in HOW_IT_RUNS for w in ("--set", one))]


def named(file: str) -> str:
    """A file's name as an argument that no command takes for an option."""
    return f"./{file}" if file.startswith("-") else file


def as_called(text: str) -> str:
    """A text in which JOB.yaml in commands is replaced by this command's job file, with its --file and --set."""
    return NAMED.sub(lambda found: found[1] + to_look() if found[1] else shlex.join(_called_with), text) if _called_with else text


def to_look() -> str:
    """What stands for JOB.yaml in a command that only looks at the job: without --set of what does not matter there."""
    return shlex.join(_looked_with) or "JOB.yaml"


class Relayed:
    """stderr for what child processes write: `as_called`."""

    def write(self, data: bytes) -> int:
        if b"JOB.yaml" in data:
            data = as_called(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        written = sys.stderr.buffer.write(data)
        wait_for_room()
        return written

    def flush(self) -> None:
        sys.stderr.buffer.flush()


class NamesJob(logging.Filter):
    """Of a log's handler: `as_called`."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _called_with and "JOB.yaml" in (text := record.getMessage()):
            record.msg, record.args = as_called(text), ()
        return True


def print_json(value: Any) -> None:
    """One JSON document, one line."""
    sys.stdout.write(printable_json(json.dumps(value, ensure_ascii=False, default=_as_text)) + "\n")


def say_as(log: logging.Logger | None) -> None:
    """From now on what is said is an event of this log; None: it is written as it is, as at the start."""
    _said_to[:] = [] if log is None else [log]


def say(text: str) -> None:
    """A sentence for a person: stderr."""
    if said_as_events(logging.INFO, text):
        return
    sys.stderr.write(folded(printable_lines(as_called(text)), sys.stderr) + "\n")
    sys.stderr.flush()


def said_as_events(level: int, text: str) -> bool:
    """Says it as an event of the log, if that is how this process speaks."""
    for log in _said_to:
        log.log(level, "%s", as_called(text))
    return bool(_said_to)


def _as_text(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    raise TypeError(f"{type(value).__name__} cannot be shown as JSON")
