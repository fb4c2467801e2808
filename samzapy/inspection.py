"""Looking at a job's committed state from outside: checkpoints, changelogs, local stores. Writes nothing to Kafka.

Readers that may not write have no barrier: they read to the read_committed end as it was when they began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from samzapy.api.errors import ConfigurationError, StateRefused, TopicMissing
from samzapy.api.task import StreamTask
from samzapy.checkpoint_reader import read_checkpoint
from samzapy.config.schema import Settings
from samzapy.log_reader import read_ranges
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import Bounds, TopicPartition, next_offset
from samzapy.model.stamp import StoreStamp
from samzapy.plan.grouping import group
from samzapy.plan.restore import ChangelogFacts, Found, Keep, Refuse, StoreIdentity, decide
from samzapy.ports import Change, Clock, Consumer, Log, StoreEngine, TopicFacts
from samzapy.serde.registry import serde_named
from samzapy.store.sorting import from_signed
from samzapy.wiring import changelog_topic, container_spec, job_of, topic_names

BATCH = 2000
Progress = Callable[[str, int, int, float], None]  # (what, have, need, seconds so far)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What Kafka says about the job: its cluster, topics, tasks."""

    cluster_id: str
    topics: dict[str, TopicFacts]
    tasks: dict[str, TaskModel]


def look_around(settings: Settings, log: Log) -> Surroundings:
    """The job's topics that exist, and its tasks (none while an input is missing).

    Raises:
        ClusterUnreachable: no broker answered.
    """
    admin = log.admin()
    try:
        cluster_id = admin.cluster_id()
        topics = admin.topics([*topic_names(settings), job_of(settings).checkpoint_topic, job_of(settings).coordinator_topic])
    finally:
        admin.close()
    inputs = {i.topic for i in settings.inputs}
    tasks: dict[str, TaskModel] = {}
    if inputs <= set(topics):
        tasks = group({t: topics[t].partitions for t in inputs}, {i.topic for i in settings.inputs if i.broadcast}, bool(settings.stores))
    return Surroundings(cluster_id, topics, tasks)


def read_checkpoints(settings: Settings, around: Surroundings, log: Log, clock: Clock) -> dict[int, Checkpoint]:
    """The newest checkpoint of each task, by the task's partition.

    Raises:
        StateRefused: one cannot be read.
    """
    topic = job_of(settings).checkpoint_topic
    facts = around.topics.get(topic)
    if facts is None:
        return {}
    consumer = log.restore_consumer("checkpoints")
    try:
        found = {p: read_checkpoint(consumer, TopicPartition(topic, p), clock) for p in range(facts.partitions)}
    finally:
        consumer.close()
    return {p: checkpoint for p, checkpoint in found.items() if checkpoint is not None}


def changelog_of(settings: Settings, store: str) -> str:
    """The changelog topic of a store.

    Raises:
        ConfigurationError: no such store, or it has no changelog.
    """
    if store not in settings.stores:
        raise ConfigurationError(f"there is no store {store!r}.", f"The job file has: {', '.join(sorted(settings.stores)) or 'no stores'}.")
    topic = changelog_topic(settings, store)
    if topic is None:
        raise ConfigurationError(
            f"store {store!r} has `changelog: false`: nothing of it is committed.", "Only stores with a changelog can be read."
        )
    return topic


def fold_partition(consumer: Consumer, place: TopicPartition, bounds: Bounds, clock: Clock) -> dict[bytes, bytes]:
    """Newest value per key of [start, end) of one changelog partition; deleted keys are absent."""
    newest: dict[bytes, bytes] = {}
    for batch in read_ranges(consumer, {place: (bounds.start, bounds.end)}, clock):
        for message in batch:
            key, value = message.key(), message.value()
            if key is None or key == BARRIER_KEY:
                continue
            if value is None:
                newest.pop(key, None)
            else:
                newest[key] = value
    return newest


