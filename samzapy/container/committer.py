"""C0 to C6: the only way in which work becomes durable.

The order is the guarantee. State deltas, checkpoints and (in exactly_once) outputs become visible in one Kafka transaction (C4); only
then are the deltas applied to the local stores (C5), so a local store is never ahead of the log. C1 to C6 use what was frozen at the cut
(C0) and nothing else.

    C0  cut: overlays frozen, next offsets taken, together, between two records
    C1  one changelog record per changed key
    C2  flush; any error aborts
    C3  one checkpoint record per changed task
    C4  commit_transaction: the decision
    C5  per store one write batch: deltas + position + sequence
    C6  mirror group offsets, tell metrics
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from samzapy import failpoints
from samzapy.api.errors import InDoubt, LogError, RecordTooLarge, SamzapyError, TransactionAborted, check
from samzapy.container.marks import Marks, Said
from samzapy.container.ownership import Ownership
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.model.checkpoint import CHECKPOINT_KEY, MAX_BYTES, Checkpoint, InputMark, StoreMark
from samzapy.model.event_time import PartitionMark, is_same
from samzapy.model.offsets import TopicPartition, next_offset
from samzapy.ports import Change, Clock, PlainProducer

OVERHEAD_BYTES = 128  # a batch's header and a record's framing, with a margin


class Mirror(Protocol):
    """Where committed positions are mirrored for Kafka's tools."""

    def mirror(self, positions: Mapping[TopicPartition, int]) -> None: ...


@dataclass(slots=True)
class TaskAtCut:
    """A task at the cut: its next offsets and, per store, the changes since the last commit; its event time, as far as it has one; and the
    condemned records of its inputs."""

    task: TaskInstance
    positions: Mapping[TopicPartition, int]
    changes: Mapping[str, Sequence[Change]]
    offsets: dict[str, int]  # by store: where its last changelog record went
    times: Mapping[str, PartitionMark]  # by str(TopicPartition)
    watermarks: Mapping[str, int]
    condemned: Mapping[str, tuple[int, ...]]  # by str(TopicPartition)
    said: Said  # what it tells the following stages
    refills: Mapping[str, Mapping[str, int]]  # by str(TopicPartition): what is read again for stores that began empty


@dataclass(frozen=True, slots=True)
class Done:
    """A commit: the seconds of its parts (C0–C3 send, C4 decide, C5–C6 apply), the changes of stores, and how many tasks had some or moved."""

    seconds: Mapping[str, float]
    changes: int
    tasks: int


