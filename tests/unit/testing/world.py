"""A cluster on a clock that is moved by hand, and the little that these tests ask of it."""

from __future__ import annotations

from collections.abc import Callable

from samzapy.model.offsets import TopicPartition
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import Chance, MemoryCluster, MemoryLog
from samzapy.testing.memory_producers import MemoryTransactionalProducer

TOPIC = "t"
P0, P1 = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


class HandClock:
    """Time that passes when it is told to, or slept."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def monotonic(self) -> float:
        return self.passed_s

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(self.passed_s * 1000)

    def sleep(self, seconds: float) -> None:
        self.passed_s += seconds


class World:
    """Topic `t` with two partitions."""

    def __init__(
        self, chance: Chance | None = None, trace: Callable[[str], None] | None = None, config: dict[str, str] | None = None
    ) -> None:
        self.clock = HandClock()
        self.cluster = MemoryCluster(self.clock, chance, trace)
        self.log = MemoryLog(self.cluster)
        self.cluster.create(TopicSpec(TOPIC, 2, config or {}))

    def producer(self, name: str = "id", origin: str = "") -> MemoryTransactionalProducer:
        made = MemoryLog(self.cluster, origin=origin).transactional_producer(name)
        made.init()
        return made

    def seen(self, place: TopicPartition = P0) -> list[str]:
        """What a reader gets now."""
        start = self.cluster.bounds(place).start
        return [(m.value() or b"-").decode() for m in self.cluster.read(place, start, 1000)[0]]

    def offsets(self, place: TopicPartition = P0) -> list[int]:
        return [offset for offset, _, _, _ in self.cluster.dump()[place]]


def begun(producer: MemoryTransactionalProducer, *values: str, to: tuple[int, ...] = (0,)) -> MemoryTransactionalProducer:
    """A transaction with these values in each of the partitions, flushed."""
    producer.begin()
    for partition in to:
        for value in values:
            producer.send(TOPIC, value.encode(), b"k", partition)
    producer.flush()
    return producer
