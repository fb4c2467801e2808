"""Records that fail at awkward places: in a bootstrap, at the end, during a release, with an abort, with a hook or a store that fails too."""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, RequestScope, StreamTask, SystemStream, TaskError
from samzapy.api.errors import LogError
from samzapy.container.container import Container
from samzapy.container.failure import described
from samzapy.model.dead_letter import Origin
from samzapy.ports import Instructions, Supervision, TaskStore
from tests.unit.container.bench import JOB, Bench

OUT = SystemStream("kafka", "out")


class Summing(StreamTask):
    """Sum per key in a store, every update sent; what begins with `boom` fails after both."""

    def init(self, context):
        self.sums = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        total = (self.sums.get(envelope.key) or 0) + envelope.message
        self.sums.put(envelope.key, total)
        collector.send(OutgoingMessageEnvelope(OUT, key=envelope.key, message=total, partition=envelope.partition))
        if envelope.key.startswith("boom"):
            raise ValueError(envelope.key)


def run_until_idle(bench: Bench, container: Container) -> None:
    """Run until nothing more comes, with commits when they are due: what is aborted is replayed."""
    idle = 0
    while idle < 3 and not container.finished:
        bench.clock.passed += 0.0 if container.step(0.0) else 2.0
        idle = 0 if not container.finished and container.step(0.0) else idle + 1


def origins(bench: Bench, partition: int = 0) -> list[tuple[str, int]]:
    return [(letter.origin.topic, letter.origin.offset) for letter in bench.letters(partition)]


# -- a bootstrap input --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_bad_record_anywhere_in_a_bootstrap_is_set_aside_and_the_gate_opens(tmp_path: Path, bad: int) -> None:
    bench = Bench(tmp_path, Summing, inputs={"in": {}, "users": {"bootstrap": True}}, on_error="dead_letter")
    bench.feed(("v", 1))
    bench.feed(*((f"boom{i}" if i == bad else f"u{i}", 1) for i in range(3)), topic="users")
    bench.drain(bench.start())
    assert [("users", bad)] == origins(bench)
    assert [*(f"u{i}" for i in range(3) if i != bad), "v"] == [key for key, _ in bench.read("out")]


