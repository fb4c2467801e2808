"""What cannot be read of an input: a batch that does not decompress, headers whose names are not UTF-8. on_error applies, and offsets are named."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import BatchUnreadable, StateRefused, TransactionAborted
from samzapy.container.container import Container
from samzapy.model.caution import Caution
from samzapy.model.dead_letter import HEADERS_NOT_READ, NOT_READ, Origin
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Instructions, Supervision
from tests.unit.container.bench import JOB, Bench


class Passing(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=envelope.message))


def bench_of(tmp_path: Path, on_error: str) -> Bench:
    bench = Bench(tmp_path, Passing, on_error=on_error)
    bench.feed(*((f"k{i}", i) for i in range(6)))
    bench.cluster.spoil(TopicPartition("in", 0), 2, 4)
    return bench


def test_a_batch_that_cannot_be_read_is_skipped_and_its_offsets_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = bench_of(tmp_path, "skip")
    with caplog.at_level(logging.WARNING):
        bench.drain(bench.start())
    assert [0, 1, 4, 5] == [value for _, value in bench.read("out")]
    assert any("in[0]@2..3 cannot be read" in r.getMessage() for r in caplog.records)


def test_a_batch_that_cannot_be_read_is_set_aside_without_a_value(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "dead_letter")
    container = bench.start()
    bench.drain(container)
    assert [0, 1, 4, 5] == [value for _, value in bench.read("out")]
    (letter,) = bench.letters()
    assert (Origin("in", 0, 2), None, NOT_READ) == (letter.origin, letter.value, letter.truncated)
    assert "in[0]@2..3 cannot be read" in letter.error
    bench.drain(bench.start())
    assert 1 == len(bench.letters()), "it is committed with what came before it"


def test_a_batch_that_cannot_be_read_stops_the_job_by_name_where_errors_do(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, "fail")
    with pytest.raises(BatchUnreadable, match=r"in\[0\]@2\.\.3 cannot be read") as caught:
        bench.drain(bench.start())
    assert "receive.message.max.bytes" in caught.value.remedy
    assert [0, 1] == [value for _, value in bench.read("out")]


class Refusing(StreamTask):
    def process(self, envelope, collector, coordinator):
        if envelope.message == 1:
            raise ValueError("never one")
        if envelope.message == 2:
            collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=len(envelope.headers)))


def test_a_record_whose_headers_cannot_be_read_is_set_aside_without_them(tmp_path: Path) -> None:
    """Whether the task asked for them, or failed for another reason. Making the dead letter must not fail, or the record would end the job."""
    bench = Bench(tmp_path, Refusing, on_error="dead_letter")
    feed = bench.log.plain_producer("feed")
    for value in range(4):
        feed.send("in", value.to_bytes(8, "big"), b"k", 0, headers=[("\udcff", b"x")])
    bench.drain(bench.start())
    plain, asked = bench.letters()
    assert [1, 2] == [letter.origin.offset for letter in (plain, asked)]
    assert {((), HEADERS_NOT_READ)} == {(tuple(letter.headers), letter.truncated) for letter in (plain, asked)}
    assert "never one" in plain.error
    assert "headers of in[0]@2 cannot be read" in asked.error
    assert [1, 2] == [int.from_bytes(letter.value or b"", "big") for letter in (plain, asked)]


class Counting(StreamTask):
    def init(self, context):
        self.counts = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        count = (self.counts.get(envelope.key) or 0) + 1
        self.counts.put(envelope.key, count)
        collector.send("out", count, key=envelope.key)


@pytest.mark.parametrize("on_error", ["skip", "dead_letter", "fail"])
def test_a_batch_of_a_changelog_that_cannot_be_read_is_never_skipped(tmp_path: Path, on_error: str) -> None:
    bench = Bench(tmp_path, Counting, on_error=on_error)
    container = bench.start()
    for key in "abcdef":
        bench.feed((key, 1))
        bench.drain(container)
        container.commit()
    container.stop()
    container.close()
    changelog = TopicPartition(JOB.changelog_topic("s"), 0)
    at = next(record.offset() for record in bench.cluster.partition(changelog).records if record.key() == b"b")
    bench.cluster.spoil(changelog, at, at + 1)
    bench.state = tmp_path / "another host"
    with pytest.raises(StateRefused, match=rf"{changelog.topic}\[0\]@{at} cannot be read") as caught:
        bench.start()
    assert "receive.message.max.bytes" in caught.value.remedy
    assert "skip" not in caught.value.remedy
    assert [("abcdef"[i], 1) for i in range(6)] == bench.read("out"), "nothing was processed with half a store"


class Slow(Passing):
    """Takes so long that duties are due between two records."""

    bench: Bench

    def process(self, envelope, collector, coordinator):
        self.bench.clock.passed += 0.2
        super().process(envelope, collector, coordinator)


@pytest.mark.parametrize("on_error", ["skip", "fail"])
def test_nor_is_one_of_the_checkpoint_topic(tmp_path: Path, on_error: str) -> None:
    bench = Bench(tmp_path, Counting, on_error=on_error)
    container = bench.start()
    bench.feed(("a", 1))
    bench.drain(container)
    container.stop()
    container.close()
    checkpoints = TopicPartition(JOB.checkpoint_topic, 0)
    last = bench.cluster.partition(checkpoints).records[-1].offset()
    bench.cluster.spoil(checkpoints, last, last + 1)
    with pytest.raises(StateRefused, match="cannot be read") as caught:
        bench.start()
    assert "skip" not in caught.value.remedy


@pytest.mark.parametrize("on_error", ["fail", "dead_letter"])
def test_a_batch_after_the_end_of_a_bounded_run_is_left_to_the_next(tmp_path: Path, on_error: str) -> None:
    bench = Bench(tmp_path, Passing, inputs={"in": {}, "more": {}}, on_error=on_error, stores={}, poll_records=2)
    bench.feed(*((f"k{i}", i) for i in range(6)))
    bench.feed(*((f"m{i}", i) for i in range(20)), topic="more")
    bench.cluster.spoil(TopicPartition("in", 0), 2, 4)
    container = bench.start({"in[0]": 2, "more[0]": 20})
    for _ in range(200):
        container.step(0.0)
        bench.clock.passed += 0.01
    assert container.finished
    assert not bench.letters()


def test_what_a_duty_cannot_read_in_the_middle_of_a_batch_loses_no_record_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Slow.bench = Bench(tmp_path, Slow, on_error="skip", stores={})
    container = bench.start()
    restore, met = container._joining.restore, []

    def unreadable(*args: float, **kwargs: float) -> None:
        if container._transaction.unprocessed and not met:
            met.append(1)
            raise BatchUnreadable(JOB.changelog_topic("s"), 1, 2, 3, "it does not decompress")
        restore(*args, **kwargs)

    monkeypatch.setattr(container._joining, "restore", unreadable)
    bench.feed(*((f"k{i}", i) for i in range(8)))
    with pytest.raises(BatchUnreadable):
        bench.drain(container)
    container.stop()
    bench.drain(bench.start())
    assert list(range(8)) == [value for _, value in bench.read("out")]


class Stepping(Passing):
    """Asks for a commit, or for a pause, at the record 1."""

    at_one = staticmethod(lambda coordinator: None)

    def process(self, envelope, collector, coordinator):
        super().process(envelope, collector, coordinator)
        if envelope.message == 1:
            type(self).at_one(coordinator)


@pytest.mark.parametrize("what", ["abort", "pause"])
@pytest.mark.parametrize("deaths", [1, 2])
def test_a_batch_that_was_met_ahead_is_met_again_after_the_partition_went_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, deaths: int
) -> None:
    """After two deaths single batches are gathered, so what cannot be read is met before the records in front of it are processed."""
    bench = Bench(tmp_path, Stepping, on_error="skip", stores={})
    bench.feed(*((f"k{i}", i) for i in range(8)))
    bench.cluster.spoil(TopicPartition("in", 0), 5, 6)
    spec, paused = bench.adjust(bench.spec()), []
    bench.name(0, "again", spec.tasks)
    supervision = Supervision(lambda: None, lambda _: None, lambda: Instructions(paused=bool(paused)), lambda _: None)
    container = Container(
        spec, "again", "run", None, bench.log, bench.clock, supervision=supervision, caution=Caution(watch_s=60.0, deaths=deaths)
    )

    def pause(coordinator: object) -> None:
        paused.append(1)
        bench.clock.passed += 0.2

    monkeypatch.setattr(Stepping, "at_one", staticmethod(pause if what == "pause" else lambda coordinator: coordinator.commit()))
    container.start()
    commit, aborted = container._committer.commit, []

    def refuse_once(tasks, positions, here):
        if what == "abort" and not aborted and any(offset for at in positions.values() for offset in at.values()):
            aborted.append(1)
            raise TransactionAborted("the broker demands an abort", "")
        return commit(tasks, positions, here)

    monkeypatch.setattr(container._committer, "commit", refuse_once)
    for _ in range(30):
        container.step(0.0)
    assert aborted or container._pausing.is_on
    monkeypatch.setattr(Stepping, "at_one", staticmethod(lambda coordinator: None))
    paused.clear()
    for _ in range(10):
        bench.clock.passed += 0.2
        container.step(0.0)
    bench.drain(container)
    assert [0, 1, 2, 3, 4, 6, 7] == [value for _, value in bench.read("out")]
