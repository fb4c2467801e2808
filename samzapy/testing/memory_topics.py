"""The topics of a cluster in memory: what is there, what it is set to, and which partitions have nobody who leads them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from samzapy.api.errors import TopicMissing
from samzapy.model.key_partition import partition_of_key
from samzapy.model.offsets import TopicPartition
from samzapy.ports import TopicFacts, TopicSpec
from samzapy.testing.memory_chance import Chance
from samzapy.testing.memory_partition import MemoryPartition


@dataclass(slots=True)
class Topic:
    topic_id: str
    config: dict[str, str]
    partitions: list[MemoryPartition]

    def cleaned_by(self, policy: str) -> bool:
        return policy in self.config.get("cleanup.policy", "delete").split(",")


class MemoryTopics:
    """What a `MemoryCluster` holds."""

    def __init__(self, chance: Chance) -> None:
        self.lock = threading.RLock()
        self.chance = chance
        self._topics: dict[str, Topic] = {}
        self._leaderless: set[TopicPartition] = set()

    def create(self, spec: TopicSpec) -> None:
        with self.lock:
            if spec.name not in self._topics:
                partitions = [MemoryPartition(TopicPartition(spec.name, number)) for number in range(spec.partitions)]
                self._topics[spec.name] = Topic(self.chance.word(), dict(spec.config), partitions)

    def names(self) -> list[str]:
        """The names of all topics."""
        return list(self._topics)

    def delete(self, name: str) -> None:
        """The topic is gone; one of the same name will be another."""
        with self.lock:
            self._topics.pop(name, None)

    def configure(self, name: str, settings: Mapping[str, str]) -> None:
        """Change settings of a topic while it is in use."""
        with self.lock:
            self._topic(name).config.update(settings)

    def add_partitions(self, name: str, count: int) -> None:
        """So that there are `count`."""
        with self.lock:
            partitions = self._topic(name).partitions
            partitions.extend(MemoryPartition(TopicPartition(name, number)) for number in range(len(partitions), count))

    def facts(self, name: str) -> TopicFacts | None:
        with self.lock:
            topic = self._topics.get(name)
            if topic is None:
                return None
            leaderless = tuple(p.topic_partition.partition for p in topic.partitions if p.topic_partition in self._leaderless)
            return TopicFacts(name, topic.topic_id, len(topic.partitions), 1, dict(topic.config), leaderless)

    def _topic(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            raise TopicMissing(f"topic {name} does not exist.", "Create it.")
        return topic

    def partition(self, partition: TopicPartition) -> MemoryPartition:
        partitions = self._topic(partition.topic).partitions
        if not 0 <= partition.partition < len(partitions):
            raise TopicMissing(f"{partition} does not exist: the topic has {len(partitions)} partitions.", "")
        return partitions[partition.partition]

    def partition_of(self, topic: str, key: bytes | None, partition: int) -> TopicPartition:
        """Where a record goes: its partition if it names one, else by its key, else anywhere."""
        count = len(self._topic(topic).partitions)
        if partition < 0:
            partition = partition_of_key(key, count) if key is not None else self.chance.between(0, count - 1)
        return TopicPartition(topic, partition)

    def lose_leader(self, partition: TopicPartition) -> None:
        """The broker that holds the partition is down: it can be read no more, until `regain_leader`. Producers are not hindered here."""
        with self.lock:
            self.partition(partition)
            self._leaderless.add(partition)

    def regain_leader(self, partition: TopicPartition) -> None:
        with self.lock:
            self._leaderless.discard(partition)
