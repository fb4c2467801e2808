"""`samzapy reset`: forget what a stopped job knows. Inputs and outputs are never touched."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from samzapy.api.errors import StateRefused
from samzapy.cli.common import JobFile, MoreFiles, Sets, say
from samzapy.cli.job import Job
from samzapy.topic_check import changelogs
from samzapy.wiring import remove_local_state

LOOK_S = 0.5


def reset(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    coordinator: Annotated[
        bool, typer.Option("--coordinator", help="Delete only the coordinator topic (which container runs which tasks); keep state and checkpoints.")
    ] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Do it. Without this option the command only shows what it would do.")] = False,
) -> None:
    """Remove state, changelogs and checkpoints of a stopped job: the next run starts from the beginning."""
    job = Job(file, more, sets)
    settings = job.settings
    with job:
        job.refuse_running(url_of_a_run(job))
        with job.log.admin() as admin:
            forgotten = [] if coordinator else [*changelogs(settings), job.names.checkpoint_topic]
            topics = sorted(admin.topics([*forgotten, job.names.coordinator_topic]))
            folder = job.local_state()
            for topic in topics:
                say(f"{'deleting' if execute else 'would delete'} topic {topic}")
            if folder.exists() and not coordinator:
                say(f"{'deleting' if execute else 'would delete'} {folder}")
            if execute:
                admin.delete(topics)
            if execute and not coordinator:
                remove_local_state(folder, settings.state.dir)
    if not execute:
        say("nothing was changed; do it with --execute")


def url_of_a_run(job: Job) -> str | None:
    """Where a run answers, or None. One that is alive renews its lease, so a lease that cannot be read is looked at until it would be over."""
    deadline: float | None = None
    lease_s = job.settings.containers.lease_ms / 1000
    while deadline is None or time.monotonic() < deadline:
        try:
            return job.url()
        except StateRefused as error:
            if deadline is None:
                deadline = time.monotonic() + lease_s
                say(f"{error.message} Waiting {lease_s:.0f} s for a run that renews its lease.")
        time.sleep(LOOK_S)
    say("it was not renewed: no run is alive")
    return None
