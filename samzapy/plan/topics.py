"""The internal topics of a job as they must be, and what is wrong with those that are there.

Only what could lose or double something is wrong: the number of partitions, and a cleanup policy that deletes state by age, or dead letters
by key.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from samzapy.model.names import Job
from samzapy.ports import TopicFacts, TopicSpec

COMPACT = "compact"
READ_IN_MS = 600_000  # for so long the cleaner takes nothing away from who reads: no newer record hides the one that is about to be read
CHANGELOG = {
    "cleanup.policy": COMPACT, "min.cleanable.dirty.ratio": "0.3", "segment.ms": "3600000", "min.compaction.lag.ms": str(READ_IN_MS),
}  # fmt: skip
DELETE = "delete"
DEAD_LETTERS = {"cleanup.policy": DELETE}  # retention as the brokers have it
DEAD_LETTER_HEADROOM = 64 << 10  # bytes that a dead letter may have beyond its record: error, stack, origin
METADATA = {
    "cleanup.policy": COMPACT, "segment.bytes": str(8 << 20), "segment.ms": "600000", "min.compaction.lag.ms": str(READ_IN_MS),
}  # fmt: skip


def internal_topics(job: Job, tasks: int, changelogs: Iterable[str], dead_letters: bool = False, largest_input: int = 0) -> list[TopicSpec]:
    """Coordinator (one partition), checkpoints, each changelog, and dead letters if there may be some (one partition a task).

    `largest_input`: bytes that a record of an input may have at most; the dead-letter topic takes more. 0: as the brokers have it.
    """
    letters = {**DEAD_LETTERS, **({"max.message.bytes": str(largest_input + DEAD_LETTER_HEADROOM)} if largest_input else {})}
    return [
        TopicSpec(job.coordinator_topic, 1, METADATA),
        TopicSpec(job.checkpoint_topic, tasks, METADATA),
        *(TopicSpec(topic, tasks, CHANGELOG) for topic in changelogs),
        *([TopicSpec(job.dead_letter_topic, tasks, letters)] if dead_letters else []),
    ]


def what_is_wrong(spec: TopicSpec, facts: TopicFacts) -> str:
    """Why an existing internal topic cannot be used, with the command that corrects it; "" if it can."""
    if spec.config.get("cleanup.policy") == DELETE and facts.partitions >= spec.partitions:  # dead letters of an earlier run may lie in more
        return wrong_policy(spec, facts)
    if facts.partitions != spec.partitions:
        grow = f"give it {spec.partitions} with Kafka's own tools"
        way_out = grow if facts.partitions < spec.partitions else "give the job a new id, or run `samzapy reset JOB.yaml`"
        return f"has {facts.partitions} partitions, the job needs {spec.partitions}; {way_out}"
    return wrong_policy(spec, facts)


def wrong_policy(spec: TopicSpec, facts: TopicFacts) -> str:
    """What an existing internal topic would lose by its cleanup policy, with the command that corrects it; "" if nothing."""
    wanted, policy = spec.config.get("cleanup.policy", COMPACT), facts.config.get("cleanup.policy", DELETE)
    if policy == wanted:
        return ""
    loss = "dead letters would be lost" if wanted == DELETE else "Kafka would delete state"
    return f"has cleanup.policy={policy}, under which {loss}; {_set_policy(spec, wanted)}"


def _set_policy(spec: TopicSpec, policy: str) -> str:
    return f"with Kafka's own tools, set cleanup.policy={policy} for {spec.name}"


def command_that_makes(topic: str, servers: str, partitions: int = 4) -> str:
    """A line for a shell; of `samzapy send` and nothing to send."""
    return f"samzapy send {topic} --partitions {partitions} --kafka {shlex.quote(servers)} < /dev/null"