def test_a_bootstrap_that_is_read_anew_at_each_start_sets_a_bad_record_aside_once(tmp_path: Path) -> None:
    settings = {"inputs": {"in": {}, "users": {"bootstrap": True}}, "stores": {"s": {"changelog": False}}, "on_error": "dead_letter"}
    bench = Bench(tmp_path, Summing, **settings)  # type: ignore[arg-type]
    bench.feed(("u1", 1), ("boom", 1), ("u2", 1), topic="users")
    for _ in range(3):
        container = bench.start()
        bench.drain(container)
        container.close()
    bench.feed(("boom again", 1), topic="users")
    bench.drain(bench.start())
    assert [("users", 1), ("users", 3)] == origins(bench)


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("stores", [{"s": {}, "t": {"changelog": False}}, {}])
def test_a_bootstrap_that_is_read_anew_at_each_start_counts_once(tmp_path: Path, stores: dict[str, dict[str, object]], batches: bool) -> None:
    class Both(StreamTask):
        """Sums in each store there is; a store without a changelog must be filled anew by what comes again."""

        def init(self, context):
            self.stores = {name: context.get_store(name) for name in stores}

        def process(self, envelope, collector, coordinator):
            for store in self.stores.values():
                store.update_with(envelope.key, lambda total: total + envelope.message, 0)
            collector.send("out", envelope.message, envelope.key)

    class BothBatches(Both):
        def process_batch(self, envelopes, collector, coordinator):
            for envelope in envelopes:
                self.process(envelope, collector, coordinator)

    bench = Bench(tmp_path, BothBatches if batches else Both, inputs={"in": {}, "users": {"bootstrap": True}}, stores=stores)
    for number in range(3):
        container = bench.start()
        bench.drain(container)
        container.close()  # as after a kill
        bench.feed((f"k{number}", 1), ("k", 1), topic="users")
        bench.feed(("k", 10))
    container = bench.start()
    bench.drain(container)
    sent = sorted(bench.read("out"))
    assert sorted([("k", 1), ("k", 10)] * 3 + [(f"k{n}", 1) for n in range(3)]) == sent
    of = {name: dict(store.all()) for task in container.tasks.values() for name, store in task.stores.items()}
    if stores:
        assert {"k": 33, "k0": 1, "k1": 1, "k2": 1} == of["s"]
        assert {"k": 13, "k0": 1, "k1": 1, "k2": 1} == of["t"], "the bootstrap's records, and what came after the start"


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("scope", list(RequestScope))
@pytest.mark.parametrize("stores", [{"s": {"changelog": False}}, {}])
def test_a_bootstrap_record_that_asks_for_shutdown_stops_one_run_and_not_those_that_read_it_again(
    tmp_path: Path, stores: dict[str, dict[str, object]], scope: RequestScope, batches: bool
) -> None:
    class Stopping(StreamTask):
        def process(self, envelope, collector, coordinator):
            collector.send("out", envelope.message, envelope.key)
            if envelope.key == "shut":
                coordinator.shutdown(scope)

    class StoppingBatches(Stopping):
        def process_batch(self, envelopes, collector, coordinator):
            for envelope in envelopes:
                self.process(envelope, collector, coordinator)

    bench = Bench(tmp_path, StoppingBatches if batches else Stopping, inputs={"in": {}, "users": {"bootstrap": True}}, stores=stores)
    if batches:
        bench.feed(("shut", 1), topic="users")  # a batch that asks for shutdown is all done: so the record comes alone here
    else:
        bench.feed(("a", 1), ("shut", 2), ("c", 3), topic="users")
    bench.feed(("m", 1))
    sent = []
    for number in range(3):
        bench.run_id = f"run {number}"
        container = bench.start({"users[0]": 1 if batches else 3, "in[0]": 1})
        bench.drain(container)
        assert container.finished, "a bounded run ends"
        sent.append([key for key, _ in bench.read("out")])
    first = ["shut"] if batches else ["a", "shut"]
    everything = ["shut", "m"] if batches else ["a", "shut", "c", "m"]
    assert [first, everything, everything] == sent


@pytest.mark.parametrize("then", ["skip", "dead_letter"])
def test_the_log_says_that_nothing_is_written_of_a_bad_record_that_is_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, then: str
) -> None:
    settings = {"inputs": {"in": {}, "users": {"bootstrap": True}}, "stores": {"s": {"changelog": False}}, "on_error": then}
    bench = Bench(tmp_path, Summing, **settings)  # type: ignore[arg-type]
    bench.feed(("boom", 1), topic="users")
    said, actions = [], []
    for _ in range(2):
        caplog.clear()
        container = bench.start()
        bench.drain(container)
        said.append([r.getMessage() for r in caplog.records if "users[0]@0" in r.getMessage()])
        actions += [one["action"] for one in container.status()["news"] if "action" in one]
    ((first,), (again,)) = said
    assert ("set aside in test-1-dead-letter" if then == "dead_letter" else "skipped: record") in first
    assert "ignored, no dead letter" in again
    assert not [words for words in ("set aside", "skipped") if words in again]
    assert ["set aside" if then == "dead_letter" else "skipped", "ignored when it was read again"] == actions


def test_a_store_without_a_changelog_is_filled_once_by_a_bootstrap_that_is_read_again_after_an_abort(tmp_path: Path) -> None:
    class Told(Summing):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            collector.send("out", sum(total for _, total in self.sums.all()), "all", partition=0)

    bench = Bench(tmp_path, Told, inputs={"in": {}, "users": {"bootstrap": True}}, stores={"s": {"changelog": False}}, on_error="skip")
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    bench.feed(("a", 1), ("a", 1), ("x" * 600, 5), ("a", 1), topic="users")
    bench.feed(("b", 10))
    run_until_idle(bench, bench.start())
    assert [1, 2, 3, 13] == [value for key, value in bench.read("out") if key == "all"]


