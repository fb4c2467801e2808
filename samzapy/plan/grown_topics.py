"""What is told if topics of a job with state get more partitions: keys go to other partitions from then on, and so to tasks that do not have their state.

An input gets its records from others, an internal topic from the job alone: while the job does not run, nothing goes wrong there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from samzapy.api.errors import StateMismatch

STATE_IS_LOST = (
    "State cannot be rolled back to before the growth: give the job a new `id`, or run `samzapy reset JOB.yaml`, and read the inputs again from the start."
)


def grown_inputs(inputs: str, tasks: int, before: int) -> StateMismatch:
    """The error if the inputs of a job with state have another number of partitions than at its first run."""
    return StateMismatch(
        f"{inputs}: {tasks} partitions now, {before} when this job's state was created; a key's records would no longer reach the task that has its state.",
        STATE_IS_LOST,
    )


KEEPS_PARTITIONS = (
    "Kafka takes no partitions back: run `samzapy reset JOB.yaml` or give the job a new `id`; in both cases read the inputs again from the start. Or give other "
    "names in the program to the topic and to the operators after it that keep state: their state begins empty, and records that wait in the old topic are "
    "given up."
)


def grown_internal(topics: Mapping[str, int], before: int) -> StateMismatch:
    """The error if internal topics have more partitions than a job with state has had tasks. `topics`: their partitions now."""
    return StateMismatch(
        f"{_internal(topics, 'has {} partitions now')}, and had at most {before} when this job's state was created: somebody added partitions. A key's "
        f"state is with one of {before} tasks, and no task may be added. Nothing is lost: state and waiting records are as they were last committed.",
        KEEPS_PARTITIONS,
        is_state_whole=True,
    )


def grown_while_running(topics: Mapping[str, tuple[int, int]], internal: Collection[str], more: str) -> StateMismatch:
    """The error if topics of a running job grow whose keys have state. `topics`: from how many partitions to how many; `more`: what was committed."""
    grown = ", ".join(
        f"{'internal topic' if topic in internal else 'input'} {topic} grew from {before} to {now} partitions" for topic, (before, now) in sorted(topics.items())
    )
    what = f"{grown} while the job ran: keys go to other partitions now, and their records to tasks that do not have their state. {more}"
    return StateMismatch(what, KEEPS_PARTITIONS if topics.keys() <= set(internal) else STATE_IS_LOST)


def too_many_partitions(counts: Mapping[str, int], internal: Collection[str], new: Collection[str], before: int) -> StateMismatch:
    """The error if the partitions of what a job reads ask for more tasks than its state has been with.

    Args:
        counts: of the topics that the job reads.
        internal: those between two stages; `new`: those of them that do not exist yet.
        before: how many tasks its state has been with.
    """
    more = {topic: count for topic, count in counts.items() if count > before}
    inputs = {topic: count for topic, count in more.items() if topic not in internal}
    if inputs:
        most = max(inputs.values())
        return grown_inputs(", ".join(topic for topic, count in inputs.items() if count == most), most, before)
    if grown := {topic: count for topic, count in more.items() if topic not in new}:
        return grown_internal(grown, before)
    return StateMismatch(
        f"{_internal(more, 'would get {} partitions')}, and this job's state was created with {before} tasks, and cannot take more.",
        f"Give `partitions={before}` or fewer in the program; or give the job a new `id`.",
    )


def _internal(topics: Mapping[str, int], has: str) -> str:
    return ", ".join(f"internal topic {topic} {has.format(count)}" for topic, count in sorted(topics.items()))
