"""What somebody else wrote into topics of samzapy's own: passed over where it changes nothing, else refused with the cause and a way on that works."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from samzapy.api.errors import StateRefused
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.offsets import TopicPartition
from samzapy.plan.checkpoint_orders import Target
from tests.unit.container.bench import JOB
from tests.unit.coordinator.stopped_job import CHANGELOG, Story


def stranger(story: Story, topic: str, key: bytes | None, value: bytes | None) -> None:
    place = story.bench.cluster.partition(TopicPartition(topic, 0))
    place.append(1_000_000, 0, 0, key, value, 1, None, transactional=False)


@pytest.mark.parametrize("topic", [CHANGELOG, JOB.checkpoint_topic])
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (BARRIER_KEY, b"junk", "has a barrier that cannot be read: "),
        (BARRIER_KEY, None, "has a barrier that cannot be read: "),
        (None, b"junk", "has a record without a key; it was skipped"),
    ],
)
def test_what_changes_nothing_is_passed_over_and_told(
    tmp_path: Path, topic: str, key: bytes | None, value: bytes | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    stranger(story, topic, key, value)
    story.bench.state = tmp_path / "another host"
    story.bench.feed(("a", 5))
    with caplog.at_level(logging.WARNING):
        story.run()
    assert {"a": 6, "b": 2} == {k: v for k, v in story.bench.changelog().items() if k}
    told = [m for m in caplog.messages if words in m]
    if key is None and topic != CHANGELOG:
        assert [] == told, "of checkpoints only those of our key are looked at"
    else:
        assert 1 == len(told), caplog.messages
        assert f"{topic}[0] at offset" in told[0]
        assert "Another application writes to this topic" in told[0]


def test_a_change_of_somebody_elses_is_named_by_its_key_and_the_way_on_works(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1), ("b", 2))
    stranger(story, CHANGELOG, b"\x1bforeign", (9).to_bytes(8, "big"))
    for _ in range(2):
        with pytest.raises(
            StateRefused, match=r"holds a change of key '\\x1bforeign' at offset \d+, .*or another application writes to the changelog"
        ) as refused:
            story.start()
    assert "Then set every input, with --keep-state, to the offset that `samzapy checkpoint show JOB.yaml` shows" in refused.value.remedy
    story.set(Target(offset=story.at()))
    story.bench.feed(("a", 5))
    story.run()
    assert {"a": 6, "b": 2, "\x1bforeign": 9} == story.bench.changelog()
    story.run()


def test_junk_in_a_changelog_that_no_checkpoint_vouches_for_is_refused_with_what_to_do(tmp_path: Path) -> None:
    story = Story(tmp_path)
    stranger(story, CHANGELOG, BARRIER_KEY, b"junk")
    with pytest.raises(StateRefused, match=r"no checkpoint confirms that the topic belongs to this job\. Another application writes") as refused:
        story.start()
    assert f"If the content of {CHANGELOG} is not needed, delete the topic" in refused.value.remedy
    story.lose(CHANGELOG)
    story.bench.feed(("a", 5))
    story.run()
    assert {"a": 5} == story.bench.changelog()
