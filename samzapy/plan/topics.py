"""The internal topics of a job as they must be, and what is wrong with those that are there.

Only what could lose or double something is wrong: the number of partitions, and a cleanup policy that deletes state by age.
"""

from __future__ import annotations

from collections.abc import Iterable

from samzapy.model.names import Job
from samzapy.ports import TopicFacts, TopicSpec

COMPACT = "compact"
CHANGELOG = {"cleanup.policy": COMPACT, "min.cleanable.dirty.ratio": "0.3", "segment.ms": "3600000"}
METADATA = {"cleanup.policy": COMPACT, "segment.bytes": str(8 << 20), "segment.ms": "600000"}


def internal_topics(job: Job, tasks: int, changelogs: Iterable[str]) -> list[TopicSpec]:
    """Coordinator (one partition), checkpoints (one partition a task), and each changelog (one partition a task)."""
    return [
        TopicSpec(job.coordinator_topic, 1, METADATA),
        TopicSpec(job.checkpoint_topic, tasks, METADATA),
        *(TopicSpec(topic, tasks, CHANGELOG) for topic in changelogs),
    ]


def what_is_wrong(spec: TopicSpec, facts: TopicFacts) -> str:
    """Why an existing internal topic cannot be used, with the command that corrects it; "" if it can."""
    if facts.partitions != spec.partitions:
        grow = f"kafka-topics.sh --alter --topic {spec.name} --partitions {spec.partitions}"
        way_out = grow if facts.partitions < spec.partitions else "give the job a new id, or run `samzapy reset`"
        return f"has {facts.partitions} partitions, the job needs {spec.partitions}; {way_out}"
    policy = facts.config.get("cleanup.policy", "delete")
    if policy != COMPACT:
        command = f"kafka-configs.sh --alter --entity-type topics --entity-name {spec.name} --add-config cleanup.policy={COMPACT}"
        return f"has cleanup.policy={policy}, under which Kafka would delete state; {command}"
    return ""
