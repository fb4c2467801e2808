"""What cannot be read of an input: a batch that does not decompress, headers whose names are not UTF-8. on_error applies, and offsets are named."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import BatchUnreadable
from samzapy.model.dead_letter import HEADERS_NOT_READ, NOT_READ, Origin
from samzapy.model.offsets import TopicPartition
from tests.unit.container.bench import Bench


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
