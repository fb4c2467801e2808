"""`_FENCED` says only that this producer is dead. By time, its container goes on; by a successor, it exits; either way each record counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import Fenced, Superseded
from tests.recovery.bad_state import Summing
from tests.unit.container.bench import JOB, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, Summing)


def test_fenced_because_its_transaction_timed_out_it_is_still_the_owner_and_goes_on(bench: Bench) -> None:
    container = bench.start()
    bench.feed(("a", 1))
    container.step(0.0)  # sent, in a transaction that nobody commits in time
    bench.cluster.expire(JOB.container_transactional_id(0))
    with pytest.raises(Fenced):
        bench.drain(container)

    container.start()  # what its runner does: ask the coordinator topic, which still names it
    bench.feed(("a", 2))
    bench.drain(container)

    assert [("a", 1), ("a", 3)] == bench.read("out")
    assert {"a": 3} == bench.changelog()


def test_fenced_because_another_took_over_it_finds_that_out_and_exits(bench: Bench) -> None:
    old = bench.start()
    bench.feed(("a", 1))
    old.step(0.0)
    assert [] == [t for t in old.tasks.values() if t.committed.sequence > 0]
    sleeping_at = bench.epoch
    bench.name(0, "successor", bench.spec().tasks)
    bench.log.transactional_producer(JOB.container_transactional_id(0)).init()  # the successor's O1

    with pytest.raises(Fenced):
        bench.drain(old)
    with pytest.raises(Superseded, match=r"names successor.* as its process, not this one, i1"):
        old.start()

    old.close()
    assert sleeping_at + 1 == bench.epoch
    assert [] == bench.read("out")
    assert {} == bench.changelog()


def test_a_process_call_longer_than_the_transaction_leaves_nothing_and_is_done_again(tmp_path: Path) -> None:
    slow = iter([True])

    class Slow(Summing):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            if envelope.key == "slow" and next(slow, False):
                bench.cluster.expire(JOB.container_transactional_id(0))  # the time that this call took

    bench = Bench(tmp_path, Slow)
    container = bench.start()
    bench.feed(("a", 1))
    container.step(0.0)  # its transaction is open now
    bench.feed(("slow", 1), ("a", 1))
    with pytest.raises(Fenced):
        bench.drain(container)
    assert [] == bench.read("out")

    container.start()
    bench.drain(container)

    assert [("a", 1), ("slow", 1), ("a", 2)] == bench.read("out")
    assert {"a": 2, "slow": 1} == bench.changelog()
