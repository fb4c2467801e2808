"""Topics of the job whose records were deleted: a start over them is not taken for the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import StateRefused
from samzapy.model.offsets import TopicPartition
from samzapy.ops.made_again import lost_topics
from samzapy.plan.checkpoint_orders import Choice
from tests.unit.container.bench import JOB
from tests.unit.container.test_starts import Quiet
from tests.unit.coordinator.stopped_job import CHANGELOG, EARLIEST, LATEST, FailingStart, Story
from tests.unit.ops.test_committed_state import settings_of

CHECKPOINTS = JOB.checkpoint_topic


def empty(story: Story, *topics: str, partition: int = 0) -> None:
    """As somebody's retention does it: the topic stays, with its id, and begins where it ended."""
    for topic in topics:
        place = TopicPartition(topic, partition)
        story.bench.cluster.delete_records(place, story.bench.cluster.bounds(place).end)


def forget_all(story: Story, topic: str) -> None:
    """As after the election of a replica that had nothing."""
    log = story.bench.cluster.partition(TopicPartition(topic, 0))
    log.records, log.end = [], 0


@pytest.mark.parametrize("stores", [{}, {"s": {}}], ids=["without state", "with state"])
@pytest.mark.parametrize("attempts", [1, 2])
def test_emptied_checkpoints_are_no_first_start(tmp_path: Path, stores: dict[str, dict[str, bool]], attempts: int) -> None:
    story = Story(tmp_path, ("a", 1), ("a", 2)) if stores else stateless(tmp_path)
    empty(story, CHECKPOINTS, *([CHANGELOG] if stores else []))
    before = story.bench.read("out")
    for _ in range(attempts):
        with pytest.raises(StateRefused, match=r"checkpoint_test_1\[0\] holds no checkpoint and starts at offset \d+") as refused:
            story.start()
    assert ("Records of test-1-s-changelog[0] were deleted too" in refused.value.message) == bool(stores)
    assert told_before(story) == refused.value.message, "by plan, doctor, topics and validate --connect"
    story.set(LATEST)
    assert told_before(story) is None, "an order for all of its inputs decides"
    assert before == story.bench.read("out")


def told_before(story: Story) -> str | None:
    """What is told of the checkpoint topic before a run is launched."""
    found = lost_topics(settings_of(story), story.bench.log, story.bench.clock).get(CHECKPOINTS)
    return None if found is None else found.message


def stateless(state: Path) -> Story:
    story = Story(state, stores={})
    story.bench.task = Quiet
    story.bench.feed(("a", 1), ("a", 2))
    story.run()
    return story


def test_what_lies_before_the_newest_checkpoint_may_be_deleted(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    place = TopicPartition(CHECKPOINTS, 0)
    story.bench.cluster.delete_records(place, story.bench.cluster.partition(place).records[-1].offset())
    story.run()
    assert [("a", 1)] == story.bench.read("out")


def test_a_task_that_lost_its_checkpoint_is_named_and_one_that_is_new_starts(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), partitions=2)
    empty(story, CHECKPOINTS, CHANGELOG, partition=1)
    with pytest.raises(StateRefused, match=r"^Partition 1: .*checkpoint_test_1\[1\]") as refused:
        story.start()
    assert "`samzapy checkpoint set JOB.yaml --partition 1 --to-latest --keep-state` skips the records that it had not read yet" in refused.value.remedy
    story.set(LATEST, Choice("in", 1))
    story.bench.feed(("a", 5), partition=1)
    story.run()
    assert [("a", 1), ("a", 5)] == story.bench.read("out", 1)
    assert [("a", 1)] == story.bench.read("out", 0)


def test_the_printed_way_out_is_taken_once(tmp_path: Path) -> None:
    """An order that was carried out looks, without the checkpoint that did it, as if it still waited."""
    story = Story(tmp_path, ("a", 1))
    empty(story, CHECKPOINTS, CHANGELOG)
    story.set(EARLIEST)
    story.run()
    assert [("a", 1)] * 2 == story.bench.read("out")
    story.run()
    assert [("a", 1)] * 2 == story.bench.read("out")
    empty(story, CHECKPOINTS, CHANGELOG)
    with pytest.raises(StateRefused, match="holds no checkpoint"):
        story.start()
    story.set(LATEST)
    story.run()
    assert [("a", 1)] * 2 == story.bench.read("out")


def test_an_order_for_some_inputs_is_no_way_out(tmp_path: Path) -> None:
    story = Story(tmp_path, inputs={"in": {}, "more": {}})
    story.bench.feed(("a", 1))
    story.run()
    story.set(LATEST, Choice("more"))
    story.run()
    empty(story, CHECKPOINTS, CHANGELOG)
    story.set(LATEST, Choice("more"))
    with pytest.raises(StateRefused, match="holds no checkpoint and starts at"):
        story.start()


def test_a_changelog_that_was_emptied_shows_that_this_is_no_first_start(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    forget_all(story, CHECKPOINTS)
    empty(story, CHANGELOG)
    with pytest.raises(StateRefused, match=r"test-1-s-changelog\[0\] starts at offset \d+: records before it were deleted") as refused:
        story.start()
    assert told_before(story) == refused.value.message.partition(" of ")[2]


def test_so_does_a_local_store_that_holds_committed_state_and_it_stays(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    for topic in (CHECKPOINTS, CHANGELOG):
        forget_all(story, topic)
    before = sorted(tmp_path.rglob("*.sst"))
    for _ in range(2):
        with pytest.raises(StateRefused, match=r"local store .* holds committed state of this task"):
            story.start()
    assert before == sorted(tmp_path.rglob("*.sst"))


def test_a_first_start_that_did_not_get_to_its_first_checkpoint_is_still_one(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.bench.feed(("a", 1))
    story.bench.log = FailingStart(story.bench.cluster, 1, "aborted")
    story.run()
    story.run()
    assert [("a", 1)] == story.bench.read("out")


def test_checkpoint_set_is_refused_over_a_coordinator_topic_that_was_emptied(tmp_path: Path) -> None:
    """What it wrote there, the way out of that would delete."""
    story = Story(tmp_path, ("a", 1))
    story.set(LATEST)
    empty(story, JOB.coordinator_topic)
    with pytest.raises(StateRefused, match=r"coordinator_test_1 starts at offset \d+") as refused:
        story.set(EARLIEST)
    assert "samzapy reset JOB.yaml --coordinator --execute" in refused.value.remedy