class Committer:
    """Commits the tasks of a container.

    Attributes:
        changes: of stores, all that were committed since it was made.
        last: the newest commit.
        consumed: of internal topics, the committed next offsets; never changed, only replaced.
    """

    def __init__(
        self,
        spec: ContainerSpec,
        ownership: Ownership,
        outputs: PlainProducer | None,
        mirror: Mirror,
        clock: Clock,
        run_id: str,
        marks: Marks,
    ) -> None:
        self._spec = spec
        self._own = ownership
        self._outputs = outputs
        self._mirror = mirror
        self._clock = clock
        self._run_id = run_id
        self._marks = marks
        self.commits = self.changes = 0
        self.last_seconds = 0.0
        self.total_seconds = 0.0
        self.last = Done({}, 0, 0)
        self.consumed: Mapping[TopicPartition, int] = {}

    def commit(
        self,
        tasks: Sequence[TaskInstance],
        positions: Mapping[str, Mapping[TopicPartition, int]],
        here: Mapping[str, Mapping[TopicPartition, int]],
    ) -> bool:
        """Commit what changed in these tasks; False: nothing had changed, nothing was done. By task: its next offsets, and how far it has read, which
        is before them in what is read again.

        Raises:
            TransactionAborted: nothing of it will be seen; abort. Fenced, InDoubt: starts over. Superseded: exit.
        """
        started = self._clock.monotonic()
        cuts = [c for c in (self._cut(t, positions.get(t.name, {}), here.get(t.name, {})) for t in tasks) if c is not None]
        if not cuts and not self._own.in_transaction:
            if self._outputs is not None:  # what `window` sent, and nothing else
                self._flush_outputs(self._outputs)
            return False
        failpoints.hit("commit.C0.cut")
        self._marks.send((cut.task, cut.said) for cut in cuts)
        self._send_changes(cuts)
        self._flush()
        failpoints.hit("commit.C2.flushed")
        checkpoints = self._send_checkpoints(cuts)
        failpoints.hit("commit.C4.before")
        sent = self._clock.monotonic()
        clean = self._own.open().commit()  # C4: decided
        decided = self._clock.monotonic()
        failpoints.hit("commit.C4.after")
        try:
            self._apply(cuts, checkpoints)
        except SamzapyError:
            raise
        except Exception as error:  # a full disk, a broken engine: the commit stands, the local store is in doubt
            raise InDoubt(
                f"the commit succeeded, but a local store could not apply it: {error}.", "The local store is restored from the changelog."
            ) from error
        self.commits += 1
        ended = self._clock.monotonic()
        self.last_seconds = ended - started
        self.total_seconds += self.last_seconds
        changes = sum(len(c) for cut in cuts for c in cut.changes.values())
        self.last = Done({"send": sent - started, "decide": decided - sent, "apply": ended - decided}, changes, len(cuts))
        self._own.decided(clean)
        return True

    # -- C0 ----------------------------------------------------------------------------------------------------------------------

    def _cut(self, task: TaskInstance, positions: Mapping[TopicPartition, int], here: Mapping[TopicPartition, int]) -> TaskAtCut | None:
        committed = task.committed
        for store in task.stores.values():
            store.write_held()
        changes = {name: store.freeze() for name, store in task.stores.items() if store.changed}
        moved = any(committed.inputs[str(p)].next_offset != offset for p, offset in positions.items())
        for partition, offset in positions.items():
            check(committed.inputs[str(partition)].next_offset <= offset, f"{task.name} never goes back in {partition}")
        ended = task.has_ended and committed.ended_run_id != self._run_id
        times, watermarks = task.times()
        if task.time is not None and not task.time.is_by_clock:
            moved = moved or watermarks != committed.watermarks or any(not is_same(mark, committed.inputs[p].time) for p, mark in times.items())
        condemned = task.condemned()
        moved = moved or any(offsets != committed.inputs[p].condemned for p, offsets in condemned.items())
        told = self._marks.of(task)
        moved = moved or self._marks.is_news(task, told)
        refills = task.refills(here, positions)
        moved = moved or any(offsets != committed.inputs[p].refill for p, offsets in refills.items())
        return TaskAtCut(task, positions, changes, {}, times, watermarks, condemned, told, refills) if changes or moved or ended else None

    # -- C1, C2 ------------------------------------------------------------------------------------------------------------------

    def _send_changes(self, cuts: Sequence[TaskAtCut]) -> None:
        producer = self._own.open()
        for cut in cuts:
            partition = cut.task.model.partition
            for name, changes in cut.changes.items():
                topic = self._spec.stores[name].changelog
                if topic is None or not changes:
                    continue
                records = self._spec.stores[name].to_send(partition, changes)
                _, value, key, _, timestamp_ms, _ = records.pop()
                producer.send_all(records)
                producer.send(topic, value, key, partition, timestamp_ms, delivered=_note(cut.offsets, name))
            failpoints.hit("commit.C1.sent")

    def _flush(self) -> None:
        if self._outputs is not None:
            self._flush_outputs(self._outputs)
        self._own.open().flush()

    def _flush_outputs(self, outputs: PlainProducer) -> None:
        """at_least_once: an undelivered output is reported once only, so after that nothing is committed until the container has started over."""
        try:
            outputs.flush()
        except TransactionAborted:
            raise
        except LogError as error:
            raise InDoubt(f"outputs were not delivered: {error.message}", error.remedy) from error

    # -- C3 ----------------------------------------------------------------------------------------------------------------------

    def _send_checkpoints(self, cuts: Sequence[TaskAtCut]) -> list[Checkpoint]:
        producer = self._own.open()
        checkpoints = []
        for cut in cuts:
            checkpoint = self._next_checkpoint(cut)
            producer.send(self._spec.job.checkpoint_topic, fitting(checkpoint, self._spec), CHECKPOINT_KEY, cut.task.model.partition)
            checkpoints.append(checkpoint)
            failpoints.hit("commit.C3.sent")
        return checkpoints

    def _next_checkpoint(self, cut: TaskAtCut) -> Checkpoint:
        old = cut.task.committed
        stores = dict(old.stores)
        for name, changes in cut.changes.items():
            if self._spec.stores[name].changelog is None or not changes:
                continue
            check(name in cut.offsets, f"the broker reported the offset of the last change of {name!r} of {cut.task.name}")
            position = next_offset(cut.offsets[name])
            check(position > stores[name].position, f"the changelog of {name!r} of {cut.task.name} only grows")
            mark = stores[name]
            stores[name] = StoreMark(mark.topic, mark.topic_id, mark.changelog_start, position)
        inputs = {
            str(p): InputMark(
                self._spec.inputs[p.topic].topic_id, offset, cut.times.get(str(p)), cut.condemned.get(str(p), ()), cut.refills.get(str(p), {})
            )
            for p, offset in cut.positions.items()
        }
        return old.advanced(
            container=self._spec.number,
            incarnation=self._own.incarnation,
            epoch=self._own.epoch,
            inputs={**old.inputs, **inputs},
            stores=stores,
            ended_run_id=self._run_id if cut.task.has_ended else old.ended_run_id,
            fingerprint=dict(self._spec.fingerprint),
            watermarks=cut.watermarks,
        )

    # -- C5, C6 ------------------------------------------------------------------------------------------------------------------

    def _apply(self, cuts: Sequence[TaskAtCut], checkpoints: Sequence[Checkpoint]) -> None:
        now_ms = self._clock.now_ms()
        mirrored: dict[TopicPartition, int] = {}
        for cut, checkpoint in zip(cuts, checkpoints, strict=True):
            for name, changes in cut.changes.items():
                self.changes += len(changes)
                mark = checkpoint.stores.get(name)
                position = mark.position if mark else 0
                stamp = self._spec.stores[name].stamp(self._spec.job, cut.task.name, position, checkpoint.sequence, now_ms)
                cut.task.stores[name].apply(stamp)
                failpoints.hit("commit.C5.between_stores")
            cut.task.checkpoint, cut.task.said = checkpoint, dict(cut.said)
            cut.task.announced.clear()
            mirrored.update(cut.positions)
        failpoints.hit("commit.C5.applied")
        if self._marks.is_on:
            between = self._spec.between
            self.consumed = {**self.consumed, **{p: at for p, at in mirrored.items() if p.topic in between}}
        self._mirror.mirror(mirrored)
        failpoints.hit("commit.C6.done")


