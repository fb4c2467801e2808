"""`samzapy run`."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from samzapy.api.errors import ClusterUnreachable
from samzapy.cli.begun import begin
from samzapy.cli.common import JobFile, MoreFiles, Sets
from samzapy.cli.job import Job
from samzapy.cli.loading import with_master
from samzapy.cli.running import Run

AGAIN = "Nothing has to be cleaned up: this run may be started again at any time, by a supervisor too."


def run(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, in place of the job file's.", show_default=False)] = None,
    local: Annotated[bool, typer.Option("--local", help="Containers as child processes, without Spark.")] = False,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at the end offsets that the inputs have now.")] = False,
    takeover: Annotated[bool, typer.Option("--takeover", help="Take the job over from another run, even if that still answers.")] = False,
    profile: Annotated[
        Path | None,
        typer.Option(help="Write a flame graph of each container's loop into this folder, on the container's host.", show_default=False),
    ] = None,
) -> int:
    """Run a job in the foreground. Ctrl-C: final commit, exit 0; a second one: stop now."""
    run_id = secrets.token_hex(8)
    try:
        with begin(run_id) as begun, Job(file, more, with_master(sets, local, master), classes=True, before_classes=begun.of) as job:
            return Run(job, run_id, local=local, until_end=until_end, takeover=takeover, profile=profile).run()
    except ClusterUnreachable as error:
        raise type(error)(error.message, f"{error.remedy} {AGAIN}".lstrip()) from error
