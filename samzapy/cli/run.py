"""`samzapy run`."""

from __future__ import annotations

import secrets
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.cli.begun import begin
from samzapy.cli.common import JobFile, MoreFiles, Sets
from samzapy.cli.job import Job
from samzapy.cli.loading import with_master
from samzapy.cli.running import How, Run
from samzapy.cli.this_process import refuse_too_little_address_space
from samzapy.log_form import FORMATS, JSON, TEXT

INLINE = ("containers.count=1", "commit.timeout=10m")  # the second: so long a debugger may stop before the container is taken for stuck
UNTIL_END = (
    "Stop at the end offsets that the inputs have now, and close all open windows. In a later run, a record for such a window starts it again, empty."
)
AGAIN = "Nothing has to be cleaned up: this run may be started again at any time, by a supervisor too."


def run(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, instead of the job file's.", show_default=False)] = None,
    local: Annotated[bool, typer.Option("--local", help="Containers as child processes, without Spark.")] = False,
    until_end: Annotated[bool, typer.Option("--until-end", help=UNTIL_END)] = False,
    create: Annotated[
        bool, typer.Option("--create-topics", help="First create the outputs that are missing and have `partitions` in the job file.")
    ] = False,
    inline: Annotated[
        bool, typer.Option("--inline", help="One container, in this process: `breakpoint()` in the task stops there. `commit.timeout` is 10m then.")
    ] = False,
    log_format: Annotated[str, typer.Option("--log-format", help=f"{' or '.join(FORMATS)}: how the log is written, to stderr.")] = TEXT,
    takeover: Annotated[bool, typer.Option("--takeover", help="Take the job over from another run, even if that still answers.")] = False,
    profile: Annotated[
        Path | None,
        typer.Option(help="Write a flame graph of each container's loop into this folder, on the container's host.", show_default=False),
    ] = None,
) -> int:
    """Run a job in the foreground. Ctrl-C: final commit, exit 0; a second one: stop now.

    In a terminal its last line shows the progress: records per second, lag, commits, restarts. At the end there is a summary."""
    if log_format not in FORMATS:
        raise ConfigurationError(f"--log-format {log_format}: no such format.", f"Give {' or '.join(FORMATS)}.")
    if log_format == JSON:
        _log_as_json()
    if inline and (master or profile):
        raise ConfigurationError(f"--inline and {'--master' if master else '--profile'} exclude each other.", "Give one of them.")
    refuse_too_little_address_space()
    run_id = secrets.token_hex(8)
    overrides = [*(INLINE if inline else ()), *with_master(sets, local, master)]
    try:
        with begin(run_id) as begun, Job(file, more, overrides, classes=True, before_classes=begun.of) as job:
            if log_format == JSON:
                _log_as_json(str(job.names))
            named = (str(file), *(f"--file={one}" for one in more or ()), *(f"--set={one}" for one in overrides))
            how = How(local or inline, inline, until_end, takeover, profile, log_format, create, named)
            return Run(job, run_id, how, begun.listens_at).run()
    except ClusterUnreachable as error:
        raise type(error)(error.message, f"{error.remedy} {AGAIN}".lstrip()) from error


def _log_as_json(job: str = "") -> None:
    import_module("samzapy.cli.main").log_as_json(job)
