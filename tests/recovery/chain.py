"""What the committed topics of a ChainTask job must be, and whether they are.

`expected` is the whole truth as a pure function of the committed input: outputs, stores and the chain's head. `judge` compares and names what
is wrong (lost, doubled, reordered, altered, invented, wrong state, unread), with the first differing record of each partition. `verify` reads the
topics as any read_committed consumer would, through nothing of samzapy's own Kafka code, and judges.

A committed position that went past a record whose output is missing is a loss; records after the committed position were not read yet, which
is a finding of its own unless the caller did not expect the job to have come to the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.checkpoint import CHECKPOINT_KEY, checkpoint_from_bytes
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from tests.broker import Record, read_all
from tests.recovery.chain_task import CHAIN, COUNTS, GENESIS, count_key, link

LOST, DOUBLED, REORDERED, ALTERED, INVENTED = "lost", "doubled", "reordered", "altered", "invented"
WRONG_STATE, UNREAD = "wrong state", "unread"

State = Mapping[bytes, object]


class InputRecord(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


class Link(NamedTuple):
    """An output record: of the input record at `offset`, the `number`th of its partition."""

    number: int
    offset: int
    head: str
    key: bytes | None
    key_count: int


class Found(NamedTuple):
    """An output record as it was found at offset `at`; `link` is None if its bytes are no output of the task."""

    at: int
    link: Link | None


@dataclass(slots=True)
class Expected:
    """By partition: outputs in order, and the stores' contents by their serialised key (`states[store][partition][key]`)."""

    outputs: dict[int, list[Link]] = field(default_factory=dict)
    states: dict[str, dict[int, dict[bytes, object]]] = field(default_factory=lambda: {CHAIN: {}, COUNTS: {}})

    def head(self, partition: int) -> tuple[int, str]:
        """(number, head) after the last record of a partition."""
        outputs = self.outputs[partition]
        return (outputs[-1].number, outputs[-1].head) if outputs else (0, GENESIS)


def expected(inputs: Mapping[int, Iterable[InputRecord]]) -> Expected:
    """What must have been committed when exactly these records, by partition and in this order, were processed."""
    result = Expected()
    for partition, records in inputs.items():
        outputs: list[Link] = []
        counts: dict[bytes, int] = {}
        number, head = 0, GENESIS
        for record in records:
            number, head = number + 1, link(head, *record)
            counted = count_key(record.key)
            counts[counted] = counts.get(counted, 0) + 1
            outputs.append(Link(number, record.offset, head, record.key, counts[counted]))
        result.outputs[partition] = outputs
        result.states[CHAIN][partition] = {str(partition).encode(): {"number": number, "head": head}} if outputs else {}
        result.states[COUNTS][partition] = dict(counts)
    return result


# -- the verdict -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong in one partition: how often, and the first time in words."""

    kind: str
    partition: int
    count: int
    first: str

    def __str__(self) -> str:
        return f"{self.kind} in partition {self.partition}: {self.count}, the first: {self.first}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of a job's committed topics with what they must be."""

    findings: tuple[Finding, ...]
    partitions: int
    inputs: int
    outputs: int

    @property
    def clean(self) -> bool:
        return not self.findings

    def kinds(self) -> set[str]:
        return {f.kind for f in self.findings}

    def __str__(self) -> str:
        counted = f"{self.inputs} input records in {self.partitions} partitions, {self.outputs} output records"
        if self.clean:
            return f"clean: {counted}; nothing lost, doubled, reordered or altered, every store as it must be"
        return "\n".join([f"NOT CLEAN: {counted}", *(f"  {f}" for f in self.findings)])


def judge(
    inputs: Mapping[int, Sequence[InputRecord]],
    positions: Mapping[int, int],
    outputs: Mapping[int, Sequence[Found]],
    states: Mapping[str, Mapping[int, State]],
    exactly_once: bool = True,
    to_the_end: bool = True,
) -> Verdict:
    """Compare what was found with what the inputs demand.

    Args:
        positions: the committed next offset of each input partition.
        exactly_once: outputs are those up to the position, once; else each of them at least once, and unaltered repetitions and outputs of
            records after the position are allowed (stores are exact under both guarantees).
        to_the_end: every input record must have been processed.
    """
    done = {p: [r for r in records if r.offset < positions.get(p, 0)] for p, records in inputs.items()}
    must, may = expected(done), expected(inputs)
    findings: list[Finding] = []
    for partition in sorted(inputs):
        left = len(inputs[partition]) - len(done[partition])
        if left and to_the_end:
            first = inputs[partition][len(done[partition])]
            findings.append(
                Finding(UNREAD, partition, left, f"input offset {first.offset}, the committed position is {positions.get(partition)}")
            )
        allowed = must if exactly_once else may
        findings += compare_outputs(
            partition, must.outputs[partition], allowed.outputs[partition], outputs.get(partition, ()), exactly_once
        )
        for store, of_partitions in must.states.items():
            findings += compare_state(store, partition, of_partitions[partition], states[store].get(partition, {}))
    for partition in sorted(set(outputs) - set(inputs)):
        findings.append(Finding(INVENTED, partition, len(outputs[partition]), "there is no such input partition"))
    return Verdict(tuple(findings), len(inputs), sum(map(len, inputs.values())), sum(map(len, outputs.values())))


