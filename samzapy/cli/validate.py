"""`samzapy validate`: all errors of a job file at once; what asks Kafka is imported only if Kafka is to be asked."""

from __future__ import annotations

from typing import Annotated

import typer

from samzapy.cli.common import JobFile, MoreFiles, Sets, say
from samzapy.cli.loading import load


def validate(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    connect: Annotated[bool, typer.Option("--connect", help="Also ask Kafka: topics, partitions, settings.")] = False,
) -> int:
    """All errors of a job file at once; exit code 2 if there are any. With --connect: the exit code of a run, if that would be refused."""
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
