"""Topics that earlier runs wrote or read and that are gone, or are other topics now: a run must not make them again, empty, nor go on with them."""

from __future__ import annotations

from contextlib import suppress

from samzapy.api.errors import NotAuthorized, SamzapyError, StateRefused
from samzapy.config.schema import Settings
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import FirstRun, Ledger
from samzapy.ops.inspection import job_in_kafka, readable_checkpoints
from samzapy.ops.lost_positions import lost_positions
from samzapy.plan.lost_topics import changelog_gone, checkpoints_gone, differs_from_first_run, internal_gone
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
    gone: dict[str, StateRefused] = {}
    with log.admin() as admin:
        there = admin.topics(wanted)
    missing = [t for t in wanted if t not in there]
    if not missing or not there:
        return {}
    with log.restore_consumer("made-again") as consumer:
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


def lost_topics(settings: Settings, log: Log, clock: Clock) -> dict[str, SamzapyError]:
    """Of the job's topics those with which no run begins: gone, made again since, or without the records at which an input continues; and why.
    Who may not read the job's own topics is told only what is gone; so is everybody while a partition has no leader."""
    job, facts = job_of(settings), job_in_kafka(settings, log)
    lost: dict[str, SamzapyError] = dict(not_made_again(settings, log, clock))
    if any(there.leaderless for there in facts.topics.values()):
        return lost
    with suppress(NotAuthorized):
        ledger = Ledger()
        if job.coordinator_topic in facts.topics:
            with log.restore_consumer("made-again") as consumer:
                ledger = read_ledger(consumer, job.coordinator_topic, clock)
        if (there := facts.topics.get(job.checkpoint_topic)) is not None:
            refused = differs_from_first_run(job, "", ledger.first_run, FirstRun(there.topic_id, 0))
            lost |= {} if refused is None else {there.name: refused}
        lost = {**lost_positions(settings, facts, readable_checkpoints(settings, facts, log, clock), ledger, log, clock, {}), **lost}
    return lost
