"""Records in internal topics that no checkpoint of the job knows: a stage was given up with `samzapy checkpoint forget`, or the job was reset without it,
and now it is in the program again under the same name. These records went to the stage that was given up. Read now, they would count again.

What the job's own tasks send into an internal topic is committed together with checkpoints that name the topic, so these records are never theirs; with
`at_least_once` they may be of a first run that ended before its first commit, and are sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from samzapy.config.schema import Settings
from samzapy.model.offsets import TopicPartition
from samzapy.plan.forgetting import knows
from samzapy.ports import Clock, Consumer, Log, TopicFacts
from samzapy.readers import decided_bounds, read_checkpoint
from samzapy.wiring.job_topics import JobTopics, job_of

LOG = logging.getLogger("samzapy")


def remove_unknown_records(settings: Settings, log: Log, clock: Clock) -> None:
    """Remove them, and say so.

    Raises:
        LogError: Kafka could not be asked, or did not remove them, or a checkpoint is in an open transaction. StateRefused: a checkpoint cannot be read.
    """
    names = JobTopics.of(settings).internal
    if not names:
        return
    with log.admin() as admin, log.restore_consumer("unknown-records") as consumer:
        there = admin.topics([*names, job_of(settings).checkpoint_topic])
        places = [TopicPartition(name, number) for name in names if name in there for number in range(there[name].partitions)]
        # First what there is, then the checkpoints: what a run that is still alive commits in between is beyond these ends.
        held = {place: bounds.end for place, bounds in consumer.bounds_of(places).items() if bounds.end > bounds.start}
        if not held:
            return
        topics = _unknown(settings, there, consumer, clock)
        if topics.isdisjoint(place.topic for place in held):
            return
        # A commit is seen in one partition a moment before it is in another: what is seen of the internal topics may be of a commit whose checkpoints
        # are not seen yet.
        checkpoints = job_of(settings).checkpoint_topic
        for number in range(there[checkpoints].partitions if checkpoints in there else 0):
            decided_bounds(consumer, TopicPartition(checkpoints, number), clock)
        topics = _unknown(settings, there, consumer, clock)
        unknown = {place: end for place, end in held.items() if place.topic in topics}
        if unknown:
            admin.delete_records(unknown)
            LOG.warning(
                "internal topic %s held records that no checkpoint of this job knows, from before a `checkpoint forget` or `reset`: "
                "they were removed", ", ".join(sorted({place.topic for place in unknown})),
            )  # fmt: skip


def unknown_topics(settings: Settings, log: Log, clock: Clock) -> frozenset[str]:
    """The job's internal topics that no checkpoint knows: what is in them is removed before the next run. Raises as `remove_unknown_records`."""
    names = JobTopics.of(settings).internal
    if not names:
        return frozenset()
    with log.admin() as admin, log.restore_consumer("unknown-records") as consumer:
        return _unknown(settings, admin.topics([job_of(settings).checkpoint_topic]), consumer, clock)


def _unknown(settings: Settings, there: Mapping[str, TopicFacts], consumer: Consumer, clock: Clock) -> frozenset[str]:
    topic = job_of(settings).checkpoint_topic
    tasks = there[topic].partitions if topic in there else 0
    checkpoints = [read_checkpoint(consumer, TopicPartition(topic, number), clock) for number in range(tasks)]
    return frozenset(name for name in JobTopics.of(settings).internal if not any(c is not None and knows(c, name) for c in checkpoints))
