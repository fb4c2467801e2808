"""A restore ends at once and with the right state, however its changelog ends; or it is refused, and stays refused.

At once: no waiting, which on this clock is the only thing that takes time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from samzapy.api.errors import InDoubt, StateRefused
from samzapy.container.container import Container
from samzapy.container.spec import ContainerSpec
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Change, TaskStore
from tests.recovery.bad_state import CHANGELOG, TASK, Summing
from tests.unit.container.bench import JOB, Bench

PLACE = TopicPartition(CHANGELOG, 0)
AT_ONCE_S = 0.02  # a try more where the broker has not ended a transaction yet
MANY = 5000  # more than two batches of a restore
Act = Callable[[Bench], None]


def ran(folder: Path, keys: int) -> Bench:
    """A job that counted so many keys and crashed; its host is gone."""
    bench = Bench(folder / "one", Summing, lease_s=0.1)
    bench.feed(*((f"k{i}", i) for i in range(keys)))
    container = bench.start()
    bench.drain(container)
    container.close()
    bench.state = folder / "two"
    return bench


def restored(bench: Bench) -> dict[str, int]:
    """The state after another start, which has not waited."""
    before = bench.clock.passed
    container = bench.start()
    try:
        assert AT_ONCE_S >= bench.clock.passed - before, "it waited"
        return dict(container.tasks[TASK].stores["s"].all())
    finally:
        container.close()


def nothing(bench: Bench) -> None:
    """The last commit's marker is the end."""


def transaction(records: int, end: str, transactional_id: str = "stranger") -> Act:
    """Somebody's transaction after the last commit: aborted, or left open, so that the next owner's init aborts it."""

    def act(bench: Bench) -> None:
        producer = bench.log.transactional_producer(transactional_id)
        producer.init()
        producer.begin()
        for i in range(records):
            producer.send(CHANGELOG, b"\0" * 8, f"k{i}".encode(), 0)
        producer.flush()
        if end == "abort":
            producer.abort()

    return act


def deleted_and_compacted(bench: Bench) -> None:
    """The newest changes were deletions, and the cleaner has taken them and what they deleted: the log ends in holes."""
    for i in range(5, MANY):
        bench.feed((f"k{i}", None))
    bench.task = Deleting
    container = bench.start()
    bench.drain(container)
    container.close()
    bench.cluster.compact(CHANGELOG, drop_tombstones=True)
    bench.state = bench.state / "three"


class Deleting(Summing):
    """A record without a value deletes its key."""

    def process(self, envelope, collector, coordinator):
        self.sums.delete(envelope.key)


def compacted(bench: Bench) -> None:
    bench.feed(*((f"k{i}", 0) for i in range(MANY)))
    container = bench.start()
    bench.drain(container)
    container.close()
    bench.cluster.compact(CHANGELOG)
    bench.state = bench.state / "three"


