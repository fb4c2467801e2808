"""What a start costs: as many questions to the brokers for many tasks as for few."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from tests.unit.container.bench import Bench


class Quiet(StreamTask):
    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        """Nothing."""


def questions(state: Path, partitions: int, again: bool) -> int:
    """How often the bounds of partitions are asked for in a start: the first, or one with a checkpoint."""
    asked: list[str] = []
    bench = Bench(
        state, Quiet, partitions, inputs={"in": {}, "table": {"bootstrap": True}}, stores={"s": {}, "t": {}}, trace=asked.append
    )
    for _ in range(2 if again else 1):
        asked.clear()
        container = bench.start()
        bench.drain(container)
        container.close()
    return sum("the bounds of" in line for line in asked)


@pytest.mark.parametrize("again", [False, True], ids=["first start", "with a checkpoint"])
def test_a_start_asks_no_more_for_many_tasks_than_for_two(tmp_path: Path, again: bool) -> None:
    few = questions(tmp_path / "few", 2, again)
    assert few > 0
    assert few == questions(tmp_path / "many", 9, again)
