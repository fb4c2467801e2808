"""Records of an input that are removed before a running task has read them: told at once, and then as `on_out_of_range` says.

With a policy that says where to go on, the container commits what it has done and starts its tasks again, which applies it; with `fail` it stops
with what it has done committed. What is removed while a job is stopped is in test_bad_inputs.
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
    return bench, container


@pytest.mark.parametrize(("policy", "then"), [("earliest", range(6, 10)), ("latest", range(0))])
def test_it_goes_on_from_where_the_policy_says(tmp_path: Path, policy: str, then: range, caplog: pytest.LogCaptureFixture) -> None:
    bench, container = overtaken(tmp_path, policy)
    bench.drain(container)
    assert {f"k{i}": i for i in [*range(3), *then]} == bench.changelog()
    told = "the checkpoint's next offset 3 is before the topic's start 6: records were removed unread"
    assert f"input in[0]: {told}; continuing at {6 if policy == 'earliest' else 10} (on_out_of_range: {policy})" in caplog.text
    bench.feed(("later", 1))
    bench.drain(container)
    assert 1 == bench.changelog()["later"]


def test_records_that_are_removed_again_and_again_are_passed_over_each_time(tmp_path: Path) -> None:
    bench, container = overtaken(tmp_path, "earliest")
    container.step(0.0)  # finds it, and begins to start its tasks
    bench.cluster.delete_records(PLACE, 8)
    bench.drain(container)
    assert {f"k{i}": i for i in [*range(3), 8, 9]} == bench.changelog()


def test_without_a_policy_it_is_refused_by_name_each_time(tmp_path: Path) -> None:
    bench, container = overtaken(tmp_path, "fail")
    with pytest.raises(OffsetOutOfRange, match=r"in\[0\]"):
        bench.drain(container)
    container.stop()  # what its runner does
    assert {f"k{i}": i for i in range(3)} == bench.changelog()
    for _ in range(3):
        with pytest.raises(OffsetOutOfRange, match=r"next offset 3 is before the topic's start 6: records were removed unread"):
            bench.start()
    assert {f"k{i}": i for i in range(3)} == bench.changelog()
