"""What a job committed under faults, against what it commits without any, of the same input.

Outputs are compared by topic, partition and key as multisets (records without a key: by topic alone): where several tasks write a key, or a
task reads several inputs, nobody promises an order. Where the order within a key is determined, `ordered` demands it. Under at_least_once an
output may come again, but none may be missing or new. Stores are compared entry by entry: they are exact under both guarantees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from samzapy.testing.chaos_plan import KILLS, StrikeDone

MISSING, DOUBLED, NEW, ORDER, STATE = "missing", "doubled", "new", "in another order", "state differs"
SHOWN_BYTES = 80
ANY = -1
CLEAN, DIFFERS, INVALID = "CLEAN", "DIFFERS", "INVALID"


class Output(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was committed. `outputs`: by topic, in the order of each partition; `states`: store, partition, key, value."""

    outputs: Mapping[str, Sequence[Output]]
    states: Mapping[str, Mapping[int, Mapping[bytes, bytes]]]

    def records(self) -> int:
        return sum(map(len, self.outputs.values()))

    def entries(self) -> int:
        return sum(len(entries) for of in self.states.values() for entries in of.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """How often something is other than it must be in one topic or store, and the first time in words."""

    where: str
    kind: str
    count: int
    first: str

    def __str__(self) -> str:
        return f"{self.where}: {self.count} {self.kind}, the first: {self.first}"


def compare(calm: Outcome, stormy: Outcome, exactly_once: bool, ordered: bool) -> list[Difference]:
    """The differences; none: the faults cannot be seen in what was committed."""
    found: list[Difference] = []
    for topic in sorted({*calm.outputs, *stormy.outputs}):
        must, is_ = calm.outputs.get(topic, ()), stormy.outputs.get(topic, ())
        counted = list(_counted(topic, must, is_, exactly_once))
        found += counted
        if ordered and exactly_once and not counted:
            found += _ordered(topic, must, is_)
    for store in sorted({*calm.states, *stormy.states}):
        found += _state(store, calm.states.get(store, {}), stormy.states.get(store, {}))
    return found


def _counted(topic: str, must: Sequence[Output], is_: Sequence[Output], exactly_once: bool) -> Iterable[Difference]:
    wanted, there = Counter(map(_placed, must)), Counter(map(_placed, is_))
    missing, more = wanted - there, there - wanted
    new = Counter({r: n for r, n in more.items() if r not in wanted})
    doubled = more - new if exactly_once else Counter[Output]()
    for kind, records in ((MISSING, missing), (DOUBLED, doubled), (NEW, new)):
        if records:
            yield Difference(f"topic {topic}", kind, records.total(), _shown(next(iter(records))))


def _placed(record: Output) -> Output:
    """A record without a key goes to any partition."""
    return record if record.key is not None else record._replace(partition=ANY)


def _ordered(topic: str, must: Sequence[Output], is_: Sequence[Output]) -> Iterable[Difference]:
    right, there = _by_key(must), _by_key(is_)
    wrong = [place for place, values in right.items() if there[place] != values]
    if wrong:
        yield Difference(f"topic {topic}", ORDER, len(wrong), f"key {_text(wrong[0][1])} of partition {wrong[0][0]}")


def _by_key(records: Iterable[Output]) -> dict[tuple[int, bytes | None], list[Output]]:
    found: dict[tuple[int, bytes | None], list[Output]] = {}
    for record in records:
        found.setdefault((record.partition, record.key), []).append(record)
    return found


def _state(store: str, must: Mapping[int, Mapping[bytes, bytes]], is_: Mapping[int, Mapping[bytes, bytes]]) -> Iterable[Difference]:
    places = sorted({(p, key) for p, entries in chain(must.items(), is_.items()) for key in entries})
    wrong = [(p, key) for p, key in places if must.get(p, {}).get(key) != is_.get(p, {}).get(key)]
    if wrong:
        partition, key = wrong[0]
        before, after = (_text(side.get(partition, {}).get(key)) for side in (must, is_))
        words = f"key {_text(key)} of partition {partition} is {after}, where {before} is right"
        yield Difference(f"store {store}", STATE, len(wrong), words)


def _shown(record: Output) -> str:
    place = "any partition" if record.partition == ANY else f"partition {record.partition}"
    headers = f", headers {', '.join(f'{name}={_text(value)}' for name, value in record.headers)}" if record.headers else ""
    return f"{place}, key {_text(record.key)}, value {_text(record.value)}{headers}"


def _text(data: bytes | None) -> str:
    if data is None:
        return "nothing"
    return repr(data[:SHOWN_BYTES])[1:] + ("…" if len(data) > SHOWN_BYTES else "")


def result(
    strikes: Sequence[StrikeDone], differences: Sequence[Difference], calm: Outcome, unlike: Sequence[Difference] = ()
) -> tuple[str, str]:
    """The end of a run and why: DIFFERS, INVALID (nothing was proved: two runs without faults differ as well, or no process was killed at work), or
    CLEAN. `unlike`: how a second run without faults differs from the first."""
    usual = {(d.where, d.kind) for d in unlike}
    own = [d for d in differences if (d.where, d.kind) not in usual]
    if own:
        return DIFFERS, f"{len(own)} difference{'s' * (len(own) != 1)}" + " that two runs without faults do not have" * bool(unlike)
    if differences:
        places = ", ".join(sorted({d.where for d in differences}))
        return INVALID, (
            f"two runs without faults differ in {places} too: what the job writes there depends on the order in which records of several partitions "
            "meet (running totals do), on time, or on something outside of Kafka. Give it records or outputs that do not"
        )
    if not calm.records() and not calm.entries():
        return INVALID, "the job committed nothing, with or without faults"
    at_work = [s for s in strikes if s.met_work]
    killed = sum(s.kind in KILLS for s in at_work)
    evidence = f"{len(at_work)} of {len(strikes)} faults hit the job while it was working, {killed} of them as SIGKILL"
    if not killed:
        return INVALID, f"{evidence}; run it for more minutes or with more records"
    return CLEAN, f"{calm.records()} records and {calm.entries()} store entries are the same as without faults; {evidence}"
