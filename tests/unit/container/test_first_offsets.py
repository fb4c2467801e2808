"""Where an input is read from: at a first start, and where the topic no longer has what the checkpoint names."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from samzapy.api.errors import OffsetOutOfRange
from samzapy.container.first_offsets import (
    begin_offset,
    checked_offset,
    first_offset,
    is_read_each_time,
    known_marks,
    read_from,
    was_added,
)
from samzapy.container.spec import InputSpec
from samzapy.model.checkpoint import Checkpoint, InputMark
from samzapy.model.event_time import PartitionMark
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.model.ownership import Startpoint
from samzapy.ports import Consumer, TopicSpec
from samzapy.serde.registry import serde_named
from samzapy.testing.manual_clock import ManualClock
from samzapy.testing.memory_log import MemoryCluster, MemoryLog

PLACE = TopicPartition("in", 0)
START, END = 3, 10
BYTES = serde_named("bytes", [])


@pytest.fixture
def consumer() -> Consumer:
    """Of a topic that holds offsets 3 to 9."""
    cluster = MemoryCluster(ManualClock())
    log = MemoryLog(cluster)
    log.admin().create([TopicSpec("in", 1)])
    producer = log.plain_producer("feed")
    for _ in range(END):
        producer.send("in", b"v", b"k", 0)
    producer.flush()
    cluster.delete_records(PLACE, START)
    return log.restore_consumer("test")


SPEC = InputSpec("in", "topic-id", BYTES, BYTES)


@pytest.mark.parametrize(
    ("start", "has_grown", "expected"),
    [
        ("earliest", False, START),
        ("latest", False, END),
        ("earliest", True, START),
        ("latest", True, START),  # the partition is newer than the job: none of its records was there before
    ],
)
def test_where_a_first_start_begins(consumer: Consumer, start: str, has_grown: bool, expected: int) -> None:
    assert expected == first_offset(consumer.bounds(PLACE), replace(SPEC, start=start), has_grown)


@pytest.mark.parametrize("policy", ["fail", "earliest", "latest"])
@pytest.mark.parametrize("offset", [START, 7, END])
def test_what_the_topic_still_has_is_where_it_goes_on(
    consumer: Consumer, policy: str, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    spec = replace(SPEC, on_out_of_range=policy, start="latest")

    assert offset == checked_offset(consumer.bounds(PLACE), spec, PLACE, InputMark("topic-id", offset))
    assert [] == caplog.messages


GONE = [
    (InputMark("topic-id", START - 1), "records were removed unread"),
    (InputMark("topic-id", 0), "records were removed unread"),
    (InputMark("topic-id", END + 1), "topic's end 10"),
    (InputMark("another", 7), "deleted and created again"),  # within range, and still another topic's offset
    (InputMark("another", END + 5), "deleted and created again"),
]


@pytest.mark.parametrize(("policy", "expected"), [("earliest", START), ("latest", END), ("fail", None)])
@pytest.mark.parametrize(("mark", "why"), GONE)
def test_what_the_topic_no_longer_has(
    consumer: Consumer, mark: InputMark, why: str, policy: str, expected: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """By the input's policy, and never silently."""
    spec = replace(SPEC, on_out_of_range=policy)
    caplog.set_level(logging.WARNING)
    if expected is None:
        with pytest.raises(OffsetOutOfRange, match=f"{why}") as raised:
            checked_offset(consumer.bounds(PLACE), spec, PLACE, mark)
        assert "on_out_of_range" in raised.value.remedy
        assert str(PLACE) in raised.value.message
        return

    assert expected == checked_offset(consumer.bounds(PLACE), spec, PLACE, mark)
    assert [True] == [why in text and str(PLACE) in text for text in caplog.messages]


OLD = Checkpoint(
    job="j", id="1", task="Partition 0", container=0, incarnation="i", epoch=1, sequence=1, stores={}, fingerprint={},
    inputs={"in[0]": InputMark("topic-id", 7, PartitionMark(1000)), "other[0]": InputMark("other-id", 2)},
    left={"left[0]": InputMark("left-id", 5)},
)  # fmt: skip
ORDER = Startpoint("order", {"in[0]": 4}, {"in[0]": "topic-id"})


