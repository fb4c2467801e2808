"""Commands in texts: whether they would run as they stand there. Nothing is run."""

from __future__ import annotations

import functools
import re
import shlex
from typing import Any

import typer

from samzapy.cli.main import ClickException, app

PLACEHOLDER = "JOB.yaml"  # in the source; the command line puts the user's own file there
# between back-quotes; or, where a line is nothing but a command, to its end
_QUOTED = re.compile(r"`(samzapy [^`]+)`")
_BARE = re.compile(r"(?:^|(?<=: )|(?<=, ))(samzapy [a-z][^`\n]*?)(?=$|\n|, |: |; |  \()", re.MULTILINE)
_BLANK = re.compile(r"…|(?<![\w.-])[A-Z]{2,}(?![\w.-])")
NOT_SHIPPED = re.compile(r"kafka-[a-z-]+\.sh (?!--bootstrap-server)-|pip install[^\n]*samzapy")


def parse(words: list[str]) -> str:
    """The command's path; every option and argument after it is parsed, nothing is run.

    Raises:
        ClickException: it would be refused.
    """
    command = _command()
    path: list[str] = []
    while hasattr(command, "commands"):
        name = words[0] if words else ""
        if name not in command.commands:
            raise typer.BadParameter(f"no command {' '.join([*path, name])}")
        path, words, command = [*path, name], words[1:], command.commands[name]
    if words == ["--help"]:
        return " ".join(path)
    command.make_context(" ".join(path), list(words))
    return " ".join(path)


@functools.cache
def _command() -> Any:
    return typer.main.get_command(app)


def _is_told(words: list[str]) -> bool:
    """Whether these name a command, rather than a family of them, or go on in another way."""
    command = _command()
    for word in words:
        if not hasattr(command, "commands"):
            return True
        if word not in command.commands:
            return command is not _command()
        command = command.commands[word]
    return not hasattr(command, "commands")


def commands_in(text: str) -> list[str]:
    """The commands of samzapy's that a text tells to run."""
    if "samzapy " not in text:
        return []
    bare = [found for found in _BARE.findall(re.sub(r"`[^`]*`", "``", text)) if _is_told(found.split()[1:])]
    return [*_QUOTED.findall(text), *bare]


def what_does_not_run(text: str) -> list[str]:
    """What a text tells to run and would be refused, or is not there where samzapy is."""
    wrong = NOT_SHIPPED.findall(text)
    for command in commands_in(text):
        if _BLANK.search(command.replace(PLACEHOLDER, "")):
            wrong.append(f"{command}: something is left to be filled in")
            continue
        try:
            parse(shlex.split(re.split(" [<>|] ", command)[0])[1:])
        except (ClickException, ValueError) as error:
            wrong.append(f"{command}: {error}")
    return wrong