# -- the end of a bounded run -------------------------------------------------------------------------------------------------------


class Ending(Summing):
    """Says when its inputs have ended."""

    def end_of_stream(self, collector, coordinator):
        collector.send(OutgoingMessageEnvelope(OUT, key="end", message=0, partition=0))


@pytest.mark.parametrize("then", ["skip", "dead_letter"])
def test_a_bad_record_that_is_the_last_before_the_end(tmp_path: Path, then: str) -> None:
    bench = Bench(tmp_path, Ending, on_error=then)
    bench.feed(("a", 1), ("boom", 1), ("beyond", 1))
    container = bench.start({"in[0]": 2})
    bench.drain(container)
    assert container.finished
    assert [("a", 1), ("end", 0)] == bench.read("out")
    assert ([("in", 1)] if then == "dead_letter" else []) == origins(bench)
    assert 2 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize("retries", [0, 2])
def test_a_record_that_kafka_refuses_and_that_is_the_last_before_the_end(tmp_path: Path, exactly_once: bool, retries: int) -> None:
    bench = Bench(tmp_path, Ending, on_error="dead_letter", exactly_once=exactly_once, retries=retries)
    bench.feed(*((f"k{i}", 1) for i in range(40)), ("x" * 600, 1), ("beyond", 1))
    container = bench.start({"in[0]": 41})
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    run_until_idle(bench, container)
    assert container.finished
    assert [("in", 40)] == origins(bench)
    expected = [*((f"k{i}", 1) for i in range(40)), ("end", 0)]
    assert expected == bench.read("out") if exactly_once else set(expected) == set(bench.read("out"))
    assert 41 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset


# -- orders and other hooks in between ----------------------------------------------------------------------------------------------


def test_a_release_that_is_ordered_while_a_record_is_tried_again_leaves_it_to_the_next_owner(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, partitions=2, retries=30, on_error="dead_letter")
    bench.feed(("a", 1), ("boom", 1), ("b", 1))
    bench.feed(("c", 1), partition=1)
    spec = bench.spec()
    bench.name(0, "i", spec.tasks)
    instructions = iter(itertools.chain([Instructions()] * 20, itertools.repeat(Instructions(bench.epoch, frozenset({"Partition 0"})))))
    container = Container(spec, "i", "run", None, bench.log, bench.clock, supervision=Supervision(instructions=lambda: next(instructions)))
    container.start()
    run_until_idle(bench, container)
    assert ["Partition 0"] == container.status()["released"]
    assert ([("a", 1)], []) == (bench.read("out"), bench.letters()), "the record in question is not given up yet"
    assert [("c", 1)] == bench.read("out", 1)
    container.close()
    bench.settings["retries"] = 0
    bench.drain(bench.start())
    assert [("a", 1), ("b", 1)] == bench.read("out")
    assert [("in", 1)] == origins(bench)


def test_a_window_that_raises_while_a_record_is_tried_again_stops_the_job_by_its_own_name(tmp_path: Path) -> None:
    class Windowed(Summing):
        def window(self, collector, coordinator):
            self.sums.put("window", 1)
            raise RuntimeError("no window")

    bench = Bench(tmp_path, Windowed, retries=30, window_s=0.5, on_error="skip")
    bench.feed(("a", 1), ("boom", 1), ("b", 1))
    container = bench.start()
    with pytest.raises(TaskError, match=r"Partition 0: window failed: RuntimeError: no window"):
        bench.drain(container)
    container.stop()  # what its runner does
    assert {"a": 1} == bench.changelog()
    assert 1 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset
    bench.task, bench.settings["retries"] = Summing, 0
    bench.drain(bench.start())
    assert {"a": 1, "b": 1} == bench.changelog()
    assert [("a", 1), ("b", 1)] == bench.read("out")


