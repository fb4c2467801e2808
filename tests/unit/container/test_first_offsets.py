"""Where an input is read from: at a first start, and where the topic no longer has what the checkpoint names."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from samzapy.api.errors import OffsetOutOfRange
from samzapy.container.first_offsets import checked_offset, first_offset
from samzapy.container.spec import InputSpec
from samzapy.model.checkpoint import InputMark
from samzapy.model.offsets import TopicPartition
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