OWN = JOB.container_transactional_id(0)
ENDS: dict[str, tuple[int, Act, int]] = {  # keys, what is done to the changelog, keys that are left
    "no record": (0, nothing, 0),
    "one record, a commit marker": (1, nothing, 1),
    "two records, a commit marker": (2, nothing, 2),
    "many records, a commit marker": (MANY, nothing, MANY),
    "no record, an abort marker": (0, transaction(1, "abort"), 0),
    "one record, an abort marker": (1, transaction(1, "abort"), 1),
    "an aborted batch of one": (MANY, transaction(1, "abort"), MANY),
    "an aborted batch, larger than the restore's": (MANY, transaction(MANY, "abort"), MANY),
    "what the predecessor left open": (MANY, transaction(3, "left open", OWN), MANY),
    "nothing but what the predecessor left open": (0, transaction(3, "left open", OWN), 0),
    "compacted": (MANY, compacted, MANY),
    "a compacted tail": (MANY, deleted_and_compacted, 5),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_restore_ends_at_once_with_the_right_state(name: str, tmp_path: Path) -> None:
    keys, act, left = ENDS[name]
    bench = ran(tmp_path, keys)
    act(bench)

    assert {f"k{i}": i for i in range(left)} == restored(bench)


# -- what is missing ------------------------------------------------------------------------------------------------------------------


def cut_off(bench: Bench, records: int, place: TopicPartition = PLACE) -> None:
    """The log's last offsets are lost, as after an unclean leader election; the first of them is the last commit's marker."""
    log = bench.cluster.partition(place)
    log.end -= records
    log.records = [r for r in log.records if r.offset() < log.end]


@pytest.mark.parametrize("local", ["local store kept", "host gone"])
@pytest.mark.parametrize("lost", [2, 3, 10])
def test_a_changelog_that_lost_its_end_is_refused_however_often_it_is_tried(lost: int, local: str, tmp_path: Path) -> None:
    bench = ran(tmp_path, 20)
    if local == "local store kept":
        bench.state = tmp_path / "one"
    cut_off(bench, lost)
    for _ in range(8):
        with pytest.raises(StateRefused, match="its end was lost"):
            bench.start()


def test_a_changelog_that_lost_no_more_than_a_marker_has_lost_nothing(tmp_path: Path) -> None:
    bench = ran(tmp_path, 20)
    cut_off(bench, 1)
    assert {f"k{i}": i for i in range(20)} == restored(bench)


@pytest.mark.parametrize("local", ["local store kept", "host gone"])
def test_a_checkpoint_topic_that_lost_its_end_is_refused_however_often_it_is_tried(local: str, tmp_path: Path) -> None:
    """Else the inputs would be read again over a state that has counted them."""
    bench = ran(tmp_path, 20)
    again = bench.start()
    bench.feed(("k3", 100))
    bench.drain(again)
    again.close()
    bench.state = tmp_path / ("two" if local == "local store kept" else "three")
    cut_off(bench, 2, TopicPartition(JOB.checkpoint_topic, 0))
    for _ in range(3):
        with pytest.raises(StateRefused, match="later checkpoints were lost"):
            bench.start()


def test_a_complete_local_store_goes_on_over_a_changelog_that_was_truncated_to_its_end(tmp_path: Path) -> None:
    bench = ran(tmp_path, 20)
    bench.state = tmp_path / "one"
    bench.cluster.delete_records(PLACE, bench.cluster.bounds(PLACE).end)
    for _ in range(2):
        assert {f"k{i}": i for i in range(20)} == restored(bench)


class Meanwhile:
    """A store to which something happens when its first batch has been loaded."""

    def __init__(self, store: TaskStore, act: Callable[[], None]) -> None:
        self._store, self._act, self._loads = store, act, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def load(self, records: list[Change], stamp: object) -> None:
        self._store.load(records, stamp)  # type: ignore[arg-type]
        self._loads += 1
        if self._loads == 1:
            self._act()


def while_restoring(bench: Bench, act: Callable[[], None]) -> Callable[[ContainerSpec], ContainerSpec]:
    store = bench.spec().stores["s"]
    return lambda spec: replace(spec, stores={"s": replace(store, make=lambda task, engine: Meanwhile(store.make(task, engine), act))})  # type: ignore[arg-type,return-value]


def test_records_deleted_ahead_of_a_restore_are_noticed_and_the_next_start_is_refused(tmp_path: Path) -> None:
    bench = ran(tmp_path, 3 * MANY)
    bench.adjust = while_restoring(bench, lambda: bench.cluster.delete_records(PLACE, 2 * MANY))

    with pytest.raises(InDoubt, match=r"a restore was reading \S*s-changelog\[0\], and records there were removed meanwhile"):
        bench.start()

    bench.adjust = lambda spec: spec
    for _ in range(2):
        with pytest.raises(StateRefused, match=r"starts at 10000.*truncated"):
            bench.start()


def test_records_deleted_while_a_restore_reads_are_not_missed(tmp_path: Path) -> None:
    bench = ran(tmp_path, 3 * MANY)
    bench.adjust = while_restoring(bench, lambda: bench.cluster.delete_records(PLACE, 100))

    assert {f"k{i}": i for i in range(3 * MANY)} == restored(bench)


def test_a_process_that_holds_all_local_stores_is_waited_for_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, partitions=5, lease_s=10.0)
    for partition in range(5):
        bench.feed(("k", 1), partition=partition)
    sleeper = bench.start()
    bench.drain(sleeper)  # it has them open, and is asleep
    before = bench.clock.passed
    container = bench.start()
    assert 12 <= bench.clock.passed - before < 13
    assert [{"k": 1}] * 5 == [dict(task.stores["s"].all()) for task in container.tasks.values()]


def test_a_strangers_transaction_from_before_the_last_commit_is_waited_for_and_not_taken_for_a_lost_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "one", Summing, lease_s=0.1)
    container = bench.start()
    stranger = bench.log.transactional_producer("stranger")
    stranger.init()
    stranger.begin()
    stranger.send(CHANGELOG, b"\0" * 8, b"k0", 0)
    stranger.flush()
    bench.feed(("k0", 7), ("k1", 8))
    bench.drain(container)
    container.close()
    bench.state = tmp_path / "two"
    spec = bench.spec()
    bench.name(0, "next", spec.tasks)
    container = Container(spec, "next", "run", None, bench.log, bench.clock)
    container.own()
    for _ in range(400):
        container.step(0.1)
    assert (True, True) == (container.is_starting, "another application's transaction" in str(container.tasks[TASK].reason))
    stranger.abort()
    while container.is_starting:
        container.step()
    assert {"k0": 7, "k1": 8} == dict(container.tasks[TASK].stores["s"].all())
