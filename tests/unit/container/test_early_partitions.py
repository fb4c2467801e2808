"""Which partitions are added to the transaction before the commit needs them, and that nobody sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy.api.task import StreamTask
from samzapy.container import early_partitions
from samzapy.container.container import Container
from samzapy.model.barrier import BARRIER_KEY, barrier_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.readers import read_to_end
from tests.unit.container.bench import JOB, Bench

CHANGELOG = JOB.changelog_topic("s")


class Sums(StreamTask):
    """Adds values by key; a key that begins with `_` changes nothing, `gone` is put and deleted again."""

    def init(self, context: Any) -> None:
        self.store = context.get_store("s")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        if envelope.key == "gone":
            self.store.put("gone", 1)
        if envelope.key == "forget":
            self.store.delete("gone")
        if not envelope.key.startswith(("_", "gone", "forget")):
            self.store.put(envelope.key, self.store.get(envelope.key, 0) + envelope.message)


def early(bench: Bench, topic: str, partition: int = 0) -> list[int]:
    """The offsets of the barriers that no start wrote."""
    batches = read_to_end(bench.log.restore_consumer("t"), TopicPartition(topic, partition), bench.clock)
    barriers = [m for batch in batches for m in batch if m.key() == BARRIER_KEY]
    return [m.offset() for m in barriers if not barrier_from_bytes(m.value()).nonce]


def before_commit(bench: Bench, container: Container, *records: tuple[str, int, int]) -> None:
    """Some records (key, value, partition), and the time until a moment before the commit."""
    for key, value, partition in records:
        bench.feed((key, value), partition=partition)
    container.step(0.0)
    bench.clock.sleep(0.98)
    container.step(0.0)


def test_a_partition_is_added_once_in_a_transaction_before_its_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums)
    container = bench.start()
    before_commit(bench, container, ("a", 1, 0), ("a", 2, 0), ("b", 5, 0))
    assert ([], []) == (early(bench, CHANGELOG), early(bench, JOB.checkpoint_topic)), "nothing is visible before the commit"

    container.step(0.0)
    container.commit()
    assert (1, 1) == (len(early(bench, CHANGELOG)), len(early(bench, JOB.checkpoint_topic)))
    before_commit(bench, container, ("b", 1, 0))
    bench.clock.sleep(0.03)
    container.step(0.0)  # the commit is due
    assert (2, 2) == (len(early(bench, CHANGELOG)), len(early(bench, JOB.checkpoint_topic)))
    assert {"a": 3, "b": 6} == bench.changelog()


def test_only_what_the_commit_will_write_is_added(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums, partitions=3)
    container = bench.start()
    before_commit(bench, container, ("a", 1, 0), ("_", 1, 1))
    container.commit()
    assert [1, 0, 0] == [len(early(bench, CHANGELOG, n)) for n in range(3)], "a store that did not change has no changelog record"
    assert [1, 1, 0] == [len(early(bench, JOB.checkpoint_topic, n)) for n in range(3)]


def test_a_commit_that_somebody_asks_for_soon_after_another_has_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums)
    container = bench.start()
    for value in range(3):
        bench.feed(("a", value))
        container.step(0.0)
        container.commit()
        bench.clock.sleep(0.5)
        container.step(0.0)
    assert ([], []) == (early(bench, CHANGELOG), early(bench, JOB.checkpoint_topic))


def test_without_records_no_transaction_is_begun(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums)
    container = bench.start()
    for _ in range(5):
        before_commit(bench, container)
        bench.clock.sleep(0.03)
        container.step(0.0)
    assert ([], []) == (early(bench, CHANGELOG), early(bench, JOB.checkpoint_topic))


def test_no_transaction_has_more_than_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_partitions, "MOST", 3)
    bench = Bench(tmp_path, Sums, partitions=4)
    container = bench.start()
    before_commit(bench, container, *(("a", 1, number) for number in range(4)))
    container.commit()
    added = [len(early(bench, topic, number)) for topic in (CHANGELOG, JOB.checkpoint_topic) for number in range(4)]
    assert 3 == sum(added)
    assert [{"a": 1}] * 4 == [bench.changelog(number) for number in range(4)]


def test_a_key_that_is_put_and_deleted_in_one_transaction_leaves_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums)
    container = bench.start()
    before_commit(bench, container, ("gone", 1, 0))
    bench.feed(("forget", 1))
    container.step(0.0)
    container.commit()
    assert 1 == len(early(bench, JOB.checkpoint_topic))
    assert [] == [entry for entry in bench.read(CHANGELOG) if entry[1] is not None]


def test_a_restart_goes_on_from_such_a_transaction(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "one", Sums)
    container = bench.start()
    before_commit(bench, container, ("a", 1, 0), ("b", 2, 0))
    container.commit()
    before_commit(bench, container, ("a", 1, 0))
    container.commit()
    before_commit(bench, container, ("a", 100, 0))  # never committed
    container.drop_all()
    container.close()

    bench.state = tmp_path / "two"  # nothing local: all is restored
    again = bench.start()
    bench.drain(again)
    assert {"a": 102, "b": 2} == bench.changelog()
    again.close()
