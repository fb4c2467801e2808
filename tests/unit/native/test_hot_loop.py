"""The hot loop, and what is done with many messages at once, beside the functions in Python; with messages of the Kafka client, and with those in memory."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message

from samzapy import native
from samzapy.api.envelope import SystemStreamPartition
from samzapy.container.batches import envelopes_of
from samzapy.container.collector import Collector
from samzapy.container.envelopes import LazyEnvelope, RecordEnvelope
from samzapy.container.hot_loop import RELEASE_RECORDS, PythonHotLoop, hot_loop, in_a_row
from samzapy.container.requests import Requests
from samzapy.container.spec import OutputSpec
from samzapy.kafka.consumer import _has_error
from samzapy.model.offsets import TopicPartition
from samzapy.serde.registry import serde_named
from samzapy.store.memory import MemoryEngine
from samzapy.store.overlay import OverlayStore
from samzapy.testing.memory_partition import MemoryMessage
from tests.unit.native.pairs import needs_native, outcome

pytestmark = needs_native
LATER = float("inf")


def client_message(topic: str, partition: int, offset: int, key: bytes | None, value: bytes | None) -> Any:
    return Message(topic=topic, partition=partition, offset=offset, key=key, value=value)


def memory_message(topic: str, partition: int, offset: int, key: bytes | None, value: bytes | None) -> Any:
    return MemoryMessage(TopicPartition(topic, partition), offset, key, value, 0, (), None)


MAKERS = [client_message, memory_message]


class Steps:
    """A clock that each look moves on by a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


class Side:
    """A loop with its own collector, store and task, which writes down what it is given."""

    def __init__(self, make_loop: Any, stores: int = 1, clock: Any = None) -> None:
        self.collector = Collector({"out": OutputSpec("out", serde_named("string", []), serde_named("json", []), 4, 500)})
        self.requests = Requests()
        self.clock = clock or Steps()
        self.seen: list[Any] = []
        self.does: dict[int, Any] = {}
        self.stores = tuple(
            OverlayStore(f"s{n}", MemoryEngine(), serde_named("string", []), serde_named("json", []), 1 << 20, 500, "here", 1 << 20) for n in range(stores)
        )
        self.task_input: Any = SimpleNamespace(
            process=self.process, ssp=SystemStreamPartition("kafka", "in", 0), stores=self.stores, processed=5,
            decode_key=serde_named("string", []).decode, decode_value=serde_named("json", []).decode,
        )  # fmt: skip
        self.run = make_loop(self.collector, self.requests, self.clock)

    def process(self, envelope: Any, collector: Any, requests: Any) -> Any:
        assert (collector, requests, type(envelope)) == (self.collector, self.requests, RecordEnvelope)
        self.seen.append((envelope.key, envelope.message, envelope.offset, str(envelope.system_stream_partition)))
        for store in self.stores:
            store.put(envelope.key or "none", envelope.offset)
        collector.send("out", envelope.offset)
        return self.does[envelope.offset](self) if envelope.offset in self.does else None

    def take(self, batch: list[Any], begin: int, end: int, look_at: float) -> Any:
        return outcome(lambda: self.run(self.task_input, batch, begin, end, look_at))

    def state(self) -> Any:
        stores = [(store._live, store._bytes, len(store.writes), len(store.scans)) for store in self.stores]
        return (
            self.seen, self.run.index, self.collector.kept, self.collector.pending, self.task_input.processed, stores, self.requests.pending,
            None if self.clock is None else self.clock.monotonic(),
        )  # fmt: skip


def raises(error: BaseException) -> Any:
    def do(side: Side) -> None:
        raise error

    return do


def commits(side: Side) -> None:
    side.requests.commit()


def scans(side: Side) -> None:
    side.scan = side.stores[0].all()  # type: ignore[attr-defined]


def sends_much(side: Side) -> None:
    for n in range(RELEASE_RECORDS):
        side.collector.send("out", n)


DOES = [raises(ValueError("no")), raises(MemoryError("no")), commits, scans, sends_much, lambda side: "returned", lambda side: side]


