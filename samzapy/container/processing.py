"""What becomes of the records of one poll, and the retries of records that fail. The hot loop itself: hot_loop.py.

Whatever a record put and sent takes effect together when its hook has returned, or not at all. How far the batch is processed is written into the
transaction at every point between two records at which something else may run, because whoever commits there (a duty, a hook's request, a
record that is given up) commits exactly what came before that point.
"""

from __future__ import annotations

from collections.abc import Sequence

from samzapy import failpoints
from samzapy.api.errors import SamzapyError
from samzapy.container.batches import BatchSize, envelope_of, envelopes_of, only_reader, ran
from samzapy.container.cautious_processing import Careful
from samzapy.container.commit_due import RECORD, due
from samzapy.container.commits import Commits
from samzapy.container.failure import is_users, origin_of, refuse_returned
from samzapy.container.forked import end_child
from samzapy.container.hooks import Hooks
from samzapy.container.hot_loop import RELEASE_RECORDS, hot_loop, in_a_row
from samzapy.container.inputs import Inputs
from samzapy.container.on_error import GivenUpRecords
from samzapy.container.pausing import Paused
from samzapy.container.requests import Requests
from samzapy.container.retry_notice import RetryNotice
from samzapy.container.task_instance import TaskInput, TaskInstance
from samzapy.container.tasks import Tasks
from samzapy.container.timers import Schedule
from samzapy.container.tracing import Process, Tracing
from samzapy.container.transaction import Transaction
from samzapy.model.offsets import next_offset
from samzapy.plan.on_error_policy import backoff_s, is_tried_again, retries_after
from samzapy.plan.refused_record_search import Culprit, PoisonSearch
from samzapy.ports import Clock, Message

RELEASE_S = 0.005  # the longest that what a hook sent waits for a slow one after it


