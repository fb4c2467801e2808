"""T1 to T4: from a committed log to stores that a task may use.

A restore ends at its own barrier: a record that this owner wrote after it fenced every predecessor, so all that was ever committed lies
before it. Nothing depends on end offsets, on markers or on how compaction left the log. Every batch that is applied carries the position
it leads to, so a crash in the middle goes on from there.

Tasks that start together share one barrier transaction and one reading consumer; the records go to their stores as they come. A restore is
taken in small steps, so that the other tasks of the container go on meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from samzapy import failpoints
from samzapy.api.errors import InDoubt, OffsetOutOfRange, StateMismatch, StateRefused, Superseded, check
from samzapy.container.ownership import Ownership
from samzapy.container.spec import ContainerSpec, StoreSpec
from samzapy.container.task_instance import Restored, TaskInstance
from samzapy.ids import random_id
from samzapy.log_reader import FETCH_S, read_ranges, read_to_end, true_end
from samzapy.model.barrier import BARRIER_KEY, Barrier, barrier_from_bytes
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, UnreadableCheckpoint, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition, next_offset
from samzapy.model.ownership import Startpoint
from samzapy.model.stamp import StoreStamp
from samzapy.plan.restore import ChangelogFacts, Found, Keep, Refuse, StoreIdentity, decide, lost_end, unnamed, vanished
from samzapy.plan.startpoints import decides, pending
from samzapy.ports import Change, Claim, Clock, Consumer, Log, Message, StoreEngine

LOG = logging.getLogger("samzapy.restore")
BATCH_RECORDS = 2000
STUCK_S = 2.0
LOCKED_RETRY_S = 0.2
STRANGER = "Somebody else writes to this topic, who should not: take that right away (`kafka-acls.sh`), or find the program that does."
T = TypeVar("T")
Steps = Generator[bool, None, T]  # each step says whether it got on, or has to wait for something


@dataclass(slots=True)
class _Reading:
    """A store that is being filled from its changelog."""

    task: TaskInstance
    spec: StoreSpec
    barrier: int
    start: int
    decision: str
    local: bool
    started: float
    started_ms: int
    named: float  # the checkpoint names every change before this offset, so there must be none behind it
    deletes: bool  # but deletions, which a `checkpoint set` that is not carried out yet may have written
    records: int = 0
    pending: list[Change] = field(default_factory=list)


class Restorer:
    """Restores the stores of tasks.

    Args:
        commit_others: commits what the container's other tasks have done; called before the barriers, whose transaction holds nothing else.

    Attributes:
        wait_s: how long a step may wait for records, in seconds.
    """

    def __init__(
        self,
        spec: ContainerSpec,
        log: Log,
        ownership: Ownership,
        clock: Clock,
        commit_others: Callable[[], None],
        new_id: Callable[[], str] = random_id,
    ) -> None:
        self._spec = spec
        self._log = log
        self._own = ownership
        self._clock = clock
        self._commit_others = commit_others
        self._new_id = new_id
        self.wait_s = 0.0
        self._unlocked_by = float("inf")  # when locked directories are given up; counted from the first that is met

    def restore(self, tasks: Sequence[TaskInstance]) -> Steps[None]:
        """T1–T4 for tasks that start together. Leaves `checkpoint` (None on a first start), stores attached and `restored` told.

        Raises:
            StateRefused, StateMismatch: starting would lose or double something; named, with the remedy. Superseded: another owner's barrier.
        """
        consumer = self._log.restore_consumer("restore")
        try:
            yield from self._look_first(consumer, tasks)
            barriers, nonce = self._write_barriers(tasks)  # T1
            yield from self._read_checkpoints(consumer, tasks, barriers, nonce)  # T2
            failpoints.hit("start.checkpoint.read")
            for task in tasks:
                self._check_fingerprint(task)
            readings = {}
            for task in tasks:
                for name, spec in self._spec.stores.items():
                    reading = yield from self._choose(consumer, task, name, spec, barriers)  # T3
                    if reading is not None:
                        readings[TopicPartition(spec.changelog or "", task.model.partition)] = reading
            yield from self._read(consumer, readings, nonce)  # T4
            for task in tasks:
                self._refuse_orphans(task)
        finally:
            consumer.close()

    # -- T1 ----------------------------------------------------------------------------------------------------------------------

    def _look_first(self, consumer: Consumer, tasks: Sequence[TaskInstance]) -> Steps[None]:
        """Before the first barrier: a changelog that no checkpoint of ours vouches for must not be another job's, and one that a checkpoint
        vouches for must reach as far as that says. Barriers would fill up what is missing there, if the start is tried often enough."""
        newest = self._newest_checkpoints(consumer, tasks)
        yield True
        for task in tasks:
            old = newest.get(task.name)
            for name, spec in self._spec.stores.items():
                mark = old.stores.get(name) if old else None
                if spec.changelog is None:
                    continue
                partition = TopicPartition(spec.changelog, task.model.partition)
                if mark is not None and mark.topic_id == spec.topic_id:
                    end = yield from true_end(consumer, partition, mark.position, self._clock, max(self.wait_s, FETCH_S))
                    if end < mark.position:
                        refusal = lost_end(str(partition), end, mark)
                        raise StateRefused(f"store {name!r} of {task.name}: {refusal.reason}", refusal.remedy)
                    continue
                for batch in read_to_end(consumer, partition, self._clock):
                    for message in batch:
                        if message.key() == BARRIER_KEY:
                            self._check_barrier(message, task, name)
                    yield True

    def _newest_checkpoints(self, consumer: Consumer, tasks: Sequence[TaskInstance]) -> dict[str, Checkpoint]:
        places = {self._checkpoint_partition(task): task for task in tasks}
        bounds = {place: consumer.bounds(place) for place in places}
        newest: dict[TopicPartition, bytes | None] = {}
        for batch in read_ranges(consumer, {place: (b.start, b.end) for place, b in bounds.items()}, self._clock):
            for message in batch:
                if message.key() == CHECKPOINT_KEY:
                    newest[TopicPartition(message.topic(), message.partition())] = message.value()
        return {places[p].name: self._parsed(data, places[p]) for p, data in newest.items() if data is not None}

    def _write_barriers(self, tasks: Sequence[TaskInstance]) -> tuple[dict[TopicPartition, int], str]:
        offsets: dict[TopicPartition, int] = {}
        nonce = self._new_id()
        self._commit_others()
        check(not self._own.in_transaction, "barriers have a transaction of their own")
        producer = self._own.open()
        for task in tasks:
            places = [("", self._checkpoint_partition(task))]
            places += [(n, TopicPartition(s.changelog, task.model.partition)) for n, s in self._spec.stores.items() if s.changelog]
            for store, place in places:
                job = self._spec.job
                barrier = Barrier(job.name, job.id, task.name, store, self._own.epoch, self._own.incarnation, nonce)
                producer.send(
                    place.topic,
                    barrier.to_bytes(),
                    BARRIER_KEY,
                    place.partition,
                    delivered=lambda offset, place=place: offsets.__setitem__(place, offset),  # type: ignore[misc]
                )
        producer.flush()
        failpoints.hit("start.barrier.sent")
        self._own.decided(producer.commit())
        failpoints.hit("start.barrier.committed")
        return offsets, nonce

    # -- T2 ----------------------------------------------------------------------------------------------------------------------

    def _read_checkpoints(
        self, consumer: Consumer, tasks: Sequence[TaskInstance], barriers: Mapping[TopicPartition, int], nonce: str
    ) -> Steps[None]:
        """The newest checkpoint of each task before its barrier, or None."""
        places = {self._checkpoint_partition(task): task for task in tasks}
        newest: dict[TopicPartition, bytes | None] = {}

        def take(message: Message) -> None:
            if message.key() == CHECKPOINT_KEY:
                newest[TopicPartition(message.topic(), message.partition())] = message.value()

        ranges = {place: (consumer.bounds(place).start, barriers[place]) for place in places}
        yield from self._read_to_barriers(consumer, ranges, take, nonce, lambda place: (places[place], ""))
        for place, task in places.items():
            data = newest.get(place)
            task.checkpoint = None if data is None else self._parsed(data, task)
            if task.checkpoint is not None and task.checkpoint.epoch > self._own.epoch:
                raise Superseded(f"{task.name}: its checkpoint is of epoch {task.checkpoint.epoch}, this owner's is {self._own.epoch}.", "")

    def _parsed(self, data: bytes, task: TaskInstance) -> Checkpoint:
        where = self._checkpoint_partition(task)
        try:
            checkpoint = checkpoint_from_bytes(data)
        except UnreadableCheckpoint as error:
            raise StateRefused(
                f"{task.name}: the newest checkpoint in {where} cannot be read: {error}.",
                "Use the samzapy version that wrote it, or run `samzapy reset JOB.yaml` to start over.",
            ) from None
        if (checkpoint.job, checkpoint.id, checkpoint.task) != (self._spec.job.name, self._spec.job.id, task.name):
            raise StateRefused(
                f"{task.name}: {where} holds the checkpoint of {checkpoint.job}-{checkpoint.id}, {checkpoint.task}.",
                "Give this job another name or id.",
            )
        return checkpoint

    def _check_fingerprint(self, task: TaskInstance) -> None:
        if task.checkpoint is None:
            return
        new, old = self._spec.fingerprint, task.checkpoint.fingerprint
        for subject in sorted(set(old) & set(new)):
            if old[subject] != new[subject]:
                raise StateMismatch(
                    f"{task.name}: {subject} was {old[subject]!r} when its state was written, the job file says {new[subject]!r}.",
                    "Change it back, give the job a new id, or run `samzapy reset JOB.yaml` to start over.",
                )
        gone = vanished(task.checkpoint, {name: s.changelog is not None for name, s in self._spec.stores.items()})
        if gone is not None:
            raise StateMismatch(f"{task.name}: {gone.reason}", gone.remedy)

    # -- T3 ----------------------------------------------------------------------------------------------------------------------

    def _choose(
        self, consumer: Consumer, task: TaskInstance, name: str, spec: StoreSpec, barriers: Mapping[TopicPartition, int]
    ) -> Steps[_Reading | None]:
        store = task.stores[name]
        directory = spec.open_directory(task.name)
        if spec.changelog is None:
            for claim in directory.claims():
                directory.set_aside(claim, "a store without a changelog starts empty")
            store.attach(directory.create()[1])
            directory.clean()
            task.restored[name] = Restored("empty", "no changelog: emptied at every start", 0, 0.0)
            return None
        place = TopicPartition(spec.changelog, task.model.partition)
        started = self._clock.monotonic()
        claims = yield from self._claims(directory.claims)
        facts = ChangelogFacts(
            place.topic, place.partition, spec.topic_id, consumer.bounds(place).start, barriers[place], spec.delete_retention_ms
        )
        identity = StoreIdentity(self._spec.job.name, self._spec.job.id, task.name, name, spec.key_serde, spec.value_serde)
        found = [Found(c.generation, c.stamp, c.locked, c.problem) for c in claims]
        decision = decide(found, identity, task.checkpoint, facts, self._clock.now_ms())
        kept = decision.generation if isinstance(decision, Keep) else None
        engine: StoreEngine | None = next((c.engine for c in claims if c.generation == kept), None)
        for claim in claims:
            if claim.generation != kept and not claim.locked:
                if isinstance(decision, Refuse):
                    if claim.engine is not None:
                        claim.engine.close()
                else:
                    directory.set_aside(claim, decision.reason)
        if isinstance(decision, Refuse):
            raise StateRefused(f"store {name!r} of {task.name}: {decision.reason}", decision.remedy)
        if engine is None:
            _, engine = directory.create()
        elif isinstance(decision, Keep) and decision.warning:
            LOG.warning("store %r of %s: %s", name, task.name, decision.warning)
        store.attach(engine)
        failpoints.hit("restore.chosen")
        directory.clean()
        mark = task.checkpoint.stores.get(name) if task.checkpoint else None
        named = float("inf") if mark is None or self._is_decided(task) else mark.position
        return _Reading(
            task, spec, barriers[place], decision.position, decision.reason, kept is not None, started, self._clock.now_ms(), named,
            self._order(task) is not None,
        )  # fmt: skip

    def _claims(self, find: Callable[[], list[Claim]]) -> Steps[list[Claim]]:
        """The generations; if one is locked, its process may be about to end: wait as long as a lease, then go on without it.

        Once for all stores that are restored together: one process holds them all, most likely.
        """
        while True:
            claims = find()
            now = self._clock.monotonic()
            if not any(c.locked for c in claims):
                return claims
            self._unlocked_by = min(self._unlocked_by, now + self._spec.lease_s + 2.0)
            if now >= self._unlocked_by:
                return claims
            for claim in claims:
                if claim.engine is not None:
                    claim.engine.close()
            while self._clock.monotonic() < now + LOCKED_RETRY_S:
                self._clock.sleep(self.wait_s)
                yield False

    # -- T4 ----------------------------------------------------------------------------------------------------------------------

    def _read(self, consumer: Consumer, readings: Mapping[TopicPartition, _Reading], nonce: str) -> Steps[None]:
        def take(message: Message) -> None:
            reading = readings[TopicPartition(message.topic(), message.partition())]
            key = message.key()
            if key is None:
                LOG.warning("%s a record without a key, passed over: it changes nothing. %s", _at(message), STRANGER)
            elif key != BARRIER_KEY:
                if message.offset() >= reading.named and not (reading.deletes and message.value() is None):
                    self._refuse_unnamed(reading, message)
                reading.records += 1
                reading.pending.append((key, message.value()))
                if len(reading.pending) >= BATCH_RECORDS:
                    self._load(reading, next_offset(message.offset()), at_end=False)

        ranges = {place: (r.start, r.barrier) for place, r in readings.items()}
        yield from self._read_to_barriers(consumer, ranges, take, nonce, lambda p: (readings[p].task, readings[p].spec.name))
        for place, reading in readings.items():
            self._load(reading, next_offset(reading.barrier), at_end=True)
            failpoints.hit("restore.done.before_flush")
            reading.task.stores[reading.spec.name].flush()  # so that a crash soon after finds a store that knows what it is
            done = reading.task.restored[reading.spec.name]
            LOG.info(
                "store %r of %s restored from %s: %d records of %s read in %.2f s (%s)",
                reading.spec.name, reading.task.name, done.source, done.records, place, done.seconds, done.reason,
            )  # fmt: skip
            yield True

    def _refuse_unnamed(self, reading: _Reading, message: Message) -> NoReturn:
        """Raised before the record is loaded, so that the local store never claims to have seen it, however often the start is tried."""
        task, changelog = reading.task, TopicPartition(message.topic(), message.partition())
        refusal = unnamed(
            task.name, str(changelog), message.offset(), str(self._checkpoint_partition(task)), int(reading.named), message.key()
        )
        raise StateRefused(refusal.reason, refusal.remedy)

    def _load(self, reading: _Reading, position: int, at_end: bool) -> None:
        """One batch: what is pending, and the position it leads to.

        `as_of` says since when tombstones may have been missed: at the log's end that is now; on the way there a store that was kept has
        the age it had, and one that is built anew has the age of this restore, which saw all that was there when it began.
        """
        task, spec, job = reading.task, reading.spec, self._spec.job
        before = task.stores[spec.name].stamp
        sequence, as_of_ms = (before.sequence, before.as_of_ms) if reading.local and before else (0, reading.started_ms)
        if at_end:
            sequence, as_of_ms = (task.checkpoint.sequence if task.checkpoint else 0), self._clock.now_ms()
        stamp = StoreStamp(
            job.name, job.id, task.name, spec.name, spec.topic_id, position, sequence, as_of_ms, spec.key_serde, spec.value_serde
        )  # fmt: skip
        task.stores[spec.name].load(reading.pending, stamp)
        failpoints.hit("restore.batch.applied")
        reading.pending = []
        seconds = self._clock.monotonic() - reading.started
        source = "local" if reading.local else "changelog" if reading.records else "empty"
        remaining = 0 if at_end else reading.barrier - position
        task.restored[spec.name] = Restored(source, reading.decision, reading.records, seconds, remaining)

    def _read_to_barriers(
        self,
        consumer: Consumer,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        take: Callable[[Message], None],
        nonce: str,
        whose: Callable[[TopicPartition], tuple[TaskInstance, str]],
    ) -> Steps[None]:
        """Every record from each start up to this owner's barrier (at the given offset, inclusive)."""
        if not ranges:
            return
        consumer.assign({p: start for p, (start, _) in ranges.items()})
        barriers = {p: barrier for p, (_, barrier) in ranges.items()}
        last_progress = self._clock.monotonic()
        said = False
        try:
            while barriers:
                batch = self._poll(consumer, barriers)
                for message in batch:
                    place = TopicPartition(message.topic(), message.partition())
                    barrier = barriers.get(place)
                    if barrier is None:
                        continue
                    if message.offset() <= barrier:
                        take(message)
                    if message.key() == BARRIER_KEY:
                        task, store = whose(place)
                        self._check_barrier(message, task, store, is_replaced=message.offset() <= barrier)
                    if message.offset() >= barrier:
                        del barriers[place]
                        consumer.unassign([place])
                if batch:
                    last_progress = self._clock.monotonic()
                elif not said and self._clock.monotonic() - last_progress > STUCK_S:
                    said = self._say_stuck(consumer, barriers, whose)
                yield bool(batch)
        finally:
            consumer.unassign(barriers)
            for place in ranges:
                whose(place)[0].reason = ""

    def _poll(self, consumer: Consumer, open_places: Iterable[TopicPartition]) -> Sequence[Message]:
        try:
            return consumer.poll(BATCH_RECORDS, self.wait_s)
        except OffsetOutOfRange as error:  # what that means for the store, its rules decide when it is started again
            places = ", ".join(map(str, open_places))
            raise InDoubt(f"of {places}: records were removed while they were read for a restore: {error.message}", "") from None

    def _say_stuck(
        self, consumer: Consumer, barriers: Mapping[TopicPartition, int], whose: Callable[[TopicPartition], tuple[TaskInstance, str]]
    ) -> bool:
        for place, barrier in barriers.items():
            end = consumer.bounds(place).end
            if end <= barrier:
                whose(place)[
                    0
                ].reason = f"{place}: a transaction of somebody else's is open at {end}, before this start's barrier at {barrier}"
                LOG.warning("%s; waiting until it is decided", whose(place)[0].reason)
        return True

    def _check_barrier(self, message: Message, task: TaskInstance, store: str, is_replaced: bool = False) -> None:
        """`is_replaced`: a barrier of this start's own follows, so what it replaced may be anything, but not another job's or a later owner's."""
        place = TopicPartition(message.topic(), message.partition())
        try:
            barrier = barrier_from_bytes(message.value())
        except ValueError as error:
            if is_replaced:
                LOG.warning("%s %s, passed over: this start's own replaced it. %s", _at(message), error, STRANGER)
                return
            raise StateRefused(
                f"{_at(message)} {error}, and no checkpoint says that the topic is this job's. {STRANGER}",
                f"If nothing in {place.topic} is wanted, delete it; else give store {store!r} another `changelog`.",
            ) from None
        job = self._spec.job
        if (barrier.job, barrier.id, barrier.task, barrier.store) != (job.name, job.id, task.name, store):
            raise StateRefused(
                f"{place} belongs to store {barrier.store!r} of {barrier.job}-{barrier.id}, {barrier.task}; not to store {store!r} of {job}, {task.name}.",
                f"Give store {store!r} a changelog topic of its own.",
            )
        if barrier.epoch > self._own.epoch:
            raise Superseded(f"{task.name}: {place} has a barrier of epoch {barrier.epoch}, this owner's is {self._own.epoch}.", "")

    # -- after T4 ----------------------------------------------------------------------------------------------------------------

    def _refuse_orphans(self, task: TaskInstance) -> None:
        """T5's first half: what a changelog holds must belong to a checkpoint that knows it, else it would be counted again, or is old."""
        if self._is_decided(task):
            return
        known = task.checkpoint.stores if task.checkpoint is not None else {}
        for name, restored in task.restored.items():
            if name in known or not restored.records:
                continue
            place = TopicPartition(self._spec.stores[name].changelog or "", task.model.partition)
            if task.checkpoint is None:
                raise StateRefused(
                    f"{task.name}: there is no checkpoint in {self._checkpoint_partition(task)}, but {place} holds "
                    f"{restored.records} records of state: starting over on them would count twice.",
                    "Run `samzapy reset JOB.yaml` to remove the state and start over, or say with "
                    "`samzapy checkpoint set JOB.yaml --to-latest --keep-state` (or `--to-datetime`, `--to-offset`) where every input goes on.",
                )
            raise StateRefused(
                f"{task.name}: store {name!r} is new to the checkpoint, but {place} holds {restored.records} records: it was a store of this job "
                "before, and its inputs have been read on since.",
                f"Delete {place.topic} to begin store {name!r} empty, give it another `changelog`, or run `samzapy reset JOB.yaml`.",
            )

    def _is_decided(self, task: TaskInstance) -> bool:
        """Whether a `checkpoint set` says what belongs to this state."""
        return decides(self._order(task), task.model.inputs)

    def _order(self, task: TaskInstance) -> Startpoint | None:
        """The `checkpoint set` that this start carries out."""
        return pending(self._own.ledger.startpoints.get(task.name), task.checkpoint)

    def _checkpoint_partition(self, task: TaskInstance) -> TopicPartition:
        return TopicPartition(self._spec.job.checkpoint_topic, task.model.partition)


def _at(message: Message) -> str:
    return f"{message.topic()}[{message.partition()}] at offset {message.offset()} has"
