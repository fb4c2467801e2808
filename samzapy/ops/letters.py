"""What is in a dead-letter topic, as `samzapy dlq` names and chooses it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from samzapy.api.envelope import Headers, headers_of
from samzapy.api.errors import ConfigurationError, OffsetOutOfRange, SerdeError, shortened
from samzapy.model.dead_letter import DeadLetter, Origin, is_internal, read_letter, read_trace
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Clock, Consumer, Message
from samzapy.readers import read_ranges


@dataclass(frozen=True, slots=True)
class Entry:
    """A dead letter and its position in the topic. `replayed_ms`, `discarded_ms`: when it was sent back, or discarded; None if it was not."""

    place: Origin
    letter: DeadLetter
    replayed_ms: int | None = None
    discarded_ms: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it was neither sent back nor discarded."""
        return self.replayed_ms is None and self.discarded_ms is None

    @property
    def number(self) -> str:
        """PARTITION.OFFSET in the dead-letter topic: it never names another dead letter."""
        return f"{self.place.partition}.{self.place.offset}"


@dataclass(frozen=True, slots=True)
class Found:
    """What is in a dead-letter topic.

    Attributes:
        entries: in the order of their times.
        strangers: how many records are no dead letters.
        deleted: how many offsets at the start of its partitions are gone.
    """

    entries: Sequence[Entry]
    strangers: int = 0
    deleted: int = 0

    def named(self, text: str) -> list[Entry]:
        """The dead letter of this number, or those of the record that is named as TOPIC[PARTITION]@OFFSET.

        Raises:
            ConfigurationError: there is none.
        """
        found = [e for e in self.entries if text in (e.number, str(e.letter.origin))]
        if not found:
            raise ConfigurationError(
                f"there is no dead letter {shortened(text)}.",
                "`samzapy dlq list JOB.yaml` lists them; their numbers are PARTITION.OFFSET of the dead-letter topic.",
            )
        return found

    def sent_before(self) -> list[Entry]:
        """Those that wait and whose record another dead letter has sent back: it was read again since, and failed again. Its copy is in the topic."""
        sent = {_record(e.letter) for e in self.entries if e.replayed_ms is not None}
        return [e for e in self.entries if e.is_waiting and _record(e.letter) in sent]

    def failed_in(self, topics: Collection[str]) -> dict[Origin, set[str]]:
        """Of these topics' records, the tasks whose dead letters of it wait."""
        tasks: dict[Origin, set[str]] = {}
        for entry in self.entries:
            if entry.is_waiting and entry.letter.origin.topic in topics:
                tasks.setdefault(entry.letter.origin, set()).add(entry.letter.task)
        return tasks

    def shortened(self, origins: Iterable[Origin] | None) -> list[Entry]:
        """Those of these records, or (None) of all, that hold less than the record, so that they are not sent back. Raises as `of`."""
        return [e for e in (self.entries if origins is None else self.of(origins)) if e.letter.truncated]

    def of(self, origins: Iterable[Origin]) -> list[Entry]:
        """The entries of these records.

        Raises:
            ConfigurationError: there is none of one of them.
        """
        wanted = list(origins)
        missing = [str(o) for o in wanted if not any(e.letter.origin == o for e in self.entries)]
        if missing:
            raise ConfigurationError(f"there is no dead letter of {', '.join(missing)}.", "`samzapy dlq list JOB.yaml` lists them.")
        return [e for e in self.entries if e.letter.origin in wanted]


