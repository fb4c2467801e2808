"""What becomes of the records of one poll: the hot loop, and what `on_error` says of records that fail.

Whatever a record put and sent takes effect together when its hook has returned, or not at all. How far the batch is processed is known at
every point between two records, because whoever commits there (a duty, a hook's request, a record that is given up) commits exactly what lies
before it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NoReturn, Protocol

from samzapy import failpoints
from samzapy.api.envelope import IncomingMessageEnvelope
from samzapy.api.errors import RecordTooLarge, SamzapyError
from samzapy.container.careful import Careful
from samzapy.container.collector import Collector
from samzapy.container.failure import (
    DEAD_LETTER,
    FAIL,
    backoff_s,
    brief,
    dead_letter_of,
    is_told,
    is_users,
    named,
    origin_of,
    refuse_returned,
    where_of,
)
from samzapy.container.forked import end_child
from samzapy.container.inputs import Inputs
from samzapy.container.ownership import Ownership
from samzapy.container.requests import Requests
from samzapy.container.search import Culprit, Search
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import Lane, TaskInstance
from samzapy.model.offsets import next_offset
from samzapy.ports import Clock, Message, PlainProducer

LOG = logging.getLogger("samzapy.container")
RELEASE_S = 0.005  # the longest that what a hook sent waits for a slow one after it
RELEASE_RECORDS = 1000


class Loop(Protocol):
    """What the processing of a batch needs of the loop around it, between two records.

    Attributes:
        next_duty: when something is due again, in monotonic seconds.
        seen_at: when the loop was last seen not to be inside a hook.
    """

    next_duty: float
    seen_at: float

    def duties(self) -> None: ...

    def answer(self, task: TaskInstance | None) -> None: ...

    def commit(self) -> None: ...

    def is_full(self) -> bool: ...


class Processing:
    """The batch under way, and how much of it and of what came before is in the open transaction.

    Args:
        loop: is called between two records only.
        outputs: of `at_least_once`; None: sends go into the container's transaction.
    """

    def __init__(
        self,
        loop: Loop,
        spec: ContainerSpec,
        own: Ownership,
        inputs: Inputs,
        collector: Collector,
        requests: Requests,
        search: Search,
        outputs: PlainProducer | None,
        careful: Careful,
        clock: Clock,
    ) -> None:
        self._loop = loop
        self._careful = careful
        self._spec = spec
        self._own = own
        self._inputs = inputs
        self._collector = collector
        self._requests = requests
        self._search = search
        self._outputs = outputs
        self._clock = clock
        self._batch: Sequence[Message] = ()
        self._index = 0  # of the first record of the batch that is not processed
        self._held = 0  # records in the transaction that came before this batch
        self._held_from = 0  # of the first record of the batch that is in the transaction

    @property
    def held(self) -> int:
        """How many records' effects are in the transaction, at a point between two records."""
        return self._held + max(0, self._index - self._held_from)

    @property
    def last(self) -> Message | None:
        """The last record of this batch whose effects are in the transaction."""
        return self._batch[self._index - 1] if self._index > self._held_from else None

    @property
    def unprocessed(self) -> Sequence[Message]:
        """The records of the batch that are still to come."""
        return self._batch[self._index :]

    def decided(self) -> None:
        """The transaction is committed: what comes now is in the next one."""
        self._held, self._held_from = 0, self._index

    def forget(self) -> None:
        """The batch is given up; nothing is in a transaction."""
        self._batch, self._index = (), 0
        self._held = self._held_from = 0

    def run(self, batch: Sequence[Message]) -> None:
        """Process these records, whatever is due in between included."""
        self._batch, self._index = batch, 0
        if batch:
            if self._careful.is_needed(self._clock.monotonic()):
                self._process_carefully(batch)
            else:
                self._process_around(batch, 0, len(batch))
            if self._search.is_full(self.held):
                self._loop.commit()
        self._held = self.held
        self._batch, self._index, self._held_from = (), 0, 0

    def _process_carefully(self, batch: Sequence[Message]) -> None:
        """As `_process_around`, in pieces that the coordinator is told of first; one of suspects is alone in its transaction."""
        for cut in self._careful.cut(batch):
            if cut.is_suspect:
                self._loop.commit()
            self._careful.begin(batch, cut)
            try:
                self._process_around(batch, cut.begin, cut.end)
                if cut.is_suspect:
                    self._loop.commit()
            except SamzapyError:
                self._careful.end(cut)
                raise
            self._careful.end(cut)

    def _process_around(self, batch: Sequence[Message], begin: int, end: int) -> None:
        """As `_process`; but records that no transaction could be committed with, or that ended their container, are passed by."""
        if not self._search.condemned:
            self._process(batch, begin, end)
            return
        for index, message in enumerate(batch[begin:end], begin):
            culprit = self._search.meets(origin_of(message))
            if culprit is not None:
                self._process(batch, begin, index)
                self._pass_by(message, index, culprit)
                begin = index + 1
        self._process(batch, begin, end)

    def _process(self, batch: Sequence[Message], begin: int, end: int) -> None:
        """The hot loop, over the batch's records from `begin` to `end`. A lane is looked up where the partition changes; nothing else is
        looked up per record. What hooks send is handed to the producer by the batch, or after some milliseconds where hooks are slow."""
        now, collector, requests = self._clock.monotonic, self._collector, self._requests
        pending, envelope_of = collector.pending, IncomingMessageEnvelope
        lanes: Sequence[Lane] = ()
        lane: Lane | None = None
        topic, partition, kept = "", -1, 0
        look_at = min(self._loop.next_duty, now() + RELEASE_S)
        for index, message in enumerate(batch[begin:end], begin):
            if message.partition() != partition or message.topic() != topic:
                topic, partition = message.topic(), message.partition()
                lanes = self._inputs.lanes.get((topic, partition), ())
                lane = lanes[0] if len(lanes) == 1 and message.offset() >= lanes[0].resume_at else None
                if lane is not None:
                    process, ssp = lane.task.user.process, lane.ssp  # type: ignore[union-attr]
                    decode_key, decode_value = lane.decode_key, lane.decode_value
                    keeps = [store.keep for store in lane.stores]
            if lane is None:
                self._share(lanes, message, index)
            else:
                try:
                    key, value = message.key(), message.value()
                    returned = process(
                        envelope_of(None if key is None else decode_key(key), None if value is None else decode_value(value), ssp, message),
                        collector,
                        requests,
                    )
                    if returned is not None:
                        refuse_returned("process", returned)
                    for keep in keeps:
                        keep()
                    if len(pending) != kept:
                        kept = collector.keep()
                    lane.processed += 1
                except BaseException as error:  # whatever the task or a serde raises is the record's
                    if not self._is_records(error):
                        self._index = index  # whoever stops the container commits what came before this record
                        self._undo(lane)
                        raise
                    self._failed(lane, message, index, error)
                    kept, topic = len(pending), ""  # what waited may be gone, lanes may have changed
            if requests.pending or kept >= RELEASE_RECORDS or now() >= look_at:
                self._index = index + 1
                self.release()
                kept = 0
                if requests.pending:
                    self._loop.answer(lane.task if lane is not None else None)
                if now() >= self._loop.next_duty or self._loop.is_full():
                    self._loop.duties()
                topic = ""  # lanes may have changed
                self._loop.seen_at = now()
                look_at = min(self._loop.next_duty, self._loop.seen_at + RELEASE_S)
        self._index = end
        self.release()
        failpoints.hit("process.batch")

    def _share(self, lanes: Sequence[Lane], message: Message, index: int) -> None:
        """A record of a partition that several tasks read (broadcast), or that none reads any more."""
        asked = Requests()
        self._index = index
        for lane in lanes:
            if message.offset() < lane.resume_at:
                continue
            error = self._attempt(lane, message)
            if error is not None:
                self._failed(lane, message, index, error)
            if self._requests.shutdown_task:
                lane.task.closing = True
            asked.add(self._requests)
            self._requests.clear()
            lane.resume_at = next_offset(message.offset())  # it stands behind this record, even if a later one makes the container commit
        self._requests.add(asked)

    def _attempt(self, lane: Lane, message: Message) -> BaseException | None:
        """A record outside the hot loop; what it raised."""
        try:
            key, value = message.key(), message.value()
            envelope = IncomingMessageEnvelope(
                None if key is None else lane.decode_key(key), None if value is None else lane.decode_value(value), lane.ssp, message
            )
            returned = lane.task.user.process(envelope, self._collector, self._requests)  # type: ignore[union-attr]
            if returned is not None:
                refuse_returned("process", returned)
        except BaseException as error:  # whatever the task or a serde raises is the record's
            if not self._is_records(error):
                self._undo(lane)
                raise
            return error
        if self._requests.is_forked:
            end_child(None)
        lane.task.keep()
        self._collector.keep()
        lane.processed += 1
        return None

    def release(self) -> None:
        """Hand what hooks sent to the producer that the guarantee asks for."""
        if self._requests.is_forked:
            end_child(None)
        if self._collector.pending:
            failpoints.hit("release.before")
            self._collector.release(self._own.open().send_all if self._outputs is None else self._outputs.send_all)

    def _is_records(self, error: BaseException) -> bool:
        """Whether what `process` or a serde raised is the record's failure; in a copy of the container that a hook forked, the end."""
        if self._requests.is_forked:
            end_child(error)
        return is_users(error)

    def _failed(self, lane: Lane, message: Message, index: int, error: BaseException) -> None:
        """`process` or a decoding raised: nothing of this record remains; it is tried again, then as `on_error` says."""
        self._index = index
        self._undo(lane)
        failure: BaseException | None = error
        attempts = 1
        retries = self._spec.retries
        if isinstance(error, MemoryError):
            self._loop.commit()  # what is not committed takes memory
            retries += 1
        while failure is not None and attempts <= retries:
            error = failure
            self._back_off(backoff_s(attempts))
            if lane not in self._inputs.lanes.get((message.topic(), message.partition()), ()):
                return  # its task was given back or stopped meanwhile, and stands before this record
            attempts += 1
            failure = self._attempt(lane, message)
            if failure is not None:
                self._undo(lane)
        if failure is not None:
            self.settle(lane, message, failure, attempts)

    def _undo(self, lane: Lane) -> None:
        lane.task.undo()
        self._collector.drop()
        self._requests.clear()

    def _back_off(self, seconds: float) -> None:
        """Wait, between two records; what becomes due meanwhile is done."""
        self.release()
        until = self._clock.monotonic() + seconds
        while (now := self._clock.monotonic()) < until:
            self._loop.seen_at = now
            if now >= self._loop.next_duty:
                self._loop.duties()
            else:
                self._clock.sleep(min(until, self._loop.next_duty) - now)

    def settle(self, lane: Lane, message: Message, error: BaseException, attempts: int) -> None:
        """What `on_error` says of a record that is given up, and that nothing is left of."""
        task, spec = lane.task, self._spec.dead_letters if self._spec.on_error == DEAD_LETTER else None
        if self._spec.on_error == FAIL:
            self._stop_at(named(task.name, "process", error, where_of(message, error), attempts), error)
        elif spec is not None and message.offset() >= lane.committed_offset:  # a bootstrap that is read anew: it lies there already
            try:
                letter = dead_letter_of(message, task.name, error, attempts, self._clock.now_ms(), spec)
            except RecordTooLarge as too_large:
                self._stop_at(too_large, error)
            headers = letter.to_headers()
            self._own.open().send(spec.topic, letter.value, letter.key, task.model.partition, letter.time_ms, headers)
            self._collector.released_bytes += letter.size
            lane.dead_letters += 1
        else:
            lane.skipped += 1
        number = lane.skipped + lane.dead_letters
        if is_told(number):
            what = f"set aside in {spec.topic}" if spec is not None else "skipped"
            LOG.warning("%s: %s: record %s: %s (the task's number %d)", task.name, what, where_of(message, error), brief(error), number)

    def _stop_at(self, error: SamzapyError, cause: BaseException) -> NoReturn:
        """All that was done before the record is committed, then the job stops."""
        self._loop.commit()
        raise error from cause

    def _pass_by(self, message: Message, index: int, culprit: Culprit) -> None:
        """A record with which no transaction could be committed: it is not processed again."""
        self._index = index
        self._search.carry_out(culprit.record)
        for lane in self._inputs.lanes.get((message.topic(), message.partition()), ()):
            if message.offset() >= lane.resume_at:
                self.settle(lane, message, culprit.error, culprit.attempts)
                lane.resume_at = next_offset(message.offset())  # it stands behind it, even if the next task stops the job here
        self._index = index + 1
