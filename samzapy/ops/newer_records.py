"""Dead letters whose key has a newer record in their topic. In a table, and in a compacted topic, the newest record of a key replaces those before it: one
that is sent back becomes the newest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from samzapy.model.dead_letter import Origin
from samzapy.model.offsets import TopicPartition
from samzapy.ops.letters import Entry
from samzapy.ports import Clock, Log, TopicFacts
from samzapy.readers import read_ranges

LOG = logging.getLogger("samzapy")
MANY_OFFSETS = 1_000_000  # to read them takes seconds: it is said
Newer = Callable[[Sequence[Entry], Mapping[str, TopicFacts]], Mapping[Origin, int]]


def none_newer(entries: Sequence[Entry], facts: Mapping[str, TopicFacts]) -> Mapping[Origin, int]:
    """Without a look."""
    return {}


def newer_in(tables: Collection[str], log: Log, clock: Clock) -> Newer:
    """Finds the newest offset of the key, by the record of the dead letter; without those that have no newer one.

    Args:
        tables: topics that the job reads as tables; the topics' facts say which others are compacted.
    """

    def newer(entries: Sequence[Entry], facts: Mapping[str, TopicFacts]) -> Mapping[Origin, int]:
        origins: dict[tuple[TopicPartition, bytes], set[Origin]] = {}
        begin: dict[TopicPartition, int] = {}
        for entry in entries:
            origin, topic = entry.letter.origin, facts.get(entry.letter.origin.topic)
            if topic is None or origin.partition >= topic.partitions or entry.letter.key is None:
                continue
            if origin.topic in tables or "compact" in topic.config.get("cleanup.policy", ""):
                place = TopicPartition(origin.topic, origin.partition)
                origins.setdefault((place, entry.letter.key), set()).add(origin)
                begin[place] = min(begin.get(place, origin.offset), origin.offset)
        if not origins:
            return {}
        found: dict[Origin, int] = {}
        with log.restore_consumer("dead-letters") as consumer:
            ranges = {p: (max(b.start, begin[p] + 1), b.end) for p, b in consumer.bounds_of(begin).items()}
            if (many := sum(max(0, end - start) for start, end in ranges.values())) > MANY_OFFSETS:
                LOG.info("looking through %d offsets of %s for newer records of these keys", many, ", ".join(sorted({p.topic for p in ranges})))
            for batch in read_ranges(consumer, ranges, clock):
                for message in batch:
                    for origin in origins.get((TopicPartition(message.topic(), message.partition()), message.key() or b""), ()):
                        if message.offset() > origin.offset:
                            found[origin] = message.offset()
        return found

    return newer
