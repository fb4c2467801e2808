"""Checks whether the inputs' records are in the partitions of their keys: with two partitioners one key silently reaches two tasks.

Java's producers, and samzapy's, choose the partition by murmur2 of the key; librdkafka's own default (kcat, and clients in C, Go, Python) by
crc32. A job that joins several inputs needs one rule for all of them, and any job with state needs that a key stays in one partition. Some
keys of each input are looked at when it begins, between batches; nothing is done for every record.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from samzapy.api.errors import shortened
from samzapy.model.key_partition import CLIENTS_PARTITIONER, partition_of_key
from samzapy.ports import Message

LOG = logging.getLogger("samzapy.inputs")
A_BATCH = 8  # records looked at in each batch
ENOUGH = 64  # different keys; then an input is looked at no more
AT_LEAST = 16  # different keys before anything is said
LONGEST = 256  # bytes of a key
FITS = 0.9  # of the keys: a few may have been placed by hand


@dataclass(slots=True)
class _Seen:
    """An input's keys, with the partition in which each was read."""

    partitions: int
    places: dict[bytes, int] = field(default_factory=dict)


class MisplacedKeys:
    """Checks the first keys of each input.

    Args:
        partitions: by topic, how many it has; only the inputs that matter.
        joined: those whose records meet records of other topics, which may be internal ones of a program, where murmur2 places keys.
    """

    def __init__(self, partitions: Mapping[str, int], joined: Collection[str]) -> None:
        self._joined = joined
        self._open = {topic: _Seen(count) for topic, count in partitions.items() if count > 1}

    @property
    def is_done(self) -> bool:
        return not self._open

    def look(self, batch: Sequence[Message]) -> None:
        """Note some keys of a batch; warns, once for each input."""
        step = max(1, len(batch) // A_BATCH)
        for message in batch[::step]:
            seen, key = self._open.get(message.topic()), message.key()
            if seen is None or key is None or len(key) > LONGEST:
                continue
            before = seen.places.setdefault(key, message.partition())
            if before != message.partition():
                self._warn(message.topic(), f"key {shortened(key)} is in partition {before} and in partition {message.partition()}")
                continue
            if len(seen.places) >= AT_LEAST and message.topic() in self._joined and (why := misplaced(seen.places, seen.partitions)):
                self._warn(message.topic(), why)
            elif len(seen.places) >= ENOUGH:
                del self._open[message.topic()]

    def _warn(self, topic: str, why: str) -> None:
        del self._open[topic]
        LOG.warning(
            "input %s: %s. Records of one key reach different tasks. Write this input with the murmur2 partitioner "
            f"(librdkafka: partitioner={CLIENTS_PARTITIONER}; Java: the default), or write all inputs of this job with the same partitioner.",
            topic, why,
        )  # fmt: skip


def misplaced(places: Mapping[bytes, int], partitions: int) -> str:
    """Why these keys are not where Java's producers put them; "" if they are."""
    by_murmur2 = sum(partition_of_key(key, partitions) == place for key, place in places.items())
    by_crc32 = sum(zlib.crc32(key) % partitions == place for key, place in places.items())
    if by_murmur2 >= FITS * len(places):
        return ""
    counted = f"of {len(places)} keys {by_murmur2} are where murmur2 puts them, as Java's producers do, and {by_crc32} where crc32 does"
    if by_crc32 >= FITS * len(places):
        return f"{counted}: it is written with librdkafka's default partitioner"
    return f"{counted}: it is written with another partitioner, or without one"
