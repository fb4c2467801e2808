"""The watchdog: a consumer that falls silent on one partition is found out and made anew, and that is said."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import ClusterUnreachable
from samzapy.container.container import Container
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ports import Message
from samzapy.testing.memory_log import MemoryConsumer, MemoryLog
from tests.unit.container.bench import Bench
from tests.unit.container.test_pausing import Orders, started

SILENT = TopicPartition("in", 1)


class Passing(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send(
            OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=envelope.message, partition=envelope.partition)
        )


class SilentOnOne(MemoryConsumer):
    """As librdkafka was after a pause that outlived its assignment."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        super().assign(positions)
        self.pause([SILENT])


class LogWithASilentConsumer(MemoryLog):
    made = 0

    def consumer(self, group_id: str, name: str, small: bool = False) -> MemoryConsumer:
        self.made += 1
        return SilentOnOne(self._cluster, group_id) if self.made == 1 else super().consumer(group_id, name)


class GetsARecordWhileItsBrokerIsAsked(MemoryConsumer):
    """As when a producer writes once a minute."""

    feed: Callable[[], None]
    asked = 0

    def bounds(self, partition: TopicPartition) -> Bounds:
        if partition == SILENT:
            self.asked += 1
            self.feed()
        return super().bounds(partition)


class LogWhoseConsumerGetsARecord(LogWithASilentConsumer):
    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.cluster)
        self.bench, self.consumers = bench, []

    def consumer(self, group_id: str, name: str, small: bool = False) -> MemoryConsumer:
        self.made += 1
        made = GetsARecordWhileItsBrokerIsAsked(self._cluster, group_id)
        made.feed = lambda: self.bench.feed(("c", 3), partition=1)
        self.consumers.append(made)
        return made


class AwayFromItsBroker(MemoryConsumer):
    """Its broker is away."""

    def bounds(self, partition: TopicPartition) -> Bounds:
        raise ClusterUnreachable(f"the bounds of {partition}: no answer in 10 s.", "")


class LogWhoseSecondConsumerIsUnanswered(LogWithASilentConsumer):
    def consumer(self, group_id: str, name: str, small: bool = False) -> MemoryConsumer:
        made = super().consumer(group_id, name)
        return AwayFromItsBroker(self._cluster, group_id) if self.made == 2 else made


class SilentAlsoAfterAPause(SilentOnOne):
    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        super().resume({*partitions} - {SILENT})


class LogWithAnotherSilentConsumer(LogWithASilentConsumer):
    def consumer(self, group_id: str, name: str, small: bool = False) -> MemoryConsumer:
        self.made += 1
        return SilentAlsoAfterAPause(self._cluster, group_id)


def _step_for(bench: Bench, container: Container, seconds: float) -> None:
    until = bench.clock.monotonic() + seconds
    while bench.clock.monotonic() < until and not container.finished:
        container.step(0.1)


def _bench(tmp_path: Path) -> tuple[Bench, LogWithASilentConsumer]:
    bench = Bench(tmp_path, Passing, partitions=2)
    bench.log = log = LogWithASilentConsumer(bench.cluster)
    for partition in (0, 1):
        bench.feed(("a", 1), ("b", 2), partition=partition)
    return bench, log


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_partition_on_which_the_consumer_is_silent_is_read_by_a_new_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench, log = _bench(tmp_path)
    container = bench.start()
    _step_for(bench, container, 50)
    assert ([("a", 1), ("b", 2)], []) == (bench.read("out", 0), bench.read("out", 1))
    assert (1, []) == (log.made, warnings(caplog))
    _step_for(bench, container, 30)
    assert [("a", 1), ("b", 2)] == bench.read("out", 1)
    assert [("a", 1), ("b", 2)] == bench.read("out", 0)  # and nothing twice
    why = "in[1]: the next offset is 0, the end 2, and no record came for 60 s, although the partition is not held back on purpose"
    assert f"{why}. The container makes a new Kafka consumer" in caplog.text
    assert 2 == log.made
    _step_for(bench, container, 200)
    assert (2, ["", ""]) == (log.made, [t["reason"] for t in container.status()["tasks"]])


