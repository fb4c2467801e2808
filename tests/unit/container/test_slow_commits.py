"""Brokers that take fewer bytes than a job writes, as under a quota: transactions get as small as fits, stay so, and grow again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.api.errors import InDoubt, TransactionAborted
from samzapy.container.container import Container
from samzapy.container.runner import ContainerRunner
from samzapy.plan.restarts import MAX_RESTARTS_WITHOUT_COMMIT
from samzapy.ports import Assignment, Supervision
from samzapy.testing.memory_log import MemoryLog
from samzapy.testing.memory_producers import MemoryTransactionalProducer
from tests.unit.container.bench import JOB, Bench
from tests.unit.container.test_stuck_hook import Office


class Passing(StreamTask):
    def process(self, envelope, collector, coordinator):
        collector.send("out", envelope.message, key=envelope.key)


class SlowProducer(MemoryTransactionalProducer):
    """Its flush takes as long as the brokers take for its records; after `commit.timeout` it gives up, as the real one: in doubt, or aborted by the
    broker meanwhile."""

    log: SlowLog
    held = 0

    def begin(self) -> None:
        super().begin()
        self.held = 0

    def send(self, topic, *record, **more):  # type: ignore[no-untyped-def]
        self.held += topic == "out"
        super().send(topic, *record, **more)

    def flush(self) -> None:
        if self.held and self._id == JOB.container_transactional_id(0):
            self.log.sizes.append(self.held)
            if len(self.log.sizes) >= self.log.quota_ends_after:
                self.log.rate = 1e9
            seconds, self.held = self.held / self.log.rate, 0
            self._cluster.rest(min(seconds, 60.0))
            if seconds > 60:
                raise self.log.failure(f"flush of {self._id}: the brokers did not accept all records within 60 s.", "")
        super().flush()


class SlowLog(MemoryLog):
    rate = 10.0  # records a second
    quota_ends_after = 1 << 62  # flushes
    sizes: list[int]
    failure: type[InDoubt | TransactionAborted] = InDoubt

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        producer = SlowProducer(self._cluster, transactional_id, 900.0)  # its own clock, not the broker's, ends the wait
        producer.log = self
        return producer


RECORDS = 12_000


def slow_bench(tmp_path: Path, failure: type[InDoubt | TransactionAborted]) -> tuple[Bench, SlowLog]:
    bench = Bench(tmp_path, Passing, stores={}, poll_records=5000, commit_interval_s=1e9)
    bench.log = log = SlowLog(bench.cluster)
    log.sizes, log.failure = [], failure
    bench.feed(*[("k", n) for n in range(RECORDS)])
    return bench, log


def attempt(container: Container) -> None:
    """As the runner: it commits what it has read, and starts over in doubt."""
    try:
        container.step(0.0)
        container.commit_or_roll_back()
    except InDoubt:
        container.drop_all()
        container.start()


@pytest.mark.parametrize("failure", [InDoubt, TransactionAborted])
def test_commits_that_time_out_make_transactions_smaller_until_they_fit_and_that_stays(
    tmp_path: Path, failure: type[InDoubt | TransactionAborted], caplog: pytest.LogCaptureFixture
) -> None:
    bench, log = slow_bench(tmp_path, failure)
    container = bench.start()
    assert "" == container.status()["slow"]

    while len(log.sizes) < 6:
        attempt(container)
    assert [5000, 2500, 1250, 625, 312, 156] == log.sizes  # 625 and more take over a minute; 312 took over half of one
    assert 312 + 156 == len(bench.read("out"))
    assert (
        "container 0: commits take the brokers too long: one with 625 records took 60 s (the wait ended at 22:17:20 UTC), and commit.timeout is 60 s. "
        "So a transaction holds at most 312 records now. " in caplog.text
    )
    said = "commits take the brokers too long: one with 312 records took 31 s (the wait ended at 22:17:51 UTC), and commit.timeout is 60 s. So "
    assert container.status()["slow"].startswith(said + "a transaction holds at most 156 records now.")

    while len(log.sizes) < 26:
        attempt(container)
    assert [156] * 20 == log.sizes[6:], "twice as many would take over half of the time again"

    log.rate = 1000.0  # the quota is lifted
    while len(log.sizes) < 36:
        attempt(container)
    assert [156, 156, 156, 156, 312, 312, 312, 312, 624, 624] == log.sizes[26:]

    while len(bench.read("out")) < RECORDS:
        attempt(container)
    assert list(range(RECORDS)) == [value for _, value in bench.read("out")]
    bench.feed(("k", 1))
    attempt(container)
    assert "" == container.status()["slow"], "nothing is smaller than it would be without"


def test_with_at_least_once_brokers_have_a_lease(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Passing, exactly_once=False, lease_s=8.0)
    assert (8.0, "containers.lease is 8 s") == (bench.spec().patience_s, bench.spec().patience)
    bench = Bench(tmp_path, Passing, lease_s=8.0)
    assert (60.0, "commit.timeout is 60 s") == (bench.spec().patience_s, bench.spec().patience)


def test_an_abort_that_was_quick_is_no_matter_of_the_brokers_speed(tmp_path: Path) -> None:
    bench, log = slow_bench(tmp_path, InDoubt)
    log.rate = 1e9
    container = bench.start()
    bench.cluster.fail_next("commit", "aborted")
    attempt(container)
    attempt(container)
    assert ([5000, 2500], "") == (log.sizes, container.status()["slow"])  # the search for a poison record


def run(bench: Bench) -> Mapping[str, Any]:
    """A container's whole life; its last report."""
    office = Office()

    def build(assignment: Assignment, incarnation: str, supervision: Supervision) -> Container:
        bench.name(0, incarnation, ["Partition 0"])
        return Container(bench.spec(), incarnation, "run", {"in[0]": RECORDS}, bench.log, bench.clock, supervision=supervision)

    ContainerRunner(
        number=0, build=build, control=office, log=bench.log, clock=bench.clock, facts={}, heartbeat_s=1.0, lease_s=10.0, stuck_hook_s=60.0,
        die=print, spawn=lambda name, target: None, settle_memory=lambda: None, resident=lambda: 0,
    ).run()  # fmt: skip
    return office.last_word


