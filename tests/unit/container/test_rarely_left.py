"""Places that are left by an error or a pause where that is seldom: what others asked for, held back or keep is not lost by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.api.context import RequestScope
from samzapy.api.errors import ClusterUnreachable
from samzapy.container.container import Container
from samzapy.container.pausing import Paused
from samzapy.container.standby import Standbys
from samzapy.kafka.consumer import KafkaConsumer
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.states import TaskState
from samzapy.ports import Instructions, Supervision
from samzapy.store.problems import StoreDiskFull
from tests.unit.container.bench import Bench
from tests.unit.container.test_moving import P0, P1, Actor

PARTITION = TopicPartition("in", 0)


class Asking(StreamTask):
    """The first task asks for a commit at each record, the second one fails."""

    def init(self, context):
        self.is_first = context.task_name == "Partition 0"

    def process(self, envelope, collector, coordinator):
        if not self.is_first:
            raise ValueError("not now")
        coordinator.commit()


def test_what_one_reader_of_a_record_asked_for_is_done_though_a_pause_begins_while_another_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, Asking, partitions=2, broadcast=("all",), inputs={"in": {}, "all": {}}, stores={})
    container = bench.start()

    def paused(*_: object) -> None:
        raise Paused

    monkeypatch.setattr(container._processing, "_failed", paused)
    bench.feed(("a", 1), topic="all", partition=0)
    batch = next(filter(None, (container._inputs.poll(10, 0.0) for _ in range(10))))
    with pytest.raises(Paused):
        container._processing.run(batch)
    assert container._processing._requests.pending


class Full:
    """A store on a disk that is full."""

    def __init__(self) -> None:
        self.was_closed = False

    def flush(self) -> None:
        raise StoreDiskFull("the disk is full.", "")

    def close(self) -> None:
        self.was_closed = True
        raise StoreDiskFull("the disk is full.", "")


class Copy:
    def __init__(self, bench: Bench) -> None:
        self.task = next(iter(bench.spec().tasks.values()))
        self.store, self.pending = Full(), []


@pytest.mark.parametrize("how", ["leave", "give up"])
def test_a_warm_copy_that_cannot_be_written_stops_no_task(tmp_path: Path, how: str) -> None:
    bench = Bench(tmp_path, Asking)
    standbys, copy = Standbys(bench.spec(), bench.log, bench.clock), Copy(bench)
    standbys._copies = {PARTITION: copy}  # type: ignore[dict-item]
    standbys._write = lambda copy: None  # type: ignore[method-assign]
    if how == "leave":
        standbys.leave(copy.task.name)
    else:
        standbys._give_up(StoreDiskFull("the disk is full.", ""))
    assert copy.store.was_closed
    assert not standbys._copies


class Client:
    """confluent_kafka.Consumer: notes what is paused."""

    def __init__(self) -> None:
        self.paused: set[tuple[str, int]] = set()

    def pause(self, partitions: list[Any]) -> None:
        self.paused |= {(p.topic, p.partition) for p in partitions}

    def resume(self, partitions: list[Any]) -> None:
        self.paused -= {(p.topic, p.partition) for p in partitions}

    def incremental_assign(self, partitions: list[Any]) -> None:
        pass

    incremental_unassign = incremental_assign


@pytest.mark.parametrize("is_paused", [True, False])
def test_an_answer_that_was_late_does_not_end_a_pause(monkeypatch: pytest.MonkeyPatch, is_paused: bool) -> None:
    """"Out of range", of an earlier fetch: the position is in range, so the partition is read on from there, by a seek."""
    consumer = KafkaConsumer({"bootstrap.servers": "127.0.0.1:1"}, "g", "c")
    client = consumer._consumer = Client()  # type: ignore[assignment]
    consumer._assigned, consumer._known = {PARTITION: 0}, {PARTITION}
    monkeypatch.setattr(consumer, "bounds", lambda _: Bounds(0, 10))
    monkeypatch.setattr(consumer, "positions", lambda _: {PARTITION: 5})
    if is_paused:
        consumer.pause([PARTITION])
    assert consumer._out_of_range(PARTITION) is None
    assert client.paused == ({PARTITION} if is_paused else set())
    consumer.resume([PARTITION])
    assert not client.paused
    assert not consumer._paused


def test_a_warm_copy_whose_second_store_cannot_be_opened_is_opened_at_the_next_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, TwoStores, partitions=2, stores={"s": {}, "u": {}})
    one, two = Actor(bench, 0, [P0]), Actor(bench, 1, [P1])
    bench.feed(("k", 1))
    one.turn()
    standbys = two.container._standbys
    copy, tried = standbys._copy, []

    def fails_once(*given: Any) -> Any:
        tried.append(1)
        if len(tried) == 2:
            raise ClusterUnreachable("no answer.", "")
        return copy(*given)

    monkeypatch.setattr(standbys, "_copy", fails_once)
    two.instructions = Instructions(0, frozenset(), (P0,))
    for _ in range(8):
        two.turn(40)
    assert [""] == [status["reason"] for status in standbys.status()]


class BroadcastTask(StreamTask):
    """The first task fails at the record `boom` as often as it is told to; with `ask`, the other one asks for something at it."""

    failures = 0
    ask = staticmethod(lambda coordinator: None)

    def init(self, context):
        self.number, self.is_closed = int(context.task_name.split()[-1]), False

    def process(self, envelope, collector, coordinator):
        cls = type(self)
        if envelope.key == "boom" and self.number == cls.fails and cls.failures:
            cls.failures -= 1
            raise ValueError("not yet")
        if envelope.key == "boom" and self.number != cls.fails:
            cls.ask(coordinator)
        collector.send("out", envelope.message, key="closed" if self.is_closed else envelope.key, partition=self.number)

    def close(self):
        self.is_closed = True


def of_broadcast(tmp_path: Path, **settings: Any) -> Bench:
    return Bench(
        tmp_path, BroadcastTask, partitions=2, inputs={"in": {}, "all": {}}, broadcast=("all",), retries=30, on_error="dead_letter", stores={}, **settings
    )


def steps(container: Container, bench: Bench, count: int) -> None:
    for _ in range(count):
        container.step(0.0)
        bench.clock.passed += 0.01


def test_a_task_that_is_released_while_another_one_retries_a_record_does_not_get_it_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BroadcastTask, "fails", 0, raising=False)
    monkeypatch.setattr(BroadcastTask, "failures", 12)
    bench = of_broadcast(tmp_path)
    bench.feed(("boom", 1), topic="all", partition=0)
    spec, asked = bench.spec(), []
    bench.name(0, "i", spec.tasks)

    def instructions() -> Instructions:
        asked.append(1)
        return Instructions() if len(asked) < 20 else Instructions(bench.epoch, frozenset({P1}))

    container = Container(spec, "i", "run", None, bench.log, bench.clock, supervision=Supervision(instructions=instructions))
    container.start()
    steps(container, bench, 200)
    assert [P1] == list(container.status()["released"])
    container.commit()
    container.close()
    bench.drain(bench.start())
    assert [("boom", 1)] == bench.read("out", 0)
    assert [("boom", 1)] == bench.read("out", 1)


@pytest.mark.parametrize("scope", list(RequestScope))
def test_a_task_that_asked_for_its_end_stays_stopped_though_its_container_dies_while_another_one_retries_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: RequestScope
) -> None:
    monkeypatch.setattr(BroadcastTask, "fails", 1, raising=False)
    monkeypatch.setattr(BroadcastTask, "failures", 1000)
    monkeypatch.setattr(BroadcastTask, "ask", staticmethod(lambda coordinator: coordinator.shutdown(scope)))
    bench = of_broadcast(tmp_path, commit_interval_s=0.5)
    bench.feed(("boom", 1), ("after", 2), topic="all", partition=0)
    spec, looks = bench.spec(), []
    bench.name(0, "i", spec.tasks)

    def check() -> None:
        looks.append(1)
        if len(looks) > 25:
            raise Killed

    container = Container(spec, "i", "run", None, bench.log, bench.clock, supervision=Supervision(check))
    container.start()
    with pytest.raises(Killed):
        steps(container, bench, 100)
    assert 1 == container.tasks[P0].committed.inputs["all[0]"].next_offset
    container.close()
    monkeypatch.setattr(BroadcastTask, "failures", 0)
    again = bench.start()
    bench.drain(again)
    assert TaskState.STOPPED is again.tasks[P0].state
    assert [("boom", 1)] == bench.read("out", 0)


class Killed(Exception):
    """The container dies."""


class TwoStores(StreamTask):
    def init(self, context):
        self.one, self.other = context.get_store("s"), context.get_store("u")

    def process(self, envelope, collector, coordinator):
        self.one.put(envelope.key, envelope.message)
        self.other.put(envelope.key, envelope.message)


def test_a_task_that_a_record_names_before_the_coordinator_told_of_it_waits_for_that(tmp_path: Path) -> None:
    """Its input has just grown: the record is written, the answer to the heartbeat has not come, and the container starts over."""
    bench = Bench(tmp_path, Asking, stores={})
    spec, told = bench.spec(), Instructions()
    bench.name(0, "i", spec.tasks)
    container = Container(spec, "i", "run", None, bench.log, bench.clock, supervision=Supervision(instructions=lambda: told))
    container.start()
    bench.name(0, "i", [P0, P1])
    container.drop_all()
    container.own()
    for _ in range(20):
        container.step(0.0)
    assert [P0] == list(container.tasks)
    assert container.is_starting


class TooLarge(StreamTask):
    """Of the record `bad` the first task sends what Kafka refuses, and the other one fails at it."""

    def init(self, context):
        self.number = int(context.task_name.split()[-1])

    def process(self, envelope, collector, coordinator):
        is_bad = envelope.key == "bad"
        if is_bad and self.number == 1:
            raise ValueError("no")
        collector.send("out", envelope.message, key="x" * 3000 if is_bad else envelope.key, partition=self.number)


def test_a_record_whose_output_is_refused_while_another_task_retries_it_is_skipped_as_any_other(tmp_path: Path) -> None:
    """The commit in between holds what one task made of it, so the record is known as its cause."""
    bench = Bench(
        tmp_path, TooLarge, partitions=2, inputs={"in": {}, "all": {}}, broadcast=("all",), retries=9, on_error="skip", stores={}, commit_interval_s=0.2
    )
    bench.cluster.configure("out", {"max.message.bytes": "2000"})
    bench.feed(("bad", 0), ("good", 2), topic="all", partition=0)
    container = bench.start()
    steps(container, bench, 300)
    container.commit()
    assert [[("good", 2)], [("good", 2)]] == [bench.read("out", 0), bench.read("out", 1)]
    assert [1, 1] == [task["skipped"] for task in container.status()["tasks"]]