def test_an_order_comes_before_the_checkpoint_and_time_does_not_go_back() -> None:
    assert known_marks(None, None) == {}
    assert known_marks(None, ORDER) == {"in[0]": InputMark("topic-id", 4)}
    assert known_marks(OLD, None) == {**OLD.left, **OLD.inputs}
    assert known_marks(OLD, ORDER) == {**OLD.left, **OLD.inputs, "in[0]": InputMark("topic-id", 4, PartitionMark(1000))}


def test_an_input_without_a_mark_begins_as_a_first_start_and_one_with_it_there() -> None:
    bounds, latest = Bounds(START, END), replace(SPEC, start="latest")
    assert END == begin_offset(None, bounds, latest, PLACE, has_grown=False, is_empty=False)
    assert START == begin_offset(None, bounds, latest, PLACE, has_grown=True, is_empty=False)
    assert 7 == begin_offset(InputMark("topic-id", 7), bounds, latest, PLACE, has_grown=True, is_empty=False)
    with pytest.raises(OffsetOutOfRange):
        begin_offset(InputMark("topic-id", END + 1), bounds, latest, PLACE, has_grown=False, is_empty=False)


def test_a_partition_was_added_if_it_is_not_among_those_that_the_job_saw_first() -> None:
    assert [was_added(TopicPartition("in", number), 2) for number in range(4)] == [False, False, True, True]
    assert not was_added(PLACE, None)


LOGGED: Any = SimpleNamespace(changelog="changes")
SCRATCH: Any = SimpleNamespace(changelog=None)


@pytest.mark.parametrize(
    ("bootstrap", "stores", "is_read"),
    [(True, [], True), (True, [SCRATCH, LOGGED], True), (True, [LOGGED], False), (False, [], False), (False, [SCRATCH], False)],
)
def test_a_bootstrap_input_that_feeds_what_no_changelog_keeps_is_read_from_its_start_each_time(
    bootstrap: bool, stores: list[Any], is_read: bool
) -> None:
    assert is_read_each_time(replace(SPEC, bootstrap=bootstrap), stores) is is_read


def test_an_input_is_read_from_before_its_offset_for_a_store_that_began_empty() -> None:
    assert 7 == read_from(InputMark("topic-id", 7), None)
    assert 4 == read_from(InputMark("topic-id", 7, refill={"a": 5, "b": 4}), None)
    assert START == read_from(InputMark("topic-id", 7, refill={"a": 5}), START)


TABLE = replace(SPEC, fills=frozenset({"users"}), table="users")


@pytest.mark.parametrize("policy", ["fail", "latest"])
@pytest.mark.parametrize(("mark", "why"), GONE)
def test_a_table_that_was_dropped_is_filled_again_whatever_the_topic_lost(
    consumer: Consumer, mark: InputMark, why: str, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    spec = replace(TABLE, on_out_of_range=policy)
    assert START == begin_offset(mark, consumer.bounds(PLACE), spec, PLACE, has_grown=False, is_empty=True)
    assert [True] == [why in text and "'users' is filled again from 3" in text for text in caplog.messages]


def test_a_table_with_entries_whose_topic_lost_records_says_how_it_is_filled_again(consumer: Consumer, caplog: pytest.LogCaptureFixture) -> None:
    bounds, mark = consumer.bounds(PLACE), InputMark("topic-id", START - 1)
    way = "samzapy state drop JOB.yaml users --execute"
    with pytest.raises(OffsetOutOfRange) as raised:
        begin_offset(mark, bounds, TABLE, PLACE, has_grown=False, is_empty=False)
    assert way in raised.value.remedy
    assert START == begin_offset(mark, bounds, replace(TABLE, on_out_of_range="earliest"), PLACE, has_grown=False, is_empty=False)
    assert [True] == [way in text for text in caplog.messages]