class Sorting:
    """Tells the records of a dead-letter topic apart: dead letters, and traces of those that were dealt with.

    Attributes:
        size: bytes of the dead letters so far.
    """

    def __init__(self, keep_bytes: int | None = None) -> None:
        """`keep_bytes`: of each key, value, header and stack no more is kept; None: all of it."""
        self._keep = keep_bytes
        self._letters: list[Entry] = []
        self._traces: dict[tuple[int, int], tuple[int, int, bool]] = {}  # each with its own offset
        self._strangers = 0
        self.size = 0

    @property
    def letters(self) -> int:
        """How many dead letters so far."""
        return len(self._letters)

    def take(self, message: Message) -> None:
        """One record."""
        headers = _headers_of(message)
        letter, trace = read_letter(message.key(), message.value(), headers), read_trace(headers)
        if letter is not None:
            self.size += letter.size
            kept = letter if self._keep is None else _begun(letter, self._keep)
            self._letters.append(Entry(Origin(message.topic(), message.partition(), message.offset()), kept))
        elif trace is not None:
            which, told = (message.partition(), trace[0]), (message.offset(), *trace[1:])
            self._traces[which] = max(self._traces.get(which, told), told)  # the newest counts, in whatever order they are read
        elif not is_internal(headers):
            self._strangers += 1

    def found(self) -> Found:
        """All of them, in the order of their times."""
        self._letters.sort(key=lambda e: (e.letter.time_ms, e.place))
        return Found([_dealt_with(e, self._traces.get((e.place.partition, e.place.offset))) for e in self._letters], self._strangers)


def letter_of(message: Message) -> DeadLetter | None:
    """The dead letter in a record of the topic; None if the record is not one."""
    return read_letter(message.key(), message.value(), _headers_of(message))


def _headers_of(message: Message) -> Headers:
    """A record's headers; none where the client cannot read them: no dead letter has such headers."""
    try:
        return headers_of(message)
    except SerdeError:
        return ()


def _dealt_with(entry: Entry, trace: tuple[int, int, bool] | None) -> Entry:
    if trace is None:
        return entry
    _, time_ms, is_discarded = trace
    return replace(entry, discarded_ms=time_ms) if is_discarded else replace(entry, replayed_ms=time_ms)


def _record(letter: DeadLetter) -> tuple[object, ...]:
    """What tells it from any other: a topic that was deleted and created again has other records at the same offsets."""
    return letter.origin, letter.timestamp_ms, letter.key, letter.value


def _begun(letter: DeadLetter, keep: int) -> DeadLetter:
    """With no more than the beginning of the record."""
    return replace(letter, key=letter.key and letter.key[:keep], value=letter.value and letter.value[:keep], headers=(), stack="")


RECENT, RECENT_BYTES, RECENT_OFFSETS, KEPT_BYTES = 10_000, 64 << 20, 50_000, 1024
FIRST_OFFSETS, GROWTH = 64, 4


def recent(consumer: Consumer, topic: str, partitions: int, clock: Clock) -> tuple[Found, bool]:
    """The newest dead letters, as they are committed now, each with the beginning of its record; and whether these are all.

    Read from the end, a part at a time, so that what a bound leaves out is the oldest: RECENT dead letters, RECENT_BYTES of them, RECENT_OFFSETS offsets.
    A trace is always after its dead letter, so what is known of those that were read is whole.
    """
    for _ in range(2):
        sorting = Sorting(KEPT_BYTES)
        try:
            is_all = _take_newest(sorting, consumer, [TopicPartition(topic, n) for n in range(partitions)], clock)
        except OffsetOutOfRange:  # removed by age just now: once more, from where the partitions start by now
            continue
        return sorting.found(), is_all
    return sorting.found(), False


def _take_newest(sorting: Sorting, consumer: Consumer, partitions: Sequence[TopicPartition], clock: Clock) -> bool:
    """Each part is older than the one before, and larger. Whether nothing is left out."""
    bounds = consumer.bounds_of(partitions)
    left = {p: (b.start, b.end) for p, b in bounds.items() if b.start < b.end}
    part, looked_at = FIRST_OFFSETS, 0
    while left and sorting.letters < RECENT and sorting.size <= RECENT_BYTES and looked_at < RECENT_OFFSETS:
        share = max(1, min(part, RECENT - sorting.letters, RECENT_OFFSETS - looked_at) // len(left))
        ranges = {p: (max(start, end - share), end) for p, (start, end) in left.items()}
        for batch in read_ranges(consumer, ranges, clock):
            for message in batch:
                sorting.take(message)
        looked_at += sum(end - start for start, end in ranges.values())
        left = {p: (start, ranges[p][0]) for p, (start, _) in left.items() if start < ranges[p][0]}
        fit = (RECENT_BYTES - sorting.size) * sorting.letters // sorting.size if sorting.size else part * GROWTH  # so many more of their size so far
        part = max(1, min(part * GROWTH, fit))
    return not left
