"""Following a ChainTask job's committed output while it runs: each task's records are numbered one by one, so a hole or a repetition shows at once.

What the records hold is for `chain.verify`, at the end. From the times at which they were made follows how long each task was away.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from itertools import pairwise

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.broker import LIMIT_S, ends, read_all

BEGIN = -1


def wrong_numbers(numbers: Iterable[int], before: int) -> list[str]:
    """What is wrong with numbers that must go on by one after `before`."""
    problems = []
    for number in numbers:
        if number != before + 1:
            problems.append(f"number {number} where {before + 1} is expected")
        before = number
    return problems


def longest_gap_ms(times_ms: Iterable[int]) -> int:
    """The longest time between one record and the next."""
    ordered = sorted(times_ms)
    return max((b - a for a, b in pairwise(ordered)), default=0)


def aborted(servers: str, topic: str) -> int:
    """Records that were written and never committed: work that faults hit in mid-transaction."""
    return len(read_all(servers, topic, "read_uncommitted")) - len(read_all(servers, topic))


class Outputs:
    """Reads on, each time from where it stopped. Only one thread may use it."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self._next: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self.times_ms: dict[int, list[int]] = {}

    def look(self) -> list[str]:
        """All that was committed since; what is wrong with it, the first few."""
        found = self._read_on()
        problems = []
        for partition, rows in sorted(found.items()):
            numbers = [number for number, _ in rows]
            problems += [f"{self._topic}[{partition}]: {p}" for p in wrong_numbers(numbers, self._numbers.get(partition, 0))[:3]]
            self._numbers[partition] = numbers[-1]
            self.times_ms.setdefault(partition, []).extend(at for _, at in rows)
        return problems

    def gaps_s(self, from_ms: int, to_ms: int) -> dict[int, float]:
        """By partition, the longest time without a record between two times, of what was read."""
        return {
            p: longest_gap_ms([from_ms, *(t for t in times if from_ms <= t <= to_ms), to_ms]) / 1000 for p, times in self.times_ms.items()
        }

    def last_ms(self) -> int:
        """Up to when every partition that was read has records."""
        return min(times[-1] for times in self.times_ms.values())

    def _read_on(self) -> dict[int, list[tuple[int, int]]]:
        wanted = {p: end for p, end in ends(self._servers, self._topic).items() if end > self._next.get(p, 0)}
        found: dict[int, list[tuple[int, int]]] = {}
        if not wanted:
            return found
        consumer = Consumer(_settings(self._servers))
        try:
            consumer.assign([TopicPartition(self._topic, p, self._next.get(p, 0)) for p in wanted])
            self._take(consumer, wanted, found)
        finally:
            consumer.close()
        return found

    def _take(self, consumer: Consumer, wanted: Mapping[int, int], found: dict[int, list[tuple[int, int]]]) -> None:
        open_ends, deadline = dict(wanted), time.monotonic() + LIMIT_S
        while open_ends:
            assert time.monotonic() < deadline, f"{self._topic}: not at the end of {open_ends} after {LIMIT_S:.0f} s"
            for message in consumer.consume(2000, 0.1):
                error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    if error.retriable():
                        continue
                    raise KafkaException(error)
                if error is None:
                    found.setdefault(partition, []).append(
                        (json.loads(message.value() or b"{}").get("number", BEGIN), message.timestamp()[1])
                    )
                    offset += 1
                self._next[partition] = offset
                if offset >= open_ends.get(partition, offset + 1):
                    del open_ends[partition]


def _settings(servers: str) -> dict[str, str | int | bool]:
    return {
        "bootstrap.servers": servers,
        "log_level": 0,
        "group.id": "samzapy-tests-look-on",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
    }