class Processing:
    """Processes batches.

    Attributes:
        seen_at: when the loop was last seen not to be inside a hook, in monotonic seconds.
    """

    def __init__(
        self,
        *,
        retries: int,
        inputs: Inputs,
        transaction: Transaction,
        hooks: Hooks,
        search: PoisonSearch,
        commits: Commits,
        tasks: Tasks,
        given_up: GivenUpRecords,
        schedule: Schedule,
        careful: Careful,
        clock: Clock,
        tracing: Tracing,
    ) -> None:
        self._retries = retries
        self._inputs = inputs
        self._transaction = transaction
        self._hooks = hooks
        self._collector = hooks.collector
        self._requests = hooks.requests
        self._search = search
        self._commits = commits
        self._tasks = tasks
        self._given_up = given_up
        self._schedule = schedule
        self._careful = careful
        self._clock = clock
        self._tracing = tracing
        self._size = BatchSize()
        self._retrying = RetryNotice(inputs, clock, retries)
        self._run = hot_loop(hooks.collector, hooks.requests, clock)
        self.seen_at = clock.monotonic()

    def run(self, batch: Sequence[Message]) -> None:
        """Process these records, whatever is due in between included."""
        self._transaction.begin_batch(batch := batch if type(batch) is list else list(batch))
        self._retrying.ended()
        if self._requests.pending:  # windows that became due without a record
            self._between_records(None)
        if batch:
            if self._careful.is_needed(self._clock.monotonic()):
                self._process_carefully(batch)
            else:
                self._process_around(batch, 0, len(batch))
            if why := due(is_search_full=self._search.is_full(self._transaction.records)):
                self._commits.commit(why)
        self._transaction.end_batch()

    def _process_carefully(self, batch: list[Message]) -> None:
        """As `_process_around`, in pieces that the coordinator is told of first; one of suspects is alone in its transaction."""
        for cut in self._careful.cut(batch):
            if cut.is_suspect:
                self._commits.commit(RECORD)
            self._careful.begin(batch, cut)
            try:
                self._process_around(batch, cut.begin, cut.end)
                if cut.is_suspect:
                    self._commits.commit(RECORD)
            except (SamzapyError, Paused):
                self._careful.end(cut)
                raise
            self._careful.end(cut)

    def _process_around(self, batch: list[Message], begin: int, end: int) -> None:
        """As `_process`; but poison records are skipped."""
        process: Process = self._process_batches if self._hooks.take_batches else self._process
        if self._tracing.is_on:
            process = self._tracing.around(process, self._inputs.readers)
        if not self._search.condemned:
            process(batch, begin, end)
            return
        for index, message in enumerate(batch[begin:end], begin):
            culprit = self._search.verdict(origin_of(message), self._transaction.skipped)
            if culprit is not None:
                process(batch, begin, index)
                self._skip_condemned(message, index, culprit)
                begin = index + 1
        process(batch, begin, end)

    def _process(self, batch: list[Message], begin: int, end: int) -> None:
        """The batch's records from `begin` to `end`, by runs of one partition's records: the hot loop takes a run, or as much of it as may be taken
        without a look at what is due."""
        run, now, collector, requests = self._run, self._clock.monotonic, self._collector, self._requests
        index, ran_at = begin, now()
        look_at = min(self._schedule.next_at, ran_at + RELEASE_S)
        while index < end:
            # A partition that several tasks read, or none, goes another way. Whatever came between may have changed who reads.
            first, message = index, batch[index]
            readers = self._inputs.readers.get((message.topic(), message.partition()), ())
            task_input = only_reader(readers, message)
            if task_input is None:
                self._share(readers, message, index)
                index += 1
            else:
                try:
                    index = run(task_input, batch, index, end, look_at)
                except BaseException as error:  # whatever the task or a serde raises is the record's
                    index = run.index
                    if not self._is_records(error):
                        self._transaction.next_index = index  # whoever stops the container commits what came before this record
                        self._undo(task_input)
                        raise
                    self._failed(task_input, batch[index], index, error)
                    index += 1

            # Between two records. What was sent goes to the producer by the batch, or after some milliseconds where hooks are slow; then what
            # hooks asked for and what is due is done, either of which may commit, start or stop tasks.
            ran_at = ran(task_input, batch, first, index, ran_at, now())
            if requests.pending or len(collector.pending) >= RELEASE_RECORDS or ran_at >= look_at:
                self._transaction.next_index = index
                look_at = self._between_records(task_input.task if task_input is not None else None)
                ran_at = self.seen_at
        self._end_piece(end)

    def _process_batches(self, batch: list[Message], begin: int, end: int) -> None:
        """As `_process`, for tasks that define `process_batch`: by the run of a partition's records instead of by the record."""
        now, requests = self._clock.monotonic, self._requests
        look_at = min(self._schedule.next_at, now() + RELEASE_S)
        index = begin
        while index < end:
            message = batch[index]
            readers = self._inputs.readers.get((message.topic(), message.partition()), ())
            task_input = only_reader(readers, message)
            if task_input is None or not task_input.task.takes_batches:
                self._share(readers, message, index)
                index += 1
            else:
                self._transaction.next_index = index
                index += self._process_in_a_row(task_input, in_a_row(batch, index, min(end, index + self._size.limit)), index)

            # As in the hot loop: between two batches, or two records that come alone.
            self.seen_at = now()
            if requests.pending or self.seen_at >= look_at or len(self._collector.pending) >= RELEASE_RECORDS:
                self._transaction.next_index = index
                look_at = self._between_records(task_input.task if task_input is not None else None)
        self._end_piece(end)

    def _process_in_a_row(self, task_input: TaskInput, records: Sequence[Message], index: int) -> int:
        """Give records to a task at once; how many of them are done with. None are if they failed together: nothing of them remains, and they
        come alone next."""
        started = self._clock.monotonic()
        error = self._attempt(task_input, records)
        task_input.ran(self._clock.monotonic() - started, records[0], records[-1])
        if error is None:
            taken = task_input.task.taken(len(records))
            self._size.succeeded(taken, self._clock.monotonic() - started, task_input.task.takes_raw_records)
            return taken
        self._size.failed(len(records))
        if len(records) > 1:
            self._undo(task_input)
            return 0
        self._failed(task_input, records[0], index, error)
        return 1

    def _between_records(self, task: TaskInstance | None) -> float:
        """Between two records: what was sent goes to the producer; what hooks asked for and what is due is done, until nothing asks for more (windows
        fire in units). `task`: whose hook asked; None: of several. Returns when to look again, in monotonic seconds."""
        self._hooks.release()
        while True:
            if self._requests.pending:
                self._tasks.apply_requests(task)
            if self._clock.monotonic() >= self._schedule.next_at or due(is_full=self._commits.is_full()):
                self._schedule.run()
            self.seen_at = self._clock.monotonic()
            if not self._requests.pending:
                return min(self._schedule.next_at, self.seen_at + RELEASE_S)

    def _end_piece(self, end: int) -> None:
        self._transaction.next_index = end
        self._hooks.release()
        failpoints.hit("process.batch")

    def _share(self, readers: Sequence[TaskInput], message: Message, index: int) -> None:
        """A record of a partition that several tasks read (broadcast), or that none reads any more, or that has taken effect before."""
        asked = Requests()
        self._transaction.next_index = index
        try:
            for task_input in readers:
                # While another task retries this record, one may be released or stopped: its next owner has the record.
                reads_it = task_input in self._inputs.readers.get((message.topic(), message.partition()), ())
                if not reads_it or message.offset() < task_input.resume_at or message.offset() in task_input.condemned:
                    continue
                error = self._attempt(task_input, (message,))
                if error is not None:
                    self._failed(task_input, message, index, error)
                if self._requests.shutdown_task:
                    task_input.task.closing = True
                if self._requests.shutdown_all:
                    for task in self._tasks.held.values():
                        task.closing = True
                asked.add(self._requests)
                self._requests.clear()
                # It is done with this record, even if a later one makes the container commit.
                task_input.resume_at = next_offset(message.offset())
                self._transaction.is_shared = True
            self._transaction.is_shared = False  # from now on it counts as a record that is processed
        finally:
            self._requests.add(asked)  # those that are done have asked, even if another is left by a pause

    def _attempt(self, task_input: TaskInput, records: Sequence[Message]) -> BaseException | None:
        """Outside the hot loop: a record, or several for a task that takes batches; what it raised. What it did is kept, or is to be undone.

        Of a record that has taken effect before, only what it puts into stores without a changelog, and into those that began empty since, is kept:
        the rest would count twice, and a request to stop would stop every later run at this record.
        """
        message, task = records[0], task_input.task
        comes_again = message.offset() < task_input.again_until
        try:
            process = task.process if comes_again else task_input.process  # what comes again has moved time before
            if task.takes_batches:
                returned = process(envelopes_of(records, task_input), self._collector, self._requests)
            else:
                returned = process(envelope_of(message, task_input), self._collector, self._requests)
            if returned is not None:
                refuse_returned(task.hook, returned)
        except BaseException as error:  # whatever the task or a serde raises is the record's
            if not self._is_records(error):
                self._undo(task_input)
                raise
            return error
        if self._requests.is_forked:
            end_child(None)
        if comes_again:
            task.keep_again(task_input, message.offset())
            self._collector.drop()
            self._requests.clear()
        else:
            task.keep()
            self._collector.keep()
        task_input.processed += task.counted(len(records))
        return None

    def _is_records(self, error: BaseException) -> bool:
        """Whether what `process` or a serde raised is the record's failure; in a copy of the container that a hook forked, the end."""
        if self._requests.is_forked:
            end_child(error)
        return is_users(error)

    def _failed(self, task_input: TaskInput, message: Message, index: int, error: BaseException) -> None:
        """`process` or a decoding raised: nothing of this record remains; it is tried again, then as `on_error` says."""
        self._transaction.next_index = index
        self._undo(task_input)
        failure: BaseException | None = error
        attempts, retries = 1, retries_after(error, self._retries)
        if isinstance(error, MemoryError):
            self._commits.commit(RECORD)
        while failure is not None and is_tried_again(attempts, retries):
            error = failure
            self._retrying.failed(message, error, attempts)
            self._back_off(backoff_s(attempts))
            if task_input not in self._inputs.readers.get((message.topic(), message.partition()), ()):
                failure = None  # its task was released or stopped meanwhile, and stands before this record
                break
            attempts += 1
            failure = self._attempt(task_input, (message,))
            if failure is not None:
                self._undo(task_input)
        self._retrying.ended()
        if failure is not None:
            self._given_up.apply_on_error(task_input, message, failure, attempts)

    def _undo(self, task_input: TaskInput) -> None:
        task_input.task.undo()
        self._collector.drop()
        self._requests.clear()

    def _back_off(self, seconds: float) -> None:
        """Wait, between two records; what becomes due meanwhile is done."""
        self._hooks.release()
        until = self._clock.monotonic() + seconds
        while (now := self._clock.monotonic()) < until:
            self.seen_at = now
            if now >= self._schedule.next_at:
                self._schedule.run()
            else:
                self._clock.sleep(min(until, self._schedule.next_at) - now)

    def _skip_condemned(self, message: Message, index: int, culprit: Culprit) -> None:
        """A poison record is not processed again; `on_error` applies to it."""
        self._transaction.next_index = index
        self._transaction.skipped.add(culprit.record)
        for task_input in self._inputs.readers.get((message.topic(), message.partition()), ()):
            if message.offset() >= task_input.resume_at and message.offset() not in task_input.condemned:
                self._given_up.apply_on_error(task_input, message, culprit.error, culprit.attempts)
                task_input.condemn(message.offset())
                task_input.resume_at = next_offset(message.offset())  # this task is done with it, even if the next one stops the job here
        self._transaction.next_index = index + 1
