"""Whether what a simulated history left is what it must be: outputs, changelogs, local stores, checkpoints, owners.

`History` keeps every record that was ever committed, also those that the cleaner took, so that a local store can be compared with the
changelog as it was up to the very position that the store claims, on every host, and the audit of owners sees all. `judge` compares with the
model and says what is wrong, a sentence each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.checkpoint import CHECKPOINT_KEY, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.serde.registry import serde_named
from samzapy.testing.memory_partition import State
from tests.recovery.audit import Event, Seen, audit, event_of
from tests.recovery.sim_task import CHAIN, COUNTS, ENDED, ENDS, INPUT, OUTPUT, SECOND, TABLE, USERS, In, Model, model
from tests.simulation.disk import Generation
from tests.simulation.simulation import Simulation

FENCED_WITHIN_MS = 200_000  # a coordinator may be cut off between the record that ends an owner and the fence


class Kept(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    made_ms: int


class History:
    """Every committed record of the job's topics, by partition and offset. `look` before the cleaner comes, and at the end."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        job = sim.job
        outputs = [output.topic for output in sim.settings.outputs]
        self.changelogs = {name: job.changelog_topic(name) for name, s in sim.settings.stores.items() if s.changelog is not False}
        self.places = sim.places(
            [INPUT, SECOND, TABLE, *outputs, job.checkpoint_topic, job.coordinator_topic, *self.changelogs.values()]
        )  # fmt: skip
        self._kept: dict[TopicPartition, dict[int, Kept]] = {place: {} for place in self.places}

    def look(self) -> None:
        self._sim.cluster.run_due()
        for place in self.places:
            kept = self._kept[place]
            for r in self._sim.cluster.partition(place).records:
                if r.offset() not in kept and r.state is State.COMMITTED:
                    kept[r.offset()] = Kept(r.offset(), r.key(), r.value(), r.timestamp()[1])

    def records(self, topic: str, partition: int) -> list[Kept]:
        kept = self._kept[TopicPartition(topic, partition)]
        return [kept[offset] for offset in sorted(kept)]

    def now(self, topic: str, partition: int) -> list[Kept]:
        """What a reader finds now."""
        records = self._sim.cluster.partition(TopicPartition(topic, partition)).records
        return [Kept(r.offset(), r.key(), r.value(), r.timestamp()[1]) for r in records if r.state is State.COMMITTED]


def judge(
    sim: Simulation, history: History, first_ends: Mapping[str, int], completed: Collection[str], to_the_end: bool
) -> list[str]:  # fmt: skip
    """The problems, one sentence each; none: all is as it must be.

    Args:
        first_ends: by task, where INPUT ended when its `init` was first called.
        completed: bounded runs that ended well.
        to_the_end: every input record must have been processed.
    """
    problems: list[str] = []
    for partition in range(len(sim.models)):
        problems += _Partition(sim, history, partition).judge(first_ends.get(f"Partition {partition}"), completed, to_the_end)
    return problems + judge_stores_and_owners(sim, history)


def judge_stores_and_owners(sim: Simulation, history: History) -> list[str]:
    """The problems of what is the same for every job."""
    return [*_local_stores(sim, history), *audit(_events(sim, history), fence_ms=FENCED_WITHIN_MS)]


def _events(sim: Simulation, history: History) -> Iterator[Event]:
    topics = ((sim.job.checkpoint_topic, len(sim.models)), (sim.job.coordinator_topic, 1))
    for topic, partitions in topics:
        for partition in range(partitions):
            for r in history.records(topic, partition):
                event = event_of(r.key, r.value, Seen(partition, r.offset, r.made_ms, r.made_ms))
                if event is not None:
                    yield event


