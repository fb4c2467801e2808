"""Where `checkpoint set` leads, as a decision over plain values."""

from __future__ import annotations

import json

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.checkpoint import target_of
from samzapy.model.checkpoint import Checkpoint, InputMark
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.ownership import Ledger, Startpoint, startpoint_key
from samzapy.plan.checkpoint_orders import Choice, Target, chosen_partitions, new_startpoints, pending, resolve, steps
from samzapy.plan.grouping import group

A, B = TopicPartition("in", 0), TopicPartition("in", 1)
BOUNDS = {A: Bounds(10, 20), B: Bounds(0, 5)}


def checkpoint(task: str, startpoint_id: str = "", **inputs: int) -> Checkpoint:
    marks = {f"{topic}[{task[-1]}]": InputMark("id", at) for topic, at in inputs.items()}
    return Checkpoint(job="j", id="1", task=task, container=0, incarnation="i", epoch=1, sequence=0, inputs=marks, stores={}, startpoint_id=startpoint_id)


@pytest.mark.parametrize(
    ("target", "at_time", "offsets"),
    [
        (Target("earliest"), {}, {A: 10, B: 0}),
        (Target("latest"), {}, {A: 20, B: 5}),
        (Target(time_ms=1), {A: 15, B: 5}, {A: 15, B: 5}),
        (Target(time_ms=1), {A: 25, B: 5}, {A: 20, B: 5}),  # after an open transaction: not beyond what can be read
    ],
)
def test_a_target_is_an_offset_in_each_partition(
    target: Target, at_time: dict[TopicPartition, int], offsets: dict[TopicPartition, int]
) -> None:
    assert offsets == resolve(target, BOUNDS, at_time)


@pytest.mark.parametrize(("offset", "fits"), [(9, False), (10, True), (20, True), (21, False)])
def test_an_offset_lies_between_start_and_end_inclusive(offset: int, fits: bool) -> None:
    if fits:
        assert {A: offset} == resolve(Target(offset=offset), {A: BOUNDS[A]}, {})
    else:
        with pytest.raises(ConfigurationError, match=r"in\[0\] allows 10 to 20 \(its end\)"):
            resolve(Target(offset=offset), {A: BOUNDS[A]}, {})


def test_every_partition_that_does_not_hold_the_offset_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"in\[0\] allows 10 to 20 \(its end\), in\[1\] allows 0 to 5 \(its end\)"):
        resolve(Target(offset=7), BOUNDS, {})


def test_a_broadcast_partition_is_set_for_every_task_that_reads_it() -> None:
    tasks = group({"in": 2, "all": 1}, {"all"}, has_stores=True)
    everywhere = TopicPartition("all", 0)
    assert [everywhere] == chosen_partitions(tasks, Choice("all"))
    found = steps(tasks, {everywhere: 3}, {"Partition 0": checkpoint("Partition 0", all=7)}, {})
    assert [("Partition 0", everywhere, 7, 3), ("Partition 1", everywhere, None, 3)] == [
        (s.task, s.topic_partition, s.before, s.after) for s in found if s.chosen
    ]


def test_an_order_waits_until_its_id_is_in_the_checkpoint() -> None:
    order = Startpoint("x", {"in[0]": 3}, {"in[0]": "id"})
    assert order == pending(order, None)
    assert order == pending(order, checkpoint("Partition 0", "w"))
    assert None is pending(order, checkpoint("Partition 0", "x"))


def test_a_new_order_holds_what_an_older_one_said_of_other_inputs_only_while_that_waits() -> None:
    tasks = group({"in": 1, "more": 1}, set(), has_stores=True)
    before = {"Partition 0": Startpoint("x", {"in[0]": 3, "more[0]": 4}, {"in[0]": "i", "more[0]": "m"})}
    offsets = {TopicPartition("more", 0): 9}
    for spent, expected in (("", {"in[0]": 3, "more[0]": 9}), ("x", {"more[0]": 9})):
        checkpoints = {"Partition 0": checkpoint("Partition 0", spent)}
        made = new_startpoints("y", steps(tasks, offsets, checkpoints, before), {"more": "n"}, checkpoints, before, lambda task: False)
        assert ("y", expected, "n") == (made["Partition 0"].id, made["Partition 0"].offsets, made["Partition 0"].topic_ids["more[0]"])


@pytest.mark.parametrize(
    ("spent", "before", "now", "expected"), [("", True, False, True), ("x", True, False, False), ("", False, True, True), ("", False, False, False)]
)
def test_deletions_stay_with_the_orders_until_one_of_them_is_carried_out(spent: str, before: bool, now: bool, expected: bool) -> None:
    tasks, known = group({"in": 1}, set(), has_stores=True), {"Partition 0": Startpoint("x", {"in[0]": 3}, {"in[0]": "i"}, deletes=before)}
    checkpoints = {"Partition 0": checkpoint("Partition 0", spent)}
    found = steps(tasks, {TopicPartition("in", 0): 9}, checkpoints, known)
    assert expected is new_startpoints("y", found, {"in": "i"}, checkpoints, known, lambda task: now)["Partition 0"].deletes


def test_an_order_of_an_earlier_version_may_have_deleted_something() -> None:
    fields = json.loads(Startpoint("x", {"in[0]": 3}, {"in[0]": "id"}).to_bytes())
    del fields["deletes"]
    ledger = Ledger()
    ledger.apply(startpoint_key("Partition 0"), json.dumps(fields).encode())
    assert ledger.startpoints["Partition 0"].deletes


@pytest.mark.parametrize("deletes", [False, True])
def test_a_startpoint_is_read_back_as_it_was_written(deletes: bool) -> None:
    order = Startpoint("x", {"in[0]": 3}, {"in[0]": "id"}, deletes=deletes)
    ledger = Ledger()
    ledger.apply(startpoint_key("Partition 0"), order.to_bytes())
    assert {"Partition 0": order} == ledger.startpoints


@pytest.mark.parametrize(
    ("time", "time_ms"),
    [
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.250Z", 250),
        ("1970-01-02", 86_400_000),
    ],
)
def test_a_time_is_utc_unless_it_says_otherwise(time: str, time_ms: int) -> None:
    assert Target(time_ms=time_ms) == target_of(False, False, None, time)


@pytest.mark.parametrize("time", ["1969-12-31T23:59:59", "1970-01-01T00:00:00+02:00", "0001-01-01", "0001-01-01T00:00:00+12:00"])
def test_a_time_before_kafkas_first_is_refused(time: str) -> None:
    with pytest.raises(ConfigurationError, match="Kafka's times begin in 1970"):
        target_of(False, False, None, time)


def test_exactly_one_target_is_wanted() -> None:
    with pytest.raises(ConfigurationError, match="nothing given"):
        target_of(False, False, None, None)
    with pytest.raises(ConfigurationError, match="--to-earliest and --to-offset given"):
        target_of(True, False, 0, None)
    with pytest.raises(ConfigurationError, match="--to-datetime yesterday"):
        target_of(False, False, None, "yesterday")