def test_a_record_that_comes_while_the_broker_is_asked_is_no_stall(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, Passing, partitions=2)
    bench.log = log = LogWhoseConsumerGetsARecord(bench)
    bench.feed(("a", 1), ("b", 2), partition=1)
    container = bench.start()
    _step_for(bench, container, 200)
    assert (1, []) == (log.made, warnings(caplog))
    asked = log.consumers[0].asked
    assert asked > 1
    assert [("a", 1), ("b", 2), *[("c", 3)] * asked] == bench.read("out", 1)


def test_if_no_broker_answers_the_new_one_the_old_one_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The container then starts over; it can still say where it stands, and the next new one reads on."""
    bench, _ = _bench(tmp_path)
    bench.log = log = LogWhoseSecondConsumerIsUnanswered(bench.cluster)
    container = bench.start()
    with pytest.raises(ClusterUnreachable):
        _step_for(bench, container, 80)
    assert 2 == log.made
    assert [2, 0] == [at for task in container.status()["tasks"] for at in task["positions"].values()]
    container.drop_all()
    container.own()
    _step_for(bench, container, 100)
    assert 3 == log.made
    assert [("a", 1), ("b", 2)] == bench.read("out", 0) == bench.read("out", 1)


def test_the_time_of_a_pause_does_not_count(tmp_path: Path) -> None:
    bench, _ = _bench(tmp_path)
    bench.log = log = LogWithAnotherSilentConsumer(bench.cluster)
    orders = Orders()
    container = started(bench, orders)
    _step_for(bench, container, 50)
    orders.paused = True
    _step_for(bench, container, 100)
    orders.paused = False
    _step_for(bench, container, 50)
    assert 1 == log.made
    _step_for(bench, container, 30)
    assert 2 == log.made


def test_status_says_of_which_task_until_it_moves(tmp_path: Path) -> None:
    bench, _ = _bench(tmp_path)
    bench.log = log = AlwaysSilent(bench.cluster)
    container = bench.start()
    _step_for(bench, container, 150)
    assert log.made >= 3
    assert [False, True] == ["in[1]: the next offset is 0, the end 2" in t["reason"] for t in container.status()["tasks"]]


class AlwaysSilent(LogWithASilentConsumer):
    def consumer(self, group_id: str, name: str, small: bool = False) -> MemoryConsumer:
        self.made += 1
        return SilentOnOne(self._cluster, group_id)


def test_a_bounded_run_that_cannot_end_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench, _ = _bench(tmp_path)
    bench.log = MemoryLog(bench.cluster)
    container = bench.start(ends={"in[0]": 2, "in[1]": 7})
    _step_for(bench, container, 100)
    assert not container.finished
    said = "in[1] is at 2, and this run ends at 7, but no readable record is left before that end: the topic ends at 2"
    assert said in caplog.text
    assert said in [t["reason"] for t in container.status()["tasks"]]


def test_a_partition_without_more_records_is_left_in_peace(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench, _ = _bench(tmp_path)
    bench.log = LogWithASilentConsumer(bench.cluster)
    bench.log.made = 1
    container = bench.start()
    _step_for(bench, container, 300)
    assert (2, []) == (bench.log.made, warnings(caplog))


class Unanswered(MemoryConsumer):
    """As under a quota of the cluster: no records come, and no answer to other questions either."""

    def poll(self, max_records: int, timeout_s: float) -> list[Message]:
        super().poll(0, timeout_s)
        return []

    def bounds(self, partition: TopicPartition) -> Bounds:
        raise ClusterUnreachable(f"the bounds of {partition}: no answer in 10 s.", "")


def test_a_broker_that_does_not_answer_either_is_said_and_no_new_consumer_is_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench, _ = _bench(tmp_path)
    bench.log = LogWithASilentConsumer(bench.cluster)
    bench.log.made = 1
    container = bench.start()
    _step_for(bench, container, 5)
    bench.feed(("c", 3), partition=1)
    consumer = container._consumer._now
    consumer.__class__ = Unanswered
    _step_for(bench, container, 200)
    said = "in[1] is at 2, no record came for 60 s, and its broker does not answer: it is away, or a quota of the cluster holds back"
    assert 1 == caplog.text.count(said), "once, however long it lasts"
    assert 1 == sum(said in t["reason"] for t in container.status()["tasks"])
    assert (2, consumer) == (bench.log.made, container._consumer._now)
    consumer.__class__ = MemoryConsumer
    _step_for(bench, container, 5)
    assert [("a", 1), ("b", 2), ("c", 3)] == bench.read("out", 1)
    assert not any(said in t["reason"] for t in container.status()["tasks"])
