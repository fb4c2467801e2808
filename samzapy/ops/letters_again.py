"""Dead letters of records that their tasks read again: the job was reset, or set back to before them.

One that waits counts twice if it is sent back after that. One that was sent back before counts twice: the topic holds the record and its copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from samzapy.api.errors import NotAuthorized
from samzapy.config.schema import Settings
from samzapy.container.first_offsets import known_marks
from samzapy.model.checkpoint import Checkpoint
from samzapy.model.dead_letter import REPLAY_OF, DeadLetter
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Ledger
from samzapy.ops.inspection import read_checkpoints
from samzapy.ops.letters import Entry, recent
from samzapy.plan.checkpoint_orders import EARLIEST, Step, pending
from samzapy.ports import Clock, Log, TopicFacts
from samzapy.readers import decided_bounds, read_ledger
from samzapy.wiring.job_topics import JobTopics, job_of

MAX_NAMED = 20
Begin = Callable[[DeadLetter], int | None]  # where a letter's task begins to read that input again; None: it does not


def standing_now(settings: Settings, log: Log, clock: Clock) -> Callable[[DeadLetter], int | None]:
    """Where the task of a dead letter goes on reading that input: its next offset; None: not known, or past all that is there now.

    Raises (as what it gives does, too):
        StateRefused: a checkpoint or an order of `checkpoint set` cannot be read. LogError: Kafka could not be asked.
    """
    topic = job_of(settings).checkpoint_topic
    known: list[tuple[Mapping[str, Checkpoint], Ledger]] = []

    def at(letter: DeadLetter) -> int | None:
        checkpoints, ledger = known[0]
        checkpoint = checkpoints.get(letter.task)
        mark = known_marks(checkpoint, pending(ledger.startpoints.get(letter.task), checkpoint)).get(str(_partition(letter)))
        if mark is not None:
            return mark.next_offset
        return 0 if letter.origin.topic in from_start(settings) else None  # as a new input, also of a task with a checkpoint: it was forgotten

    def standing_of(letter: DeadLetter) -> int | None:
        if not known:
            known.append(_known(settings, log, clock))
        found = at(letter)
        if found is not None and found <= letter.origin.offset and len(known) == 1:
            # A commit is seen in one partition a moment before it is in another: the dead letter's may not be seen yet in the checkpoints.
            with log.admin() as admin, log.restore_consumer("standing") as consumer:
                facts = admin.topics([topic]).get(topic)
                for number in range(facts.partitions if facts else 0):
                    decided_bounds(consumer, TopicPartition(topic, number), clock)
            known[:] = [_known(settings, log, clock)] * 2
            found = at(letter)
        return found

    return standing_of


def _known(settings: Settings, log: Log, clock: Clock) -> tuple[Mapping[str, Checkpoint], Ledger]:
    names = job_of(settings)
    with log.admin() as admin:
        there: Mapping[str, TopicFacts] = admin.topics([names.checkpoint_topic, names.coordinator_topic])
    ledger = Ledger()
    if names.coordinator_topic in there:
        with log.restore_consumer("standing") as consumer:
            ledger = read_ledger(consumer, names.coordinator_topic, clock)
    return {c.task: c for c in read_checkpoints(settings, there, log, clock).values()}, ledger


def from_start(settings: Settings) -> set[str]:
    """The inputs that tasks read from the start of which no checkpoint says where they go on."""
    return {i.topic for i in settings.inputs if i.start == EARLIEST}


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest dead letters, of whatever topics. `is_all`: there are no older ones."""

    entries: Sequence[Entry] = ()
    is_all: bool = True


def newest_letters(settings: Settings, log: Log, clock: Clock) -> Newest:
    """The newest ones of the job, whatever became of them. A job that sets no records aside needs no access to the topic: where Kafka refuses it, there are
    none."""
    names = JobTopics.of(settings)
    topic = names.job.dead_letter_topic
    try:
        with log.admin() as admin:
            facts = admin.topics([topic]).get(topic)
    except NotAuthorized:
        if names.dead_letters:
            raise
        return Newest()
    if facts is None:
        return Newest()
    with log.restore_consumer("dead-letters") as consumer:
        found, is_all = recent(consumer, topic, facts.partitions, clock)
    return Newest(found.entries, is_all)


def begin_of_steps(steps: Iterable[Step]) -> Begin:
    """Where these steps have tasks begin."""
    after = {(s.task, s.topic_partition): s.after for s in steps if s.chosen and s.after is not None}
    return lambda letter: after.get((letter.task, _partition(letter)))


def begin_of_reset(settings: Settings, letters: Newest, log: Log) -> Begin:
    """Where tasks without a checkpoint begin to read the partitions of these letters."""
    return begin_of_topics(from_start(settings), letters, log)


