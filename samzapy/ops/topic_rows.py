"""Every topic of a job as it must be, against what exists: for `topics`, `plan`, `validate --connect` and `doctor`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from samzapy.api.errors import SamzapyError
from samzapy.config.schema import Settings
from samzapy.ops.made_again import lost_topics
from samzapy.ops.prepare_topics import internal_specs, other_partitions, read_each_time, tasks_of, with_empty_rest
from samzapy.plan.internal_topics import expiring_letters, expiring_table, is_between, unused_partitions, what_is_wrong
from samzapy.ports import Clock, Log, TopicFacts, TopicSpec
from samzapy.wiring.job_topics import JobTopics, job_of

OK, MISSING, WRONG, ABSENT, LEADERLESS, LOST = "ok", "missing", "wrong", "absent", "leaderless", "lost"
Row = tuple[str, tuple[str, str, str, str, str]]  # kind, (topic, role, expected, actual, state)


def topic_rows(settings: Settings, log: Log, clock: Clock) -> list[Row]:
    """Every topic of the job: expected against actual."""
    lost = lost_topics(settings, log, clock)
    with log.admin() as admin:
        users = [(i.topic, "input", None) for i in settings.inputs] + [(o.topic, "output", o.partitions) for o in settings.outputs]
        facts = admin.topics([*(t for t, _, _ in users), *JobTopics.of(settings).decide_tasks])
        again = read_each_time(settings)
        rows = [
            _user_row(topic, role, partitions, facts.get(topic), is_read_each_time=topic in again, lost=lost.get(topic) if role == "input" else None)
            for topic, role, partitions in users
        ]
        if not {i.topic for i in settings.inputs} <= set(facts):
            return rows
        tasks = len(tasks_of(settings, facts))
        wanted = internal_specs(settings, facts)
        there = admin.topics([s.name for s in wanted])
        checkpoints = there.get(job_of(settings).checkpoint_topic)
        begun_with = checkpoints.partitions if checkpoints is not None and checkpoints.partitions < tasks else None
        grown = []
        if begun_with is not None and (grown := _grown_internal(JobTopics.of(settings), facts, begun_with)):  # the other topics stay as they are
            wanted = [replace(s, partitions=begun_with) if s.partitions == tasks and not is_between(s) else s for s in wanted]
        usable = with_empty_rest(admin, wanted, there)
        return rows + [
            _internal_row(settings, s, there.get(s.name), begun_with, grown, rest_is_empty=s.name in usable, lost=lost.get(s.name)) for s in wanted
        ]


def _grown_internal(names: JobTopics, facts: Mapping[str, TopicFacts], begun_with: int) -> list[str]:
    """The topics between two stages because of which there would be more tasks, and to which the program itself does not give so many partitions."""
    bound = names.internal if names.is_bound else names.keyed
    there = {topic: facts[topic].partitions for topic in names.internal if topic in facts and topic in bound}
    return [topic for topic, count in there.items() if count > begun_with and count != names.internal[topic]]


def _user_row(
    topic: str, role: str, partitions: int | None, facts: TopicFacts | None, *, is_read_each_time: bool, lost: SamzapyError | None
) -> Row:
    expected = "exists" if partitions is None else f"{partitions} partition{'s' * (partitions != 1)}"
    if facts is None:
        return MISSING, (topic, role, expected, "-", "missing")
    if facts.leaderless:
        return LEADERLESS, (topic, role, expected, _told(facts), _without_leader(facts))
    if lost is not None:
        return LOST, (topic, role, expected, _told(facts), _why_lost(lost))
    expiring = expiring_table(topic, facts) if is_read_each_time else ""
    return OK, (topic, role, expected, _told(facts), other_partitions(partitions, facts) or expiring or "ok")


def _without_leader(facts: TopicFacts) -> str:
    return f"no broker leads partition {', '.join(map(str, facts.leaderless))}; start the broker that holds it"


def _internal_row(
    settings: Settings, spec: TopicSpec, facts: TopicFacts | None, begun_with: int | None, grown: Collection[str], *, rest_is_empty: bool,
    lost: SamzapyError | None,
) -> Row:  # fmt: skip
    """`begun_with`: the number of tasks before topics grew, if they did. `grown`: internal ones that may not. `lost`: why no run makes it, or begins with it."""
    job = job_of(settings)
    roles = {job.coordinator_topic: "coordinator", job.checkpoint_topic: "checkpoint", job.dead_letter_topic: "dead letters"}
    role = roles.get(spec.name, "internal" if is_between(spec) else "changelog")
    expected = f"{spec.partitions} partition{'s' * (spec.partitions != 1)}, {spec.config['cleanup.policy']}"
    if facts is None and lost is not None:
        return LOST, (spec.name, role, expected, "-", f"was deleted, and no run makes it again; {_as_part(lost.remedy)}")
    if facts is None:
        return ABSENT, (spec.name, role, expected, "-", "will be created by run")
    if facts.leaderless:
        return LEADERLESS, (spec.name, role, expected, _told(facts), _without_leader(facts))
    if lost is not None:
        return LOST, (spec.name, role, expected, _told(facts), _why_lost(lost))
    wrong = what_is_wrong(spec, facts, rest_is_empty=rest_is_empty)
    if spec.name in grown:
        wrong = (
            f"has {facts.partitions} partitions, and had at most {begun_with} when this job's state was created; give other names "
            "in the program to it and to the operators after it that keep state, or run `samzapy reset JOB.yaml`"
        )
    elif not grown and begun_with == facts.partitions and spec.name != job.coordinator_topic and not is_between(spec):
        if not JobTopics.of(settings).is_bound:
            return OK, (spec.name, role, expected, _told(facts), f"grows with the next run, to {spec.partitions} partitions")
        wrong = (
            f"was created for {begun_with} tasks, the inputs now give {spec.partitions}, and a key's records would no longer reach "
            "the task that has its state; give the job a new id, or run `samzapy reset JOB.yaml`"
        )
    known = expiring_letters(spec, facts) or (unused_partitions(spec, facts) if rest_is_empty else "")
    return (WRONG if wrong else OK), (spec.name, role, expected, _told(facts), wrong or known or "ok")


def _why_lost(lost: SamzapyError) -> str:
    return f"{lost.message.rstrip('.')}; {_as_part(lost.remedy)}"


def _as_part(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:].rstrip('.')}"


def _told(facts: TopicFacts) -> str:
    return f"{facts.partitions} partition{'s' * (facts.partitions != 1)}, {facts.config.get('cleanup.policy', '?')}, replication {facts.replication}"
