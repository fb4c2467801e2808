"""A pause: nothing is processed, everything before it is committed, and each record takes effect once afterwards, whatever happened meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import InDoubt
from samzapy.container.container import Container
from samzapy.ports import Instructions, Supervision
from tests.unit.container.bench import Bench

OUT = SystemStream("kafka", "out")
SEEN: list[str] = []


class Counting(StreamTask):
    """Counts keys, and sends each count."""

    def init(self, context):
        self.store = context.get_store("s")
        SEEN.append("init")

    def process(self, envelope, collector, coordinator):
        SEEN.append(envelope.key)
        count = (self.store.get(envelope.key) or 0) + 1
        self.store.put(envelope.key, count)
        collector.send(OutgoingMessageEnvelope(OUT, key=envelope.key, message=count, partition=envelope.partition))

    def window(self, collector, coordinator):
        SEEN.append("window")


@dataclass
class Orders:
    """What the coordinator orders. `after`: the pause comes when so many records were processed."""

    paused: bool = False
    commit: int = 0
    after: int | None = None
    reports: list[bool] = field(default_factory=list)

    def now(self) -> Instructions:
        if self.after is not None and sum(key not in ("init", "window") for key in SEEN) >= self.after:
            self.paused, self.after = True, None
        return Instructions(epoch=1, paused=self.paused, commit=self.commit)

    @property
    def supervision(self) -> Supervision:
        return Supervision(report=self.reports.append, instructions=self.now)


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    SEEN.clear()


def started(bench: Bench, orders: Orders, ends: dict[str, int] | None = None) -> Container:
    spec = bench.spec()
    bench.name(0, "i1", spec.tasks)
    container = Container(spec, "i1", bench.run_id, ends, bench.log, bench.clock, supervision=orders.supervision)
    container.start()
    return container


def turns(bench: Bench, container: Container, count: int = 40) -> None:
    for _ in range(count):
        container.step(0.0)
        bench.clock.passed += 0.05


def seen() -> list[str]:
    return [key for key in SEEN if key not in ("init", "window")]


def slow(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record takes 30 ms, so that something is due within a batch."""
    process = Counting.process

    def taking(self: Any, *args: Any) -> None:
        bench.clock.passed += 0.03
        process(self, *args)

    monkeypatch.setattr(Counting, "process", taking)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_pause_within_a_batch_commits_what_was_processed_and_takes_the_rest_later_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    bench = Bench(tmp_path, Counting, partitions=partitions, window_s=0.1, commit_interval_s=60.0)
    slow(bench, monkeypatch)
    keys = [f"k{n}" for n in range(60)]
    for n, key in enumerate(keys):
        bench.feed((key, n), partition=n % partitions)
    orders = Orders(after=7)
    container = started(bench, orders)
    turns(bench, container)
    done = seen()
    assert 7 <= len(done) < 20, "not the rest of the batch"
    assert container.status()["paused"]
    assert sorted(done) == sorted(k for p in range(partitions) for k, _ in bench.read("out", p)), "all that was processed is committed"
    here = container._report.positions()
    windows = SEEN.count("window")

    bench.feed(("later", 1))
    turns(bench, container, 200)
    assert (done, windows) == (seen(), SEEN.count("window"))
    assert here == container._report.positions(), "where it stands"

    orders.paused = False
    turns(bench, container, 200)
    container.commit()
    assert not container.status()["paused"]
    assert sorted([*keys, "later"]) == sorted(seen())
    assert dict.fromkeys([*keys, "later"], 1) == {k: v for p in range(partitions) for k, v in bench.changelog(p).items()}
    assert len(keys) + 1 == sum(len(bench.read("out", p)) for p in range(partitions))
    assert 1 == sum(record != "window" for record in SEEN) - len(seen()) or partitions > 1
    assert {True} == set(orders.reports) - {False}


def test_a_container_that_starts_while_the_job_is_paused_processes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Counting, window_s=0.1)
    bench.feed(("a", 1), ("b", 2))
    orders = Orders(paused=True)
    container = started(bench, orders)
    turns(bench, container, 100)
    assert (["init"], True) == (SEEN, container.status()["paused"])
    assert ["RUNNING"] == [task["state"] for task in container.status()["tasks"]]
    orders.paused = False
    turns(bench, container)
    assert ["a", "b"] == seen()


def test_a_task_that_has_to_read_a_table_first_says_that_it_waits_for_the_end_of_the_pause(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Counting, inputs={"in": {"bootstrap": True}})
    bench.feed(("a", 1), ("b", 2))
    orders = Orders(paused=True)
    container = started(bench, orders)
    turns(bench, container, 100)
    [task] = container.status()["tasks"]
    assert ("BOOTSTRAPPING", "the job is paused: what the task has to read first is read after `samzapy resume JOB.yaml`") == (task["state"], task["reason"])
    orders.paused = False
    turns(bench, container)
    [task] = container.status()["tasks"]
    assert ("RUNNING", "") == (task["state"], task["reason"])
    assert ["a", "b"] == seen()


@pytest.mark.parametrize("kind", ["aborted", "suspicious", "in_doubt_lost"])
def test_where_the_commit_of_a_pause_fails_it_pauses_all_the_same_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    bench = Bench(tmp_path, Counting, commit_interval_s=60.0)
    slow(bench, monkeypatch)
    bench.feed(*((f"k{n}", n) for n in range(30)))
    orders = Orders(after=5)
    container = started(bench, orders)
    bench.cluster.fail_next("commit", kind)
    for _ in range(60):
        try:
            container.step(0.0)
        except InDoubt:  # as the runner does: it starts over from what Kafka says
            container.own()
        bench.clock.passed += 0.05
    assert container.status()["paused"]
    before = len(seen())
    turns(bench, container)
    assert before == len(seen())
    orders.paused = False
    turns(bench, container, 100)
    container.commit()
    assert {f"k{n}": 1 for n in range(30)} == bench.changelog()
    assert 30 == len(bench.read("out"))


def test_a_commit_that_is_ordered_is_done_and_told_by_its_number(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Counting, commit_interval_s=600.0)
    bench.feed(("a", 1))
    orders = Orders()
    container = started(bench, orders)
    turns(bench, container)
    assert ([], 0) == (bench.read("out"), container.status()["ordered"])
    orders.commit = 3
    turns(bench, container)
    assert ([("a", 1)], 3) == (bench.read("out"), container.status()["ordered"])
    assert "ordered" == container.status()["news"][-1]["why"]
    commits = container.status()["commits"]
    turns(bench, container)
    assert commits == container.status()["commits"]


def test_a_bounded_run_that_is_paused_does_not_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Counting)
    bench.feed(("a", 1), ("b", 2))
    orders = Orders(paused=True)
    container = started(bench, orders, {"in[0]": 2})
    turns(bench, container, 100)
    assert ([], False) == (seen(), container.finished)
    orders.paused = False
    turns(bench, container, 100)
    assert (["a", "b"], True) == (seen(), container.finished)
