"""`checkpoint set`: a coordinator that starts no containers. It makes sure that no run is alive, then orders where the tasks go on.

What it promises: either everything is ordered (the startpoints of all tasks touched, and with `reset_state` a deletion of every key of
their changelogs) or nothing is, because it is one transaction of the job's coordinator id. It is safe because it owns the job as a run
does (coordinator/alone.py).

A task carries its order out at its next start (container/starter.py) and commits the order's id with it: once, whatever crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from samzapy.api.errors import StateRefused
from samzapy.coordinator.alone import Alone
from samzapy.coordinator.coordinator_log import Written
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.barrier import BARRIER_KEY, barrier_from_bytes
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint
from samzapy.model.job_model import TaskModel
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import FIRST_RUN_KEY, FirstRun, Ledger, Startpoint, startpoint_key
from samzapy.plan.checkpoint_orders import (
    EARLIEST,
    Choice,
    Step,
    Target,
    chosen_partitions,
    internal_ends,
    new_startpoints,
    refuse_part_of_stages,
    resolve,
    steps,
)
from samzapy.plan.lost_topics import lost_checkpoints
from samzapy.ports import Clock, Consumer, Log, TopicFacts
from samzapy.readers import read_checkpoint, read_to_end


@dataclass(frozen=True, slots=True)
class CheckpointSetOptions:
    """The command's options."""

    target: Target
    choice: Choice = field(default_factory=Choice)
    reset_state: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What that means.

    Attributes:
        steps: every input partition of the tasks touched.
        startpoints: by task.
        deletions: keys to delete, by changelog partition; only with `reset_state`.
        forgotten: with `reset_state`, by task its next checkpoint, without the positions of topics that are no inputs now, and without
            event times: what the state knew of them is deleted.
        left: those positions: (task, partition, next offset).
        taken_over: where state is kept, the changes that its changelogs hold after the checkpoint, and that become part of it: (task, partition,
            deletions, other changes).
        keeps_times: whether event time stays where it is, though records are read again.
        whole: inputs that are read from their starts, whatever the target, because they fill stores that are emptied.
        first_run: to be written in place of the job's, whose checkpoint topic is lost; None: it stands.
    """

    steps: list[Step]
    startpoints: Mapping[str, Startpoint]
    deletions: Mapping[TopicPartition, list[bytes]]
    first_run: FirstRun | None = None
    forgotten: Mapping[str, Checkpoint] = field(default_factory=dict)
    left: tuple[tuple[str, str, int], ...] = ()
    taken_over: tuple[tuple[str, TopicPartition, int, int], ...] = ()
    keeps_times: bool = False
    whole: tuple[str, ...] = ()


class CheckpointSet:
    """One `checkpoint set`.

    Args:
        changelogs: by store, its changelog topic; stores without one are left out.
        is_alive: whether a coordinator answers at a URL for this job.
        internal: the topics between the stages of a program.
        tables: inputs that fill stores with all that they hold: with `reset_state` they are read from their starts, unless one of them is named.
    """

    def __init__(
        self,
        job: Job,
        tasks: Mapping[str, TaskModel],
        changelogs: Mapping[str, str],
        settings: CoordinatorSettings,
        log: Log,
        clock: Clock,
        process: Process,
        is_alive: Callable[[str], bool],
        *,
        internal: Collection[str] = (),
        tables: Collection[str] = (),
    ) -> None:
        self._job = job
        self._internal = internal
        self._tables = tables
        self._tasks = tasks
        self._changelogs = changelogs
        self._log = log
        self._clock = clock
        self._alone = Alone(job, settings, log, clock, process, is_alive, "the offsets were not set")

    def preview(self, options: CheckpointSetOptions, ledger: Ledger) -> Plan:
        """What `execute` would do now. Changes nothing.

        Raises:
            ConfigurationError: it cannot be carried out. StateRefused: the state is not what it should be. LogError.
        """
        return self._plan(options, ledger, lambda: None)

    def execute(self, options: CheckpointSetOptions) -> Plan:
        """Take the job over, write the order, and release the job.

        Raises:
            OwnedElsewhere: another run is alive, or has taken the job over. And as `preview`; nothing is ordered then.
        """
        with self._alone as alone:
            plan = self._plan(options, alone.ledger, alone.stay)
            alone.write(self._records(plan), lambda: self._is_written(plan))
        return plan

    def _records(self, plan: Plan) -> Iterable[Written]:
        """Deletions and startpoints."""
        for partition, keys in plan.deletions.items():
            for key in keys:
                yield partition.topic, key, None, partition.partition
        for task, startpoint in plan.startpoints.items():
            yield self._job.coordinator_topic, startpoint_key(task), startpoint.to_bytes(), 0
        for task, checkpoint in plan.forgotten.items():
            yield self._job.checkpoint_topic, CHECKPOINT_KEY, checkpoint.to_bytes(), self._tasks[task].partition
        if plan.first_run is not None:
            yield self._job.coordinator_topic, FIRST_RUN_KEY, plan.first_run.to_bytes(), 0

    def _is_written(self, plan: Plan) -> bool:
        there = self._alone.read().startpoints
        return all(task in there and there[task].id == self._alone.id for task in plan.startpoints)

    # -- what the order means ------------------------------------------------------------------------------------------------------------

    def _plan(self, options: CheckpointSetOptions, ledger: Ledger, alive: Callable[[], None]) -> Plan:
        """`alive` is called regularly during long reads."""
        if options.reset_state:
            refuse_part_of_stages(options.choice, self._internal)
        partitions = chosen_partitions(self._tasks, options.choice, self._internal)
        admin = self._log.admin()
        facts = admin.topics([*{p.topic for p in partitions}, *self._internal, self._job.checkpoint_topic, *self._changelogs.values()])
        admin.close()
        consumer = self._log.restore_consumer("checkpoint-set")
        try:
            checkpoints = self._checkpoints(consumer, facts)
            whole = self._whole(options, partitions)
            offsets = self._offsets(consumer, options, [p for p in partitions if p.topic not in whole])
            offsets |= {p: b.start for p, b in consumer.bounds_of(p for p in partitions if p.topic in whole).items()}
            between = [p for t in self._tasks.values() for p in t.inputs if p.topic in self._internal and p not in offsets]
            there = consumer.bounds_of(p for p in between if p.topic in facts and p.partition < facts[p.topic].partitions)
            offsets |= internal_ends(self._tasks, there, checkpoints, ledger.startpoints, options.reset_state)
            found = steps(self._tasks, offsets, checkpoints, ledger.startpoints)
            tasks = {step.task for step in found}
            deletions = self._deletions(consumer, facts, tasks, alive) if options.reset_state else {}
            kept = {} if options.reset_state else {task: checkpoints[task] for task in checkpoints.keys() & tasks}
            taken = tuple(self._taken_over(consumer, facts, kept, alive))
            deleting = tasks if options.reset_state else {task for task, _, _, _ in taken}
            topic_ids = {n: f.topic_id for n, f in facts.items()}
            startpoints = new_startpoints(self._alone.id, found, topic_ids, checkpoints, ledger.startpoints, deleting.__contains__)
            startpoints = self._as_checkpoints_are(consumer, facts, startpoints)
            first_run = self._new_first_run(ledger, facts, found)
            if not options.reset_state:
                goes_back = any(s.before is not None and s.after is not None and s.after < s.before for s in found)
                keeps_times = goes_back and any(c.watermarks for c in checkpoints.values())
                return Plan(found, startpoints, deletions, first_run, taken_over=taken, keeps_times=keeps_times)
            known = {task: checkpoints[task] for task in startpoints if task in checkpoints}
            leaving = {task: c for task, c in known.items() if c.left or c.has_times}
            left = tuple((task, partition, mark.next_offset) for task, c in leaving.items() for partition, mark in c.left.items())
            forgotten = {task: c.without_times().advanced(left={}) for task, c in leaving.items()}
            ordered = {t: self._of_inputs(t, s) for t, s in startpoints.items()}
            told = () if options.target.name == EARLIEST else tuple(sorted(whole))
            return Plan(found, ordered, deletions, first_run, forgotten, left, whole=told)
        finally:
            consumer.close()

    def _whole(self, options: CheckpointSetOptions, partitions: Iterable[TopicPartition]) -> set[str]:
        """The topics that are read from their starts, whatever the target."""
        return {p.topic for p in partitions if p.topic in self._tables} if options.reset_state and options.choice.topic is None else set()

    @staticmethod
    def _offsets(consumer: Consumer, options: CheckpointSetOptions, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Where these partitions are to go on."""
        time_ms = options.target.time_ms
        at_time = {} if time_ms is None else {p: consumer.offset_for_time(p, time_ms) for p in partitions}
        return resolve(options.target, consumer.bounds_of(partitions), at_time)

    def _as_checkpoints_are(
        self, consumer: Consumer, facts: Mapping[str, TopicFacts], startpoints: Mapping[str, Startpoint]
    ) -> dict[str, Startpoint]:
        """The startpoints with the log starts of the checkpoint partitions as they are now: what was deleted before, this order knows of."""
        there = facts.get(self._job.checkpoint_topic)
        partitions = {task: TopicPartition(self._job.checkpoint_topic, self._tasks[task].partition) for task in startpoints}
        bounds = consumer.bounds_of(p for p in partitions.values() if there is not None and p.partition < there.partitions)
        return {t: replace(s, checkpoints_from=bounds[partitions[t]].start if partitions[t] in bounds else 0) for t, s in startpoints.items()}

    def _of_inputs(self, task: str, startpoint: Startpoint) -> Startpoint:
        """The startpoint, without offsets that an earlier order (not carried out yet) has for topics that are not inputs any more."""
        offsets = {
            str(partition): startpoint.offsets[str(partition)]
            for partition in self._tasks[task].inputs
            if str(partition) in startpoint.offsets
        }
        return replace(startpoint, offsets=offsets, topic_ids={partition: startpoint.topic_ids[partition] for partition in offsets})

    def _new_first_run(self, ledger: Ledger, facts: Mapping[str, TopicFacts], found: Iterable[Step]) -> FirstRun | None:
        """If the checkpoint topic is not that of the job's first run, its offsets are lost: this order has to set every input."""
        there = facts.get(self._job.checkpoint_topic)
        topic_id = there.topic_id if there else ""
        if ledger.first_run is None or ledger.first_run.checkpoint_topic_id == topic_id:
            return None
        if not {p for t in self._tasks.values() for p in t.inputs} <= {s.topic_partition for s in found if s.chosen}:
            raise lost_checkpoints(self._job, "Leave --topic and --partition out: set all inputs in one command.")
        return replace(ledger.first_run, checkpoint_topic_id=topic_id)

    def _checkpoints(self, consumer: Consumer, facts: Mapping[str, TopicFacts]) -> dict[str, Checkpoint]:
        topic = self._job.checkpoint_topic
        found = {}
        for name, task in self._tasks.items():
            if topic in facts and task.partition < facts[topic].partitions:
                checkpoint = read_checkpoint(consumer, TopicPartition(topic, task.partition), self._clock)
                if checkpoint is not None:
                    found[name] = checkpoint
        return found

    def _deletions(
        self, consumer: Consumer, facts: Mapping[str, TopicFacts], tasks: Iterable[str], alive: Callable[[], None]
    ) -> dict[TopicPartition, list[bytes]]:
        found = {}
        for task in tasks:
            number = self._tasks[task].partition
            for store, topic in self._changelogs.items():
                if topic in facts and number < facts[topic].partitions:
                    partition = TopicPartition(topic, number)
                    found[partition] = self._live_keys(consumer, partition, task, store, alive)
        return found

    def _taken_over(
        self, consumer: Consumer, facts: Mapping[str, TopicFacts], checkpoints: Mapping[str, Checkpoint], alive: Callable[[], None]
    ) -> Iterator[tuple[str, TopicPartition, int, int]]:
        """What `Plan.taken_over` says. An order with `reset_state` that no start has carried out leaves deletions there; lost checkpoints leave others."""
        for task, checkpoint in checkpoints.items():
            for store, topic in self._changelogs.items():
                mark, number = checkpoint.stores.get(store), self._tasks[task].partition
                if mark is None or topic not in facts or facts[topic].topic_id != mark.topic_id or number >= facts[topic].partitions:
                    continue
                partition, deleted, others = TopicPartition(topic, number), 0, 0
                for batch in read_to_end(consumer, partition, self._clock, mark.position):
                    changes = [m.value() is None for m in batch if m.key() not in (None, BARRIER_KEY)]
                    deleted, others = deleted + changes.count(True), others + changes.count(False)
                    alive()
                if deleted or others:
                    yield task, partition, deleted, others

    def _live_keys(self, consumer: Consumer, partition: TopicPartition, task: str, store: str, alive: Callable[[], None]) -> list[bytes]:
        """The keys in a changelog partition.

        Raises:
            StateRefused: it is not this store's.
        """
        keys: dict[bytes, None] = {}
        barrier: bytes | None = None
        for batch in read_to_end(consumer, partition, self._clock):
            for message in batch:
                key, value = message.key(), message.value()
                if key == BARRIER_KEY:
                    barrier = value
                elif key is not None and value is not None:
                    keys[key] = None
                elif key is not None:
                    keys.pop(key, None)
            alive()
        if keys:
            self._refuse_foreign(partition, barrier, task, store)
        return list(keys)

    def _refuse_foreign(self, partition: TopicPartition, barrier: bytes | None, task: str, store: str) -> None:
        """Refuse to delete another job's records: every changelog has a barrier of its owner."""
        if barrier is None:
            raise StateRefused(
                f"{partition} has records, but no sign of job {self._job}; they are not deleted.",
                "Find out which application wrote them.",
            )
        try:
            found = barrier_from_bytes(barrier)
        except ValueError as error:
            raise StateRefused(
                f"{partition}: {error}; another application writes to this topic.",
                "Start the job once: its own barrier replaces that record. Then run this again.",
            ) from None
        if (found.job, found.id, found.task, found.store) != (self._job.name, self._job.id, task, store):
            raise StateRefused(
                f"{partition} belongs to store {found.store!r} of {found.job}-{found.id}, {found.task}; samzapy does not delete it.",
                f"Give store {store!r} its own changelog topic.",
            )
