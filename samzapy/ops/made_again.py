"""Topics that earlier runs wrote and that are gone: a run must not make them again, empty."""

from __future__ import annotations

from samzapy.api.errors import StateRefused
from samzapy.config.schema import Settings
from samzapy.model.offsets import TopicPartition
from samzapy.plan.lost_topics import changelog_gone, checkpoints_gone, internal_gone
from samzapy.ports import Clock, Log
from samzapy.readers import read_checkpoint, read_ledger
from samzapy.wiring.job_topics import JobTopics, job_of


def refuse_to_make_again(settings: Settings, log: Log, clock: Clock) -> None:
    """Before topics are created: a topic that earlier runs wrote and that was deleted must not be created again, empty.

    Raises:
        StateRefused: the checkpoint topic of a job that has begun, or a changelog or internal topic that a checkpoint names.
    """
    for refused in not_made_again(settings, log, clock).values():
        raise refused


def not_made_again(settings: Settings, log: Log, clock: Clock) -> dict[str, StateRefused]:
    """Of the job's own topics those that are gone and that no run makes again, and why."""
    job = job_of(settings)
    between = JobTopics.of(settings).internal
    wanted = [job.coordinator_topic, job.checkpoint_topic, *JobTopics.of(settings).changelogs.values(), *between]
    admin, consumer = log.admin(), log.restore_consumer("made-again")
    gone: dict[str, StateRefused] = {}
    try:
        there = admin.topics(wanted)
        missing = [t for t in wanted if t not in there]
        if not missing or not there:
            return {}
        if job.checkpoint_topic in there:
            for partition in range(there[job.checkpoint_topic].partitions):
                found = read_checkpoint(consumer, TopicPartition(job.checkpoint_topic, partition), clock)
                for store, mark in (found.stores if found else {}).items():
                    if mark.topic in missing:
                        gone.setdefault(mark.topic, changelog_gone(mark.topic, store, f"{job.checkpoint_topic}[{partition}]"))
                for place in found.inputs if found else ():
                    if (topic := place.rpartition("[")[0]) in between and topic in missing:
                        gone.setdefault(topic, internal_gone(topic, f"{job.checkpoint_topic}[{partition}]"))
        elif job.coordinator_topic in there and read_ledger(consumer, job.coordinator_topic, clock).first_run is not None:
            gone[job.checkpoint_topic] = checkpoints_gone(job)
        return gone
    finally:
        consumer.close()
        admin.close()