def begin_of_topics(topics: Collection[str], letters: Newest, log: Log) -> Begin:
    """Where these topics start, of those of these letters."""
    wanted = {_partition(e.letter) for e in letters.entries if e.letter.origin.topic in topics}
    if not wanted:
        return lambda letter: None
    with log.admin() as admin:
        facts = admin.topics(sorted({p.topic for p in wanted}))
    with log.restore_consumer("dead-letters") as consumer:
        bounds = consumer.bounds_of(p for p in wanted if p.topic in facts and p.partition < facts[p.topic].partitions)
    starts = {partition: found.start for partition, found in bounds.items()}
    return lambda letter: starts.get(_partition(letter))


def _partition(letter: DeadLetter) -> TopicPartition:
    return TopicPartition(letter.origin.topic, letter.origin.partition)


def read_again(letters: Iterable[Entry], begin: Begin) -> list[Entry]:
    """Those of records that are read again."""
    return [e for e in letters if (at := begin(e.letter)) is not None and at <= e.letter.origin.offset]


def sent_again(settings: Settings, do_inputs_go_back: bool) -> Collection[str]:
    """The internal topics whose records are sent there again, with those of the waiting dead letters. Their copies are not: these are removed, or skipped."""
    return JobTopics.of(settings).internal if do_inputs_go_back else ()


def go_back(steps: Iterable[Step]) -> bool:
    """Whether one of these steps has a task read records again."""
    return any(s.chosen and s.after is not None and (s.before is None or s.after < s.before) for s in steps)


def warnings(letters: Newest, begin: Begin, sent_there_again: Collection[str] = ()) -> list[str]:
    """What to know, and to do, before the job reads again from there on. `sent_there_again`: as `sent_again` says."""
    sent = [e for e in letters.entries if e.replayed_ms is not None]
    again = read_again(waiting_of(letters), lambda letter: 0 if letter.origin.topic in sent_there_again else begin(letter))
    copied = read_again(sent, begin)
    return [*([told(again, letters)] if again else []), *([told_copied(copied, begin)] if copied else [])]


def waiting_of(letters: Newest) -> list[Entry]:
    """Those that wait."""
    return [e for e in letters.entries if e.is_waiting]


def told_copied(copied: Sequence[Entry], begin: Begin) -> str:
    """What to know, and to do, about records that are read again together with the copies that were sent back."""
    origins = {e.letter.origin for e in copied}
    topics = ", ".join(sorted({origin.topic for origin in origins}))
    (letters,) = {e.place.topic for e in copied}
    starts = sorted({f"{_partition(e.letter)} from {begin(e.letter)} on" for e in copied})
    places = f"{', '.join(starts[:MAX_NAMED])}{', …' if len(starts) > MAX_NAMED else ''}"
    records = f"{len(origins)} records of {topics} were" if len(origins) > 1 else f"a record of {topics} was"
    return (
        f"{records} sent back from the dead letters before (the first: {min(origins)}). If the job reads {places}, "
        f"it processes both such a record and its copy, and the record counts twice. To count it once, let `process` skip the copies with this line: "
        f'if (dict(envelope.headers).get("{REPLAY_OF}") or b"").startswith(b"{letters}["): return '
        "(remove that line once the old records are read, or it skips what later replays send)"
    )


def told(again: Sequence[Entry], letters: Newest) -> str:
    """What to know, and to do, about those that are read again."""
    are = f"{len(again)} dead letters wait whose records are" if len(again) > 1 else "a dead letter waits whose record is"
    return (
        f"{are} read again: a record that is also sent back counts twice. Those that fail again become dead letters again, so discard the old ones "
        f"before the next run: {_discard(again, letters)}"
    )


def _discard(again: Sequence[Entry], letters: Newest) -> str:
    """The command that discards these and no others: those that are not read again would be lost."""
    command = "samzapy dlq discard JOB.yaml"
    places, topics = {e.place for e in again}, {e.letter.origin.topic for e in again}
    stay = {e.letter.origin.topic for e in waiting_of(letters) if e.place not in places}
    if letters.is_all and not stay:
        return f"{command} --all --execute"
    if len(again) <= MAX_NAMED:
        return f"{command} {' '.join(e.number for e in again)} --execute"
    if letters.is_all and topics.isdisjoint(stay):
        return " and ".join(f"{command} --topic {topic} --execute" for topic in sorted(topics))
    older = "" if letters.is_all else ", and perhaps older ones"
    return f"{command} {' '.join(e.number for e in again[:MAX_NAMED])} --execute (and so on: {len(again)} in all{older})"
