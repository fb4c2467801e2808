"""A container on the in-memory log, built by hand: what the tests of the running part stand on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from samzapy.api.task import StreamTask
from samzapy.container.container import Container
from samzapy.container.spec import ContainerSpec, DeadLetterSpec, InputSpec, OutputSpec, StoreSpec
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.dead_letter import DeadLetter, read_letter
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import ContainerRecord, container_key
from samzapy.plan.grouping import group
from samzapy.ports import TopicSpec
from samzapy.readers import read_to_end
from samzapy.serde.registry import serde_named
from samzapy.store.directory import LocalStoreDirectory, store_path
from samzapy.store.overlay import OverlayStore
from samzapy.store.rocks import RocksEngine
from samzapy.testing.memory_log import MemoryCluster, MemoryLog

JOB = Job("test", "1")


class HandClock:
    """Time that passes when it is told to, or slept."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(self.passed * 1000)

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def wait(self, event: threading.Event, seconds: float) -> None:
        if not event.is_set():
            self.sleep(seconds)


class Bench:
    """Inputs `in` (string → integer, or as told), output `out`, store `s`; one container with every task."""

    def __init__(
        self,
        state: Path,
        task: Callable[[], StreamTask],
        partitions: int = 1,
        inputs: dict[str, dict[str, Any]] | None = None,
        broadcast: Collection[str] = (),
        trace: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> None:
        self.broadcast = broadcast
        self.clock = HandClock()
        self.cluster = MemoryCluster(self.clock, trace=trace)
        self.log = MemoryLog(self.cluster)
        self.state, self.task, self.settings = state, task, settings
        self.input_settings = inputs or {"in": {}}
        self.stores = settings.pop("stores", {"s": {}})
        self.epoch = 0
        self.run_id = "run"
        self.adjust: Callable[[ContainerSpec], ContainerSpec] = lambda spec: spec
        config = {"cleanup.policy": "compact"}
        admin = self.log.admin()
        admin.create([TopicSpec(t, partitions) for t in [*self.input_settings, "out", JOB.dead_letter_topic]])
        admin.create([TopicSpec(t, partitions, config) for t in [JOB.checkpoint_topic, *(JOB.changelog_topic(s) for s in self.stores)]])
        admin.create([TopicSpec(JOB.coordinator_topic, 1, config)])

    def spec(self, number: int = 0, host: str = "h") -> ContainerSpec:
        topics = self.log.admin().topics(
            [*self.input_settings, "out", JOB.dead_letter_topic, *(JOB.changelog_topic(s) for s in self.stores)]
        )
        string, integer = serde_named("string", []), serde_named("integer", [])
        tasks = group({t: topics[t].partitions for t in self.input_settings}, self.broadcast, True)

        def store(name: str, changelog: bool = True) -> StoreSpec:
            topic = JOB.changelog_topic(name)
            return StoreSpec(
                name=name,
                changelog=topic if changelog else None,
                topic_id=topics[topic].topic_id if changelog else "",
                delete_retention_ms=86_400_000,
                key_serde="string",
                value_serde="integer",
                open_directory=lambda task: LocalStoreDirectory(store_path(self.state, "c", host, str(JOB), task, name), RocksEngine),
                make=lambda task, engine: OverlayStore(name, engine, string, integer, 1 << 20, 1 << 20, task),
            )

        return ContainerSpec(
            job=JOB,
            number=number,
            host=host,
            make_task=self.task,
            params={},
            tasks=tasks,
            inputs={t: InputSpec(t, topics[t].topic_id, string, integer, **s) for t, s in self.input_settings.items()},
            outputs={"out": OutputSpec("out", string, integer, topics["out"].partitions, 1_000_000)},
            stores={n: store(n, **s) for n, s in self.stores.items()},
            dead_letters=DeadLetterSpec(JOB.dead_letter_topic, topics[JOB.dead_letter_topic].max_message_bytes),
            **self.settings,
        )

    def start(self, ends: dict[str, int] | None = None) -> Container:
        """What the coordinator would do: name a new incarnation, then start it."""
        spec = self.adjust(self.spec())
        incarnation = f"i{self.epoch + 1}"
        self.name(0, incarnation, spec.tasks)
        container = Container(spec, incarnation, self.run_id, ends, self.log, self.clock)
        container.start()
        return container

    def name(self, number: int, incarnation: str, tasks: Iterable[str]) -> int:
        """A record that gives these tasks to an incarnation; its epoch."""
        self.epoch += 1
        producer = self.log.transactional_producer(JOB.coordinator_transactional_id)
        producer.init()
        producer.begin()
        record = ContainerRecord(number, self.epoch, incarnation, tuple(tasks), self.run_id, f"h{number}", 1)
        producer.send(JOB.coordinator_topic, record.to_bytes(), container_key(number), 0)
        producer.commit()
        producer.close()
        return self.epoch

    def feed(self, *records: tuple[str, int | None], topic: str = "in", partition: int = 0) -> None:
        producer = self.log.plain_producer("feed")
        for key, value in records:
            producer.send(topic, None if value is None else value.to_bytes(8, "big", signed=True), key.encode(), partition)

    def feed_raw(self, value: bytes, key: bytes = b"raw", topic: str = "in", partition: int = 0) -> None:
        self.log.plain_producer("feed").send(topic, value, key, partition)

    def read(self, topic: str, partition: int = 0) -> list[tuple[str, int | None]]:
        """Committed (key, value) of a partition, barriers left out."""
        found = []
        for batch in read_to_end(self.log.restore_consumer("t"), TopicPartition(topic, partition), self.clock):
            for m in batch:
                key, value = m.key() or b"", m.value()
                if key != BARRIER_KEY:
                    found.append((key.decode(), None if value is None else int.from_bytes(value, "big", signed=True)))
        return found

    def letters(self, partition: int = 0) -> list[DeadLetter]:
        """Committed dead letters of a partition."""
        place = TopicPartition(JOB.dead_letter_topic, partition)
        batches = read_to_end(self.log.restore_consumer("t"), place, self.clock)
        found = [read_letter(m.key(), m.value(), m.headers()) for batch in batches for m in batch]
        return [letter for letter in found if letter is not None]

    def changelog(self, partition: int = 0, store: str = "s") -> dict[str, int]:
        return {k: v for k, v in dict(self.read(JOB.changelog_topic(store), partition)).items() if v is not None}

    def drain(self, container: Container) -> None:
        """Until nothing more comes; then commit."""
        idle = 0
        while idle < 3 and not container.finished:
            idle = 0 if container.step(0.0) else idle + 1
        if not container.finished:
            container.commit()
