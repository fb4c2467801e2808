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


def turn(bench: Bench, container: Container, *records: tuple[str, int], partition: int = 0) -> None:
    """Some records, and the time after which missing partitions are added."""
    bench.feed(*records, partition=partition)
    container.step(0.0)
    bench.clock.sleep(0.3)
    container.step(0.0)


def test_a_partition_is_added_once_in_a_transaction_before_its_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums)
    container = bench.start()
    turn(bench, container, ("a", 1))
    turn(bench, container, ("a", 2), ("b", 5))
    assert ([], []) == (early(bench, CHANGELOG), early(bench, JOB.checkpoint_topic)), "nothing is visible before the commit"

    container.commit()
    assert (1, 1) == (len(early(bench, CHANGELOG)), len(early(bench, JOB.checkpoint_topic)))
    turn(bench, container, ("b", 1))
    container.commit()
    assert (2, 2) == (len(early(bench, CHANGELOG)), len(early(bench, JOB.checkpoint_topic)))
    assert {"a": 3, "b": 6} == bench.changelog()


def test_only_what_the_commit_will_write_is_added(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums, partitions=3)
    container = bench.start()
    turn(bench, container, ("a", 1), partition=0)
    turn(bench, container, ("_", 1), partition=1)
    container.commit()
    assert [1, 0, 0] == [len(early(bench, CHANGELOG, n)) for n in range(3)], "a store that did not change has no changelog record"
    assert [1, 1, 0] == [len(early(bench, JOB.checkpoint_topic, n)) for n in range(3)]


def test_without_records_no_transaction_is_begun(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums)
    container = bench.start()
    for _ in range(5):
        turn(bench, container)
    container.commit()
    assert ([], []) == (early(bench, CHANGELOG), early(bench, JOB.checkpoint_topic))


def test_no_transaction_has_more_than_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_partitions, "MOST", 3)
    bench = Bench(tmp_path, Sums, partitions=4)
    container = bench.start()
    for number in range(4):
        turn(bench, container, ("a", 1), partition=number)
    container.commit()
    added = [len(early(bench, topic, number)) for topic in (CHANGELOG, JOB.checkpoint_topic) for number in range(4)]
    assert 3 == sum(added)
    assert [{"a": 1}] * 4 == [bench.changelog(number) for number in range(4)]


def test_a_key_that_is_put_and_deleted_in_one_transaction_leaves_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Sums)
    container = bench.start()
    turn(bench, container, ("gone", 1))
    turn(bench, container, ("forget", 1))
    container.commit()
    assert [] == [entry for entry in bench.read(CHANGELOG) if entry[1] is not None]


def test_a_restart_goes_on_from_such_a_transaction(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "one", Sums)
    container = bench.start()
    turn(bench, container, ("a", 1), ("b", 2))
    container.commit()
    turn(bench, container, ("a", 1))
    container.commit()
    turn(bench, container, ("a", 100))  # never committed
    container.drop_all()
    container.close()

    bench.state = tmp_path / "two"  # nothing local: all is restored
    again = bench.start()
    bench.drain(again)
    assert {"a": 102, "b": 2} == bench.changelog()
    again.close()