MAX_TOLD = 3


def fitting(checkpoint: Checkpoint, spec: ContainerSpec) -> bytes:
    """The checkpoint's bytes.

    Raises:
        RecordTooLarge: the checkpoint topic does not take them, or no reader would.
    """
    data, topic = checkpoint.to_bytes(), spec.job.checkpoint_topic
    limit = min(spec.max_checkpoint_bytes - OVERHEAD_BYTES, MAX_BYTES)
    if len(data) <= limit:
        return data
    raised = f"With Kafka's own tools, set max.message.bytes={len(data) * 2} for {topic}"
    ways = [raised if len(data) <= MAX_BYTES else f"Give each task fewer input partitions: a checkpoint may have {MAX_BYTES} bytes"]
    gone = sorted({place.rpartition("[")[0] for place in checkpoint.left})
    ways += [f"forget the offsets of removed inputs: `samzapy checkpoint forget JOB.yaml {topic}`" for topic in gone[:MAX_TOLD]]
    raise RecordTooLarge(
        f"{checkpoint.task}: its checkpoint of {len(data)} bytes is more than the {max(limit, 0)} that {topic} takes; it names {len(checkpoint.inputs)} "
        f"input partitions, {len(checkpoint.left)} that are not inputs any more, and {len(checkpoint.stores)} stores.",
        f"{'; or '.join(ways)}.",
    )


def _note(offsets: dict[str, int], name: str):  # type: ignore[no-untyped-def]
    """Keeps the offset that the broker reports for a store's last change."""

    def delivered(offset: int) -> None:
        offsets[name] = offset

    return delivered
