"""The `samzapy` command. One module per family of verbs; `commands` names them, this one turns errors into exit codes."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO, cast

import typer

from samzapy.api import exit_codes
from samzapy.api.errors import ConfigurationError, InternalError, SamzapyError
from samzapy.cli.commands import OPTIONS, CommandGroup, command_in
from samzapy.cli.common import NamesJob, as_called, said_as_events, say_as
from samzapy.cli.folding import QUOTED, folded
from samzapy.cli.help import CONTEXT
from samzapy.cli.interrupt import EXIT_OF_SIGINT, INTERRUPTED
from samzapy.cli.output import Errors, ReaderGone, checked_output
from samzapy.config.errors import ConfigError
from samzapy.config.secrets import SecretsHidden, without_secrets
from samzapy.log_form import JsonLines
from samzapy.log_output import queued_output
from samzapy.printable import StandardError, printable_lines

KEEPS_RUNNING = ("run",)  # whoever reads what it writes may stop reading
# typer brings click, or lately a copy of its own: its exceptions are, either way, those that typer's public ones come from
ClickException: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(cls=CommandGroup, name="samzapy", help="Stream processing in Python on Kafka, RocksDB and Spark.", context_settings=CONTEXT, **OPTIONS)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"samzapy {metadata.version('samzapy')}")
        raise typer.Exit


@app.callback()
def _options(
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Log details to stderr."),
    version: bool = typer.Option(False, "--version", callback=_say_version, is_eager=True, help="Show the version and exit."),
) -> None:
    configure_logging(verbose)


def configure_logging(verbose: bool) -> None:
    """One line per event on stderr."""
    logging.basicConfig(handlers=[StandardError()], level=logging.DEBUG if verbose else logging.INFO, force=True)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(PrintableLines("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
        handler.addFilter(NamesJob())
        handler.addFilter(SecretsHidden())
    for chatty in ("py4j", "urllib3", "uvicorn", "uvicorn.access", "uvicorn.error", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def log_as_json(job: str) -> None:
    """From now on this process logs one JSON object a line, and what it says is an event of its log. `job`: "" where it is not known yet."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonLines(**({"job": job} if job else {})))
    say_as(logging.getLogger("samzapy"))


class PrintableLines(logging.Formatter):
    """A log's lines, in which what others wrote is text and nothing else."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def main() -> None:
    """Runs the command line and exits with the command's exit code."""
    sys.exit(exit_code(sys.argv[1:]))


def exit_code(arguments: list[str]) -> int:
    """Runs one command; an error of the user's is a sentence, not a traceback (`SAMZAPY_DEBUG=1` shows it)."""
    with queued_output() if command_in(arguments) in KEEPS_RUNNING else nullcontext():
        return _exit_code(arguments)


def _exit_code(arguments: list[str]) -> int:
    stderr = cast(TextIO, Errors(sys.stderr))
    say_as(None)
    try:
        with checked_output(), _directory_known():
            result = app(args=arguments, standalone_mode=False)
    except ConfigError as error:
        _debug()
        _tell(stderr, error.render().rstrip(), QUOTED)
        return exit_codes.CONFIGURATION
    except SamzapyError as error:
        _debug()
        remedy = f"\n  {error.remedy}" if error.remedy else ""
        _tell(stderr, without_secrets(f"error[{error.code}]: {error.message}{remedy}"))
        return error.exit_code
    except ClickException as error:
        error.show(stderr)
        return exit_codes.CONFIGURATION
    except (typer.Abort, KeyboardInterrupt):
        result = EXIT_OF_SIGINT
    except ReaderGone:
        return exit_codes.OK
    except Exception as error:  # noqa: BLE001  what nobody foresaw is named as such, in a sentence too
        if was_interrupted(error):
            _tell(stderr, INTERRUPTED.rstrip())
            return EXIT_OF_SIGINT
        _debug()
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {without_secrets(str(error))} ({Path(where.filename).name}:{where.lineno})"
        remedy = "This is a bug in samzapy: report it with the output of SAMZAPY_DEBUG=1. Only committed work is kept."
        _tell(stderr, f"error[{InternalError.code}]: {what}\n  {remedy}")
        return InternalError.exit_code
    if result == EXIT_OF_SIGINT:  # typer makes that of a KeyboardInterrupt, or of an Abort
        _tell(stderr, INTERRUPTED.rstrip())
    return result if isinstance(result, int) else exit_codes.OK


def _tell(stderr: TextIO, text: str, kept: str | None = None) -> None:
    """Why the command failed. `kept`: lines that begin so are not folded."""
    if not said_as_events(logging.ERROR, text):
        stderr.write(folded(as_called(text), stderr, kept) + "\n")


@contextmanager
def _directory_known() -> Iterator[None]:
    """Most commands name files from the current directory; a shell may be left in one that a deployment replaced."""
    try:
        yield
    except FileNotFoundError:
        try:
            os.getcwd()
        except FileNotFoundError:
            raise ConfigurationError(
                "the directory that this shell is in was deleted.",
                "Change into one that exists, `cd /path/of/the/job`, and give the command again; a job that runs goes on.",
            ) from None
        raise


def was_interrupted(error: BaseException) -> bool:
    """Whether a Ctrl-C led to it: within C code a KeyboardInterrupt comes out as SystemError; caught by a library, as an error of its own."""
    seen: set[int] = set()
    led_to: BaseException | None = error
    while led_to is not None and id(led_to) not in seen:
        seen.add(id(led_to))
        if isinstance(led_to, KeyboardInterrupt):
            return True
        led_to = led_to.__cause__ or led_to.__context__
    return False


def _debug() -> None:
    if os.environ.get("SAMZAPY_DEBUG") == "1":
        traceback.print_exc()
