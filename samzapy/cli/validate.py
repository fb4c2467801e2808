"""`samzapy validate`: all errors of a job file at once; what asks Kafka is imported only if Kafka is to be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from samzapy.api.errors import ConfigurationError
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.loading import load
from samzapy.config.errors import ConfigError


def validate(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also ask Kafka and the Schema Registry whether a run could start: topics, settings, permissions, schemas.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show all errors of a job file; exit code 2 if there are any. With --connect, the run's exit code if a run would be refused."""
    if not as_json:
        return _validate(file, more, sets, connect, say)
    said: list[str] = []
    try:
        code = _validate(file, more, sets, connect, said.append)
    except ConfigError as error:
        problems = [{"file": p.file, "line": p.line, "column": p.column, "key": p.path, "problem": p.message, "remedy": p.hint} for p in error.problems]
        print_json({"file": str(file), "valid": False, "problems": problems})
        return ConfigurationError.exit_code
    problems = [] if code == 0 else [{"file": str(file), "line": 0, "column": 0, "key": "", "problem": line, "remedy": ""} for line in said]
    print_json({"file": str(file), "valid": code == 0, "problems": problems})
    return code


def _validate(file: Path, more: list[Path] | None, sets: list[str] | None, connect: bool, say: Callable[[str], None]) -> int:
    if connect:
        from samzapy.cli.validate_connected import problems_of

        problems, exit_code = problems_of(file, more, sets)
    else:
        load(file, more, sets, classes=True)
        problems, exit_code = [], 0
    for problem in problems:
        say(f"error: {problem}")
    if exit_code == 0:
        say(f"{file}: valid" + (", and Kafka has what it needs" if connect else ""))
    return exit_code
