"""ports.Log over a Kafka in memory: consumers, admin, and the maker of clients. The broker is `MemoryCluster`, the producers are next door.

tests/contract/test_log.py runs the same probes on this and on a real broker. A fetch that fails is no more than a poll that brought nothing,
as with librdkafka; what asks the cluster and needs the answer (`bounds`, the admin) raises ClusterUnreachable when none came in time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from samzapy.api.errors import ClusterUnreachable, LogError, NoLeader
from samzapy.model import lease_times
from samzapy.model.acls import Access
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.plan.transaction_timeout import LIMIT
from samzapy.ports import Closing, Fetch, TopicFacts, TopicOutline, TopicSpec, assigned_already, no_leader
from samzapy.testing.memory_chance import Chance
from samzapy.testing.memory_cluster import MemoryCluster
from samzapy.testing.memory_partition import MemoryMessage
from samzapy.testing.memory_producers import MemoryPlainProducer, MemoryTransactionalProducer

__all__ = ["Chance", "MemoryAdmin", "MemoryCluster", "MemoryConsumer", "MemoryLog", "MemoryMessage"]

T = TypeVar("T")

ASK_TIMEOUT_S = 10.0


def _ask(cluster: MemoryCluster, request: str, what: str, origin: str, action: Callable[[], T], timeout_s: float = ASK_TIMEOUT_S) -> T:
    """Ask until there is an answer.

    Raises:
        ClusterUnreachable: none in time; what was asked may have been done.
    """
    deadline = cluster.clock.monotonic() + timeout_s
    while True:
        reply = cluster.ask(request, what, origin, action)
        cluster.rest(reply.after_s)
        if reply.answers:
            return reply.answers[0]
        if cluster.clock.monotonic() >= deadline:
            raise ClusterUnreachable(f"{what}: no answer in {timeout_s:.0f} s.", "Check that the brokers run.")


class MemoryConsumer(Closing):
    """ports.Consumer over a MemoryCluster."""

    def __init__(self, cluster: MemoryCluster, group_id: str, origin: str = "") -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._origin = origin
        self._positions: dict[TopicPartition, int] = {}
        self._known: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._lost: set[TopicPartition] = set()  # found out of range, which was said once
        self._trouble: tuple[TopicPartition, LogError] | None = None  # what a poll met beside records that it handed out
        self._turn = 0
        self._is_closed = False

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        twice = sorted(p for p in positions if p in self._positions)
        if twice:
            raise assigned_already(twice)
        if positions:
            self._check_open()
        for partition in positions:
            if partition not in self._known:
                with contextlib.suppress(NoLeader):  # it is there
                    self.bounds(partition)
        self._positions.update(positions)

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in list(partitions):
            self._positions.pop(partition, None)
            self._paused.discard(partition)
            self._lost.discard(partition)
            if self._trouble is not None and self._trouble[0] == partition:
                self._trouble = None

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        here = {p: at for p, at in positions.items() if p in self._positions}
        self.unassign(here)
        self._positions.update(here)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._paused.update(p for p in partitions if p in self._positions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._paused.difference_update(partitions)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[MemoryMessage]:
        self._check_open()
        batch = self._take(max_records)
        if not batch and timeout_s > 0 and self._trouble is None:
            self._cluster.wait(timeout_s)
            batch = self._take(max_records)
        if self._trouble is not None and not batch:
            (_, trouble), self._trouble = self._trouble, None
            raise trouble
        return batch

    def _take(self, max_records: int) -> list[MemoryMessage]:
        with self._cluster.lock:
            partitions = [p for p in self._positions if p not in self._paused and p not in self._lost]
            max_records = self._cluster.fetchable(max_records, self._origin)
            if not partitions or not max_records or self._trouble is not None:
                return []
            self._turn = (self._turn + 1) % len(partitions)
            batch: list[MemoryMessage] = []
            for partition in partitions[self._turn :] + partitions[: self._turn]:
                try:
                    found, position = self._cluster.read(partition, self._positions[partition], max_records - len(batch))
                except LogError as error:
                    self._trouble = partition, error
                    self._lost.add(partition)
                    break
                batch.extend(found)
                self._positions[partition] = position
                if len(batch) >= max_records:
                    break
            return batch

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: self._positions[p] for p in partitions}

    def bounds(self, partition: TopicPartition) -> Bounds:
        self._check_open()
        doing = f"the bounds of {partition}"
        found = _ask(self._cluster, "bounds", doing, self._origin, lambda: self._cluster.bounds(partition))
        self._known.add(partition)
        return found

    def bounds_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        wanted = list(dict.fromkeys(partitions))
        if not wanted:
            return {}
        self._check_open()
        doing = f"the bounds of {', '.join(map(str, wanted))}"
        found = _ask(self._cluster, "bounds", doing, self._origin, lambda: {p: self._cluster.bounds(p) for p in wanted})
        self._known.update(wanted)
        return found

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._cluster.partition(partition).end

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int:
        doing = f"the offset of {partition} at {timestamp_ms}"
        log = self._cluster.partition(partition)
        return _ask(self._cluster, "bounds", doing, self._origin, lambda: log.offset_for_time(timestamp_ms))

    def mirror(self, positions: Mapping[TopicPartition, int]) -> None:
        with self._cluster.lock:
            if not self._cluster.network.is_cut_off(self._origin):
                self._cluster.group_offsets.setdefault(self._group_id, {}).update(positions)

    def close(self) -> None:
        self._positions.clear()
        self._paused.clear()
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Consumer closed")


class MemoryAdmin(Closing):
    """ports.Admin over a MemoryCluster."""

    def __init__(self, cluster: MemoryCluster, origin: str = "") -> None:
        self._cluster = cluster
        self._origin = origin

    def cluster_id(self) -> str:
        return self._ask("the cluster's id", lambda: self._cluster.cluster_id)

    def broker_count(self) -> int:
        return self._ask("the number of brokers", lambda: 1)

    def broker_settings(self, name: str) -> list[str]:
        return self._ask("a broker's settings", lambda: [str(self._cluster.longest_transaction_ms)] if name == LIMIT else [])

    def names(self) -> list[str]:
        return self._ask("topics", self._cluster.names)

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        wanted = sorted(set(names))
        found = self._ask("looking at topics", lambda: [self._cluster.facts(name) for name in wanted])
        return {facts.name: facts for facts in found if facts is not None}

    def outlines(self, names: Iterable[str], timeout_s: float) -> dict[str, TopicOutline]:
        wanted = sorted(set(names))
        doing = "looking at topics"
        found = _ask(self._cluster, "admin", doing, self._origin, lambda: [self._cluster.facts(name) for name in wanted], timeout_s)
        return {facts.name: TopicOutline(facts.topic_id, facts.partitions) for facts in found if facts is not None}

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        there = {f.name: f for f in (self._cluster.facts(p.topic) for p in wanted) if f is not None}
        led = [
            p
            for p in wanted
            if p.topic in there and p.partition < there[p.topic].partitions and p.partition not in there[p.topic].leaderless
        ]
        return self._ask("the ends of partitions", lambda: {p: self._cluster.bounds(p).end for p in led})

    def leaderless(self, names: Iterable[str]) -> set[TopicPartition]:
        return {TopicPartition(facts.name, p) for facts in self.topics(names).values() for p in facts.leaderless}

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        down = self.leaderless({p.topic for p in wanted}) & set(wanted)
        if down:
            raise no_leader(down)
        return self._ask("the ends of partitions", lambda: {p: self._cluster.partition(p).end for p in wanted})

    def create(self, specs: Iterable[TopicSpec]) -> None:
        for spec in specs:
            self._ask(f"creating topic {spec.name}", partial(self._cluster.create, spec))

    def grow(self, name: str, partitions: int) -> None:
        self._cluster.add_partitions(name, partitions)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        for partition, at in before.items():
            if at > self._cluster.partition(partition).end:
                raise LogError(f"removing records of {partition}: it does not reach to {at}.", "")
            self._ask(f"removing records of {partition}", partial(self._cluster.delete_records, partition, at))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._ask(f"deleting topic {name}", partial(self._cluster.delete, name))

    def missing_access(self, wanted: Iterable[Access]) -> list[Access]:
        """Nothing: it has no access control."""
        return self._ask("asking for permissions", list)

    def close(self) -> None:
        """Nothing to let go of."""

    def _ask(self, what: str, action: Callable[[], T]) -> T:
        return _ask(self._cluster, "admin", what, self._origin, action)


class MemoryLog:
    """ports.Log over a MemoryCluster. `origin` names where its clients are: `MemoryCluster.cut_off` can cut that off alone."""

    def __init__(self, cluster: MemoryCluster, commit_timeout_ms: int = 60_000, lease_ms: int = lease_times.LEASE_MS, origin: str = "") -> None:
        self._cluster = cluster
        self._commit_timeout_s = commit_timeout_ms / 1000
        self._lease_s = lease_ms / 1000
        self._origin = origin

    def consumer(self, group_id: str, name: str, fetch: Fetch = Fetch.USUAL) -> MemoryConsumer:
        return MemoryConsumer(self._cluster, group_id, self._origin)

    def restore_consumer(self, name: str) -> MemoryConsumer:
        return MemoryConsumer(self._cluster, "", self._origin)

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        return MemoryTransactionalProducer(self._cluster, transactional_id, self._commit_timeout_s, self._origin)

    def plain_producer(self, name: str) -> MemoryPlainProducer:
        return MemoryPlainProducer(self._cluster, self._lease_s, self._origin)

    def admin(self) -> MemoryAdmin:
        return MemoryAdmin(self._cluster, self._origin)
