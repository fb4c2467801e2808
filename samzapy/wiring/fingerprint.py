"""What must not change between runs while there is state: it is written into each checkpoint, and compared at each start (plan/state_compatibility.py)."""

from __future__ import annotations

from collections.abc import Mapping

from samzapy.config.registered import stored_form
from samzapy.config.schema import Settings
from samzapy.plan.forgetting import OF_CLOCK, OF_RECORD, OF_VALUE, partitions_subject, store_subject, time_subject
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.serdes import Serdes


def fingerprint(settings: Settings, tasks: int, internal: Mapping[str, int], serdes: Serdes, operators: Mapping[str, str]) -> dict[str, str]:
    """Subject → how it is now.

    Args:
        internal: how many partitions internal topics have.
        operators: what the job's program says of itself.
    """
    return {**_of_job_file(settings, tasks, internal), **serdes.key_fields(), **serdes.layouts(), **operators}


def _of_job_file(settings: Settings, tasks: int, internal: Mapping[str, int]) -> dict[str, str]:
    if not settings.stores:
        return {}
    names = JobTopics.of(settings)
    result = {"task count": str(tasks)} if names.is_bound else {}
    result |= {partitions_subject(topic): str(internal[topic]) for topic in names.keyed if topic in internal}
    for name, topic in sorted(names.changelogs.items()):
        store = settings.stores[name]
        result[store_subject(name, "key serde")] = store.key
        result[store_subject(name, "value serde")] = stored_form(store.value)
        result[store_subject(name, "changelog")] = topic
    kinds = {"record": OF_RECORD, "processing": OF_CLOCK}
    if settings.app is None:
        result |= {time_subject(i.topic): kinds.get(i.time.source, OF_VALUE) for i in settings.inputs if i.time is not None}
    return result
