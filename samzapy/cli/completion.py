"""`samzapy completion`: scripts with which bash, zsh and fish complete, and what these scripts ask for.

A script asks `samzapy completion --of -- WORDS`; the last word is the one to be completed, the answer has a candidate a line. Names of stores and
topics are read from the job file among the words, tasks are counted by asking Kafka, briefly. What cannot be found out is not offered, silently:
an error would stand in the middle of the line that somebody types.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.cli.common import print_json
from samzapy.config.errors import ConfigError
from samzapy.config.load import load_job
from samzapy.config.schema import Settings
from samzapy.model.names import task_name
from samzapy.printable import printable

ASK_S = 1.0
SCRIPTS = {
    "bash": r"""_samzapy() {
    local IFS=$'\n'
    COMPREPLY=($(samzapy completion --of -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -F _samzapy samzapy
""",
    "zsh": r"""_samzapy() {
    local -a found
    found=("${(@f)$(samzapy completion --of --plain -- "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
    compadd -- $found
}
compdef _samzapy samzapy
""",
    "fish": r"""complete -c samzapy -f -a '(samzapy completion --of --plain -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}


def completion(
    shell: Annotated[
        list[str] | None, typer.Argument(metavar="SHELL", help=f"One of {', '.join(SCRIPTS)}.", show_default=False)
    ] = None,
    of: Annotated[bool, typer.Option("--of", help="Print the candidates for the last of the words.", hidden=True)] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print candidates unquoted, for shells that quote them.", hidden=True)] = False,
    as_json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
) -> None:
    """Print a script with which a shell completes commands, options, files, and names of stores, topics and tasks.

    For every new shell: in ~/.bashrc or ~/.zshrc  eval "$(samzapy completion bash)"  (zsh: after compinit);
    for fish:  samzapy completion fish > ~/.config/fish/completions/samzapy.fish"""
    words = shell or []
    if of:
        for one in sorted(candidates(words)):
            print_json(one) if as_json else sys.stdout.write((one if plain else _quoted(one)) + "\n")
        return
    if len(words) != 1 or words[0] not in SCRIPTS:
        raise ConfigurationError(f"no script for {' '.join(words) or 'nothing'}.", f"Name one of: {', '.join(SCRIPTS)}.")
    sys.stdout.write(SCRIPTS[words[0]])


def candidates(words: list[str]) -> set[str]:
    """What may stand for the last of the words that follow `samzapy`; it may be incomplete, or empty."""
    *before, word = [_unquoted(w) for w in words] or [""]
    command, given = _command(before)
    if hasattr(command, "commands"):
        return {name for name in command.commands if name.startswith(word)} | _options(command, word)
    param, at = _param(command, given)
    if param is not None:
        found = _values(param, given, word)
    else:
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        found = _values(arguments[min(at, len(arguments) - 1)], given, word) if arguments and at < len(arguments) + _repeats(arguments) else set()
        found |= _options(command, word)
    return {one for one in found if one.startswith(word)}


def _command(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words lead to, and the words that follow its name."""
    command: Any = typer.main.get_command(import_module("samzapy.cli.main").app)
    for at, word in enumerate(words):
        if not hasattr(command, "commands"):
            return command, words[at:]
        if word in command.commands:
            command = command.commands[word]
    return command, []


def _param(command: Any, given: list[str]) -> tuple[Any, int]:
    """The option whose value comes next, or None; and how many arguments there are so far."""
    takes_value = {o: p for p in command.params if p.param_type_name == "option" and not p.is_flag for o in p.opts}
    waiting, arguments = None, 0
    for word in given:
        if waiting is not None:
            waiting = None
        elif word in takes_value:
            waiting = takes_value[word]
        elif not word.startswith("-"):
            arguments += 1
    return waiting, arguments


def _repeats(arguments: list[Any]) -> int:
    return 1_000 if arguments[-1].nargs == -1 else 0


def _options(command: Any, word: str) -> set[str]:
    if not word.startswith("-"):
        return set()
    names = {o for p in command.params if p.param_type_name == "option" and not p.hidden for o in p.opts}
    return {name for name in names | {"--help"} if name.startswith(word)}


def _values(param: Any, given: list[str], word: str) -> set[str]:
    """By what an argument or option is called in its command."""
    named: dict[str, Callable[[Settings], Iterable[str]]] = {"store": lambda s: s.stores, "topic": _topics, "task": _tasks}
    if param.name == "shell":
        return set(SCRIPTS)
    if param.name in named:
        settings = _settings(given)
        return set() if settings is None else set(named[param.name](settings))
    kind = getattr(param, "type_descriptor", None) or getattr(param, "type", "")  # as the version of the library has it
    return set(_files(word)) if "path" in str(kind).lower() else set()


def _settings(given: list[str]) -> Settings | None:
    """The job file among the words."""
    for word in given:
        if word.endswith((".yaml", ".yml")) and Path(word).is_file():
            with suppress(SamzapyError, ConfigError, OSError):
                return load_job([Path(word)], []).settings
    return None


def _topics(settings: Settings) -> Iterator[str]:
    names = import_module("samzapy.wiring.job_topics").JobTopics.of(settings)
    yield from (i.topic for i in settings.inputs)
    yield from (o.topic for o in settings.outputs)
    yield from names.changelogs.values()


def _tasks(settings: Settings) -> Iterator[str]:
    """As many as the largest input has partitions, if Kafka says that at once."""
    with suppress(SamzapyError):
        with import_module("samzapy.wiring.clients").kafka_log(settings).admin() as admin:
            there = admin.outlines([i.topic for i in settings.inputs if not i.broadcast], ASK_S)
        yield from (task_name(n) for n in range(max((found.partitions for found in there.values()), default=0)))


def _files(word: str) -> Iterator[str]:
    """Directories and YAML files; any file where the name has begun."""
    folder, name = Path(word).parent if not word.endswith("/") else Path(word), "" if word.endswith("/") else Path(word).name
    prefix = word[: len(word) - len(name)]
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name.startswith(name) and (name or not path.name.startswith(".")):
                if path.is_dir():
                    yield f"{prefix}{path.name}/"
                elif name or path.suffix in (".yaml", ".yml"):
                    yield f"{prefix}{path.name}"


def _unquoted(word: str) -> str:
    try:
        return "".join(shlex.split(word)) if word else word
    except ValueError:  # a quote that is not closed yet
        return word.lstrip("'\"")


def _quoted(text: str) -> str:
    """As bash takes it in a line."""
    return "".join(c if c.isalnum() or c in "/._-+=:@%," else f"\\{c}" for c in printable(text))