class _Partition:
    """One task's part."""

    def __init__(self, sim: Simulation, history: History, partition: int) -> None:
        self._sim, self._history, self._partition = sim, history, partition
        self._exactly_once = sim.settings.commit.guarantee == "exactly_once"
        records = history.records(sim.job.checkpoint_topic, partition)
        self._checkpoints = [checkpoint_from_bytes(r.value) for r in records if r.key == CHECKPOINT_KEY and r.value is not None]

    def judge(self, first_end: int | None, completed: Collection[str], to_the_end: bool) -> list[str]:
        if not self._checkpoints:
            return [f"partition {self._partition}: there is no checkpoint"] if to_the_end or first_end is not None else []
        place = str(TopicPartition(INPUT, self._partition))
        strangers = [c.task for c in self._checkpoints if place not in c.inputs]
        if strangers:
            return [f"partition {self._partition}: a checkpoint of {strangers[0]} lies in its partition"]
        start = self._checkpoints[0].inputs[place].next_offset
        position = self._checkpoints[-1].inputs[place].next_offset
        inputs = [In(r.offset, (r.key or b"").decode(), r.value or b"") for r in self._history.records(INPUT, self._partition)]
        problems = self._started(start, first_end)
        if to_the_end and inputs and position <= inputs[-1].offset:
            problems.append(f"unread: the committed position is {position}, the last record is at {inputs[-1].offset}")
        done = model(self._partition, [r for r in inputs if start <= r.offset < position])
        may = model(self._partition, [r for r in inputs if start <= r.offset])
        problems += self._outputs(done, done if self._exactly_once else may)
        problems += self._state(done)
        problems += self._ends(completed)
        return [f"partition {self._partition}: {p}" for p in problems]

    def _started(self, start: int, first_end: int | None) -> list[str]:
        if self._sim.settings.inputs[0].start == "earliest":
            return [] if start == 0 else [f"began at {start}, not at the start"]
        if first_end is not None and start > first_end:
            return [f"began at {start}; init() had been called when the input ended at {first_end}: what came since is lost"]
        return []

    def _outputs(self, must: Model, allowed: Model) -> list[str]:
        problems, seen, highest = [], dict[int, int](), -1
        table = self._table_size()
        for r in self._history.records(OUTPUT, self._partition):
            found = {**json.loads(r.value or b"{}"), "key": (r.key or b"").decode()}
            entries = found.pop("table", None)
            offset = int(found["offset"])
            if entries != table:
                problems.append(f"output {r.offset}: the table had {entries} entries when input {offset} came, not {table}")
            if found != allowed.outputs.get(offset):
                problems.append(f"output {r.offset}: {found}, where {allowed.outputs.get(offset)} is expected")
            if offset in seen:
                if self._exactly_once:
                    problems.append(f"doubled: outputs {seen[offset]} and {r.offset} are both of input {offset}")
                continue
            if offset < highest and self._exactly_once:  # else a record that was given up comes again, after later ones
                problems.append(f"reordered: output {r.offset}, of input {offset}, comes after that of input {highest}")
            seen[offset], highest = r.offset, max(highest, offset)
        lost = [offset for offset in must.outputs if offset not in seen]
        if lost:
            problems.append(f"lost: {len(lost)} outputs, the first of input {lost[0]}")
        return problems

    def _table_size(self) -> int:
        if USERS not in self._sim.settings.stores:
            return -1
        partitions = range(len(self._sim.models)) if self._sim.settings.inputs[-1].broadcast else (self._partition,)
        return sum(len({r.key for r in self._history.records(TABLE, partition)}) for partition in partitions)

    def _state(self, must: Model) -> list[str]:
        found = {name: _folded(self._history.now(topic, self._partition)) for name, topic in self._history.changelogs.items()}
        chain = {k.decode(): json.loads(v) for k, v in found[CHAIN].items()}
        counts = {k.decode(): _integer(v) for k, v in found[COUNTS].items() if not k.startswith(ENDED.encode())}
        problems = _differences("changelog of chain", must.chain(), chain) + _differences("changelog of counts", must.counts, counts)
        if USERS in found:
            table = _folded(self._history.now(TABLE, self._partition))
            problems += _differences("changelog of users", table, found[USERS])
        return problems

    def _ends(self, completed: Collection[str]) -> list[str]:
        folded = _folded(self._history.now(self._history.changelogs[COUNTS], self._partition))
        counted = {k.decode()[len(ENDED) :]: _integer(v) for k, v in folded.items() if k.startswith(ENDED.encode())}
        sent: dict[str, int] = {}
        for r in self._history.records(ENDS, self._partition):
            run = (r.key or b"").decode()
            sent[run] = sent.get(run, 0) + 1
        problems = [f"end_of_stream() took effect {n} times in {run}" for run, n in counted.items() if n != 1]
        runs = {*counted, *completed, *(c.ended_run_id for c in self._checkpoints if c.ended_run_id)}
        for run in sorted(runs):
            if counted.get(run, 0) < 1:
                problems.append(f"end_of_stream() of {run} has left nothing in the store")
            if sent.get(run, 0) < 1 or (self._exactly_once and sent[run] > 1):
                problems.append(f"end_of_stream() of {run} sent {sent.get(run, 0)} records")
        return problems


def _local_stores(sim: Simulation, history: History) -> list[str]:
    """Every store on every disk that may be used again holds what its changelog held up to the position that it claims."""
    problems = []
    for (host, task, store), generations in sim.disk.places.items():
        topic = history.changelogs.get(store)
        if topic is None:
            continue
        records = history.records(topic, sim.models[task].partition)
        is_signed = serde_named(sim.settings.stores[store].key, ()).key_order == "signed"
        for generation in generations.values():
            if not generation.set_aside and generation.durable_stamp is not None:
                where = f"local store {store} of {task} on {host}, generation {generation.name}"
                problems += [
                    f"{where}: {p}" for p in _against(generation, records, sim.end(TopicPartition(topic, sim.models[task].partition)), is_signed)
                ]
    return problems


def _against(generation: Generation, records: Sequence[Kept], end: int, is_signed: bool) -> list[str]:
    """A key that was written again later may have been cleaned away before the store read it, so it is not looked at. `is_signed`: numbers, whose
    sign bit a store turns over."""
    stamp = generation.durable_stamp
    assert stamp is not None
    if stamp.position > end:
        return [f"it claims position {stamp.position}, its changelog ends at {end}"]
    later = {r.key for r in records if r.offset >= stamp.position}
    must = _folded([r for r in records if r.offset < stamp.position])
    durable = {bytes((k[0] ^ 0x80, *k[1:])) if is_signed else k: v for k, v in generation.durable.items()}
    found = {k: v for k, v in durable.items() if k not in later}
    return _differences(f"at {stamp.position}", {k: v for k, v in must.items() if k not in later}, found)


def _folded(records: Sequence[Kept]) -> dict[bytes, bytes]:
    state: dict[bytes, bytes] = {}
    for r in records:
        if r.key is None or r.key == BARRIER_KEY:
            continue
        if r.value is None:
            state.pop(r.key, None)
        else:
            state[r.key] = r.value
    return state


def _differences(what: str, must: Mapping[Any, Any], found: Mapping[Any, Any]) -> list[str]:
    wrong = [k for k in sorted({*must, *found}) if must.get(k) != found.get(k)]
    if not wrong:
        return []
    key = wrong[0]
    return [f"{what}: {len(wrong)} entries differ, the first: {key!r} is {found.get(key)!r}, where {must.get(key)!r} is expected"]


def _integer(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)
