"""What the tasks of a run would not find again: a changelog, or an input at the offset where a checkpoint ended.

Tasks refuse to start then; these functions say it before a run is launched, to `plan`, `topics`, `doctor` and `validate --connect`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from samzapy.api.errors import SamzapyError, StateRefused
from samzapy.config.schema import Settings
from samzapy.container.first_offsets import known_marks, refused_mark
from samzapy.container.spec import Between, InputSpec
from samzapy.model.checkpoint import Checkpoint, InputMark
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Ledger
from samzapy.ops.inspection import JobInKafka
from samzapy.ops.unnamed_changes import UnnamedChanges
from samzapy.plan.checkpoint_orders import decides, pending
from samzapy.plan.local_store import ChangelogFacts, lost
from samzapy.plan.start_refusals import emptied, emptied_changelog, one_partition
from samzapy.ports import Clock, Log
from samzapy.readers import decided_bounds
from samzapy.serde.basic import BytesSerde
from samzapy.wiring.job_topics import JobTopics, job_of


def lost_positions(
    settings: Settings, facts: JobInKafka, checkpoints: Iterable[Checkpoint], ledger: Ledger, log: Log, clock: Clock,
    tables: Mapping[str, str],
) -> dict[str, SamzapyError]:  # fmt: skip
    """By topic, why the first task of a run that needs it would refuse to begin where its checkpoint, or an order of `checkpoint set`, says; or without
    a checkpoint. `checkpoints`: all that there are. `tables`: of a program (wiring/tasks.py); one that was dropped is filled again."""
    checkpoints = list(checkpoints)
    found: dict[str, SamzapyError] = {}
    for topic, refused in (
        *_checkpoints(settings, facts, checkpoints, ledger, log), *_changelogs(settings, facts, checkpoints, log, clock),
        *_inputs(settings, facts, checkpoints, ledger, log, tables),
    ):  # fmt: skip
        found.setdefault(topic, refused)
    return found


def _checkpoints(
    settings: Settings, facts: JobInKafka, checkpoints: Iterable[Checkpoint], ledger: Ledger, log: Log
) -> Iterator[tuple[str, SamzapyError]]:
    """Of tasks that have none, though their topics show that this is no first start."""
    job, changelogs, known = job_of(settings), JobTopics.of(settings).changelogs, {c.task for c in checkpoints}
    there = facts.topics.get(job.checkpoint_topic)
    tasks = [t for t in facts.tasks.values() if there is not None and t.name not in known and t.partition < there.partitions]
    if not tasks:
        return
    logs = {t.name: [TopicPartition(n, t.partition) for n in changelogs.values() if n in facts.topics and t.partition < facts.topics[n].partitions] for t in tasks}
    with log.restore_consumer("checkpoints") as consumer:
        own = {t.name: TopicPartition(job.checkpoint_topic, t.partition) for t in tasks}
        bounds = consumer.bounds_of([*own.values(), *(p for partitions in logs.values() for p in partitions)])
    for task in tasks:
        order = pending(ledger.startpoints.get(task.name), None)
        whole, place = order if decides(order, task.inputs) else None, own[task.name]
        lost = {str(partition): bounds[partition].start for partition in logs[task.name] if bounds[partition].start > 0}
        refused = emptied(job.group_id, one_partition(task), str(place), bounds[place].start, whole, list(lost))
        if refused is None and whole is None:
            refused = next((emptied_changelog(job.group_id, task.partition, f"{changelog} starts at offset {start}") for changelog, start in lost.items()), None)
        if refused is not None:
            yield place.topic, StateRefused(f"{task.name}: {refused.reason}", refused.remedy)


def _changelogs(
    settings: Settings, facts: JobInKafka, checkpoints: Iterable[Checkpoint], log: Log, clock: Clock
) -> Iterator[tuple[str, SamzapyError]]:
    """Replaced, cut off at their end, or with changes that no checkpoint names. Whether one that was cut off at its start is refused depends on the
    local stores of all hosts: `state verify` says it."""
    changelogs, after = JobTopics.of(settings).changelogs, UnnamedChanges(settings, facts, log, clock)
    with log.restore_consumer("changelogs") as consumer:
        for checkpoint in checkpoints:
            task = facts.tasks.get(checkpoint.task)
            for store, mark in checkpoint.stores.items() if task is not None else ():
                there = facts.topics.get(topic) if (topic := changelogs.get(store)) is not None else None
                if task is None or there is None or task.partition >= there.partitions:
                    continue
                place = TopicPartition(there.name, task.partition)
                is_same = mark.topic_id == there.topic_id
                bounds = decided_bounds(consumer, place, clock, mark.position) if is_same else consumer.bounds(place)
                why = lost(ChangelogFacts(place.topic, place.partition, there.topic_id, *bounds, 0), mark)
                why = after.refused(consumer, task, store, place, bounds, checkpoint) if why is None else why
                if why is not None:
                    yield there.name, StateRefused(f"store {store!r} of {checkpoint.task}: {why.reason}", why.remedy)


def _inputs(
    settings: Settings, facts: JobInKafka, checkpoints: Iterable[Checkpoint], ledger: Ledger, log: Log, tables: Mapping[str, str]
) -> Iterator[tuple[str, SamzapyError]]:
    specs = _specs(settings, facts, tables)
    marks: dict[TopicPartition, tuple[Checkpoint, InputMark]] = {}
    for checkpoint in checkpoints:
        task = facts.tasks.get(checkpoint.task)
        known = known_marks(checkpoint, pending(ledger.startpoints.get(checkpoint.task), checkpoint))
        for partition in task.inputs if task is not None else ():
            if partition.topic in specs and (mark := known.get(str(partition))) is not None:
                marks.setdefault(partition, (checkpoint, mark))
    with log.restore_consumer("inputs") as consumer:
        bounds = consumer.bounds_of(marks)
    for partition, (checkpoint, mark) in sorted(marks.items()):
        spec = specs[partition.topic]
        refused = refused_mark(bounds[partition], spec, partition, mark, is_empty=spec.table not in checkpoint.stores)
        if refused is not None:
            yield partition.topic, refused


def _specs(settings: Settings, facts: JobInKafka, tables: Mapping[str, str]) -> dict[str, InputSpec]:
    """The inputs, internal ones too, as far as their positions go."""
    serde, found = BytesSerde(), {}
    for one in settings.inputs:
        table = tables.get(one.topic, "")
        fills = frozenset({table} if table and settings.stores[table].changelog is not False else ())
        if one.topic in facts.topics:
            topic_id = facts.topics[one.topic].topic_id
            found[one.topic] = InputSpec(one.topic, topic_id, serde, serde, one.start, on_out_of_range=one.on_out_of_range, fills=fills, table=table)
    for topic in JobTopics.of(settings).internal:
        if topic in facts.topics:
            there = facts.topics[topic]
            found[topic] = InputSpec(topic, there.topic_id, serde, serde, between=Between((), (), there.partitions, timed=False))
    return found
