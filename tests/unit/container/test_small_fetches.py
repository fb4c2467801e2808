"""A container that was started after a death that nobody could explain fetches little at a time, and after a while as much as usual."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.container.container import Container
from samzapy.model.caution import Caution
from samzapy.testing.memory_log import MemoryConsumer, MemoryLog
from tests.unit.container.bench import Bench


class Passing(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=envelope.message))


class Noting(MemoryLog):
    """Which of the containers' consumers were to fetch little."""

    def consumer(self, group_id: str, name: str, small: bool = False) -> MemoryConsumer:
        self.asked = [*getattr(self, "asked", []), small]
        return super().consumer(group_id, name, small)


def test_small_fetches_begin_after_a_death_and_end_with_the_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "samzapy.container")
    bench = Bench(tmp_path, Passing)
    bench.log = log = Noting(bench.cluster)
    bench.drain(bench.start())
    assert [False] == log.asked

    spec = bench.adjust(bench.spec())
    bench.name(0, "again", spec.tasks)
    container = Container(spec, "again", "run", None, log, bench.clock, caution=Caution(watch_s=30.0))
    container.start()
    bench.feed(("a", 1))
    bench.drain(container)
    assert [False, True] == log.asked
    bench.clock.passed += 31
    bench.drain(container)
    bench.feed(("b", 2))
    bench.drain(container)
    bench.drain(container)
    assert [False, True, False] == log.asked
    assert [("a", 1), ("b", 2)] == bench.read("out")
    ends = [r for r in caplog.records if "its last death" in r.getMessage()]
    assert [("INFO", "container 0 has run for long enough since its last death: it fetches more than one batch at once again")] == [
        (r.levelname, r.getMessage()) for r in ends
    ]
    assert [] == [r for r in caplog.records if r.levelno >= logging.WARNING]  # nothing stands, nothing is wrong
