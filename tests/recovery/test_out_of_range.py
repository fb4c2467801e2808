"""Records of an input that are removed before a running task has read them: told at once, and then as `on_out_of_range` says.

The container stops with what it has done committed; the coordinator starts it again, and the start decides. What is removed while a job is
stopped is in test_bad_inputs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import OffsetOutOfRange
from samzapy.container.container import Container
from samzapy.model.offsets import TopicPartition
from tests.recovery.bad_state import Summing
from tests.unit.container.bench import Bench

PLACE = TopicPartition("in", 0)


def overtaken(folder: Path, policy: str) -> tuple[Bench, Container]:
    """A job that has read 3 of 10 records, of which 6 are removed."""
    bench = Bench(folder, Summing, inputs={"in": {"on_out_of_range": policy}}, poll_records=3)
    bench.feed(*((f"k{i}", i) for i in range(10)))
    container = bench.start()
    container.step(0.0)
    bench.cluster.delete_records(PLACE, 6)
    with pytest.raises(OffsetOutOfRange, match=r"in\[0\]"):
        bench.drain(container)
    container.stop()  # what its runner does
    assert {f"k{i}": i for i in range(3)} == bench.changelog()
    return bench, container


@pytest.mark.parametrize(("policy", "then"), [("earliest", range(6, 10)), ("latest", range(0))])
def test_it_goes_on_from_where_the_policy_says(tmp_path: Path, policy: str, then: range) -> None:
    bench, _ = overtaken(tmp_path, policy)
    bench.drain(bench.start())
    assert {f"k{i}": i for i in [*range(3), *then]} == bench.changelog()


def test_without_a_policy_it_is_refused_by_name_each_time(tmp_path: Path) -> None:
    bench, _ = overtaken(tmp_path, "fail")
    for _ in range(3):
        with pytest.raises(OffsetOutOfRange, match=r"next offset 3 is before the topic's start 6: records were removed unread"):
            bench.start()
    assert {f"k{i}": i for i in range(3)} == bench.changelog()
