"""A trace of a task's next records tells what was committed, and changes nothing of it."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from samzapy.api.task import StreamTask
from samzapy.container.container import Container
from samzapy.container.inside import Doing, Inside
from samzapy.container.tracing import MAX_EFFECTS, MAX_RECORDS, MAX_TEXT, shown
from samzapy.model.offsets import TopicPartition
from samzapy.readers import read_to_end
from tests.unit.container.bench import JOB, Bench

SECONDS = 60.0


class Sums(StreamTask):
    """Adds up by key; a value of −1 fails, 0 deletes."""

    def init(self, context: Any) -> None:
        self.store = context.get_store("s")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        if envelope.message == -1:
            raise ValueError("no such price")
        total = None if envelope.message == 0 else self.store.get(envelope.key, 0) + envelope.message
        self.store.put(envelope.key, total)
        collector.send("out", total, key=envelope.key)


class Batches(Sums):
    def process_batch(self, envelopes: Any, collector: Any, coordinator: Any) -> None:
        for envelope in envelopes:
            self.process(envelope, collector, coordinator)


class Many(StreamTask):
    def init(self, context: Any) -> None:
        self.store = context.get_store("s")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        for n in range(50):
            self.store.put(f"{n:03}" * 200, n)
            collector.send("out", n, key=f"{n}")


def drained(bench: Bench, container: Container) -> None:
    bench.drain(container)
    container.commit()


@pytest.mark.parametrize("task", [Sums, Batches])
def test_it_tells_key_value_puts_and_sends_of_the_next_records(tmp_path: Path, task: type[StreamTask]) -> None:
    bench = Bench(tmp_path, task)
    bench.feed(("a", 1), ("b", 2))
    container = bench.start()
    drained(bench, container)
    container.tracing.ask("Partition 0", 3, SECONDS)
    assert container.tracing.over() is None
    bench.feed(("a", 10), ("a", 5), ("b", 0), ("a", 1000))
    drained(bench, container)

    traced = container.tracing.over()
    assert traced is not None
    assert ["in[0]@2", "in[0]@3", "in[0]@4"] == [one["record"] for one in traced]
    assert [('"a"', "10"), ('"a"', "5"), ('"b"', "0")] == [(one["key"], one["value"]) for one in traced]
    assert [("1", "11"), ("11", "16"), ("2", "null")] == [(put["old"], put["new"]) for one in traced for put in one["puts"]]
    sent = [("out", 0, one["sent"][0]["key"], one["sent"][0]["value"]) for one in traced]
    assert sent == [(s["topic"], s["partition"], s["key"], s["value"]) for one in traced for s in one["sent"]]
    assert ["11", "16", "null"] == [value for *_, value in sent]
    assert [("a", 11), ("a", 16), ("b", None), ("a", 1016)] == bench.read("out")[2:]
    assert not container.tracing.is_on
    container.close()


def test_a_record_that_fails_is_told_with_its_error_and_each_attempt(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums, retries=2, on_error="skip")
    container = bench.start()
    container.tracing.ask("Partition 0", 2, SECONDS)
    bench.feed(("a", -1), ("a", 4))
    bench.drain(container)
    traced = container.tracing.over() or []
    assert [("in[0]@0", "ValueError: no such price")] * 3 + [("in[0]@1", "")] == [(one["record"], one["error"]) for one in traced]
    assert [[]] * 3 == [one["sent"] for one in traced[:3]]
    container.close()


def test_a_record_that_cannot_be_decoded_is_told_as_bytes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums, on_error="skip")
    container = bench.start()
    container.tracing.ask("Partition 0", 1, SECONDS)
    bench.feed_raw(b"abc")
    bench.drain(container)
    (one,) = container.tracing.over() or []
    assert ("b'abc'", None) == (one["value"], one["us"])
    assert "decoded" in one["error"]
    container.close()


def test_only_the_task_that_was_named_is_traced_and_only_for_a_while(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums, partitions=2)
    container = bench.start()
    container.tracing.ask("Partition 1", 5, SECONDS)
    bench.feed(("a", 1))
    bench.drain(container)
    assert container.tracing.over() is None
    bench.feed(("b", 1), partition=1)
    bench.drain(container)
    assert container.tracing.over() is None
    container.tracing._until = 0.0  # as if the time were over
    assert ["in[1]@0"] == [one["record"] for one in container.tracing.over() or []]
    bench.feed(("b", 1), partition=1)
    bench.drain(container)
    assert 1 == len(container.tracing.over() or [])
    container.close()


def test_one_at_a_time_and_bounded(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Many)
    container = bench.start()
    container.tracing.ask("Partition 0", 10**9, SECONDS)
    with pytest.raises(Exception, match="is being traced already"):
        container.tracing.ask("Partition 0", 1, SECONDS)
    bench.feed(*[("a", 1)] * (MAX_RECORDS + 5))
    bench.drain(container)
    traced = container.tracing.over() or []
    assert MAX_RECORDS == len(traced)
    assert (MAX_EFFECTS, MAX_EFFECTS, 60) == (len(traced[0]["puts"]), len(traced[0]["sent"]), traced[0]["more"])
    assert len(traced[0]["puts"][0]["key"]) <= MAX_TEXT + 1
    container.close()


Ask = Callable[[Container], None]


def history(folder: Path, seed: int, ask: Ask) -> dict[str, list[Any]]:
    """What a container leaves in Kafka that is fed at random, and where it stands; `ask` is called before each of its steps."""
    chance = random.Random(seed)
    bench = Bench(folder, Batches if seed % 2 else Sums, partitions=2, retries=1, on_error="dead_letter")
    container = bench.start()
    for _ in range(150):
        for _ in range(chance.randrange(5)):
            bench.feed((chance.choice("abc"), chance.choice([-1, 0, 1, 2, 3])), partition=chance.randrange(2))
        ask(container)
        container.step(0.0)
        if chance.random() < 0.1:
            container.commit()
    drained(bench, container)
    positions = container._report.positions()
    kept = {task: sorted(instance.stores["s"].all()) for task, instance in container.tasks.items()}
    container.close()
    topics = ("out", JOB.dead_letter_topic, JOB.changelog_topic("s"))
    found: dict[str, list[Any]] = {f"{t}[{p}]": records(bench, t, p) for t in topics for p in range(2)}
    return {**found, **kept, "positions": sorted((t, str(p), o) for t, at in positions.items() for p, o in at.items())}


def nothing(container: Container) -> None:
    """Nobody asks."""


@pytest.mark.parametrize("seed", range(4))
def test_questions_change_nothing(tmp_path: Path, seed: int) -> None:
    """The same feed with and without traces at random moments: the same outputs, changelog, dead letters, state and positions."""
    asked = random.Random(seed + 1000)

    def ask(container: Container) -> None:
        if not container.tracing.is_on:
            container.tracing.ask(f"Partition {asked.randrange(2)}", asked.randrange(1, 9), SECONDS)

    assert history(tmp_path / "without", seed, nothing) == history(tmp_path / "with", seed, ask)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(4))
def test_neither_do_ten_thousand_that_come_by_the_line(tmp_path: Path, seed: int) -> None:
    """Good ones, and whatever else could be sent: a fourth of them for each seed."""
    asked, answered = random.Random(seed + 2000), Counter[str]()
    insides: dict[int, Inside] = {}

    def ask(container: Container) -> None:
        doing = Doing("process", 0.1)
        inside = insides.setdefault(id(container), Inside(threading.get_ident(), lambda: doing, lambda: container.tracing, None))
        for answer in inside.take([question(asked) for _ in range(17)]):
            answered["error" if "error" in answer else "found"] += 1

    assert history(tmp_path / "without", seed, nothing) == history(tmp_path / "with", seed, ask)
    assert sum(answered.values()) >= 2400
    assert min(answered["found"], answered["error"]) >= 200


def question(chance: random.Random) -> dict[str, Any]:
    """One of those that are answered, or one that nobody should have sent."""
    odd = [None, "", -1, 10**400, float("nan"), "Partition 0", "Partition 1", "Partition 9", [], {"a": 1}, "commit", "'; drop", "../..", True]
    kind = chance.choice(["stack", "trace", "trace", "profile", "put", "commit", "seek", "stop", chance.choice(odd)])
    good = {"id": f"q{chance.random()}", "kind": kind, "task": f"Partition {chance.randrange(2)}", "records": chance.randrange(1, 9), "seconds": 1}
    for name in chance.sample(sorted(good), chance.choice([0, 0, 1, 2])):
        good[name] = chance.choice(odd)
    return good


def records(bench: Bench, topic: str, partition: int) -> list[tuple[Any, Any]]:
    batches = read_to_end(bench.log.restore_consumer("t"), TopicPartition(topic, partition), bench.clock)
    return [(m.key(), m.value()) for batch in batches for m in batch if b"barrier" not in (m.key() or b"")]


def test_whatever_a_value_is_it_can_be_shown() -> None:
    class Strange:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    assert ('"a\\u0000b"', "b'x'", "null", "9223372036854775807") == (shown("a\0b"), shown(b"x"), shown(None), shown(2**63 - 1))
    assert "a Strange whose repr() raises ZeroDivisionError" == shown(Strange())
