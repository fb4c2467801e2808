"""What is not committed is bounded by size as well as by time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from tests.unit.container.bench import Bench

LIMIT_BYTES = 2000


class Keeping(StreamTask):
    """Each record into the store under a key of its own, or sent on; takes a hundredth of a second."""

    clock: Any = None
    to = "store"

    def init(self, context: Any) -> None:
        self.store = context.get_store("s")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        self.clock.sleep(0.01)
        if self.to == "store":
            self.store.put(envelope.key, envelope.message)
        else:
            collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), key=envelope.key, message=envelope.message))


@pytest.mark.parametrize("to", ["store", "output"])
def test_what_is_not_committed_is_bounded(tmp_path: Path, to: str) -> None:
    """No interval ends here: only `commit.max_uncommitted` can have committed."""
    task = type("Bound", (Keeping,), {"to": to})
    bench = Bench(tmp_path, task, commit_interval_s=1e9, max_uncommitted_bytes=LIMIT_BYTES)
    task.clock = bench.clock
    container = bench.start()
    before = container.status()["commits"]
    bench.feed(*((f"key-{number:04}", number) for number in range(400)))

    while container.step(0.0):
        pass

    commits = container.status()["commits"] - before
    committed = len(bench.changelog()) if to == "store" else len(bench.read("out"))
    each = 8 + 8 + (100 if to == "output" else 0)  # key, value, and what Kafka adds to a record sent
    assert (400 - committed) * each < LIMIT_BYTES, "more than the limit is still open"
    assert 400 * each // LIMIT_BYTES - 2 <= commits <= 400 * each // LIMIT_BYTES + 1