# -- with an abort ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_record_that_fails_only_before_or_only_after_an_abort_ends_once(tmp_path: Path, fails_at: int) -> None:
    calls = Counter[str]()

    class Moody(Summing):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            calls[envelope.key] += 1
            if envelope.key == "moody" and calls["moody"] == fails_at:
                raise ValueError("not now")

    bench = Bench(tmp_path, Moody, on_error="dead_letter")
    bench.feed(("a", 1), ("moody", 1), ("b", 1))
    container = bench.start()
    bench.cluster.fail_next("commit", "aborted")
    run_until_idle(bench, container)
    assert 2 == calls["moody"]
    assert ([] if fails_at == 1 else [("in", 1)]) == origins(bench)
    assert ({"a": 1, "moody": 1, "b": 1} if fails_at == 1 else {"a": 1, "b": 1}) == bench.changelog()
    assert (1 if fails_at == 2 else 0) == container.status()["tasks"][0]["dead_letters"]


def test_one_that_kafka_refuses_does_not_hold_up_the_other_partitions_record_by_record(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, partitions=2, on_error="skip", retries=0)
    container = bench.start()
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    bench.feed(("x" * 600, 1), partition=1)
    bench.feed(*((f"k{i}", 1) for i in range(5000)), partition=0)
    run_until_idle(bench, container)
    assert 5000 == len(bench.read("out", 0))
    assert 1 == container.status()["tasks"][1]["skipped"]
    assert container.status()["commits"] < 100


# -- what ends more than the record -------------------------------------------------------------------------------------------------


class Odd(BaseException):
    """No Exception."""


class NoRoom(MemoryError):
    """As numpy's."""


@pytest.mark.parametrize("error", [SystemExit(0), asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit(), Odd(), NoRoom("full")])
@pytest.mark.usefixtures("without_ctrl_c")
def test_what_would_end_the_process_is_the_records_failure_all_the_same(tmp_path: Path, error: BaseException) -> None:
    class Leaving(Summing):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            if envelope.key == "leave":
                raise error

    bench = Bench(tmp_path, Leaving, on_error="dead_letter")
    bench.feed(("a", 1), ("leave", 1), ("b", 1))
    bench.drain(bench.start())
    assert [type(error).__name__] == [letter.error.split(":")[0] for letter in bench.letters()]
    assert {"a": 1, "b": 1} == bench.changelog()


