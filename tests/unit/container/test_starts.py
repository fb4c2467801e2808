"""What a start costs: as many questions to the brokers for many tasks as for few."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.api.errors import StateRefused
from samzapy.model.ownership import FIRST_RUN_KEY, FirstRun
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import MemoryLog
from tests.unit.container.bench import JOB, Bench


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


def begun(state: Path) -> Bench:
    """A job without stores, and its coordinator's record of the checkpoint topic."""
    bench = Bench(state, Quiet, stores={})
    facts = bench.log.admin().topics([JOB.checkpoint_topic])[JOB.checkpoint_topic]
    bench.log.plain_producer("coordinator").send(JOB.coordinator_topic, FirstRun(facts.topic_id, 0).to_bytes(), FIRST_RUN_KEY, 0)
    bench.feed(("a", 1))
    return bench


def test_a_container_takes_a_checkpoint_topic_that_was_made_again_for_no_first_start(tmp_path: Path) -> None:
    bench = begun(tmp_path)
    first = bench.start()
    bench.drain(first)
    first.close()
    bench.cluster.delete(JOB.checkpoint_topic)
    bench.cluster.create(TopicSpec(JOB.checkpoint_topic, 1, {"cleanup.policy": "compact"}))
    with pytest.raises(StateRefused, match=f"{JOB.checkpoint_topic} was deleted and created again after the job's first run"):
        bench.start()


class MadeAgainAtTheRead(MemoryLog):
    """The checkpoint topic is another one from the moment on at which the container begins to restore."""

    def restore_consumer(self, name: str) -> Any:
        if name == "restore":
            self._cluster.delete(JOB.checkpoint_topic)
            self._cluster.create(TopicSpec(JOB.checkpoint_topic, 1, {"cleanup.policy": "compact"}))
        return super().restore_consumer(name)


def test_one_that_is_made_again_during_the_start_is_seen_too(tmp_path: Path) -> None:
    bench = begun(tmp_path)
    bench.log = MadeAgainAtTheRead(bench.cluster)
    with pytest.raises(StateRefused, match="was deleted and created again"):
        bench.start()
