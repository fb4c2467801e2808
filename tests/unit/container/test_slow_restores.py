"""A restore that takes longer than its changelog keeps deletions."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.api.errors import StateRefused
from samzapy.container.restore_end import BATCH_RECORDS
from samzapy.container.spec import ContainerSpec
from samzapy.ports import Message
from samzapy.testing.memory_log import MemoryLog
from tests.unit.container.bench import JOB, Bench

KEPT_S = 60.0
CHANGELOG = JOB.changelog_topic("s")


class Last(StreamTask):
    """Keeps the newest value of each key; 0 deletes it."""

    def init(self, context: Any) -> None:
        self.store = context.get_store("s")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        self.store.put(envelope.key, envelope.message or None)


class SlowRestore(MemoryLog):
    """Time passes after the first records of a restore, and compaction removes what it may by then."""

    took_s = 0.0

    def restore_consumer(self, name: str) -> Any:
        consumer = super().restore_consumer(name)
        if name == "restore":
            poll = consumer.poll

            def slow(limit: int, timeout_s: float) -> Sequence[Message]:
                batch = poll(limit, timeout_s)
                if any(m.topic() == CHANGELOG and m.key() == b"old" and m.value() is not None for m in batch):
                    self._cluster.clock.sleep(self.took_s)
                    self._cluster.compact(CHANGELOG, drop_tombstones=self.took_s > KEPT_S)
                return batch

            consumer.poll = slow  # type: ignore[method-assign]
        return consumer


def stopped_job(state: Path) -> Bench:
    """Its changelog: `old`, more keys than are read at a time, and the deletion of `old`. Nothing of it is on this host."""
    bench = Bench(state, Last)

    def kept(spec: ContainerSpec) -> ContainerSpec:
        return replace(spec, stores={name: replace(store, delete_retention_ms=int(1000 * KEPT_S)) for name, store in spec.stores.items()})

    bench.adjust = kept
    container = bench.start()
    for records in ([("old", 1)], [(f"k{n}", 1) for n in range(2 * BATCH_RECORDS)], [("old", 0)]):
        bench.feed(*records)
        bench.drain(container)
    container.close()
    shutil.rmtree(state)
    bench.log = SlowRestore(bench.cluster)
    return bench


def test_it_is_refused_for_a_key_that_was_deleted_could_come_back(tmp_path: Path) -> None:
    bench = stopped_job(tmp_path / "state")
    bench.log.took_s = KEPT_S + 1  # type: ignore[attr-defined]
    with pytest.raises(StateRefused, match=rf"store 's' of Partition 0: reading changelog {CHANGELOG}\[0\] takes longer than it keeps deletions") as refused:
        bench.start()
    assert f"set `delete.retention.ms` of {CHANGELOG} to more than twice" in refused.value.remedy

    bench.log.took_s = 0.0  # type: ignore[attr-defined]
    container = bench.start()
    assert "old" not in dict(container.tasks["Partition 0"].stores["s"].all()), "what was read too slowly is not kept"
    container.close()


def test_one_that_ends_in_time_is_exact(tmp_path: Path) -> None:
    bench = stopped_job(tmp_path / "state")
    bench.log.took_s = KEPT_S - 1  # type: ignore[attr-defined]
    container = bench.start()
    entries = dict(container.tasks["Partition 0"].stores["s"].all())
    assert (2 * BATCH_RECORDS, False) == (len(entries), "old" in entries)
    container.close()