@pytest.fixture
def without_ctrl_c() -> Iterator[None]:
    """As in a container's process."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_persons_ctrl_c_is_no_records_failure(tmp_path: Path) -> None:
    class Interrupted(Summing):
        def process(self, envelope, collector, coordinator):
            raise KeyboardInterrupt

    bench = Bench(tmp_path, Interrupted, on_error="skip")
    bench.feed(("a", 1))
    container = bench.start()
    with pytest.raises(KeyboardInterrupt):
        bench.drain(container)


def test_what_failed_for_want_of_memory_is_tried_once_more_when_what_was_held_is_committed(tmp_path: Path) -> None:
    short = []

    class Hungry(Summing):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            if envelope.key == "large" and not short:
                short.append(dict(bench.read("out")))
                raise MemoryError

    bench = Bench(tmp_path, Hungry)
    bench.feed(("a", 1), ("large", 1), ("b", 1))
    bench.drain(bench.start())
    assert [{}] == short
    assert [("a", 1), ("large", 1), ("b", 1)] == bench.read("out")


@pytest.mark.parametrize("error", [SystemExit("no licence"), Odd("no licence")])
def test_a_hook_that_would_end_the_process_is_named(tmp_path: Path, error: BaseException) -> None:
    class Leaving(Summing):
        def init(self, context):
            raise error

    with pytest.raises(TaskError, match=f"init failed: {type(error).__name__}: no licence"):
        Bench(tmp_path, Leaving).start()


def test_an_error_of_kafkas_in_the_middle_of_a_batch_leaves_nothing_half_committed(tmp_path: Path) -> None:
    """Of the log, not of the record: nothing is passed by, and whoever stops the container commits up to that record, no further."""
    failing = iter([True])

    class Failing:
        def __init__(self, store: TaskStore) -> None:
            self._store = store

        def __getattr__(self, name: str) -> object:
            return getattr(self._store, name)

        def get(self, key: str) -> object:
            if key == "k7" and next(failing, False):
                raise LogError("somebody's broker is away.", "")
            return self._store.get(key)

    bench = Bench(tmp_path, Summing, on_error="skip")
    store = bench.spec().stores["s"]
    bench.adjust = lambda spec: replace(spec, stores={"s": replace(store, make=lambda task, engine: Failing(store.make(task, engine)))})  # type: ignore[arg-type,return-value]
    bench.feed(*((f"k{i % 10}", 1) for i in range(20)))
    container = bench.start()
    with pytest.raises(LogError, match="somebody's broker"):
        bench.drain(container)
    container.stop()
    assert {f"k{i}": 1 for i in range(7)} == bench.changelog()
    assert 7 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset
    bench.drain(bench.start())
    assert {f"k{i}": 2 for i in range(10)} == bench.changelog()
    assert 20 == len(bench.read("out"))


# -- what is said of it -------------------------------------------------------------------------------------------------------------


def test_an_exception_that_quotes_megabytes_is_told_in_short(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Quoting(StreamTask):
        def process(self, envelope, collector, coordinator):
            raise ValueError("x" * 20_000_000)

    bench = Bench(tmp_path, Quoting, on_error="skip")
    bench.feed(("a", 1))
    with caplog.at_level(logging.WARNING):
        bench.drain(bench.start())
    [line] = [r.getMessage() for r in caplog.records if "skipped" in r.getMessage()]
    assert len(line) < 3000
    bench.settings["on_error"] = "fail"
    bench.feed(("a", 1))
    with pytest.raises(TaskError) as raised:
        bench.drain(bench.start())
    assert len(str(raised.value)) < 3000


def test_a_refused_broadcast_record_whose_dead_letter_only_one_task_can_write_is_written_by_it_once(tmp_path: Path) -> None:
    """The name of `Partition 10` is a byte longer than those before it, and the topic has no room for that byte, however short the letter."""
    bench = Bench(tmp_path, Summing, partitions=11, inputs={"in": {}, "rules": {}}, broadcast={"rules"}, on_error="dead_letter")
    bench.feed(("x" * 600, 1), topic="rules")
    container = bench.start()
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    run_until_idle(bench, container)
    [letter] = bench.letters(9)
    least = next(size for size in range(1, letter.size) if letter.fitted(size) is not None)
    container.close()

    other = Bench(tmp_path / "two", Summing, partitions=11, inputs={"in": {}, "rules": {}}, broadcast={"rules"}, on_error="dead_letter")
    other.cluster.configure(JOB.dead_letter_topic, {"max.message.bytes": str(least)})
    other.feed(("x" * 600, 1), topic="rules")
    container = other.start()
    other.cluster.configure("out", {"max.message.bytes": "500"})
    with pytest.raises(TaskError, match=r"Partition 10: record rules\[0\]@0 failed .* its dead letter cannot be written: .* limit of test-1-dead-letter"):
        run_until_idle(other, container)
    container.close()
    other.cluster.configure(JOB.dead_letter_topic, {"max.message.bytes": "5000"})
    container = other.start()
    run_until_idle(other, container)
    assert [[Origin("rules", 0, 0)]] * 11 == [[letter.origin for letter in other.letters(p)] for p in range(11)]


def test_a_text_that_quotes_a_record_writes_no_lines_of_the_log() -> None:
    assert r"ValueError: a\x1b[31m\nb é" == described(ValueError("a\x1b[31m\nb é"))
