"""Inputs whose records lie elsewhere than their keys say are named, once, with both hashes; others are not spoken of."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy.container.misplaced_keys import AT_LEAST, ENOUGH, MisplacedKeys, misplaced
from samzapy.model.key_partition import murmur2
from samzapy.model.offsets import TopicPartition
from samzapy.streams import App
from samzapy.testing import Harness
from samzapy.testing.memory_partition import MemoryMessage

COUNT = 4
KEYS = [b"user-%d" % i for i in range(2 * ENOUGH)]


def by_murmur2(key: bytes) -> int:
    return murmur2(key) % COUNT


def by_crc32(key: bytes) -> int:
    return zlib.crc32(key) % COUNT


def by_length(key: bytes) -> int:
    return len(key) % COUNT


def message(topic: str, partition: int, offset: int, key: bytes) -> MemoryMessage:
    return MemoryMessage(TopicPartition(topic, partition), offset, key, b"v", 0, (), None)


def batch(topic: str, place: Callable[[bytes], int]) -> list[MemoryMessage]:
    return [message(topic, place(key), at, key) for at, key in enumerate(KEYS)]


def looked_at(inputs: dict[str, Callable[[bytes], int]], caplog: pytest.LogCaptureFixture) -> list[str]:
    """What is said of these inputs after many batches."""
    watch = MisplacedKeys(dict.fromkeys(inputs, COUNT), inputs if len(inputs) > 1 else ())
    with caplog.at_level(logging.WARNING, "samzapy.inputs"):
        for _ in range(3):
            for topic, place in inputs.items():
                messages = batch(topic, place)
                for begin in range(0, len(messages), 16):
                    watch.look(messages[begin : begin + 16])
    assert watch.is_done
    return [record.getMessage() for record in caplog.records]


def test_librdkafkas_own_partitioner_is_named_once_beside_an_input_of_javas(caplog: pytest.LogCaptureFixture) -> None:
    (told,) = looked_at({"java": by_murmur2, "native": by_crc32}, caplog)
    assert told.startswith("input native: ")
    assert "murmur2" in told
    assert "crc32" in told
    assert "librdkafka's default partitioner" in told


def test_any_other_partitioner_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    (told,) = looked_at({"java": by_murmur2, "other": by_length}, caplog)
    assert told.startswith("input other: ")
    assert "another partitioner" in told


def test_inputs_that_javas_clients_write_are_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    assert [] == looked_at({"one": by_murmur2, "two": by_murmur2}, caplog)


def test_one_input_may_be_written_by_any_partitioner(caplog: pytest.LogCaptureFixture) -> None:
    assert [] == looked_at({"native": by_crc32}, caplog)


def test_one_input_with_a_key_in_two_partitions_is_told_with_the_key(caplog: pytest.LogCaptureFixture) -> None:
    watch = MisplacedKeys({"in": COUNT}, ())
    places = [(b"ada", 0), (b"bob", 1), (b"ada", 2), (b"ada", 0)]
    with caplog.at_level(logging.WARNING, "samzapy.inputs"):
        watch.look([message("in", partition, at, key) for at, (key, partition) in enumerate(places)])
    (told,) = [record.getMessage() for record in caplog.records]
    assert "key b'ada' is in partition 0 and in partition 2" in told


def test_few_keys_and_one_partition_say_nothing() -> None:
    watch = MisplacedKeys({"a": COUNT, "b": 1}, ("a", "b"))
    watch.look(batch("a", by_crc32)[: AT_LEAST - 1])
    watch.look(batch("b", lambda key: 0))
    assert not watch.is_done


def test_a_few_records_placed_by_hand_do_not_count() -> None:
    places = {key: by_murmur2(key) for key in KEYS[:40]}
    places[KEYS[0]] = (places[KEYS[0]] + 1) % COUNT
    assert "" == misplaced(places, COUNT)


TASK = """
from samzapy import StreamTask

class Joins(StreamTask):
    def process(self, envelope, collector, coordinator):
        pass
"""
JOB_FILE = """
job: joins
task: joins_of_inputs:Joins
kafka: {bootstrap.servers: "nobody:9"}
inputs: [{topic: one, key: string, value: string}, {topic: two, key: string, value: string}]
stores: {s: {}}
"""


def test_a_whole_job_that_joins_two_inputs_looks_at_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "joins_of_inputs.py").write_text(TASK)
    (tmp_path / "joins.yaml").write_text(JOB_FILE)
    with Harness(tmp_path / "joins.yaml", tasks=COUNT) as harness, caplog.at_level(logging.WARNING, "samzapy.inputs"):
        for key in KEYS[: 2 * AT_LEAST]:
            harness.send("one", "v", key=key.decode(), partition=by_murmur2(key))
            harness.send("two", "v", key=key.decode(), partition=by_crc32(key))
            harness.run()
    assert ["input two"] == [record.getMessage().partition(":")[0] for record in caplog.records if "murmur2" in record.getMessage()]


def test_a_table_beside_an_internal_topic_is_looked_at_and_inputs_that_do_not_meet_are_not(caplog: pytest.LogCaptureFixture) -> None:
    """Records that come through `key_by` are placed by murmur2: a table that is not has other keys than those it is asked for."""
    app = App()
    names = app.table("names", key=str, value=str)
    events = app.stream("events", key=str, value=str)
    events.key_by(lambda value: value, "by-value", key=str).lookup(names).map(str, value=str).to("out")
    events.count("events-of-key")
    with Harness(app, tasks=COUNT) as h, caplog.at_level(logging.WARNING, "samzapy.inputs"):
        for at, key in enumerate(KEYS):
            for topic in ("names", "events"):
                h.send(topic, "v", key=key.decode(), partition=by_crc32(key))
            if at % 8 == 0:
                h.run()
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("input names: ")
