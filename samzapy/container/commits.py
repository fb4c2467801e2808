"""A commit as the run loop makes it: at a point between two records, of everything that came before it.

How a commit is written is the committer's. Here is what surrounds it: what hooks sent is handed over first, where each task stands is asked of
the inputs, and afterwards whoever counts by commits is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from samzapy.api.errors import SamzapyError
from samzapy.container import facts
from samzapy.container.commit_due import COMMIT, is_full
from samzapy.container.committer import Committer
from samzapy.container.growth import Growth
from samzapy.container.hooks import Hooks
from samzapy.container.inputs import Inputs
from samzapy.container.slow_commits import SlowCommits
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.container.timers import Schedule
from samzapy.container.transaction import Transaction
from samzapy.model.offsets import TopicPartition
from samzapy.plan.refused_record_search import PoisonSearch
from samzapy.ports import Clock

Positions = Mapping[str, Mapping[TopicPartition, int]]


def passed(tasks: Sequence[TaskInstance], positions: Positions) -> dict[TopicPartition, int]:
    """The next offset of each input partition that one of the tasks has read beyond its checkpoint."""
    ends: dict[TopicPartition, int] = {}
    for task in tasks:
        for partition, at in positions[task.name].items():
            if at > task.committed.inputs[str(partition)].next_offset:
                ends[partition] = max(at, ends.get(partition, at))
    return ends


class Commits:
    """Commits the tasks that the container reads for.

    Attributes:
        slow: tells people that brokers are.
        done: records that were processed, skipped, set aside, too late for a window and sent with the commits so far, whatever became of the tasks since.
    """

    def __init__(
        self,
        *,
        transaction: Transaction,
        inputs: Inputs,
        hooks: Hooks,
        committer: Committer,
        growth: Growth,
        search: PoisonSearch,
        schedule: Schedule,
        tasks: Mapping[str, TaskInstance],
        spec: ContainerSpec,
        told: facts.Facts,
        clock: Clock,
    ) -> None:
        self._transaction = transaction
        self._inputs = inputs
        self._hooks = hooks
        self._committer = committer
        self._growth = growth
        self._search = search
        self._schedule = schedule
        self._tasks = tasks
        self._max_uncommitted_bytes = spec.max_uncommitted_bytes
        self._facts = told
        self._clock = clock
        self.slow = SlowCommits(spec, search, clock)
        self.done: Counter[str] = Counter()
        self._sent = 0  # until the last transaction was decided
        self._is_sent_at_once = not spec.exactly_once
        self.last_at = float("-inf")  # when the last one was made, in monotonic seconds

    def commit(self, why: str, is_last: bool = False) -> None:
        """Commit now, between two records. `why`: what people are told. `is_last`: no other follows.

        Raises:
            StateMismatch, StateRefused: an input of a job with state has grown, or a topic was made again; nothing more is committed.
        """
        before = self._facts.loop.to(facts.COMMIT)
        try:
            self._commit(why, is_last)
        finally:
            self._facts.loop.to(before)

    def commit_while_searching(self, why: str) -> None:
        """Commit if a poison record is searched for: what hooks other than `process` do must not be blamed on a record."""
        if self._search.is_on:
            self.commit(why)

    def _commit(self, why: str, is_last: bool) -> None:
        began, tasks = self._clock.monotonic(), self._inputs.tasks()
        for task in tasks:
            self._hooks.before_commit(task)
        self._hooks.release()

        # A partition that is read again for a bootstrap stands before what its task has committed; a checkpoint never goes back.
        here = self._inputs.positions(self._transaction.unprocessed)
        positions = {t.name: {p: max(at, t.committed.inputs[str(p)].next_offset) for p, at in here[t.name].items()} for t in tasks}

        # Records of an input that has grown may be in the wrong task, and those of a topic that was made again are of another topic: look before
        # they are committed.
        read = {p: at for places in positions.values() for p, at in places.items()}
        committed = {task_input.partition: task_input.committed_offset for t in tasks for task_input in t.inputs}
        self._growth.check(read, committed, must_look=is_last)

        # What is read again for a bootstrap is no progress: the search for a poison record would never end.
        ends = passed(tasks, positions)
        if self._committed(tasks, positions, here):
            self._tell(why, tasks)
            if ends:
                contents = self._transaction.contents(ends)
                self._search.committed(contents)
                self._inputs.read_only(self._search.suspects)
                self.slow.look(contents)
            for task in tasks:
                self.done.update(task.counts_stand())
            self._count_sent()
        self._transaction.committed()
        self.last_at = self._clock.monotonic()
        self._schedule.done_since(COMMIT, began)

    def count_what_is_dropped(self) -> None:
        """The transaction is aborted or given up: nobody will see what was sent in it; with at_least_once, what was sent outside of it."""
        if self._is_sent_at_once:
            self._count_sent()
        self._sent = self._hooks.collector.sent.total()

    def _count_sent(self) -> None:
        before, self._sent = self._sent, self._hooks.collector.sent.total()
        self.done["sent"] += self._sent - before

    def _committed(self, tasks: Sequence[TaskInstance], positions: Positions, here: Positions) -> bool:
        """Let the committer do it, and note how long the brokers took, also where they did not bring it to an end."""
        began = self._clock.monotonic()
        try:
            has_changed = self._committer.commit(tasks, positions, here)
        except SamzapyError:
            if self._transaction.is_open:  # else it is decided, and a new producer is waited for
                self._transaction.waited_s += self._clock.monotonic() - began
            raise
        if has_changed:
            self._transaction.waited_s += self._committer.last.seconds["send"] + self._committer.last.seconds["decide"]
        return has_changed

    def _tell(self, why: str, tasks: Sequence[TaskInstance]) -> None:
        """What became visible with this commit: how old the newest and the oldest record of each task were."""
        now_ms, ages_s = self._clock.now_ms(), []
        for task in tasks:
            first = [i.first_ms for i in task.inputs if i.first_ms]
            if first:
                ages_s += [max(0, now_ms - max(i.last_ms for i in task.inputs)) / 1000, max(0, now_ms - min(first)) / 1000]
            for task_input in task.inputs:
                task_input.first_ms = 0
        done = self._committer.last
        self._facts.committed(why, done.seconds, done.changes, done.tasks, ages_s)

    def is_full(self) -> bool:
        """Whether so much waits for a commit that it must not wait longer."""
        return is_full(self._tasks.values(), self._transaction.sent_bytes, self._max_uncommitted_bytes)
