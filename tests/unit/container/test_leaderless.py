"""A partition whose broker is down: the others go on, it is said which one and what to do, and when the broker is back the job goes on exactly."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import ClusterUnreachable, NoLeader, TopicMissing
from samzapy.container.container import Container
from samzapy.container.lags import Lags, Written
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import TopicPartition
from samzapy.ops.prepare_topics import prepare_topics
from samzapy.ops.topic_rows import LEADERLESS, topic_rows
from samzapy.plan.lag import partition_lags
from samzapy.ports import START_ITS_BROKER
from samzapy.testing.memory_log import MemoryLog
from tests.unit.container.bench import JOB, Bench, HandClock
from tests.unit.coordinator.stopped_job import Story
from tests.unit.ops.test_committed_state import settings_of

DOWN = TopicPartition("in", 1)


class Passing(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send(
            OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=envelope.message, partition=envelope.partition)
        )


def step_for(bench: Bench, container: Container, seconds: float) -> None:
    until = bench.clock.monotonic() + seconds
    while bench.clock.monotonic() < until:
        container.step(0.1)


def test_the_others_go_on_and_it_is_read_on_exactly_when_it_is_led_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, Passing, partitions=2)
    bench.feed(("a", 1), partition=1)
    container = bench.start()
    step_for(bench, container, 5)
    bench.feed(("b", 2), partition=1)
    bench.cluster.lose_leader(DOWN)
    bench.feed(("c", 3), partition=0)
    step_for(bench, container, 200)  # the watchdog looks at it as well
    assert ([("c", 3)], [("a", 1)]) == (bench.read("out", 0), bench.read("out", 1))
    assert "makes a new Kafka consumer" not in caplog.text
    bench.cluster.regain_leader(DOWN)
    step_for(bench, container, 5)
    assert ([("c", 3)], [("a", 1), ("b", 2)]) == (bench.read("out", 0), bench.read("out", 1))


def test_a_start_waits_for_it_instead_of_dying_again_and_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Passing, partitions=2)
    bench.feed(("a", 1), partition=1)
    bench.start().close()
    bench.cluster.lose_leader(DOWN)
    spec = bench.spec()
    bench.name(0, "again", spec.tasks)
    container = Container(spec, "again", bench.run_id, None, bench.log, bench.clock)
    container.own()
    step_for(bench, container, 100)
    assert container.is_starting
    bench.cluster.regain_leader(DOWN)
    step_for(bench, container, 10)
    assert not container.is_starting
    assert [("a", 1)] == bench.read("out", 1)


class Scripted(HandClock):
    """Each wait does the next thing; after the last, whoever waits is to stop."""

    def __init__(self, *script: Callable[[], None]) -> None:
        super().__init__()
        self._script = list(script)

    def wait(self, event: threading.Event, seconds: float) -> None:
        super().wait(event, seconds)
        if self._script:
            self._script.pop(0)()
        else:
            event.set()


class Here:
    """A thread that has run before it is waited for."""

    def join(self, timeout: float | None = None) -> None: ...


def at_once(_: str, run: Callable[[], None]) -> Here:
    run()
    return Here()


def test_it_is_said_once_with_the_partition_and_what_to_do_and_again_when_it_is_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, Passing, partitions=2)
    stands = {"in[1]": 0}
    told: list[tuple[str, int | None]] = []

    def look() -> None:
        told.append((lags.why_it_waits(stands), lags.of(stands)))

    def lose() -> None:
        look()
        bench.cluster.lose_leader(DOWN)

    def regain() -> None:
        look()
        bench.cluster.regain_leader(DOWN)

    caplog.set_level(logging.INFO)
    lags = Lags(bench.log, 3.0, lambda: stands, Scripted(lose, look, regain, look), at_once)
    lags.start()
    why = "in[1]: no broker leads this partition, so it cannot be read: the broker that holds it is down"
    assert [("", 0), (why, None), (why, None), ("", 0)] == told
    said = [record.getMessage() for record in caplog.records]
    assert [True, True] == [said[0].startswith(f"{why}. Start the broker that holds it."), "in[1]: a broker leads it again" == said[1]]
    assert 2 == len(said)


def test_a_partition_that_a_commit_waits_for_is_said_too_but_no_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path, Passing, partitions=2, on_error="dead_letter")
    spec = bench.spec()
    own = {JOB.checkpoint_topic, JOB.changelog_topic("s"), JOB.dead_letter_topic}
    assert {*own, "out"} == spec.written
    awaited: list[Written | None] = [None]
    told: list[tuple[str, bool]] = []

    def then(do: Callable[[], None]) -> Callable[[], None]:
        def step() -> None:
            told.append((lags.why_it_waits({"in[0]": 0}), lags.cannot_write))
            do()

        return step

    def lose() -> None:
        for topic in (*own, "out"):
            bench.cluster.lose_leader(TopicPartition(topic, 1))

    def begins_to_wait() -> None:
        awaited[0] = Written(spec.written, lambda partition: spec.is_written(partition, {0}))

    def turns() -> None:
        awaited[0] = None

    def regain() -> None:
        bench.cluster.regain_leader(TopicPartition("out", 1))

    caplog.set_level(logging.INFO)
    lags = Lags(bench.log, 3.0, lambda: ["in[0]"], Scripted(*map(then, (lose, begins_to_wait, turns, regain, turns))), at_once, lambda: awaited[0])
    lags.start()
    why = "out[1]: no broker leads this partition, so it cannot be written: the broker that holds it is down"
    assert [("", False), ("", False), (why, True), (why, True), ("", False)] == told, "task 0 does not write partition 1 of the internal topics"
    said = [record.getMessage() for record in caplog.records]
    assert [f"{why}. {START_ITS_BROKER}", "out[1]: a broker leads it again"] == said


class DeafAtFirst:
    """A log whose first admin client never gets an answer, as one may after its broker was away; a new one does."""

    def __init__(self, log: MemoryLog) -> None:
        self.log, self.made, self.closed = log, 0, 0

    def admin(self) -> Any:
        self.made += 1
        return self if self.made == 1 else self.log.admin()

    def ends(self, _: object) -> dict[TopicPartition, int]:
        raise ClusterUnreachable("no answer", "")

    def close(self) -> None:
        self.closed += 1


def test_a_client_that_gets_no_answer_is_replaced(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Passing, partitions=2)
    stands, told = {"in[1]": 0}, []
    log = DeafAtFirst(bench.log)
    look = lambda: told.append(lags.of(stands))  # noqa: E731
    lags = Lags(log, 3.0, lambda: stands, Scripted(look, look, look), at_once)  # type: ignore[arg-type]
    lags.start()
    assert ([None, 0, 0], 2, 1) == (told, log.made, log.closed)


class Counted:
    """A log whose admin client counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def admin(self) -> Any:
        return self

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append("ends")
        return dict.fromkeys(partitions, 7)

    def leaderless(self, topics: Collection[str]) -> set[TopicPartition]:
        if topics:
            self.asked.append("leaderless")
        return set()

    def close(self) -> None: ...


