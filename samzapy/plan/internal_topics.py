"""The internal topics of a job as they must be, and what is wrong with those that are there.

Only what could lose or double something is wrong: the number of partitions, and a cleanup policy that deletes state by age, or dead letters
by key.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from samzapy.model.names import Job, job_of_coordinator_topic
from samzapy.plan.duration import duration
from samzapy.ports import TopicFacts, TopicSpec

COMPACT = "compact"
READ_IN_MS = 600_000  # for so long the cleaner takes nothing away from who reads: no newer record hides the one that is about to be read
CHANGELOG = {
    "cleanup.policy": COMPACT, "min.cleanable.dirty.ratio": "0.3", "segment.ms": "3600000", "min.compaction.lag.ms": str(READ_IN_MS),
}  # fmt: skip
DELETE = "delete"
DEAD_LETTERS = {"cleanup.policy": DELETE, "retention.ms": "-1", "retention.bytes": "-1"}  # until somebody has dealt with them
FOR_EVER = str((1 << 63) - 1)
INTERNAL = {  # its records are removed once they are read and committed; their times are event times, which may be of any year
    "cleanup.policy": DELETE, "retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": str(64 << 20), "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": FOR_EVER, "message.timestamp.after.max.ms": FOR_EVER,
}  # fmt: skip
KEEPS_ALL = ("retention.ms", "retention.bytes", "message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
DEAD_LETTER_HEADROOM = 64 << 10  # bytes that a dead letter may have beyond its record: error, stack, origin
METADATA = {
    "cleanup.policy": COMPACT, "segment.bytes": str(8 << 20), "segment.ms": "600000", "min.compaction.lag.ms": str(READ_IN_MS),
}  # fmt: skip


def internal_topics(
    job: Job, tasks: int, changelogs: Iterable[str], dead_letters: bool = False, largest_input: int = 0, between: Mapping[str, int] = MappingProxyType({})
) -> list[TopicSpec]:
    """Coordinator (one partition), checkpoints, each changelog, and dead letters if there may be some (one partition a task); and `between`: the
    topics between the stages of a program, with their partitions.

    `largest_input`: bytes that a record of an input may have at most; the dead-letter topic takes more. 0: as the brokers have it.
    """
    size = {"max.message.bytes": str(largest_input + DEAD_LETTER_HEADROOM)} if largest_input else {}
    letters = {**DEAD_LETTERS, **size}
    return [
        TopicSpec(job.coordinator_topic, 1, METADATA),
        TopicSpec(job.checkpoint_topic, tasks, METADATA),
        *(TopicSpec(topic, tasks, CHANGELOG) for topic in changelogs),
        *([TopicSpec(job.dead_letter_topic, tasks, letters)] if dead_letters else []),
        *(TopicSpec(topic, partitions, {**INTERNAL, **size}) for topic, partitions in between.items()),
    ]


def more_partitions(spec: TopicSpec, facts: TopicFacts) -> range:
    """The partitions that a topic has beyond those that the job needs, where they may be nobody's: a program decides about the topics between its stages,
    and dead letters of an earlier run may lie in more."""
    return range(0) if is_between(spec) or spec.config.get("cleanup.policy") == DELETE else range(spec.partitions, facts.partitions)


def unused_partitions(spec: TopicSpec, facts: TopicFacts) -> str:
    """What to know of a topic that has more partitions than the job needs."""
    return f"has {facts.partitions} partitions, and the job needs {spec.partitions}: the others are empty, and are not used"


def what_is_wrong(spec: TopicSpec, facts: TopicFacts, *, rest_is_empty: bool = False) -> str:
    """Why an existing internal topic cannot be used, with the command that corrects it; "" if it can. `rest_is_empty`: nothing was ever written to those of
    its partitions that the job does not need (`more_partitions`)."""
    if is_between(spec):
        return _wrong_between(spec, facts) or wrong_policy(spec, facts)
    if spec.config.get("cleanup.policy") == DELETE and facts.partitions >= spec.partitions:  # dead letters of an earlier run may lie in more
        return wrong_policy(spec, facts)
    if facts.partitions < spec.partitions:
        return f"has {facts.partitions} partitions, the job needs {spec.partitions}; give it {spec.partitions} with Kafka's own tools"
    if facts.partitions > spec.partitions and not rest_is_empty:
        way_out = "give the job a new id, or run `samzapy reset JOB.yaml`, to begin with empty state"
        if job_of_coordinator_topic(spec.name) is not None:
            way_out = "delete that topic alone, with `samzapy reset JOB.yaml --coordinator --execute`: state and checkpoints are in other topics"
        return f"has {facts.partitions} partitions, the job needs {spec.partitions}, and there are records in the others; {way_out}"
    return wrong_policy(spec, facts)


def wrong_policy(spec: TopicSpec, facts: TopicFacts) -> str:
    """What an existing internal topic would lose by its cleanup policy, with the command that corrects it; "" if nothing."""
    if is_between(spec):
        return _not_kept(spec, facts)
    wanted, policy = spec.config.get("cleanup.policy", COMPACT), facts.config.get("cleanup.policy", DELETE)
    if policy == wanted:
        return ""
    loss = "dead letters would be lost" if wanted == DELETE else "Kafka would delete state"
    return f"has cleanup.policy={policy}, under which {loss}; {_set_policy(spec, wanted)}"


def expiring_letters(spec: TopicSpec, facts: TopicFacts) -> str:
    """What to know of a dead-letter topic whose records Kafka deletes by age; "" of others. Somebody may have wanted it."""
    if is_between(spec) or spec.config.get("cleanup.policy") != DELETE or facts.retention_ms is None:
        return ""
    return (
        f"Kafka deletes dead letters from {spec.name} {duration(facts.retention_ms / 1000)} after their records failed (retention.ms={facts.retention_ms}), also "
        f"those that nobody has dealt with. To keep them, set retention.ms=-1 for it with Kafka's own tools"
    )


def expiring_table(topic: str, facts: TopicFacts) -> str:
    """What to know of a topic that each start reads again, and whose records Kafka deletes by age; "" of others."""
    if facts.retention_ms is None:
        return ""
    return (
        f"Kafka deletes records of {topic} {duration(facts.retention_ms / 1000)} after their time (retention.ms={facts.retention_ms}), and each start of the job "
        "reads the topic again: entries that were not written for that long are then missing. To keep them, set cleanup.policy=compact for it with Kafka's own tools"
    )


def is_between(spec: TopicSpec) -> bool:
    """Whether it is a topic between two stages of a program."""
    return "message.timestamp.type" in spec.config


def _wrong_between(spec: TopicSpec, facts: TopicFacts) -> str:
    if facts.partitions == spec.partitions:
        return ""
    return (
        f"has {facts.partitions} partitions, the program says {spec.partitions}: keys would go to tasks that do not have their state; say "
        f"partitions={facts.partitions}, give it another name, or run `samzapy reset JOB.yaml`"
    )


def _not_kept(spec: TopicSpec, facts: TopicFacts) -> str:
    """Settings of a topic between two stages with which Kafka would delete or refuse records; "" if there are none."""
    names = ["cleanup.policy", *(name for name in KEEPS_ALL if name in facts.config)]
    wrong = {name: facts.config.get(name, "?") for name in names if facts.config.get(name, DELETE) != spec.config[name]}
    if not wrong:
        return ""
    has, wanted = ", ".join(f"{name}={value}" for name, value in wrong.items()), ",".join(f"{name}={spec.config[name]}" for name in wrong)
    return f"has {has}, under which Kafka would delete or refuse records that are still to be read; with Kafka's own tools, set {wanted} for {spec.name}"


def other_times(spec: TopicSpec, facts: TopicFacts) -> str:
    """Why the records of a topic between two stages have other times than they were sent with, so that windows are wrong from now on; "" if they have not."""
    if not is_between(spec) or not facts.gives_times:
        return ""
    return f"internal topic {spec.name} has message.timestamp.type=LogAppendTime now: Kafka replaces the times of its records, and windows need these times"


def _set_policy(spec: TopicSpec, policy: str) -> str:
    return f"with Kafka's own tools, set cleanup.policy={policy} for {spec.name}"


def command_that_makes(topic: str, servers: str, partitions: int = 4, *, compact: bool = False) -> str:
    """A line for a shell; of `samzapy send` and nothing to send. `compact`: for a table, of which Kafka must delete nothing by age."""
    return f"samzapy send {topic} --partitions {partitions}{' --key --compact' if compact else ''} --kafka {shlex.quote(servers)} < /dev/null"
