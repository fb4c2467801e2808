"""Inputs that wait in the client, or that a bounded run ends: what the run loop asks the broker about them, and that none holds the others up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.states import TaskState
from samzapy.streams import App
from samzapy.testing import Harness
from samzapy.testing.memory_log import MemoryCluster, MemoryConsumer, MemoryLog
from samzapy.testing.memory_partition import MemoryMessage
from samzapy.testing.memory_producers import MemoryTransactionalProducer
from tests.unit.container.bench import Bench, HandClock

ANSWER_S = 0.5  # librdkafka's fetch.wait.max.ms: the broker answers a connection's requests one after the other
RECORD_S = 0.001


class BehindAFetch(MemoryConsumer):
    """Whatever it asks the broker waits for the answer to the fetch under way."""

    def __init__(self, cluster: MemoryCluster, group_id: str, clock: HandClock) -> None:
        super().__init__(cluster, group_id)
        self._clock = clock

    def poll(self, max_records: int, timeout_s: float) -> Sequence[MemoryMessage]:
        self._turn = -1  # as librdkafka's queue: what one fetch brought of a partition lies before what the next brought of another
        return super().poll(max_records, timeout_s)

    def bounds(self, partition: TopicPartition) -> Bounds:
        self._clock.sleep(ANSWER_S)
        return super().bounds(partition)

    def bounds_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        wanted = list(partitions)
        if wanted:
            self._clock.sleep(2 * ANSWER_S)
        return super().bounds_of(wanted)


class LogBehindFetches(MemoryLog):
    commit_s = 0.0

    def __init__(self, cluster: MemoryCluster, clock: HandClock) -> None:
        super().__init__(cluster)
        self._clock = clock

    def consumer(self, group_id: str, name: str, small: bool = False) -> MemoryConsumer:
        return BehindAFetch(self._cluster, group_id, self._clock)

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        producer = super().transactional_producer(transactional_id)
        return producer if not self.commit_s else SlowToCommit(producer, self._clock, self.commit_s)  # type: ignore[return-value]


class SlowToCommit:
    """A producer whose brokers take their time to commit."""

    def __init__(self, producer: MemoryTransactionalProducer, clock: HandClock, commit_s: float) -> None:
        self._producer, self._clock, self._commit_s = producer, clock, commit_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def commit(self) -> bool:
        self._clock.sleep(self._commit_s)
        return self._producer.commit()


class Slow(StreamTask):
    clock: Any = None

    def process(self, envelope, collector, coordinator):
        self.clock.sleep(RECORD_S)


def _slow_bench(state: Path, inputs: dict[str, dict[str, Any]]) -> Bench:
    task = type("SlowOn", (Slow,), {})
    bench = Bench(state, task, inputs=inputs)
    task.clock = bench.clock
    bench.log = LogBehindFetches(bench.cluster, bench.clock)
    return bench


@pytest.mark.parametrize("waiting", [1, 5])
def test_inputs_whose_records_wait_in_the_client_do_not_hold_the_others_up(tmp_path: Path, waiting: int) -> None:
    """The first input alone fills every poll for a long time."""
    others = [f"x{number}" for number in range(waiting)]
    bench = _slow_bench(tmp_path, {"in": {}, **{topic: {} for topic in others}})
    records = 6_000
    bench.feed(*(("k", number) for number in range(records)))
    for topic in others:
        bench.feed(("k", 1), topic=topic)
    container = bench.start({f"{topic}[0]": records if topic == "in" else 1 for topic in bench.input_settings})
    began = bench.clock.monotonic()
    while not container.finished:
        container.step()
    assert bench.clock.monotonic() - began < 1.5 * records * RECORD_S


def test_in_a_bounded_run_a_bootstrap_input_that_has_grown_since_ends_where_the_run_does(tmp_path: Path) -> None:
    got: list[tuple[str, int]] = []

    class Noting(StreamTask):
        def process(self, envelope, collector, coordinator):
            got.append((envelope.stream, envelope.message))

    bench = Bench(tmp_path, Noting, inputs={"in": {}, "users": {"bootstrap": True}})
    bench.feed(("a", 1), ("a", 2))
    bench.feed(("u", 10), ("u", 11), topic="users")
    ends = {"in[0]": 1, "users[0]": 1}
    container = bench.start(ends)
    bench.drain(container)
    assert container.finished
    assert [("users", 10), ("in", 1)] == got


@pytest.mark.parametrize("ends", [(3000, 2500, 2900), (3000, 700, 1), (1, 4000, 0)])
def test_a_bounded_run_gives_no_record_after_an_end(tmp_path: Path, ends: tuple[int, ...]) -> None:
    """Where many records come at once, they are not looked at one by one. The container stops and starts once."""
    got: list[tuple[int, int]] = []

    class Noting(StreamTask):
        def process(self, envelope, collector, coordinator):
            got.append((envelope.partition, envelope.offset))

    bench = Bench(tmp_path, Noting, partitions=3)
    producer = bench.log.transactional_producer("stranger")
    producer.init()
    for number in range(2000):  # each second offset is the end of a transaction, and no record
        producer.begin()
        for partition in range(3):
            producer.send("in", number.to_bytes(8, "big"), b"k", partition)
        producer.commit()
    asked = {f"in[{partition}]": end for partition, end in enumerate(ends)}
    container = bench.start(asked)
    for _ in range(3):
        container.step()
    container.stop()
    bench.drain(bench.start(asked))
    assert sorted(got) == [(partition, offset) for partition, end in enumerate(ends) for offset in range(0, end, 2)]


def test_a_window_that_takes_longer_than_its_interval_leaves_as_much_time_for_records(tmp_path: Path) -> None:
    class Windowed(Slow):
        def window(self, collector, coordinator):
            self.clock.sleep(1.0)

    bench = Bench(tmp_path, Windowed, window_s=0.1)
    Windowed.clock = bench.clock
    records = 3000
    bench.feed(*(("k", number) for number in range(records)))
    container = bench.start({"in[0]": records})
    began = bench.clock.monotonic()
    while not container.finished:
        container.step()
    assert bench.clock.monotonic() - began < 3 * records * RECORD_S


def test_an_open_transaction_is_told_of_even_while_another_input_keeps_the_container_busy(tmp_path: Path) -> None:
    bench = _slow_bench(tmp_path, {"in": {}, "other": {}})
    bench.feed(*(("k", number) for number in range(40_000)))
    stranger = bench.log.transactional_producer("stranger")
    stranger.init()
    stranger.begin()
    stranger.send("other", b"\0" * 8, b"k", 0)
    stranger.flush()
    container = bench.start()
    while bench.clock.monotonic() < 39:
        container.step()
    (task,) = container.status()["tasks"]
    assert "other[0]: another application's transaction is open at offset 0; the task waits for the records after it" == task["reason"]
    assert ["other", 0] == task["strangers"]


@pytest.mark.parametrize("records", [6000, 10])
def test_a_container_that_is_busy_with_other_things_while_records_wait_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, records: int
) -> None:
    """Every commit takes ten times its interval."""
    bench = _slow_bench(tmp_path, {"in": {}})
    bench.log = log = LogBehindFetches(bench.cluster, bench.clock)
    log.commit_s = 1.0
    bench.settings["commit_interval_s"] = 0.1
    bench.feed(*(("k", number) for number in range(records)))
    container = bench.start()
    while bench.clock.monotonic() < 50:
        container.step()
    (task,) = container.status()["tasks"]
    told = "went to other work than records: commit 9"
    is_said = records > 1000
    assert (is_said, is_said) == (told in task["reason"], told in caplog.text)
    assert caplog.text.count(told) <= 1


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("commits", [True, False])
def test_a_table_is_read_to_what_lay_in_its_topic_though_another_applications_transaction_is_open_there(broadcast: bool, before: int, commits: bool) -> None:
    """`before`: committed records before the transaction's first."""
    app = App()
    users = app.table("users", key=str, value=str, broadcast=broadcast)
    app.stream("in", key=str, value=str).lookup(users).map(lambda both: f"{both[0]} {both[1]}", value=str).to("out")
    with Harness(app) as h:
        for _ in range(before):
            h.send("users", "old", key="ada")
        stranger = h.log.transactional_producer("stranger")
        stranger.init()
        stranger.begin()
        stranger.send("users", b"another", b"bob", 0)
        stranger.flush()
        h.send("users", "new", key="ada")
        h.send("in", "home", key="ada")
        h.run()
        assert [] == h.output("out")
        assert [TaskState.BOOTSTRAPPING] == [task.state for task in h.container.tasks.values()]
        stranger.commit() if commits else stranger.abort()
        h.run()
        assert [("ada", "home new")] == h.output("out")
