"""`samzapy reset`: forget what a stopped job knows. Inputs and outputs are never touched."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from samzapy.api.errors import OwnedElsewhere, StateRefused
from samzapy.cli.common import JobFile, MoreFiles, Sets, connected, load, say
from samzapy.cli.inspect import running_url
from samzapy.config.load import LoadedJob
from samzapy.ports import Log

HOST = "localhost"
LOOK_S = 0.5


def reset(
    job: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    coordinator: Annotated[
        bool, typer.Option("--coordinator", help="Delete only the coordinator topic (which container runs which tasks); keep state and checkpoints.")
    ] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Do it. Without this option the command only shows what it would do.")] = False,
) -> None:
    """Remove state, changelogs and checkpoints of a stopped job: the next run starts from the beginning."""
    from samzapy.topic_check import changelogs
    from samzapy.wiring import job_of, local_state, remove_local_state

    loaded = load(job, more, sets)
    settings = loaded.settings
    with connected(loaded) as log:
        url = url_of_a_run(loaded, log)
        if url is not None:
            raise OwnedElsewhere(f"job {settings.job}-{settings.id} is running ({url}).", "Stop it first: `samzapy stop JOB.yaml`.")
        with log.admin() as admin:
            names = job_of(settings)
            forgotten = [] if coordinator else [*changelogs(settings), names.checkpoint_topic]
            topics = sorted(admin.topics([*forgotten, names.coordinator_topic]))
            folder = local_state(settings, admin.cluster_id(), HOST)
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


def url_of_a_run(loaded: LoadedJob, log: Log) -> str | None:
    """Where a run answers, or None. One that is alive renews its lease, so a lease that cannot be read is looked at until it would be over."""
    deadline: float | None = None
    lease_s = loaded.settings.containers.lease_ms / 1000
    while deadline is None or time.monotonic() < deadline:
        try:
            return running_url(loaded, log)
        except StateRefused as error:
            if deadline is None:
                deadline = time.monotonic() + lease_s
                say(f"{error.message} Waiting {lease_s:.0f} s for a run that renews its lease.")
        time.sleep(LOOK_S)
    say("it was not renewed: no run is alive")
    return None
