"""A job's dead letters: lists them, and sends them back to the topic and partition that they came from, each at most once.

A replay is one transaction per batch: the records themselves, and for each of them a trace in its dead-letter partition. So a record is sent
if and only if its trace is there, whenever the replay is killed. Two replays do not both send: the second fences the first (one
transactional.id for all replays of a job), and reads the traces only then. It must not stop reading too early: an open transaction of a
running container hides all records after it, traces too. So it first writes a barrier into each partition and reads up to that.

Dead letters of one record (several tasks read it) are sent back together, as one record; that is exact only if it failed in every task that
reads it, and refused otherwise. If two name the same record but differ in content, both are sent: nobody can know which of them is forged.

A record goes back with its own timestamp. One that its topic would refuse or soon remove because of that is refused here, unless it may get the
current time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from samzapy.api.errors import (
    ConfigurationError,
    Fenced,
    InDoubt,
    InternalError,
    LogError,
    NotAuthorized,
    OffsetOutOfRange,
    RecordTooLarge,
    SamzapyError,
)
from samzapy.model.acls import WRITE
from samzapy.model.dead_letter import BARRIER, DeadLetter, Origin, record_size, replay_headers, trace_headers
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition, next_offset
from samzapy.ops.abort_transaction import abort_open
from samzapy.ops.acls import also_needed
from samzapy.ops.letters import Entry, Found, Sorting
from samzapy.ops.newer_records import Newer, none_newer
from samzapy.ops.replay_place import refused_by_place
from samzapy.ops.replay_time import NOW, time_to_send, why_not_own
from samzapy.ports import Clock, Consumer, Log, Message, TopicFacts, TransactionalProducer
from samzapy.readers import read_ranges

BATCH_RECORDS = 1000
BATCH_BYTES = 16 << 20
MAX_ROUNDS = 100  # producers; a round that sent nothing is rare, and then the brokers are in trouble
PATIENCE_S = 90.0  # a container that died leaves its transaction open for up to `commit.timeout`
REPLAYING, DISCARDING = "sending dead letters back", "discarding dead letters"
AGAIN = "Give the same command again: what it has done is not done twice."

NextOf = Callable[[DeadLetter], int | None]
Select = Callable[[Found], list[Entry]]
Send = Callable[[TransactionalProducer, Sequence[Entry]], bool]
Progress = Callable[[int, int], None]  # is given how many are done, and of how many


def _not_known(_: DeadLetter) -> int | None:
    return None


class DeadLetters:
    """The dead-letter topic of one job.

    Args:
        inputs: the topics that the job's tasks read, also those between stages of a program: nothing is sent to any other.
        readers: by broadcast input, how many tasks read each of its records. All of them read what is sent back, so a record that failed in some of
            them only is refused. An input that is not there is not checked.
        may_have_new_time: records whose own timestamp their topic refuses, or removes soon, get the current time; else they are refused.
        limit_bytes: dead letters of more bytes are not read; 0: of any.

    Attributes:
        not_read: those of the inputs of which no record that is there now will be read: it is removed before the next run.
        timed: topics of a program whose records have event time.
        newer: finds out, after dead letters were read, which of those that wait have a newer record of their key in their topic, where that counts.
        standing: finds out, after dead letters were read, where their tasks stand: of a letter, the next offset that its task reads of that input.
    """

    def __init__(
        self,
        job: Job,
        inputs: Iterable[str],
        log: Log,
        clock: Clock,
        readers: Mapping[str, int] = MappingProxyType({}),
        may_have_new_time: bool = False,
        limit_bytes: int = 0,
    ) -> None:
        self._job = job
        self._readers = readers
        self._inputs = frozenset(inputs)
        self._log = log
        self._clock = clock
        self._may_have_new_time = may_have_new_time
        self._limit_bytes = limit_bytes
        self.not_read: Collection[str] = ()
        self.standing: Callable[[], NextOf] = lambda: _not_known
        self.timed: frozenset[str] = frozenset()
        self.newer: Newer = none_newer
        self._next_of: NextOf = _not_known
        self._newer: Mapping[Origin, int] = {}
        with log.admin() as admin:
            self._facts: Mapping[str, TopicFacts] = admin.topics([job.dead_letter_topic, *self._inputs])

    def read(self) -> Found:
        """The dead letters that are committed now and not hidden by an open transaction."""
        with self._log.restore_consumer("dead-letters") as consumer:
            return self._read(consumer, {p: bounds.end for p, bounds in consumer.bounds_of(self._partitions()).items()})

    def replay(self, origins: Sequence[Origin] | None, tell: Progress) -> list[Entry]:
        """Send back what was not sent back before, of these records or (None) of all that can be; the entries sent.

        Raises:
            ConfigurationError, TopicMissing, RecordTooLarge: one of these records cannot be sent; nothing was. Fenced: another replay has begun.
        """
        if not self._partitions():
            return self._waiting(Found(()), origins)
        return self._all_rounds(lambda found: self.waiting(found, origins), self._send, tell)

    def discard(self, places: Collection[Origin], tell: Progress) -> list[Entry]:
        """Mark the dead letters at these places as dealt with: they stay in the topic, and no replay sends them back. Those that it marked.

        Raises:
            Fenced: a replay, or another discard, has begun.
        """
        return self._all_rounds(lambda found: [e for e in found.entries if e.place in places and e.is_waiting], self._mark, tell)

    def _all_rounds(self, select: Select, send: Send, tell: Progress) -> list[Entry]:
        done: list[Entry] = []
        for _ in range(MAX_ROUNDS):
            sent, is_over = self._round(select, send, tell, len(done))
            done += sent
            if is_over:
                return done
        raise LogError(f"all {MAX_ROUNDS} attempts to commit failed.", f"Check the brokers. {AGAIN}")

    def _round(self, select: Select, send: Send, tell: Progress, before: int) -> tuple[list[Entry], bool]:
        """Send with one producer, until nothing is left or a commit was suspicious: then a new producer has to read the traces again."""
        done, waiting = list[Entry](), list[Entry]()
        producer = self._log.transactional_producer(f"{self._job}-dead-letters")
        try:
            producer.init()  # an earlier replay is fenced, and what it had not committed is gone
            found = self._read_all(producer)
            if found is None:
                return done, False
            waiting = select(found)
            for batch in _batches(waiting):
                clean = send(producer, batch)
                done += batch
                tell(before + len(done), before + len(waiting))
                if not clean:
                    return done, False
            return done, True
        except Fenced as error:
            raise self._ended_by_another(error) from error
        except InDoubt as error:
            raise InDoubt(f"it is not known whether the last batch of dead letters was committed: {error.message}", AGAIN) from error
        except BaseException as error:
            fenced = abort_open(producer)
            # Of a transaction that began nowhere the broker answers an abort as if it were fenced: test_a_command_that_needs_more_than_the_job_names_it.
            if isinstance(error, NotAuthorized):
                topics, doing = ({e.letter.origin.topic for e in waiting}, REPLAYING) if send == self._send else ({self._job.dead_letter_topic}, DISCARDING)
                raise also_needed(error, WRITE, topics, doing, self._log) from error
            if fenced is not None:
                raise self._ended_by_another(fenced) from fenced
            raise
        finally:
            producer.close()

    def _ended_by_another(self, error: Fenced) -> Fenced:
        return Fenced(f"another replay or discard of {self._job}'s dead letters has started: {error.message}", AGAIN)

    def waiting(self, found: Found, origins: Sequence[Origin] | None) -> list[Entry]:
        """What a replay would send back now: of all, those that can be sent; of those named, each. Raises as `replay`."""
        waiting = self._waiting(found, origins)
        why = self._why_not(waiting, found)
        for entry in waiting if origins is not None else ():  # of all, one that cannot go back must not keep the others
            if entry.place in why:
                raise why[entry.place]
        return [e for e in waiting if e.place not in why]

    def with_new_time(self, entries: Sequence[Entry]) -> dict[str, list[Origin]]:
        """Which of these records get the current time when they are sent back, by why."""
        found: dict[str, list[Origin]] = {}
        for origin, timestamp_ms in {e.letter.origin: e.letter.timestamp_ms for e in entries}.items():
            topic = self._facts[origin.topic]
            why = why_not_own(timestamp_ms, self._clock.now_ms(), topic.config)
            if topic.gives_times:
                found.setdefault(f"{origin.topic} gives each record the time at which it arrives", []).append(origin)
            elif why and self._may_have_new_time:
                found.setdefault(f"{origin.topic} does not keep their own" if timestamp_ms > NOW else "they have none that can be sent", []).append(origin)
        return found

    def passed_by(self, found: Found, takes: Callable[[Entry], bool] = lambda entry: True) -> list[SamzapyError]:
        """The errors of those that cannot be sent back when all are replayed that `takes` takes; one each."""
        waiting = self._waiting(found, None)
        why = self._why_not(waiting, found)
        return [why[entry.place] for entry in waiting if entry.place in why and takes(entry)]

    # -- inside ------------------------------------------------------------------------------------------------------------------------

    def _why_not(self, waiting: Sequence[Entry], found: Found) -> dict[Origin, SamzapyError]:
        """By place, why some cannot be sent back. Of a broadcast record none can if one cannot: all tasks would get it."""
        failed_in = found.failed_in(self._readers)
        why = {e.place: refused for e in waiting if (refused := self._refused(e, failed_in)) is not None}
        shared = {e.letter.origin: why[e.place] for e in waiting if e.place in why and e.letter.origin.topic in self._readers}
        return {e.place: shared[e.letter.origin] for e in waiting if e.letter.origin in shared} | why

    def _refused(self, entry: Entry, failed_in: Mapping[Origin, set[str]]) -> SamzapyError | None:
        """Why it cannot be sent to the origin that it names, which anyone who may write to the dead-letter topic can have invented."""
        origin, facts = entry.letter.origin, self._facts.get(entry.letter.origin.topic)
        refused = refused_by_place(entry, self._inputs, facts, self.not_read)
        if refused is not None or facts is None:
            return refused
        next_offset = self._next_of(entry.letter)
        if next_offset is not None and next_offset <= origin.offset:
            return ConfigurationError(
                f"the dead letter of {origin}: {entry.letter.task} continues at {next_offset} there, so it will read the record. Sent back, it would count twice.",
                f"Discard it: `samzapy dlq discard JOB.yaml {entry.number} --execute`. If the record fails again, it becomes a dead letter again.",
            )
        tasks = failed_in.get(origin)
        if tasks is not None and len(tasks) < self._readers[origin.topic]:
            return ConfigurationError(
                f"the dead letter of {origin}: {origin.topic} is a broadcast input, and the only waiting dead letters of this record are those of "
                f"{', '.join(sorted(tasks))}. If the record is sent back, all {self._readers[origin.topic]} tasks process it: those that have already "
                "processed it would do so a second time.",
                f"If that does no harm, run `samzapy dlq replay JOB.yaml {entry.number} --to-all-tasks --execute`.",
            )
        if origin in self._newer:
            return ConfigurationError(
                f"the dead letter of {origin}: {origin.topic} has a newer record of its key, at offset {self._newer[origin]}. Sent back, the old value would "
                "replace the newer one, here and for all that read the topic.",
                f"Discard it: `samzapy dlq discard JOB.yaml {entry.number} --execute`; or, if that is what you want, run `samzapy dlq replay JOB.yaml "
                f"{entry.number} --over-newer --execute`.",
            )
        why = "" if self._may_have_new_time else why_not_own(entry.letter.timestamp_ms, self._clock.now_ms(), facts.config)
        if why:
            return ConfigurationError(
                f"the dead letter of {origin}: {why}.",
                f"{f'Change that setting of {origin.topic}, or send' if entry.letter.timestamp_ms > NOW else 'Send'} it back with the current time: "
                f"`samzapy dlq replay JOB.yaml {entry.number} --new-time --execute`.",
            )
        size = record_size(entry.letter.key, entry.letter.value, replay_headers(entry.letter, entry.place))
        if size > facts.max_message_bytes:
            return RecordTooLarge(
                f"the dead letter of {origin}: with the header that marks it as sent back it has {size} bytes, the topic takes {facts.max_message_bytes}.",
                f"Raise max.message.bytes of {origin.topic}, or leave this dead letter out of the replay.",
            )
        return None

    def _partitions(self) -> list[TopicPartition]:
        facts = self._facts.get(self._job.dead_letter_topic)
        return [TopicPartition(self._job.dead_letter_topic, n) for n in range(facts.partitions if facts else 0)]

    @staticmethod
    def _waiting(found: Found, origins: Sequence[Origin] | None) -> list[Entry]:
        """Without shortened ones: these are not the whole record. Of all, without those whose record was sent back before: its copy is there."""
        wanted, sent = (found.of(origins), set()) if origins is not None else (found.entries, {e.place for e in found.sent_before()})
        return [e for e in wanted if e.is_waiting and not e.letter.truncated and e.place not in sent]

    def _read_all(self, producer: TransactionalProducer) -> Found | None:
        """All records committed before this replay's `init`: up to a barrier of its own in each partition. None: that commit was suspicious."""
        ends: dict[TopicPartition, int] = {}
        producer.begin()
        for place in self._partitions():
            headers = [(BARRIER, str(self._clock.now_ms()).encode())]
            producer.send(place.topic, None, None, place.partition, headers=headers, delivered=_note(ends, place))
        producer.flush()
        if not producer.commit():
            return None
        missing = [p for p in self._partitions() if p not in ends]
        if missing:
            raise InternalError(f"the broker did not report the offset of the barrier in {missing[0]}.", "Run this again: nothing was sent.")
        with self._log.restore_consumer("dead-letters") as consumer:
            return self._read(consumer, ends)

    def _read(self, consumer: Consumer, ends: Mapping[TopicPartition, int]) -> Found:
        sorting = Sorting()
        ranges = {p: (bounds.start, ends[p]) for p, bounds in consumer.bounds_of(ends).items()}
        for batch in _told(read_ranges(consumer, ranges, self._clock, PATIENCE_S)):
            for message in batch:
                sorting.take(message)
                if self._limit_bytes and sorting.size > self._limit_bytes:
                    raise ConfigurationError(
                        f"the dead letters hold more than {self._limit_bytes >> 20} MiB, which is too much to look through from here.",
                        "Use the command line: `samzapy dlq list JOB.yaml`, then `dlq replay` or `dlq discard` with the numbers; or `samzapy dlq replay "
                        "JOB.yaml --all`, which shows what it would send back; then add `--execute`.",
                    )
        self._next_of, found = self.standing(), sorting.found()
        self._newer = self.newer([e for e in found.entries if e.is_waiting], self._facts)
        return replace(found, deleted=sum(start for start, _ in ranges.values()))

    def _mark(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
        """Send traces alone. False: as `_send`."""
        producer.begin()
        now_ms = self._clock.now_ms()
        for entry in batch:
            headers = trace_headers(entry.place.offset, now_ms, is_discarded=True)
            producer.send(entry.place.topic, None, None, entry.place.partition, headers=headers)
        producer.flush()
        return producer.commit()

    def _send(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
        """Send the records and their traces in one transaction. False: committed, but this producer must not be used again."""
        producer.begin()
        now_ms = self._clock.now_ms()
        sent: set[tuple[Origin, bytes | None, bytes | None]] = set()
        for entry in batch:
            letter, origin = entry.letter, entry.letter.origin
            record = (origin, letter.key, letter.value)
            if record not in sent:
                sent.add(record)
                at_ms = time_to_send(letter.timestamp_ms, now_ms, self._facts[origin.topic].config, self._may_have_new_time)
                producer.send(origin.topic, letter.value, letter.key, origin.partition, at_ms, replay_headers(letter, entry.place))
            producer.send(entry.place.topic, None, None, entry.place.partition, headers=trace_headers(entry.place.offset, now_ms))
        producer.flush()
        return producer.commit()


def _told(batches: Iterable[Sequence[Message]]) -> Iterator[Sequence[Message]]:
    try:
        yield from batches
    except OffsetOutOfRange as error:
        raise LogError(f"Kafka removed dead letters by age while they were read: {error.message}", "Run this again: nothing was sent twice.") from None


def _batches(entries: Sequence[Entry]) -> Iterable[list[Entry]]:
    """Bounded in records and bytes; dead letters of one record are in one batch."""
    by_origin: dict[Origin, list[Entry]] = {}
    for entry in entries:
        by_origin.setdefault(entry.letter.origin, []).append(entry)
    batch: list[Entry] = []
    size = 0
    for group in by_origin.values():
        batch.extend(group)
        size += sum(e.letter.size for e in group)
        if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _note(ends: dict[TopicPartition, int], place: TopicPartition) -> Callable[[int], None]:
    def delivered(offset: int) -> None:
        ends[place] = next_offset(offset)

    return delivered
