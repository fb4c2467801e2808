"""`samzapy reset`: forget what a stopped job knows. Inputs and outputs are never touched."""

from __future__ import annotations

from typing import Annotated

import typer

from samzapy.api.errors import OwnedElsewhere
from samzapy.cli.common import JobFile, MoreFiles, Sets, connected, load, say
from samzapy.cli.inspect import running_url

HOST = "localhost"


def reset(
    job: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without this, only say what would be done.")] = False,
) -> None:
    """Remove state, changelogs and checkpoints of a stopped job: the next run starts from the beginning."""
    from samzapy.topic_check import changelogs
    from samzapy.wiring import job_of, local_state, remove_local_state

    loaded = load(job, more, sets)
    settings = loaded.settings
    with connected(loaded) as log:
        url = running_url(loaded, log)
        if url is not None:
            raise OwnedElsewhere(f"job {settings.job}-{settings.id} is running ({url}).", "Stop it first: `samzapy stop`.")
        admin = log.admin()
        try:
            names = job_of(settings)
            topics = sorted(admin.topics([*changelogs(settings), names.checkpoint_topic, names.coordinator_topic]))
            folder = local_state(settings, admin.cluster_id(), HOST)
            for topic in topics:
                say(f"{'deleting' if execute else 'would delete'} topic {topic}")
            if folder.exists():
                say(f"{'deleting' if execute else 'would delete'} {folder}")
            if execute:
                admin.delete(topics)
                remove_local_state(folder)
        finally:
            admin.close()
    if not execute:
        say("nothing was changed; do it with --execute")
