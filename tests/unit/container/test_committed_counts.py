"""What a run says of its records: those that were committed, once, however often they were read and sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy import StreamTask
from samzapy.container.container import Container
from samzapy.plan.totals import Totals
from tests.unit.container.bench import Bench


class Passing(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send("out", envelope.message, key=envelope.key)


def told(totals: Totals, container: Container) -> tuple[int, int]:
    totals.take({0: container.status()})
    return totals.of("processed"), totals.of("sent")


@pytest.mark.parametrize(("exactly_once", "sent"), [(True, 15), (False, 25)])
def test_records_of_transactions_that_were_dropped_are_not_counted(tmp_path: Path, exactly_once: bool, sent: int) -> None:
    bench, totals = Bench(tmp_path, Passing, exactly_once=exactly_once), Totals()
    bench.feed(*[("k", n) for n in range(5)])
    container = bench.start()
    bench.drain(container)
    assert (5, 5) == told(totals, container)

    bench.feed(*[("k", n) for n in range(5, 15)])
    container.step(0.0)
    assert (5, 5) == told(totals, container), "not committed yet"
    bench.cluster.fail_next("commit", "aborted")
    assert not container.commit_or_roll_back()
    told(totals, container)
    container.drop_all()  # and in doubt, before it has read them again
    container.start()
    told(totals, container)
    bench.drain(container)
    assert (15, sent) == told(totals, container)
    assert sent == len(bench.read("out"))