def committed_entries(settings: Settings, store: str, log: Log, clock: Clock) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) bytes of a store as committed, one changelog partition after another; within each in no particular order."""
    topic = changelog_of(settings, store)
    admin = log.admin()
    facts = admin.topics([topic]).get(topic)
    admin.close()
    if facts is None:
        return
    consumer = log.restore_consumer("state")
    try:
        for partition in range(facts.partitions):
            place = TopicPartition(topic, partition)
            yield from fold_partition(consumer, place, consumer.bounds(place), clock).items()
    finally:
        consumer.close()


# -- local stores of a stopped job -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What was done to, or found of, one store of one task."""

    task: str
    store: str
    outcome: str
    records: int
    detail: str
    good: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    task: TaskModel
    store: str
    log: TopicPartition
    bounds: Bounds
    facts: TopicFacts
    checkpoint: Checkpoint | None


class LocalState:
    """The local stores of a stopped job on this host."""

    def __init__(self, settings: Settings, folders: list[Path], host: str, log: Log, clock: Clock) -> None:
        self._settings = settings
        self._folders = folders
        self._log = log
        self._clock = clock
        self._around = look_around(settings, log)
        missing = sorted({t for s in settings.stores if (t := changelog_topic(settings, s))} - set(self._around.topics))
        if missing:
            raise TopicMissing(f"there is no topic {', '.join(missing)}: the job has not run yet, or was reset.", "`samzapy run JOB.yaml`.")
        self._checkpoints = read_checkpoints(settings, self._around, log, clock)
        self._spec = container_spec(
            settings, self._around.tasks, self._around.topics, 0, host, Path(settings.state.dir), self._around.cluster_id, _no_task, folders
        )

    def places(self, store: str | None, task: str | None) -> list[tuple[str, str]]:
        """(task, store) pairs with a changelog, narrowed by name.

        Raises:
            ConfigurationError: a name that is not there.
        """
        if store is not None:
            changelog_of(self._settings, store)
        if task is not None and task not in self._around.tasks:
            raise ConfigurationError(f"there is no task {task!r}.", f"There are: {', '.join(self._around.tasks)}.")
        return [
            (t, s.name)
            for t in self._around.tasks
            if task in (None, t)
            for s in self._spec.stores.values()
            if s.changelog is not None and store in (None, s.name)
        ]

    def restore(self, task: str, store: str, progress: Progress) -> StoreReport:
        """Build the store from its changelog, unless the local one is complete; the next run keeps it.

        Raises:
            StateRefused: what the changelog holds is not the state; a store built from it would pass for complete at the next run.
        """
        consumer = self._log.restore_consumer("state-restore")
        try:
            place = self._place(consumer, task, store)
            engine, claim_detail, remedy = self._kept(place)
            if remedy:
                raise StateRefused(f"store {store!r} of {task}: {claim_detail}", remedy)
            if engine is not None:
                engine.close()
                return StoreReport(task, store, "kept", 0, claim_detail)
            records = self._build(consumer, place, progress)
            return StoreReport(task, store, "restored", records, claim_detail)
        finally:
            consumer.close()

    def verify(self, task: str, store: str) -> StoreReport:
        """Whether the local store is what the changelog says it must be at the position it claims."""
        consumer = self._log.restore_consumer("state-verify")
        try:
            place = self._place(consumer, task, store)
            mark = place.checkpoint.stores.get(store) if place.checkpoint else None
            if (
                place.checkpoint is None
                and place.bounds.start < place.bounds.end
                and fold_partition(consumer, place.log, place.bounds, self._clock)
            ):
                return StoreReport(task, store, "orphaned", 0, f"{place.log} holds state, but there is no checkpoint", good=False)
            if mark is not None and mark.position > place.bounds.end:
                return StoreReport(
                    task,
                    store,
                    "cut off",
                    0,
                    f"the checkpoint names position {mark.position}, {place.log} ends at {place.bounds.end}",
                    good=False,
                )
            engine, detail, remedy = self._kept(place)
            if remedy:
                return StoreReport(task, store, "refused", 0, f"{detail} {remedy}", good=False)
            if engine is None:
                return StoreReport(task, store, "no local store", 0, f"{detail}; the next run restores it from {place.log}")
            return self._compare(consumer, place, engine)
        finally:
            consumer.close()

    def _compare(self, consumer: Consumer, place: _Place, engine: StoreEngine) -> StoreReport:
        try:
            stamp = engine.stamp()
            position = stamp.position if stamp else place.bounds.start
            upto = Bounds(place.bounds.start, min(position, place.bounds.end))
            expected = fold_partition(consumer, place.log, upto, self._clock)
            signed = getattr(serde_named(self._spec.stores[place.store].key_serde, self._folders), "key_order", "bytes") == "signed"
            there = {from_signed(k) if signed else k: v for k, v in engine.scan()}
        finally:
            engine.close()
        if there == expected:
            return StoreReport(
                place.task.name, place.store, "agrees", len(there), f"{len(there)} entries at position {position} of {place.log}"
            )
        missing, extra = len(expected.keys() - there.keys()), len(there.keys() - expected.keys())
        other = sum(1 for k in expected.keys() & there.keys() if expected[k] != there[k])
        detail = f"against {place.log} up to {position}: {missing} missing, {extra} too many, {other} with another value; remedy: delete the store's folder"
        return StoreReport(place.task.name, place.store, "differs", len(there), detail, good=False)

    def _place(self, consumer: Consumer, task: str, store: str) -> _Place:
        topic = changelog_of(self._settings, store)
        facts = self._around.topics.get(topic)
        model = self._around.tasks[task]
        if facts is None:
            raise StateRefused(f"changelog {topic} does not exist.", "Run the job first.")
        place = TopicPartition(topic, model.partition)
        return _Place(model, store, place, consumer.bounds(place), facts, self._checkpoints.get(model.partition))

    def _kept(self, place: _Place) -> tuple[StoreEngine | None, str, str]:
        """The generation that the next run would keep, opened, and why; others are closed. The third: what to do where it would refuse."""
        spec = self._spec.stores[place.store]
        claims = spec.open_directory(place.task.name).claims()
        if any(c.locked for c in claims):
            for claim in claims:
                if claim.engine is not None:
                    claim.engine.close()
            raise StateRefused(f"store {place.store!r} of {place.task.name} is open in another process.", "Stop the job first.")
        job = job_of(self._settings)
        facts = ChangelogFacts(
            place.log.topic, place.log.partition, place.facts.topic_id, place.bounds.start, place.bounds.end, spec.delete_retention_ms
        )
        identity = StoreIdentity(job.name, job.id, place.task.name, place.store, spec.key_serde, spec.value_serde)
        found = [Found(c.generation, c.stamp, c.locked, c.problem) for c in claims]
        decision = decide(found, identity, place.checkpoint, facts, self._clock.now_ms())
        kept = decision.generation if isinstance(decision, Keep) else None
        engine = None
        for claim in claims:
            if claim.generation == kept:
                engine = claim.engine
            elif claim.engine is not None:
                claim.engine.close()
        mark = place.checkpoint.stores.get(place.store) if place.checkpoint else None
        if engine is not None and mark is not None and isinstance(decision, Keep) and decision.position < mark.position:
            engine.close()
            return None, "the local store is behind the checkpoint", ""
        return engine, decision.reason, decision.remedy if isinstance(decision, Refuse) else ""

    def _build(self, consumer: Consumer, place: _Place, progress: Progress) -> int:
        spec, job = self._spec.stores[place.store], job_of(self._settings)
        _, engine = spec.open_directory(place.task.name).create()
        store = spec.make(place.task.name, engine)
        started, started_ms = self._clock.monotonic(), self._clock.now_ms()
        sequence = place.checkpoint.sequence if place.checkpoint else 0
        need, records = place.bounds.end - place.bounds.start, 0

        def load(changes: list[Change], position: int, at_end: bool) -> None:
            as_of = self._clock.now_ms() if at_end else started_ms
            store.load(
                changes,
                StoreStamp(
                    job.name, job.id, place.task.name, place.store, spec.topic_id, position, sequence if at_end else 0, as_of,
                    spec.key_serde, spec.value_serde,
                ),
            )  # fmt: skip

        try:
            for batch in read_ranges(consumer, {place.log: (place.bounds.start, place.bounds.end)}, self._clock):
                changes: list[Change] = [(k, m.value()) for m in batch if (k := m.key()) is not None and k != BARRIER_KEY]
                records += len(changes)
                position = next_offset(batch[-1].offset())
                load(changes, position, at_end=False)
                progress(f"{place.task.name} {place.store}", position - place.bounds.start, need, self._clock.monotonic() - started)
            load([], place.bounds.end, at_end=True)
            store.flush()
        finally:
            store.close()
        return records


def _no_task() -> StreamTask:
    raise AssertionError("nothing is processed here")