def batch_of(make: Any, draw: random.Random, records: int) -> list[Any]:
    batch, topic, partition = [], "in", 0
    for offset in range(records):
        if draw.random() < 0.1:
            topic, partition = draw.choice(["in", "on", "other"]), draw.choice([0, 1, 300])
        key, value = draw.choice([None, b"a", b"b", b"\xff"]), draw.choice([None, b"1", b'{"a":2}', b"{"])
        if draw.random() < 0.8:
            key, value = b"k", b"1"
        batch.append(make(topic, partition, offset, key, value))
    return batch


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("stores", [0, 1, 3, 11])
def test_random_batches_are_taken_as_by_the_loop_in_python(make: Any, stores: int) -> None:
    for seed in range(40):
        draw = random.Random(seed)
        batch = batch_of(make, draw, 40)
        does = {draw.randrange(40): draw.choice(DOES) for _ in range(draw.randrange(4))}
        if not stores:
            does = {offset: does[offset] for offset in does if does[offset] is not scans}
        one, other = Side(hot_loop, stores), Side(PythonHotLoop, stores)
        assert type(one.run) is native.hot_path.HotLoop
        one.does = other.does = does
        begin = 0
        while begin < len(batch):
            look_at = one.clock.now + draw.choice([1, 3, 100])
            said = one.take(batch, begin, len(batch), look_at), other.take(batch, begin, len(batch), look_at)
            assert said[0] == said[1]
            assert one.state() == other.state()
            failed = said[0][0] is not int
            begin = one.run.index + 1 if failed else int(said[0][1])
            for side in (one, other):  # as processing.py does
                if failed:
                    for store in side.stores:
                        store.undo()
                    side.collector.drop()
                side.requests.clear()
                if side.collector.kept >= RELEASE_RECORDS:
                    side.collector.clear()
                for store in side.stores:
                    store.keep()


def test_the_real_clock_is_looked_at() -> None:
    import time

    clock = SimpleNamespace(monotonic=time.monotonic)
    batch = [client_message("in", 0, n, b"k", b"1") for n in range(10)]
    side = Side(hot_loop, 1, clock)
    assert side.take(batch, 0, 10, time.monotonic() + 60) == (int, "10")
    assert side.take(batch, 0, 10, time.monotonic() - 1) == (int, "1")


def test_what_ends_a_process_comes_through() -> None:
    side = Side(hot_loop)
    side.does = {2: raises(KeyboardInterrupt())}
    batch = [client_message("in", 0, n, b"k", b"1") for n in range(5)]
    with pytest.raises(KeyboardInterrupt):
        side.run(side.task_input, batch, 0, 5, LATER)
    assert (side.run.index, side.collector.kept, side.task_input.processed, len(side.stores[0].writes)) == (2, 2, 7, 1)


@pytest.mark.parametrize("args", [(0, 0), (3, 2), (-1, 2), (0, 6)])
def test_records_that_are_not_there_are_refused(args: tuple[int, int]) -> None:
    side = Side(hot_loop)
    with pytest.raises(IndexError):
        side.run(side.task_input, [client_message("in", 0, n, b"k", b"1") for n in range(5)], *args, LATER)
    assert side.seen == []


def test_a_batch_that_its_hook_empties_ends_there() -> None:
    batch = [client_message("in", 0, n, b"k", b"1") for n in range(5)]
    side = Side(hot_loop)
    side.does = {1: lambda side: batch.clear()}
    assert side.take(batch, 0, 5, LATER) == (int, "2")


@pytest.mark.parametrize("make", MAKERS)
def test_rows_of_one_partition_are_found(make: Any) -> None:
    for seed in range(50):
        draw = random.Random(seed)
        batch = batch_of(make, draw, 30)
        begin = draw.randrange(30)
        end = draw.randrange(begin + 1, 31)
        assert [m.offset() for m in in_a_row(batch, begin, end)] == [m.offset() for m in in_a_row(tuple(batch), begin, end)]


@pytest.mark.parametrize("make", MAKERS)
def test_envelopes_of_a_batch(make: Any) -> None:
    task_input: Any = SimpleNamespace(
        task=SimpleNamespace(takes_raw_records=False), ssp=SystemStreamPartition("kafka", "in", 0), decode_key=bytes.decode,
        decode_value=serde_named("json", []).decode,
    )  # fmt: skip
    good = [make("in", 0, 1, b"a", b"1"), make("in", 0, 2, None, None)]
    found = envelopes_of(good, task_input)
    assert [(type(e), e.key, e.message, e.offset) for e in found] == [(RecordEnvelope, "a", 1, 1), (RecordEnvelope, None, None, 2)]
    assert repr(found) == repr(envelopes_of(tuple(good), task_input))
    bad = envelopes_of([*good, make("in", 0, 3, b"a", b"{")], task_input)
    assert [type(e) for e in bad] == [LazyEnvelope] * 3
    assert envelopes_of([], task_input) == []


def test_messages_that_stand_for_errors_are_found() -> None:
    from confluent_kafka import KafkaError

    good = client_message("in", 0, 1, b"a", b"1")
    bad = Message(topic="in", partition=0, error=KafkaError(KafkaError._PARTITION_EOF))
    for batch in ([], [good], [bad], [good, bad], [bad, good]):
        assert native.hot_path.has_error(batch) is _has_error(batch)