def test_the_ends_of_ten_thousand_partitions_are_one_question() -> None:
    stands, told = {f"in[{n}]": 3 for n in range(10_000)}, []
    log, clock = Counted(), Scripted(*[lambda: told.append((lags.of(stands), len(log.asked)))] * 3)
    lags = Lags(log, 3.0, lambda: stands, clock, at_once)  # type: ignore[arg-type]
    lags.start()
    assert [(40_000, 1), (40_000, 2), (40_000, 3)] == told
    assert {"ends"} == set(log.asked)


def test_a_new_run_is_refused_with_the_partitions_and_every_look_shows_them(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    settings, log = settings_of(story), story.bench.log
    prepare_topics(settings, log, story.bench.clock)
    story.bench.cluster.lose_leader(TopicPartition("in", 0))
    with pytest.raises(NoLeader, match=r"no broker leads in\[0\]") as refused:
        prepare_topics(settings, log, story.bench.clock)
    assert 4 == refused.value.exit_code
    assert "Start the broker" in refused.value.remedy
    shown = {row[0]: (kind, row[-1]) for kind, row in topic_rows(settings, log, story.bench.clock)}
    assert (LEADERLESS, "no broker leads partition 0; start the broker that holds it") == shown["in"]
    story.bench.cluster.regain_leader(TopicPartition("in", 0))
    prepare_topics(settings, log, story.bench.clock)


def test_what_can_be_asked_of_it(tmp_path: Path) -> None:
    """As the real client answers: tests/recovery/test_a_broker_is_down.py."""
    bench = Bench(tmp_path, Passing, partitions=2)
    led = TopicPartition("in", 0)
    bench.feed(("a", 1), partition=1)
    bench.cluster.lose_leader(DOWN)
    admin, consumer = bench.log.admin(), bench.log.restore_consumer("t")
    assert ({led: 0}, {DOWN}) == (admin.ends([led, DOWN]), admin.leaderless(["in"]))
    assert (1,) == admin.topics(["in"])["in"].leaderless
    for ask in (lambda: admin.high_watermarks([DOWN]), lambda: consumer.bounds(DOWN), lambda: consumer.bounds_of([led, DOWN])):
        with pytest.raises(NoLeader, match=r"in\[1\]"):
            ask()
    consumer.assign({DOWN: 0})
    assert ([], {DOWN: 0}) == (list(consumer.poll(1, 0.1)), consumer.positions([DOWN]))
    with pytest.raises(TopicMissing):
        consumer.assign({TopicPartition("in", 7): 0})


def test_without_an_end_there_is_no_lag() -> None:
    (found,) = partition_lags({"Partition 1": TaskModel("Partition 1", 1, (DOWN,))}, {"Partition 1": {DOWN: 5}}, {})
    assert (5, None, None) == (found.next_offset, found.end, found.lag)
