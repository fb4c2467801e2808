"""Which of a job's own topics grow with its tasks: they have one partition per task."""

from __future__ import annotations

from collections.abc import Mapping

from samzapy.config.schema import Settings
from samzapy.plan.grown_topics import too_many_partitions
from samzapy.ports import TopicFacts
from samzapy.wiring.job_topics import JobTopics


def deciding_counts(names: JobTopics, there: Mapping[str, TopicFacts]) -> dict[str, int]:
    """By topic that decides how many tasks there are: how many partitions it has, or gets."""
    counts = names.counts({topic: there[topic].partitions for topic in names.read if topic in there})
    return {t: n for t, n in counts.items() if t not in names.broadcast and (t in there or t not in names.everywhere)}


def growing(settings: Settings, there: Mapping[str, TopicFacts], tasks: int) -> list[str]:
    """The topics that grow with the tasks. `there`: the topics of the job that exist.

    Raises:
        StateMismatch: the inputs decide where state lies: keys would meet other tasks than their state.
    """
    names = JobTopics.of(settings)
    topic, letters = names.job.checkpoint_topic, names.dead_letters
    follow = [*([letters] if letters else []), *([] if names.is_bound else names.changelogs.values())]
    found = [t for t in follow if t in there and there[t].partitions < tasks]
    if topic not in there or there[topic].partitions >= tasks:
        return found
    if names.is_bound:
        raise too_many_partitions(deciding_counts(names, there), names.internal, names.internal.keys() - there, there[topic].partitions)
    return [*found, topic]