class _Tally:
    """Findings of one partition by kind: the first in words, and a count."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._first: dict[str, str] = {}
        self._count: dict[str, int] = {}

    def add(self, kind: str, words: str) -> None:
        self._first.setdefault(kind, words)
        self._count[kind] = self._count.get(kind, 0) + 1

    def findings(self) -> list[Finding]:
        return [Finding(kind, self._partition, self._count[kind], first) for kind, first in self._first.items()]


def compare_outputs(
    partition: int, must: Sequence[Link], allowed: Sequence[Link], found: Sequence[Found], exactly_once: bool
) -> list[Finding]:
    tally = _Tally(partition)
    right = {expected_link.offset: expected_link for expected_link in allowed}
    first_at: dict[int, int] = {}
    highest = -1
    for at, actual in found:
        if actual is None:
            tally.add(ALTERED, f"the record at output offset {at} is no output of the task")
            continue
        if actual.offset not in right:
            tally.add(INVENTED, f"{_shown(actual, at)} is of no committed input record")
            continue
        if actual != right[actual.offset]:
            tally.add(ALTERED, f"{_shown(actual, at)}, where {_shown(right[actual.offset])} is expected")
        if actual.offset in first_at:
            if exactly_once:
                tally.add(DOUBLED, f"{_shown(actual, at)} was there at output offset {first_at[actual.offset]}")
            continue
        if actual.offset < highest:
            tally.add(REORDERED, f"{_shown(actual, at)} comes after that of input offset {highest}")
        first_at[actual.offset] = at
        highest = max(highest, actual.offset)
    for link_ in must:
        if link_.offset not in first_at:
            tally.add(LOST, f"{_shown(link_)} is missing")
    return tally.findings()


def compare_state(store: str, partition: int, must: State, found: State) -> list[Finding]:
    tally = _Tally(partition)
    for key in sorted({*must, *found}):
        if must.get(key) != found.get(key):
            tally.add(WRONG_STATE, f"store {store!r}, key {key!r} is {found.get(key)!r}, where {must.get(key)!r} is expected")
    return tally.findings()


def _shown(output: Link, at: int | None = None) -> str:
    place = "" if at is None else f" at output offset {at}"
    return f"the output{place} of input offset {output.offset} (number {output.number}, key {output.key!r}, count {output.key_count}, {output.head[:12]}…)"


# -- the topics ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChainTopics:
    """The topics of one ChainTask job."""

    job: Job
    input: str
    output: str

    @classmethod
    def of(cls, name: str) -> ChainTopics:
        return cls(Job(name, "1"), f"{name}-in", f"{name}-out")


def verify(servers: str, topics: ChainTopics, exactly_once: bool = True, to_the_end: bool = True) -> Verdict:
    """Read everything that is committed and judge it. For a job that has stopped: the topics are read one after the other."""
    return verdict(lambda topic: read_all(servers, topic), topics, exactly_once, to_the_end)


def verdict(
    read: Callable[[str], list[Record]], topics: ChainTopics, exactly_once: bool = True, to_the_end: bool = True
) -> Verdict:  # fmt: skip
    """As `verify`, of whatever log `read` reads: all committed records of a topic."""
    inputs = by_partition(read(topics.input))
    outputs = by_partition(read(topics.output))
    states = {
        CHAIN: latest(read(topics.job.changelog_topic(CHAIN)), parsed),
        COUNTS: latest(read(topics.job.changelog_topic(COUNTS)), _integer),
    }
    return judge(
        {p: [InputRecord(r.offset, r.key, r.value) for r in records] for p, records in inputs.items()},
        committed_positions(read(topics.job.checkpoint_topic), topics.input),
        {p: [Found(r.offset, output_of(r.key, r.value)) for r in records] for p, records in outputs.items()},
        states,
        exactly_once,
        to_the_end,
    )


def output_of(key: bytes | None, value: bytes | None) -> Link | None:
    """An output record's content; None if it is none of ours."""
    raw = parsed(value)
    try:
        return Link(raw["number"], raw["offset"], raw["head"], key, raw["count"])
    except (KeyError, TypeError):
        return None


def committed_positions(records: Iterable[Record], topic: str) -> dict[int, int]:
    """The next offset of each partition of `topic`, by the newest checkpoints."""
    positions: dict[int, int] = {}
    for record in records:
        if record.key == CHECKPOINT_KEY and record.value is not None:
            mark = checkpoint_from_bytes(record.value).inputs.get(str(TopicPartition(topic, record.partition)))
            if mark is not None:
                positions[record.partition] = mark.next_offset
    return positions


def latest(records: Iterable[Record], decode: Any) -> dict[int, dict[bytes, object]]:
    """A changelog folded as any tool would: the newest value of each key, tombstones remove, the barrier key is not the store's."""
    states: dict[int, dict[bytes, object]] = {}
    for record in records:
        if record.key is None or record.key == BARRIER_KEY:
            continue
        state = states.setdefault(record.partition, {})
        if record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = decode(record.value)
    return states


def by_partition(records: Iterable[Record]) -> dict[int, list[Record]]:
    result: dict[int, list[Record]] = {}
    for record in records:
        result.setdefault(record.partition, []).append(record)
    return result


def parsed(value: bytes | None) -> Any:
    try:
        return None if value is None else json.loads(value)
    except ValueError:
        return value


def _integer(value: bytes) -> object:
    return int.from_bytes(value, "big", signed=True) if len(value) == 8 else value
