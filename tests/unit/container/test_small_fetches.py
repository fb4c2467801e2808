"""A container that was started after a death that nobody could explain fetches little at a time, and after a while as much as usual."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import LogError
from samzapy.clock import SystemClock
from samzapy.container.container import Container
from samzapy.container.input_consumer import InputConsumer
from samzapy.model.caution import Caution
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Fetch
from samzapy.testing.memory_log import MemoryCluster, MemoryConsumer, MemoryLog
from samzapy.testing.memory_partition import MemoryMessage
from tests.unit.container.bench import Bench

NO_ERROR = "ended and reported no error; a record or lack of memory may be the reason"
ENDED = "an earlier process of this container ended itself"


class Passing(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=envelope.message))


class Noting(MemoryLog):
    """Which of the containers' consumers were to fetch little."""

    def consumer(self, group_id: str, name: str, fetch: Fetch = Fetch.USUAL) -> MemoryConsumer:
        self.asked = [*getattr(self, "asked", []), fetch]
        return super().consumer(group_id, name, fetch)


@pytest.mark.parametrize(("deaths", "sizes"), [(1, [Fetch.LITTLE, Fetch.USUAL]), (2, [Fetch.LEAST, Fetch.LITTLE, Fetch.USUAL])])
def test_small_fetches_begin_after_a_death_and_end_with_the_watch(
    deaths: int, sizes: list[Fetch], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "samzapy.container")
    bench = Bench(tmp_path, Passing)
    bench.log = log = Noting(bench.cluster)
    bench.drain(bench.start())
    assert [Fetch.USUAL] == log.asked

    spec = bench.adjust(bench.spec())
    bench.name(0, "again", spec.tasks)
    container = Container(spec, "again", "run", None, log, bench.clock, caution=Caution(watch_s=60.0, deaths=deaths))
    container.start()
    bench.feed(("a", 1))
    bench.drain(container)
    assert [Fetch.USUAL, sizes[0]] == log.asked
    assert f"an earlier process of this container {NO_ERROR}: the container fetches {sizes[0].value} at a time" in container.status()["slow"]
    for _ in range(2):  # of at most 30 s, and of the rest of a minute
        bench.clock.passed += 31
        bench.drain(container)
        bench.drain(container)
    bench.feed(("b", 2))
    bench.drain(container)
    assert [Fetch.USUAL, *sizes] == log.asked
    assert "" == container.status()["slow"]
    assert [("a", 1), ("b", 2)] == bench.read("out")
    ends = [r.getMessage() for r in caplog.records if "has not died again" in r.getMessage()]
    assert [
        f"container 0 has not died again; it fetched {before.value} at a time, and fetches {after.value} now" for before, after in pairwise(sizes)
    ] == ends
    assert [] == [r for r in caplog.records if r.levelno >= logging.WARNING]  # nothing stands, nothing is wrong


def test_why_a_container_ended_itself_is_said_with_what_follows() -> None:
    caution = Caution(watch_s=60.0, deaths=1, why="exit code 5: SZ200: a hook did not return")
    consumer = InputConsumer(lambda _: MemoryLog(MemoryCluster(SystemClock())).consumer("g", "c"), caution, SystemClock(), 0)
    assert consumer.why_slow().startswith(f"{ENDED} (exit code 5: SZ200: a hook did not return): the container fetches {Fetch.LITTLE.value} at a time, for ")


def test_a_container_that_never_ended_says_that_another_did() -> None:
    """As one that `scale` has just added: it may get the record that ended the other."""
    consumer = InputConsumer(lambda _: MemoryLog(MemoryCluster(SystemClock())).consumer("g", "c"), Caution(watch_s=60.0), SystemClock(), 1)
    assert consumer.why_slow().startswith(f"an earlier process of another container of the job {NO_ERROR}: the container fetches")


def test_what_is_met_while_batches_are_gathered_comes_after_the_records_before_it() -> None:
    class Inner(MemoryConsumer):
        def __init__(self) -> None:
            self.left: list[object] = [["a"], ["b"], LogError("gone", ""), ["c"], []]

        def poll(self, max_records, timeout_s):
            found = self.left.pop(0)
            if isinstance(found, Exception):
                raise found
            return [MemoryMessage(TopicPartition("in", 0), 0, None, word.encode(), 0, None, None) for word in found]

    consumer = InputConsumer(lambda _: Inner(), Caution(watch_s=60.0, deaths=2), SystemClock(), 0)
    assert [b"a", b"b"] == [m.value() for m in consumer.poll(500, 1.0)]
    with pytest.raises(LogError, match="gone"):
        consumer.poll(500, 1.0)
    assert [b"c"] == [m.value() for m in consumer.poll(500, 1.0)]
