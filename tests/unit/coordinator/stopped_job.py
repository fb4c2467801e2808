"""A stopped job on the in-memory log, and what may go wrong around `checkpoint set`: what its tests stand on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.container.container import Container
from samzapy.coordinator.checkpoint_set import CheckpointSet, CheckpointSetOptions, Plan
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Ledger
from samzapy.plan.checkpoint_orders import Choice, Target
from samzapy.plan.grouping import group
from samzapy.ports import TopicSpec, TransactionalProducer
from samzapy.readers import read_ledger, read_to_end
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from tests.unit.container.bench import JOB, Bench

EARLIEST, LATEST = Target("earliest"), Target("latest")
CHANGELOG = JOB.changelog_topic("s")
ALL = Choice()
P0, P1 = "Partition 0", "Partition 1"


class Summing(StreamTask):
    """Sum per key in a store, every update sent."""

    def init(self, context: Any) -> None:
        self.sums = context.get_store("s")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        total = (self.sums.get(envelope.key) or 0) + envelope.message
        self.sums.put(envelope.key, total)
        collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=total, partition=envelope.partition))


class Story:
    """A job that has run to the end of what it was fed, and is stopped."""

    def __init__(self, state: Path, *records: tuple[str, int], partitions: int = 1, **settings: Any) -> None:
        self.bench = Bench(state, Summing, partitions, **settings)
        self.bench.name(0, "", [])  # so that the epochs of this test and of `checkpoint set` do not meet
        for partition in range(partitions):
            self.bench.feed(*records, partition=partition)
        if records:
            self.run()

    def run(self) -> Container:
        """Start, to the end, an orderly stop."""
        container = self.start()
        self.bench.drain(container)
        container.stop()
        container.close()
        return container

    def start(self) -> Container:
        self.bench.epoch = self.ledger().epoch
        return self.bench.start()

    def checkpoint_set(self, log: MemoryLog | None = None, is_alive: Callable[[str], bool] = lambda url: False) -> CheckpointSet:
        tasks = group({t: self.bench.cluster.facts(t).partitions for t in self.bench.input_settings}, set(), True)  # type: ignore[union-attr]
        logs = {name: JOB.changelog_topic(name) for name, s in self.bench.stores.items() if s.get("changelog", True)}
        process = Process("h", 1, "s", lambda host, pid, start: False)
        return CheckpointSet(JOB, tasks, logs, CoordinatorSettings(), log or self.bench.log, self.bench.clock, process, is_alive)

    def set(self, target: Target, choice: Choice = ALL, reset: bool = False, log: MemoryLog | None = None) -> Plan:
        return self.checkpoint_set(log).execute(CheckpointSetOptions(target, choice, reset))

    def ledger(self) -> Ledger:
        return read_ledger(self.bench.log.restore_consumer("t"), JOB.coordinator_topic, self.bench.clock)

    def checkpoint(self, partition: int = 0) -> Checkpoint:
        place = TopicPartition(JOB.checkpoint_topic, partition)
        batches = read_to_end(self.bench.log.restore_consumer("t"), place, self.bench.clock)
        return checkpoint_from_bytes([m.value() or b"" for batch in batches for m in batch if m.key() == CHECKPOINT_KEY][-1])

    def at(self, partition: int = 0, topic: str = "in") -> int:
        return self.checkpoint(partition).inputs[f"{topic}[{partition}]"].next_offset

    def lose(self, topic: str) -> None:
        facts = self.bench.cluster.facts(topic)
        assert facts is not None
        self.bench.cluster.delete(topic)
        self.bench.cluster.create(TopicSpec(topic, facts.partitions, facts.config))


class AtTheWrite(MemoryLog):
    """Does something just before `checkpoint set` makes the producer of its one transaction."""

    def __init__(self, cluster: MemoryCluster, action: Callable[[], object]) -> None:
        super().__init__(cluster)
        self._action = action
        self._made = 0

    def transactional_producer(self, transactional_id: str) -> Any:
        if transactional_id == JOB.coordinator_transactional_id:
            self._made += 1
            if self._made == 2:
                self._action()
        return super().transactional_producer(transactional_id)


class FailingStart(MemoryLog):
    """The containers' commit after so many others goes wrong."""

    def __init__(self, cluster: MemoryCluster, commits_before: int, kind: str) -> None:
        super().__init__(cluster)
        self._memory, self._kinds = cluster, iter([*[""] * commits_before, kind])

    def transactional_producer(self, transactional_id: str) -> Any:
        producer = super().transactional_producer(transactional_id)
        commit = producer.commit

        def failing() -> bool:
            kind = next(self._kinds, "")
            if kind:
                self._memory.fail_next("commit", kind)
            return commit()

        if transactional_id != JOB.coordinator_transactional_id:
            producer.commit = failing  # type: ignore[method-assign]
        return producer


class HasBench(Protocol):
    bench: Bench


def write(story: HasBench, key: bytes, value: bytes) -> None:
    producer: TransactionalProducer = story.bench.log.transactional_producer(JOB.coordinator_transactional_id)
    producer.init()
    producer.begin()
    producer.send(JOB.coordinator_topic, value, key, 0)
    producer.flush()
    producer.commit()
    producer.close()
