"""Topics that are another job's own: its changelogs, its dead letters, its internal topics. Nothing else may be written there.

A name alone does not say so: a topic of anybody's may be called orders-1-eu-changelog. A changelog or dead-letter topic is a job's if that job has a
checkpoint topic; an internal topic, if a checkpoint of the job names it: a task's first checkpoint does, before any record is read or sent. Changelogs that
two jobs name are not told here: each has its owner's barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from samzapy.api.errors import ConfigurationError, NotAuthorized, StateRefused
from samzapy.config.schema import Settings
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.names import CHANGELOG, Job, possible_owners
from samzapy.model.offsets import TopicPartition
from samzapy.plan.forgetting import writes
from samzapy.ports import Admin, Clock, Log
from samzapy.readers import newest_checkpoints
from samzapy.wiring.job_topics import JobTopics, job_of

_CHANGELOG, _DEAD_LETTERS, _INTERNAL = "a changelog", "a dead-letter topic", "an internal topic"


@dataclass(frozen=True, slots=True)
class Owner:
    """The other job that a topic belongs to, and what it is there."""

    job: Job
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} of job {_told(self.job)}"

    @property
    def if_gone(self) -> str:
        return f"if job {_told(self.job)} no longer exists, delete {self.job.checkpoint_topic} with Kafka's own tools."


def _told(job: Job) -> str:
    """Name and id apart: of jobs cx-1 and cx, both of id 1, one would else be called as the other is named."""
    return f"{job.name} (id {job.id})"


def refuse_others(settings: Settings, log: Log, admin: Admin, clock: Clock) -> None:
    """Refuse outputs and topics of the job's own that are another job's: what is written there is not that job's, and would stop it, be lost, or be
    counted there; and records that are still to be read would be removed.

    Raises:
        ConfigurationError: there is one.
    """
    names = JobTopics.of(settings)
    own = _named(names)
    owners = owners_of([*names.outputs, *own], names.job, log, admin, clock)
    for topic, owner in owners.items():
        if topic not in own:
            raise ConfigurationError(
                f"output {topic} is {owner.kind} of job {owner.job}, to which that job alone writes.", f"Write to another topic; {owner.if_gone}"
            )
        is_internal = topic in names.internal
        kind, name = (_INTERNAL, "in `key_by`, `repartition` or `broadcast`") if is_internal else (_CHANGELOG, "in `changelog`")
        raise ConfigurationError(
            f"{topic} would be {kind} of job {_told(names.job)}, and is {owner}: each would take the other's records for its own, and remove them.",
            f"Give it another name {name}, or give this job another name or id; {owner.if_gone}",
        )


def owned_by_others(settings: Settings, log: Log, admin: Admin, clock: Clock) -> Mapping[str, Owner]:
    """Those of the job's own topics that are another job's, too."""
    return owners_of(_named(JobTopics.of(settings)), job_of(settings), log, admin, clock)


def _named(names: JobTopics) -> list[str]:
    """The topics of the job's own that may be another job's, too. Of dead letters, checkpoints and the coordinator each job has its own by their names."""
    return [*names.internal, *(topic for topic in names.changelogs.values() if not topic.endswith(CHANGELOG))]


def owners_of(topics: Iterable[str], own: Job, log: Log, admin: Admin, clock: Clock) -> dict[str, Owner]:
    """By topic, the other job that owns it; without those of which nothing may be known here."""
    candidates = {topic: [job for job in possible_owners(topic) if job != own] for topic in topics}
    wanted = {job.checkpoint_topic for jobs in candidates.values() for job in jobs}
    if not wanted:
        return {}
    there = wanted.intersection(admin.names())
    checkpoints = cache(lambda job: _checkpoints(job, log, admin, clock))
    return {
        topic: Owner(job, kind)
        for topic, jobs in candidates.items()
        for job in reversed(jobs)
        if job.checkpoint_topic in there and (kind := _kind(topic, job, checkpoints))
    }


def _kind(topic: str, job: Job, checkpoints: Callable[[Job], list[Checkpoint]]) -> str:
    """What the topic is in the job, which has a checkpoint topic; "" if it is not the job's."""
    if topic == job.dead_letter_topic:
        return _DEAD_LETTERS
    if topic.endswith(CHANGELOG):
        return _CHANGELOG
    return _INTERNAL if any(writes(checkpoint, topic) for checkpoint in checkpoints(job)) else ""


def _checkpoints(job: Job, log: Log, admin: Admin, clock: Clock) -> list[Checkpoint]:
    """The newest checkpoints of another job that may be read, and can be."""
    found: list[Checkpoint] = []
    with suppress(NotAuthorized), log.restore_consumer("other-job") as consumer:
        facts = admin.topics([job.checkpoint_topic]).get(job.checkpoint_topic)
        places = [TopicPartition(job.checkpoint_topic, partition) for partition in range(facts.partitions if facts else 0)]
        newest = newest_checkpoints(consumer, places, clock)
        for place in places:
            with suppress(StateRefused):
                checkpoint = newest.of(place)
                found += [checkpoint] if checkpoint is not None else []
    return found
