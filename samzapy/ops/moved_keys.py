"""Whether a program's state is where its keys go, if they come through an internal topic only now. An internal topic has each key where murmur2 puts it;
an input has it where its producers did, and librdkafka's own choice is another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from samzapy.api.errors import StateMismatch, shortened
from samzapy.config.schema import Settings
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.job_model import TaskModel
from samzapy.model.key_partition import partition_of_key
from samzapy.model.offsets import TopicPartition
from samzapy.plan.forgetting import OF_INTERNAL, key_partitions_subject
from samzapy.plan.state_compatibility import dropped
from samzapy.ports import Clock, Consumer, Log
from samzapy.readers import read_ranges
from samzapy.wiring.fingerprint import key_partitions
from samzapy.wiring.job_topics import JobTopics

LOOKED_AT = 1000  # records of each task's changelog

KeyOf = Callable[[bytes], bytes | None]


def moved_keys(
    settings: Settings, key_of: Mapping[str, KeyOf], tasks: Mapping[str, TaskModel], checkpoints: Iterable[Checkpoint], log: Log, clock: Clock
) -> StateMismatch | None:
    """Why keys would come to other tasks than their state; None: some were looked at, and would not. Only state that did not come through internal topics
    when it was last committed is looked at.

    Args:
        key_of: by store of which the entries' keys are more than a record's key: what of them is.
    """
    names, found = JobTopics.of(settings), list(checkpoints)
    for name, count in key_partitions(settings, tasks).items():
        if not count.endswith(OF_INTERNAL):
            continue
        asked = [c for c in found if name in c.stores and c.task in tasks and c.fingerprint.get(key_partitions_subject(name)) != count]
        places = {tasks[c.task].partition: TopicPartition(names.changelogs[name], tasks[c.task].partition) for c in asked}
        partitions = int(count.removesuffix(OF_INTERNAL))
        with log.restore_consumer("keys") as consumer:
            for partition, place in places.items():
                keys = list(_keys(consumer, place, key_of.get(name), clock))
                moved = [key for key in keys if partition_of_key(key, partitions) != partition]
                if moved:
                    return _refused(name, partition, moved, len(keys), partition_of_key(moved[0], partitions))
    return None


def _keys(consumer: Consumer, place: TopicPartition, key_of: KeyOf | None, clock: Clock) -> Iterator[bytes]:
    bounds = consumer.bounds_of([place])[place]
    seen = 0
    for batch in read_ranges(consumer, {place: (bounds.start, bounds.end)}, clock):
        for message in batch:
            own = message.key()
            key = None if own is None or own == BARRIER_KEY else own if key_of is None else key_of(own)
            if key:  # one without a key, or with an empty one, may be anywhere
                yield key
        seen += len(batch)
        if seen >= LOOKED_AT:
            return


def _refused(name: str, partition: int, moved: list[bytes], looked_at: int, to: int) -> StateMismatch:
    return StateMismatch(
        f"records of {name!r} come through an internal topic now, which places keys by murmur2, as Java's producers do. The input that they came from before is "
        f"written with another partitioner: {len(moved)} of {looked_at} keys in Partition {partition} would go to a task that does not have their state (for "
        f"example {shortened(moved[0])}, to Partition {to}).",
        f"Take the new `key_by` or `repartition` before {name!r} out again. Or do both: 1. give {name!r} another name, so it begins empty; "
        f"2. {dropped(name)}",
    )
