"""The container's inputs: which partitions are read, from where, which are paused, and each task's next offsets.

A task's next offset is never counted per record. It is the consumer's position, which passes markers and aborted records, unless records
were handed out that are not processed yet: then it is the offset of the first of those.

A bootstrap input pauses its task's other inputs until it has been read to the end that it had when the task started. A partition that
several tasks of the container read (broadcast) is paused while any of them must wait.

A bounded run: `advance` marks the partitions that are at their end, and says which tasks have read all of theirs (plan/bounded_run.py); tasks.py
does what follows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from samzapy import failpoints
from samzapy.api.errors import ClusterUnreachable
from samzapy.container.hot_loop import end_of_row
from samzapy.container.input_gates import mark_ends, must_wait, open_gates
from samzapy.container.task_instance import TaskInput, TaskInstance
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.names import CHANGELOG
from samzapy.model.offsets import TopicPartition
from samzapy.model.states import TaskState
from samzapy.plan.bounded_run import has_read_all
from samzapy.plan.open_transaction import OpenTransaction
from samzapy.plan.refused_record_search import Suspects, searched
from samzapy.plan.stalled import Still, confirmed, look, why_it_stands, why_unanswered
from samzapy.ports import Consumer, Log, Message

LOG = logging.getLogger("samzapy.inputs")
STILL_S = 1.5
MAX_NAMED = 10
BUSY_STILL_S = 30.0  # if the client always had records of other partitions meanwhile
SUSPECTS_STAND_S = 10.0
UNREACHABLE_S = 30.0  # until a broker that did not answer is asked again
WAITS_FOR_RESUME = "the job is paused: what the task has to read first is read after `samzapy resume JOB.yaml`"


class Inputs:
    """The partitions that are read, for which tasks, and the consumer that reads them.

    Attributes:
        readers: by (topic, partition), the inputs of the tasks that read it.
        drained: polls so far that brought less than they could.
        all_wait: why no partition is read now, and nothing is processed; "": they are.
    """

    def __init__(self, consumer: Consumer, log: Log, stall_s: float = 60.0) -> None:
        """`stall_s`: a partition that has records and brings none for this many seconds is checked."""
        self._consumer = consumer
        self._log = log
        self.readers: dict[tuple[str, int], list[TaskInput]] = {}
        self._by_partition: dict[TopicPartition, list[TaskInput]] = {}
        self._tasks: dict[str, TaskInstance] = {}  # some may have no partition any more
        self._paused: set[TopicPartition] = set()
        self._ends: dict[tuple[str, int], int] = {}
        self._changelogs: frozenset[str] = frozenset()  # of other jobs
        self._still: dict[TopicPartition, Still] = {}
        self._ask_from = 0.0
        self._waits: dict[TopicPartition, tuple[int, OpenTransaction | None]] = {}  # what is known of a position: why its partition waits there
        self._stall_s = stall_s
        self.drained = 0
        self.all_wait = ""
        self._holds_all = False
        self._suspects: Suspects = {}
        self._suspects_stand: tuple[float, Mapping[TopicPartition, int]] = (0.0, {})
        self._stands: dict[TopicPartition, Still] = {}
        self._said: dict[TopicPartition, tuple[int, str]] = {}  # at which position, and what

    def assign(self, tasks: Iterable[TaskInstance], positions: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        """T6: read the inputs of these tasks from `positions` (by task name); bootstrap gates are set again.

        A partition that another task reads already goes back to the offset where this task begins; the other task goes on where it stands. That is
        not what its checkpoint says: it may be reading a bootstrap input again, as each of these tasks may. Only between two batches.
        """
        start: dict[TopicPartition, int] = {}
        shared = set(self._by_partition)
        stand = self.positions(()) if shared else {}
        tasks = list(tasks)
        # All ends with one call. A gate is the end as it is now, before the first record is handed out; what others have written and not committed yet, and
        # the records after it, are before the gate: where their transaction ends, they are read.
        written = self._written([task_input.partition for task in tasks for task_input in task.inputs if task_input.spec.bootstrap])
        for task in tasks:
            self._tasks[task.name] = task
            for task_input in task.inputs:
                offset = positions[task.name][task_input.partition]
                task_input.begin(offset)
                if task_input.condemned and offset < task_input.again_until:
                    LOG.info("input %s is read again from offset %d, without %s", task_input.partition, offset, _named(task_input.condemned))
                start[task_input.partition] = min(offset, start.get(task_input.partition, offset))
                for other in self._by_partition.get(task_input.partition, ()):
                    if other.task.name in stand:
                        other.resume_at = stand[other.task.name][task_input.partition]
                        start[task_input.partition] = min(start[task_input.partition], other.resume_at)
                self._by_partition.setdefault(task_input.partition, []).append(task_input)
                # If there is nothing to read before the end there is no gate: no record would come to open it. A bounded run reads no
                # further than its own end.
                if task_input.spec.bootstrap:
                    end = written[task_input.partition]
                    end = end if task_input.end is None else min(end, task_input.end)
                    task_input.gate = end if offset < end else None
            task.state = TaskState.BOOTSTRAPPING if any(task_input.gate is not None for task_input in task.inputs) else TaskState.RUNNING

        # Partitions that are assigned already go back by a seek, because a second assignment is refused.
        self._index()
        self._consumer.seek({p: at for p, at in start.items() if p in shared})
        self._consumer.assign({p: at for p, at in start.items() if p not in shared})
        self._paused.difference_update(start)  # neither a new assignment nor a seek is paused
        self._hold()
        if self._holds_all:
            self._say_what_waits()
        failpoints.hit("inputs.assigned")

    def _written(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        with self._log.admin() as admin:
            return admin.high_watermarks(partitions)

    def drop(self, tasks: Iterable[TaskInstance]) -> None:
        """Stop reading for these tasks."""
        names = {t.name for t in tasks}
        self._tasks = {name: task for name, task in self._tasks.items() if name not in names}
        gone = []
        for partition, readers in list(self._by_partition.items()):
            rest = [task_input for task_input in readers if task_input.task.name not in names]
            if rest:
                self._by_partition[partition] = rest
            else:
                del self._by_partition[partition]
                gone.append(partition)
        self._index()
        self._paused.difference_update(gone)
        if gone:
            self._consumer.unassign(gone)

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Message]:
        """The records that came; of a partition with an end (`--until-end`) only those before it; of another job's changelog without that job's
        barriers, which no serde of a task reads."""
        batch = self._consumer.poll(max_records, timeout_s)
        if len(batch) < max_records:
            self.drained += 1
        if self._changelogs:
            batch = [m for m in batch if m.topic() not in self._changelogs or m.key() != BARRIER_KEY]
        if not self._ends or not batch or self._is_before_ends(batch):
            return batch
        return [m for m in batch if m.offset() < self._ends.get((m.topic(), m.partition()), m.offset() + 1)]

    def _is_before_ends(self, batch: Sequence[Message]) -> bool:
        """Whether no record of a batch is at its partition's end or after it: the records of a partition come in order, so the last of each row says it."""
        begin = 0
        while begin < len(batch):
            begin = end_of_row(batch, begin, len(batch))
            last = batch[begin - 1]
            end = self._ends.get((last.topic(), last.partition()))
            if end is not None and last.offset() >= end:
                return False
        return True

    def go_on(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from here on; only between two batches."""
        self._consumer.seek({partition: offset})
        self._paused.discard(partition)  # a seek ends a pause
        self._hold()

    def positions(self, unprocessed: Sequence[Message]) -> dict[str, dict[TopicPartition, int]]:
        """By task: the next offset of each of its inputs, given the records that were handed out but not processed.

        That may be before the committed one, if a partition is read again for a bootstrap.
        """
        at = self._consumer.positions(self._by_partition)
        first: dict[TopicPartition, int] = {}
        for message in unprocessed:
            first.setdefault(TopicPartition(message.topic(), message.partition()), message.offset())
        result: dict[str, dict[TopicPartition, int]] = {name: {} for name in self._tasks}
        for partition, readers in self._by_partition.items():
            here = min(at[partition], first.get(partition, at[partition]))
            for task_input in readers:
                at_least = max(here, task_input.resume_at)
                result.setdefault(task_input.task.name, {})[partition] = (
                    at_least if task_input.end is None else min(at_least, task_input.end)
                )
        return result

    def advance(self, positions: Mapping[str, Mapping[TopicPartition, int]], is_bounded: bool) -> list[TaskInstance]:
        """Open gates and mark ends that were reached; returns the tasks all of whose inputs have ended just now."""
        tasks = self.tasks()
        for task in tasks:
            here = positions.get(task.name, {})
            open_gates(task, here)
            mark_ends(task, here)
        self._hold()
        return [task for task in tasks if not task.ended and has_read_all([i.ended for i in task.inputs], is_bounded)]

    def look_for_open_transactions(self, now: float) -> None:
        """Find out which partitions wait at an open transaction: it hides the records after it, and lag does not show them."""
        at = self._consumer.positions(self._by_partition)
        self._waits = {partition: known for partition, known in self._waits.items() if at.get(partition) == known[0]}
        asked = [partition for partition, position in at.items() if self._may_wait(partition, position, now)]
        for partition, end in self.ends_now(asked, now).items():
            why = None
            if end <= at[partition]:
                is_internal = any(each.spec.between is not None for each in self._by_partition[partition])
                why = OpenTransaction(partition, at[partition], is_jobs_own=is_internal)
                LOG.warning("%s", why)
            self._waits[partition] = at[partition], why

    def why_it_waits(self, task: TaskInstance) -> str | OpenTransaction:
        """Why a task does not get on, as far as its inputs show it: an open transaction, a partition that brings nothing, a record that is tried again."""
        of = [task_input.partition for task_input in task.inputs]
        transaction = next(filter(None, (self._waits[p][1] for p in of if p in self._waits)), None)
        said = next(filter(None, (self._said[p][1] for p in of if p in self._said)), self.all_wait)
        return transaction or said or (searched(self._suspects) if self._suspects else "")

    def _may_wait(self, partition: TopicPartition, position: int, now: float) -> bool:
        """Whether to ask the broker where the partition's readable records end: once for each position."""
        has_none = partition in self._paused or self._consumer.high_watermark(partition) <= position
        # An answer takes up to fetch.wait.max.ms, because it comes after that of the fetch under way. Partitions whose records only wait in
        # the client, after those of others, are not asked about: that would hold those others up.
        still, asks = look(self._still.get(partition), position, has_none, now, self.drained, STILL_S)
        if still is None:
            self._still.pop(partition, None)
            self._waits.pop(partition, None)
            return False
        self._still[partition] = still
        return (asks or now - still.since_s >= BUSY_STILL_S) and partition not in self._waits

    def high_watermark(self, partition: TopicPartition) -> int:
        """As the client knows it (`Consumer.high_watermark`)."""
        return self._consumer.high_watermark(partition)

    def is_paused(self, partition: TopicPartition) -> bool:
        """Whether a partition is held back on purpose."""
        return partition in self._paused

    def ends_now(self, partitions: Sequence[TopicPartition], now: float) -> dict[TopicPartition, int]:
        """Where the readable records of partitions end, as the broker answers now; {}: it does not answer."""
        if now < self._ask_from:
            return {}
        try:
            return {partition: bounds.end for partition, bounds in self._consumer.bounds_of(partitions).items()}
        except ClusterUnreachable:  # then nothing is known; it is asked again, but not at once: each wait for an answer holds all up
            self._ask_from = now + UNREACHABLE_S
            return {}

    def look_for_stalls(self, now: float) -> list[str]:
        """The watchdog: messages about partitions that have records and bring none, although they are not paused.

        The caller then calls `read_again` between two batches, if a new consumer may help.
        """
        reasons = []
        at = self._consumer.positions(self._by_partition)
        for partition, position in at.items():
            still, asks = look(self._stands.get(partition), position, partition in self._paused, now, self.drained, self._stall_s)
            if still is None:
                self._stands.pop(partition, None)
            else:
                self._stands[partition] = still
            if asks:
                why, may_help = self._why_it_stands(partition, position)
                if may_help:
                    self._stands[partition], is_sure = confirmed(self._stands[partition], now, self._stall_s)
                    if not is_sure:
                        continue
                    reasons.append(why)
                elif why and self._said.get(partition) != (position, why):
                    LOG.warning("%s", why)
                if why:
                    self._said[partition] = position, why
        self._said = {partition: said for partition, said in self._said.items() if at.get(partition) == said[0]}
        return reasons

    def _why_it_stands(self, partition: TopicPartition, position: int) -> tuple[str, bool]:
        """"" where it only has no more records; and whether a new consumer may help."""
        try:
            end = self._consumer.bounds(partition).end
        except ClusterUnreachable:
            return why_unanswered(str(partition), position, self._stall_s), False
        why = why_it_stands(str(partition), position, end, self._by_partition[partition][0].end, self._stall_s)
        return why, bool(why)

    def read_again(self, renew: Callable[[Mapping[TopicPartition, int]], None]) -> None:
        """Continue with a new consumer, which `renew` makes, at each task's next offsets; only between two batches."""
        stand = self.positions(())
        start: dict[TopicPartition, int] = {}
        for partition, readers in self._by_partition.items():
            for task_input in readers:
                task_input.resume_at = max(task_input.resume_at, stand[task_input.task.name][partition])
            start[partition] = min(stand[task_input.task.name][partition] for task_input in readers)
        renew(start)
        self._paused = set()
        self._hold()

    def tasks(self) -> list[TaskInstance]:
        """The tasks that are read for here."""
        return [self._tasks[name] for name in sorted(self._tasks)]

    def _index(self) -> None:
        self.readers = {(p.topic, p.partition): readers for p, readers in self._by_partition.items()}
        self._ends = {partition: readers[0].end for partition, readers in self.readers.items() if readers[0].end is not None}
        self._changelogs = frozenset(topic for topic, _ in self.readers if topic.endswith(CHANGELOG))

    def hold_all(self, is_on: bool) -> None:
        """Whether no partition is read at all."""
        self._holds_all = is_on
        self._hold()
        self._say_what_waits()
        self._stands.clear()  # while all is held nobody looks at them, and they stand still
        self._still.clear()

    def _say_what_waits(self) -> None:
        for task in self.tasks():
            if task.state == TaskState.BOOTSTRAPPING:
                task.reason = WAITS_FOR_RESUME if self._holds_all else ""

    def read_only(self, suspects: Suspects) -> None:
        """While Kafka's refusal of a transaction is traced to a record, nothing but the records that it held is read; {}: everything is."""
        if suspects != self._suspects:
            self._suspects = dict(suspects)
            self._suspects_stand = 0.0, {}
            self._hold()

    def do_suspects_stand(self, now: float) -> bool:
        """Whether none of them was read for a while, as if they were not there any more."""
        at = self._consumer.positions(p for p in self._suspects if p in self._by_partition)
        if self._suspects_stand[1] != at or not self._suspects_stand[0]:
            self._suspects_stand = now, at
        return now - self._suspects_stand[0] >= SUSPECTS_STAND_S

    def _hold(self) -> None:
        """Pause partitions that some task must not read yet, those that all tasks have read to their ends, and those without a suspect while there are
        some; resume the others."""
        held = {p for p, readers in self._by_partition.items() if self._holds_all or any(map(must_wait, readers)) or all(one.ended for one in readers)}
        if not self._suspects.keys().isdisjoint(self._by_partition):
            held |= {p for p, readers in self._by_partition.items() if p not in self._suspects and all(one.gate is None for one in readers)}
        pause, resume = held - self._paused, self._paused - held
        if pause:
            self._consumer.pause(pause)
        if resume:
            self._consumer.resume(resume)
        self._paused = held


def _named(offsets: Collection[int]) -> str:
    shown = ", ".join(str(offset) for offset in sorted(offsets)[:MAX_NAMED])
    more = "" if len(offsets) <= MAX_NAMED else f" and {len(offsets) - MAX_NAMED} more"
    return f"the records at these offsets, which ended their container or which Kafka refused before: {shown}{more}"
