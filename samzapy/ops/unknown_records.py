"""Records in internal topics that no checkpoint of the job knows: a stage was given up with `samzapy checkpoint forget`, or the job was reset without it,
and now it is in the program again under the same name. These records went to the stage that was given up. Read now, they would count again.

What the job's own tasks send into an internal topic is committed together with checkpoints that name the topic, so these records are never theirs; with
`at_least_once` they may be of a first run that ended before its first commit, and are sent again.
"""

from __future__ import annotations

import logging

from samzapy.config.schema import Settings
from samzapy.model.offsets import TopicPartition
from samzapy.plan.forgetting import knows
from samzapy.ports import Clock, Log
from samzapy.readers import read_checkpoint
from samzapy.wiring.job_topics import JobTopics, job_of

LOG = logging.getLogger("samzapy")


def remove_unknown_records(settings: Settings, log: Log, clock: Clock) -> None:
    """Remove them, and say so.

    Raises:
        LogError: Kafka could not be asked, or did not remove them. StateRefused: a checkpoint cannot be read.
    """
    job, names = job_of(settings), JobTopics.of(settings).internal
    if not names:
        return
    with log.admin() as admin, log.restore_consumer("unknown-records") as consumer:
        there = admin.topics([*names, job.checkpoint_topic])
        places = [TopicPartition(name, number) for name in names if name in there for number in range(there[name].partitions)]
        # First what there is, then the checkpoints: what a run that is still alive commits in between is beyond these ends.
        held = {place: bounds.end for place, bounds in consumer.bounds_of(places).items() if bounds.end > bounds.start}
        if not held:
            return
        tasks = there[job.checkpoint_topic].partitions if job.checkpoint_topic in there else 0
        checkpoints = [read_checkpoint(consumer, TopicPartition(job.checkpoint_topic, number), clock) for number in range(tasks)]
        unknown = {place: end for place, end in held.items() if not any(c is not None and knows(c, place.topic) for c in checkpoints)}
        if unknown:
            admin.delete_records(unknown)
            LOG.warning(
                "internal topic %s held records that no checkpoint of this job knows, from before that stage was forgotten or the job was reset: "
                "they were removed", ", ".join(sorted({place.topic for place in unknown})),
            )  # fmt: skip
