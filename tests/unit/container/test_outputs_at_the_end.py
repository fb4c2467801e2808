"""`at_least_once`: outputs go on their own way, and whoever stops or commits waits until they have arrived."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy import StreamTask
from samzapy.api.errors import InDoubt, LogError
from tests.unit.container.bench import Bench


class Summing(StreamTask):
    """Sends the number of records when its window's time has come: no record and no store changes then."""

    def init(self, context):
        self.count = 0

    def process(self, envelope, collector, coordinator):
        self.count += 1

    def window(self, collector, coordinator):
        if self.count:
            collector.send("out", self.count, key="total")
            self.count = 0


def test_what_a_window_sent_after_the_last_commit_has_arrived_when_the_job_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, Summing, exactly_once=False, window_s=5.0, stores={})
    container, calls = bench.start(), []
    assert container._outputs is not None
    for name in ("send_all", "flush", "close"):
        call = getattr(container._outputs, name)
        monkeypatch.setattr(container._outputs, name, lambda *given, name=name, call=call: (calls.append(name), call(*given))[1])
    bench.feed(("a", 1), ("b", 2))
    bench.drain(container)
    bench.clock.passed += 5.0
    calls.clear()
    container._tasks.window()
    container.stop()
    container.close()
    assert ["send_all", "flush", "close"] == [name for i, name in enumerate(calls) if name not in calls[:i]]
    assert [("total", 2)] == bench.read("out")


def test_what_a_window_sent_and_did_not_arrive_is_told_by_the_next_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, Summing, exactly_once=False, window_s=5.0, stores={})
    container = bench.start()
    assert container._outputs is not None
    bench.feed(("a", 1))
    bench.drain(container)
    bench.clock.passed += 5.0
    container._tasks.window()

    def fails() -> None:
        raise LogError("a record for out was not delivered.", "")

    monkeypatch.setattr(container._outputs, "flush", fails)
    with pytest.raises(InDoubt, match="outputs were not delivered"):
        container.commit()
