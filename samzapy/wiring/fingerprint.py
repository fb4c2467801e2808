"""What must not change between runs while there is state: it is written into each checkpoint, and compared at each start (plan/state_compatibility.py)."""

from __future__ import annotations

from collections.abc import Mapping

from samzapy.config.registered import stored_form
from samzapy.config.schema import Settings, StoreSettings
from samzapy.model.job_model import TaskModel
from samzapy.plan.forgetting import (
    EVERY_TASK,
    OF_CLOCK,
    OF_INTERNAL,
    OF_RECORD,
    OF_VALUE,
    key_partitions_subject,
    partitions_subject,
    store_subject,
    time_subject,
)
from samzapy.wiring.job_topics import JobTopics, partitions_of
from samzapy.wiring.serdes import Serdes


def fingerprint(settings: Settings, tasks: Mapping[str, TaskModel], internal: Mapping[str, int], serdes: Serdes, operators: Mapping[str, str]) -> dict[str, str]:
    """Subject → how it is now.

    Args:
        internal: how many partitions internal topics have.
        operators: what the job's program says of itself.
    """
    lie = {key_partitions_subject(name): count for name, count in key_partitions(settings, tasks).items()}
    return {**_of_job_file(settings, tasks, internal), **lie, **serdes.key_fields(), **serdes.layouts(), **operators}


def serde_subjects(name: str, store: StoreSettings) -> dict[str, str]:
    """With which serdes a store's bytes are written."""
    return {store_subject(name, "key serde"): store.key, store_subject(name, "value serde"): stored_form(store.value)}


def key_partitions(settings: Settings, tasks: Mapping[str, TaskModel]) -> dict[str, str]:
    """By store of a program, in how many partitions its keys lie: a store may come to lie after another topic, but only after one that gives each key to
    the same task."""
    if settings.stages is None:
        return {}
    names = JobTopics.of(settings)
    counts = partitions_of(names.keyed, tasks)
    keeps = {name: [t for t in topics if t in counts] for name, topics in sorted(settings.stages.keeps.items()) if name in names.changelogs}
    return {name: _lie(max(counts[t] for t in topics), set(topics) <= names.internal.keys()) if topics else EVERY_TASK for name, topics in keeps.items()}


def _lie(count: int, is_internal: bool) -> str:
    return f"{count}{OF_INTERNAL * is_internal}"


def _of_job_file(settings: Settings, tasks: Mapping[str, TaskModel], internal: Mapping[str, int]) -> dict[str, str]:
    if not settings.stores:
        return {}
    names = JobTopics.of(settings)
    result = {"task count": str(len(tasks))} if names.is_bound else {}
    result |= {partitions_subject(topic): str(internal[topic]) for topic in names.keyed if topic in internal}
    for name, topic in sorted(names.changelogs.items()):
        result |= serde_subjects(name, settings.stores[name])
        result[store_subject(name, "changelog")] = topic
    kinds = {"record": OF_RECORD, "processing": OF_CLOCK}
    if settings.app is None:
        result |= {time_subject(i.topic): kinds.get(i.time.source, OF_VALUE) for i in settings.inputs if i.time is not None}
    return result
