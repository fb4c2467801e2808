"""Changelogs that the job file names itself: one that holds records of somebody else's is refused before anything is written to it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from samzapy.api.errors import StateRefused
from samzapy.config.schema import Settings
from samzapy.model.checkpoint import Checkpoint
from samzapy.ops.inspection import read_checkpoints, refuse_foreign
from samzapy.ports import Admin, Clock, Log
from samzapy.wiring.job_topics import JobTopics


def refuse_strangers(settings: Settings, log: Log, admin: Admin, clock: Clock) -> None:
    """Every start of a task writes a barrier into its changelogs, which readers of another application's topic would meet, and after which `reset`
    would take the topic for the job's own. A topic under its usual name is the job's.

    Raises:
        StateRefused: there is one.
    """
    names = JobTopics.of(settings)
    stores = {topic: store for store, topic in names.changelogs.items() if topic != names.job.changelog_topic(store)}
    there = admin.topics(stores)
    if not there:
        return
    checkpoints: Mapping[int, Checkpoint] = {}
    with suppress(StateRefused):  # the run says why; barriers tell whose a topic is as well
        checkpoints = read_checkpoints(settings, admin.topics([names.job.checkpoint_topic]), log, clock)
    for topic, facts in sorted(there.items()):
        refuse_foreign(settings, stores[topic], facts, checkpoints, log, clock, unmarked=True)
