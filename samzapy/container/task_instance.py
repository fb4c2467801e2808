"""One task of a container: the user's object, its stores, its checkpoint, and its inputs.

A `TaskInput` is one input partition as the run loop sees it: everything that a record needs is bound in it once, so that nothing is looked up
per record.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from samzapy.api.envelope import SystemStreamPartition
from samzapy.api.task import StreamTask
from samzapy.container.failure import PROGRAM
from samzapy.container.spec import InputSpec
from samzapy.container.task_metrics import OperatorCounts, TaskMetrics
from samzapy.container.task_watermark import TaskTime, TimedPartition
from samzapy.model.checkpoint import MAX_CONDEMNED, Checkpoint
from samzapy.model.event_time import PartitionMark
from samzapy.model.job_model import TaskModel
from samzapy.model.marks import Mark
from samzapy.model.names import KAFKA
from samzapy.model.offsets import TopicPartition
from samzapy.model.states import TaskState
from samzapy.plan.open_transaction import OpenTransaction, reason_json
from samzapy.plan.refill import refill_at_commit
from samzapy.ports import Message, TaskStore

KEYS = 200  # of records, by which the share of one key is estimated


@dataclass(slots=True)
class Restored:
    """How a store was restored, or is being: `source` local | changelog | empty, the rule that decided, records read, seconds so far, and how
    many offsets of the changelog are still to be read (0: done) of how many."""

    source: str
    reason: str
    records: int
    seconds: float
    remaining: int = 0
    needed: int = 0

    def to_json(self) -> dict[str, object]:
        return {
            "source": self.source, "reason": self.reason, "records": self.records, "seconds": round(self.seconds, 4),
            "remaining": self.remaining, "needed": self.needed,
        }  # fmt: skip


class TaskInput:
    """One input partition of one task.

    Attributes:
        gate: the next offset at which a bootstrap input counts as caught up; None where that is no matter (any more).
        end: where `--until-end` ends it; None otherwise.
        resume_at: where this task began to read, or how far it is in a record that several tasks read; a shared partition may be read from
            further back for another task.
        busy_s: how long its records have been processed, in seconds.
        keys: the hashes of keys of some of its records, of runs of a partition's records the first.
        first_ms, last_ms: timestamps of the first record since the last commit, and of the last one, about: of runs of a partition's records the
            first and the last; 0: none.
        again_until: records before this offset have taken effect once, and come again because no changelog keeps what they put somewhere, or for
            stores that began empty.
        refill: by such store, the offset from which on it needs the records that come again (`InputMark.refill`).
        condemned: offsets of a bootstrap input's records that are not processed when they come again (`InputMark.condemned`).
        watermark: its event time; None: the input has none.
        process: the task object's `process`, with event time where the input has it.
    """

    __slots__ = (
        "_counted",
        "again_until",
        "busy_s",
        "condemned",
        "dead_letters",
        "decode_key",
        "decode_value",
        "end",
        "ended",
        "first_ms",
        "gate",
        "keys",
        "last_ms",
        "partition",
        "process",
        "processed",
        "refill",
        "resume_at",
        "skipped",
        "spec",
        "ssp",
        "stores",
        "task",
        "watermark",
    )

    def __init__(self, partition: TopicPartition, spec: InputSpec, task: TaskInstance, end: int | None) -> None:
        self.partition = partition
        self.spec = spec
        self.task = task
        self.ssp = SystemStreamPartition(KAFKA, partition.topic, partition.partition)
        self.decode_key: Callable[[bytes], Any] = spec.key_serde.decode
        self.decode_value: Callable[[bytes], Any] = spec.value_serde.decode
        self.stores = tuple(task.stores.values())
        self.gate: int | None = None
        self.end = end
        self.ended = False
        self.resume_at = 0
        self.again_until = 0
        self.condemned: set[int] = set()
        self.refill: Mapping[str, int] = {}
        self.watermark: TimedPartition | None = None
        self.process: Callable[[Any, Any, Any], Any]
        self.processed = 0
        self.skipped = 0
        self.dead_letters = 0
        self.busy_s = 0.0
        self.first_ms = self.last_ms = 0
        self.keys: deque[int] = deque(maxlen=KEYS)
        self._counted = (0, 0, 0)

    def begin(self, offset: int) -> None:
        """Its task begins at its checkpoint and reads from this offset. Records before it are read for other tasks."""
        self.resume_at = offset
        self.again_until = self.committed_offset
        mark = self.task.committed.inputs[str(self.partition)]
        self.condemned, self.refill = set(mark.condemned), mark.refill
        self.ended = False

    def condemn(self, offset: int) -> None:
        """`on_error` was applied to the record without giving it to the task: where the input is read again, that is remembered."""
        if self.spec.bootstrap:
            self.condemned.add(offset)

    def ran(self, seconds: float, first: Message, last: Message) -> None:
        """Records of this partition that came in a row were processed in so many seconds."""
        self.busy_s += seconds
        self.first_ms = self.first_ms or first.timestamp()[1]
        self.last_ms = last.timestamp()[1]
        key = first.key()
        if key is not None:
            self.keys.append(hash(key))

    @property
    def hottest(self) -> float:
        """The share of its most frequent key among those looked at; 0.0 while they are few."""
        return Counter(self.keys).most_common(1)[0][1] / KEYS if len(self.keys) == KEYS else 0.0

    @property
    def committed_offset(self) -> int:
        """Where its task's checkpoint says that it stands; 0 without one."""
        mark = self.task.checkpoint.inputs.get(str(self.partition)) if self.task.checkpoint else None
        return mark.next_offset if mark else 0

    def counts_stand(self) -> dict[str, int]:
        """What was counted is committed. Returns what came since the last commit."""
        before, self._counted = self._counted, (self.processed, self.skipped, self.dead_letters)
        return {"processed": self.processed - before[0], "skipped": self.skipped - before[1], "dead_letters": self.dead_letters - before[2]}

    def counts_go_back(self) -> None:
        """What was counted since the last commit was undone, and will be counted again."""
        self.processed, self.skipped, self.dead_letters = self._counted


