"""The local stores of a stopped job on this host: built from their changelogs, or compared with them.

They are judged as the next run would: what that refuses is refused here. Whether the job has stopped cannot be known for sure from
here, so what looks like a loss is looked at again in the newest checkpoint before it is called one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from samzapy.api.errors import ConfigurationError, StateRefused, TopicMissing
from samzapy.api.task import StreamTask
from samzapy.config.schema import Settings
from samzapy.container.changelog_records import changes_of
from samzapy.container.generations import close_all, kept_of, look_at_store
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import Bounds, TopicPartition, next_offset
from samzapy.model.timed import plain
from samzapy.ops.inspection import changelog_of, fold_partition, job_in_kafka, read_checkpoints, refuse, refuse_foreign, refuse_replaced
from samzapy.ops.unnamed_changes import UnnamedChanges
from samzapy.plan.checkpoint_orders import decides, pending
from samzapy.plan.local_store import Keep
from samzapy.plan.start_refusals import Refuse
from samzapy.ports import Change, Clock, Consumer, Log, StoreEngine, TopicFacts
from samzapy.readers import decided_bounds, read_ranges
from samzapy.serde.registry import serde_named
from samzapy.store.key_form import from_signed
from samzapy.store.timed_engine import TimedEngine
from samzapy.wiring.container import Location, container_spec
from samzapy.wiring.growing_topics import growing
from samzapy.wiring.job_topics import JobTopics, job_of
from samzapy.wiring.serdes import Serdes
from samzapy.wiring.tasks import Tasks

Progress = Callable[[str, int, int, float], None]  # (what, have, need, seconds so far)
NO_LOCAL_STORE = "no local store"  # an outcome


@dataclass(frozen=True, slots=True)
class StoreReport:
    """The result for one store of one task."""

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
        self._facts = job_in_kafka(settings, log)
        growing(settings, self._facts.topics, len(self._facts.tasks))
        self._checkpoints = read_checkpoints(settings, self._facts.topics, log, clock)
        self._unnamed = UnnamedChanges(settings, self._facts, log, clock)
        logs = JobTopics.of(settings).changelogs
        missing = sorted(set(logs.values()) - set(self._facts.topics))
        for store, topic in logs.items():
            if topic in missing:
                refuse_replaced(topic, store, None, self._checkpoints)
        if missing:
            raise TopicMissing(f"there is no topic {', '.join(missing)}: the job has not run yet, or was reset.", "`samzapy run JOB.yaml`.")
        for store, topic in logs.items():
            refuse_foreign(settings, store, self._facts.topics[topic], self._checkpoints, log, clock)
        where = Location(0, host, Path(settings.state.dir), self._facts.cluster_id)
        self._spec = container_spec(settings, self._facts.tasks, self._facts.topics, where, Tasks(_no_task), Serdes(settings, folders))

    def places(self, store: str | None, task: str | None) -> list[tuple[str, str]]:
        """(task, store) pairs with a changelog, narrowed by name.

        Raises:
            ConfigurationError: a name that is not there.
        """
        if store is not None:
            changelog_of(self._settings, store)
        if task is not None and task not in self._facts.tasks:
            raise ConfigurationError(f"there is no task {task!r}.", f"There are: {', '.join(self._facts.tasks)}.")
        return [
            (t, s.name)
            for t in self._facts.tasks
            if task in (None, t)
            for s in self._spec.stores.values()
            if s.changelog is not None and store in (None, s.name) and self._facts.tasks[t].partition < self._facts.topics[s.changelog].partitions
        ]

    def restore(self, task: str, store: str, progress: Progress) -> StoreReport:
        """Build the store from its changelog, unless the local one is complete; the next run keeps it.

        Raises:
            StateRefused: what the changelog holds is not the state; a store built from it would pass for complete at the next run.
        """
        consumer = self._log.restore_consumer("state-restore")
        try:
            place = self._place(consumer, task, store)
            if self._settings.stores[store].engine == "memory":
                return StoreReport(task, store, NO_LOCAL_STORE, 0, f"`engine: memory`; each start of its task restores it from {place.log}")
            engine, claim_detail, remedy = self._kept(consumer, place)
            if remedy:
                refuse(store, task, Refuse(claim_detail, remedy))
            if engine is not None:
                engine.close()
                return StoreReport(task, store, "kept", 0, claim_detail)
            records = self._build(consumer, place, progress)
            return StoreReport(task, store, "restored", records, claim_detail)
        finally:
            consumer.close()

    def verify(self, task: str, store: str) -> StoreReport:
        """Whether the local store has the entries that the changelog has up to the store's position."""
        consumer = self._log.restore_consumer("state-verify")
        try:
            place = self._place(consumer, task, store)
            mark = place.checkpoint.stores.get(store) if place.checkpoint else None
            if mark is None and self._is_orphaned(consumer, place):
                why = "there is no checkpoint" if place.checkpoint is None else "the checkpoint does not know this store"
                detail = f"{place.log} holds state, but {why}. A run therefore refuses to start, and says what can be done; so does `samzapy plan JOB.yaml`"
                return StoreReport(task, store, "orphaned", 0, detail, good=False)
            if mark is not None and mark.position > place.bounds.end:
                return StoreReport(
                    task,
                    store,
                    "cut off",
                    0,
                    f"the checkpoint names position {mark.position}, {place.log} ends at {place.bounds.end}: its end was lost, and committed state with it. "
                    "Bring back the replica or the copy that has it, or run `samzapy reset JOB.yaml` to begin with empty state",
                    good=False,
                )
            engine, detail, remedy = self._kept(consumer, place)
            if remedy:
                return StoreReport(task, store, "refused", 0, f"{detail} {remedy}", good=False)
            if engine is None:
                return StoreReport(task, store, NO_LOCAL_STORE, 0, f"{detail}; the next run restores it from {place.log}")
            if mark is not None and place.bounds.start > mark.changelog_start:
                engine.close()
                why = f"{place.log} was truncated at its start, so the local store cannot be verified. It is complete, and the only copy of the state: keep it"
                return StoreReport(task, store, "only copy", 0, why, good=False)
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
            ttl_ms = self._spec.stores[place.store].ttl_ms
            scan = engine.scan() if ttl_ms is None else ((k, plain(v)) for k, v in TimedEngine(engine, ttl_ms).scan())
            there = {from_signed(k) if signed else k: v for k, v in scan}
        finally:
            engine.close()
        if there == expected:
            return StoreReport(
                place.task.name, place.store, "agrees", len(there), f"{len(there)} entries at position {position} of {place.log}"
            )
        missing, extra = len(expected.keys() - there.keys()), len(there.keys() - expected.keys())
        other = sum(1 for k in expected.keys() & there.keys() if expected[k] != there[k])
        detail = (
            f"compared with {place.log} up to {position}: in the local store {missing} entries are missing, {extra} are too many, {other} have another "
            f"value; delete {getattr(engine, 'path', 'its folder')} while the job is stopped: the next run restores the store"
        )
        return StoreReport(place.task.name, place.store, "differs", len(there), detail, good=False)

    def _place(self, consumer: Consumer, task: str, store: str) -> _Place:
        topic = changelog_of(self._settings, store)
        facts = self._facts.topics.get(topic)
        model = self._facts.tasks[task]
        if facts is None:
            raise StateRefused(f"changelog {topic} does not exist.", "Run the job first.")
        place, checkpoint = TopicPartition(topic, model.partition), self._checkpoints.get(model.partition)
        mark = checkpoint.stores.get(store) if checkpoint else None
        wanted = mark.position if mark is not None and mark.topic_id == facts.topic_id else 0
        return _Place(model, store, place, decided_bounds(consumer, place, self._clock, wanted), facts, checkpoint)

    def _kept(self, consumer: Consumer, place: _Place) -> tuple[StoreEngine | None, str, str]:
        """The generation that the next run would keep, opened, and why; others are closed. The third: the remedy if it would refuse."""
        spec = self._spec.stores[place.store]
        directory, identity = spec.open_directory(place.task.name), spec.identity(job_of(self._settings), place.task.name)
        order = pending(self._unnamed.order(place.task), place.checkpoint)
        is_ordered = place.checkpoint is None and decides(order, place.task.inputs)
        found = look_at_store(
            directory, identity, place.checkpoint, spec.facts(place.log, *place.bounds),
            now_ms=self._clock.now_ms(), is_ordered=is_ordered, has_deletions_after=order is not None and order.deletes,
        )  # fmt: skip
        if found is None:
            raise StateRefused(f"store {place.store!r} of {place.task.name} is open in another process.", "Stop the job first.")
        decision, claims = found
        if not isinstance(decision, Refuse):
            decision = self._unnamed.refused(consumer, place.task, place.store, place.log, place.bounds, place.checkpoint) or decision
        kept = kept_of(decision, claims)
        close_all(claim for claim in claims if claim is not kept)
        engine = kept.engine if kept is not None else None
        mark = place.checkpoint.stores.get(place.store) if place.checkpoint else None
        if engine is not None and mark is not None and isinstance(decision, Keep) and decision.position < mark.position:
            engine.close()
            return None, "the local store is behind the checkpoint", ""
        return engine, decision.reason, decision.remedy if isinstance(decision, Refuse) else ""

    # -- what no checkpoint names ------------------------------------------------------------------------------------------------------

    def _is_orphaned(self, consumer: Consumer, place: _Place) -> bool:
        if not fold_partition(consumer, place.log, place.bounds, self._clock):
            return False
        return not decides(pending(self._unnamed.order(place.task), place.checkpoint), place.task.inputs)

    def _build(self, consumer: Consumer, place: _Place, progress: Progress) -> int:
        spec, job = self._spec.stores[place.store], job_of(self._settings)
        _, engine = spec.open_directory(place.task.name).create()
        store = spec.make(place.task.name, engine)
        started, started_ms = self._clock.monotonic(), self._clock.now_ms()
        sequence = place.checkpoint.sequence if place.checkpoint else 0
        need, records = place.bounds.end - place.bounds.start, 0

        def load(changes: list[Change], position: int, at_end: bool) -> None:
            as_of = self._clock.now_ms() if at_end else started_ms
            store.load(changes, spec.stamp(job, place.task.name, position, sequence if at_end else 0, as_of))

        try:
            for batch in read_ranges(consumer, {place.log: (place.bounds.start, place.bounds.end)}, self._clock):
                changes = changes_of(batch, spec)
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