def test_a_container_whose_transactions_get_smaller_is_not_given_up(tmp_path: Path) -> None:
    bench, log = slow_bench(tmp_path, InDoubt)
    log.rate, log.quota_ends_after = 0.5, 11
    last_word = run(bench)

    assert [12_000, 6000, 3000, 1500, 750, 375, 187, 93, 46, 23, 11] == log.sizes[:11]
    assert MAX_RESTARTS_WITHOUT_COMMIT < log.sizes.index(23), "all before failed"
    assert ("finished", None) == (last_word["outcome"], last_word["error"])
    assert list(range(RECORDS)) == [value for _, value in bench.read("out")]


def test_a_container_whose_transactions_cannot_get_smaller_is_given_up(tmp_path: Path) -> None:
    bench, log = slow_bench(tmp_path, InDoubt)
    log.rate = 0.001
    last_word = run(bench)

    assert [2, *[1] * (MAX_RESTARTS_WITHOUT_COMMIT + 1)] == log.sizes[-MAX_RESTARTS_WITHOUT_COMMIT - 2 :]
    assert ("failed", "SZ311") == (last_word["outcome"], last_word["error"]["code"])


def test_what_was_waited_for_room_in_the_producers_queue_counts_as_well(tmp_path: Path) -> None:
    bench, log = slow_bench(tmp_path, TransactionAborted)
    log.rate = 1e9
    container = bench.start()
    producer = container.ownership.open()

    def send_all(records: object) -> None:
        bench.clock.sleep(8.0)
        producer.waited_s += 8.0
        MemoryTransactionalProducer.send_all(producer, records)  # type: ignore[arg-type]

    producer.send_all = send_all  # type: ignore[method-assign]
    container.step(0.0)
    container.commit()
    assert "one with 5,000 records took 40 s (the wait ended at" in container.status()["slow"]