@dataclass(kw_only=True, slots=True)
class TaskInstance:
    """A task as the container holds it."""

    model: TaskModel
    stores: Mapping[str, TaskStore]
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    scratch: frozenset[str] = frozenset()  # its stores without a changelog
    state: TaskState = TaskState.WAITING
    reason: str | OpenTransaction = ""  # why it does not get on: while it is restored `Barriers` says so, from then on `Duties`
    checkpoint: Checkpoint | None = None
    user: StreamTask | None = None
    inputs: list[TaskInput] = field(default_factory=list)
    restored: dict[str, Restored] = field(default_factory=dict)
    ended: bool = False  # end_of_stream has returned, or it asked for shutdown(); its checkpoint carries the run's id
    closing: bool = False  # shutdown was asked for: it counts as ended in every commit from now on, while others still take the record
    takes_batches: bool = False  # its class defines process_batch
    time: TaskTime | None = None  # None: no input has a time, and none is an internal topic
    said: dict[str, Mark] = field(default_factory=dict)  # by internal topic, what its readers know of this task: as committed, since it started
    announced: set[str] = field(default_factory=set)  # internal topics whose readers were told in the open transaction that it is idle no more
    takes_raw_records: bool = False  # its process_batch takes records that are not decoded: a program of streams
    counts: OperatorCounts = field(default_factory=OperatorCounts)
    late_stood: int = 0  # records that were too late for a window of its program, as committed
    unread_deletions: dict[str, dict[str, str]] = field(default_factory=dict)  # by str(TopicPartition), what is told (container/unread_deletions.py)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def committed(self) -> Checkpoint:
        """The checkpoint; there always is one once the task has started."""
        if self.checkpoint is None:
            raise AssertionError(f"{self.name} has no checkpoint yet")
        return self.checkpoint

    @property
    def has_ended(self) -> bool:
        """Whether its checkpoint says that it is not to run again in this run."""
        return self.ended or self.closing

    @property
    def live(self) -> bool:
        """Whether hooks may be called."""
        return self.state in (TaskState.RUNNING, TaskState.BOOTSTRAPPING) and not self.ended

    @property
    def process(self) -> Callable[[Any, Any, Any], Any]:
        """The hook of its object that records are given to."""
        if self.user is None:
            raise AssertionError(f"{self.name} has no task object yet")
        return self.user.process_batch if self.takes_batches else self.user.process

    @property
    def hook(self) -> str:
        """Which hook its records are given to."""
        if self.takes_raw_records:
            at = getattr(self.user, "failed_at", "")
            return f"{PROGRAM}, in {at}," if at else PROGRAM
        return "process_batch" if self.takes_batches else "process"

    @property
    def is_due(self) -> bool:
        """Whether its program has windows to fire."""
        return self.takes_raw_records and not self.ended and bool(getattr(self.user, "is_due", False))

    def taken(self, records: int) -> int:
        """How many of the records that were just given to it are done with: a program stops where a window is due."""
        return int(getattr(self.user, "taken", records)) if self.takes_raw_records else records

    def counted(self, records: int) -> int:
        """How many of these were records: a program is given marks of internal topics, too."""
        return self.taken(records) - (int(getattr(self.user, "marks", 0)) if self.takes_raw_records else 0)

    def times(self) -> tuple[dict[str, PartitionMark], dict[str, int]]:
        """For its checkpoint: by str(TopicPartition) the time of its inputs that have one, and by stage its watermark, once there is one."""
        if self.time is None:
            return {}, {}
        return {str(i.partition): i.watermark.mark for i in self.inputs if i.watermark is not None}, self.time.kept

    def counts_stand(self) -> Counter[str]:
        """What was counted is committed. Returns what came since the last commit."""
        self.counts.stand()
        done: Counter[str] = Counter()
        for task_input in self.inputs:
            done.update(task_input.counts_stand())
        if self.takes_raw_records and self.user is not None:
            before, self.late_stood = self.late_stood, sum(self.user.late.values())  # type: ignore[attr-defined]
            done["too_late"] = self.late_stood - before
        return done

    def condemned(self) -> dict[str, tuple[int, ...]]:
        """For its checkpoint: by str(TopicPartition) the condemned records, where there are any."""
        return {str(i.partition): tuple(sorted(i.condemned)[-MAX_CONDEMNED:]) for i in self.inputs if i.condemned}

    def keep(self) -> None:
        for store in self.stores.values():
            store.keep()
        if self.takes_raw_records:
            self.user.keep()  # type: ignore[union-attr]  # a program's

    @property
    def held(self) -> int:
        """How many sums of its program wait for a commit, of all tasks of the container."""
        return int(getattr(self.user, "held", 0)) if self.takes_raw_records else 0

    def refills(self, here: Mapping[TopicPartition, int], positions: Mapping[TopicPartition, int]) -> dict[str, Mapping[str, int]]:
        """For its checkpoint: by str(TopicPartition) what is still read again for stores that began empty, where there was any. `here`: how far each input
        was read, `positions`: its next offset."""
        begun = [i for i in self.inputs if i.refill]
        return {str(i.partition): refill_at_commit(i.refill, here[i.partition], positions[i.partition]) for i in begun}

    def keep_again(self, task_input: TaskInput, offset: int) -> None:
        """As `keep` for a record that comes again: for stores without a changelog, and those that need it; the writes to others are undone."""
        for name, store in self.stores.items():
            if name in self.scratch or task_input.refill.get(name, task_input.again_until) <= offset:
                store.keep()
            else:
                store.undo()
        if self.takes_raw_records:
            self.user.undo()  # type: ignore[union-attr]  # a program's

    def undo(self) -> None:
        for store in self.stores.values():
            store.undo()
        if self.takes_raw_records:
            self.user.undo()  # type: ignore[union-attr]  # a program's

    def status(self, positions: Mapping[TopicPartition, int], now_s: float = 0.0, now_ms: int = 0) -> dict[str, Any]:
        """Its part of the container's report, at this time by both clocks."""
        return {
            "name": self.name,
            "state": self.state,
            **reason_json(self.reason),
            "partitions": [str(task_input.ssp) for task_input in self.inputs],
            "positions": {str(p): offset for p, offset in positions.items()},
            "processed": sum(task_input.processed for task_input in self.inputs),
            "skipped": sum(task_input.skipped for task_input in self.inputs),
            "dead_letters": sum(task_input.dead_letters for task_input in self.inputs),
            "sequence": self.checkpoint.sequence if self.checkpoint else -1,
            "stores": {name: {"restore": r.to_json()} for name, r in self.restored.items()},
            "metrics": self.metrics.snapshot(),
            **({"operators": self.user.operators()} if self.takes_raw_records and self.user is not None else {}),  # type: ignore[attr-defined]
            **({} if self.time is None else {"time": self.time.status(now_s, now_ms)}),
            "busy_s": round(sum(task_input.busy_s for task_input in self.inputs), 4),
            "event_ms": max((task_input.last_ms for task_input in self.inputs), default=0),
            "unread_deletions": list(self.unread_deletions.values()),
            "hottest": max((task_input.hottest for task_input in self.inputs), default=0.0),
        }
