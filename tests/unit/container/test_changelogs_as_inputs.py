"""A job may read another job's changelog: it is given the changes, and not that job's barriers."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy import StreamTask
from samzapy.model.barrier import BARRIER_KEY, Barrier
from tests.unit.container.bench import Bench

OTHERS = "orders-1-totals-changelog"


class Copying(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send("out", envelope.message, key=envelope.key)


class CopyingBatches(StreamTask):
    def process_batch(self, envelopes, collector, coordinator):
        for envelope in envelopes:
            collector.send("out", envelope.message, key=envelope.key)


@pytest.mark.parametrize("task", [Copying, CopyingBatches])
def test_the_barriers_between_its_records_are_passed(tmp_path: Path, task: type[StreamTask]) -> None:
    bench = Bench(tmp_path, task, inputs={OTHERS: {"bootstrap": True}})
    barrier = Barrier("orders", "1", "Partition 0", "totals", 7, "i1", "n").to_bytes()
    for n in range(3):
        bench.feed_raw(barrier, BARRIER_KEY, OTHERS)
        bench.feed(("a", n), topic=OTHERS)
    bench.feed_raw(barrier, BARRIER_KEY, OTHERS)

    container = bench.start({f"{OTHERS}[0]": 7})
    while not container.finished:
        container.step(0.1)

    assert [("a", 0), ("a", 1), ("a", 2)] == bench.read("out")
    assert [7] == [mark.next_offset for mark in container.tasks["Partition 0"].committed.inputs.values()]
