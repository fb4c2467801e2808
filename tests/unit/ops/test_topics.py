"""`samzapy topics --create` on the in-memory log: what this job's earlier runs wrote, and is gone, does not come to be again, empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import StateRefused
from samzapy.model.ownership import FIRST_RUN_KEY, FirstRun
from samzapy.ops.topics import create_topics
from tests.unit.container.bench import JOB
from tests.unit.coordinator.stopped_job import CHANGELOG, Story, write
from tests.unit.ops.test_committed_state import settings_of


@pytest.mark.parametrize("topic", [CHANGELOG, JOB.checkpoint_topic])
def test_a_topic_that_the_jobs_records_name_is_not_created_again(tmp_path: Path, topic: str) -> None:
    story = Story(tmp_path, ("a", 1))
    facts = story.bench.cluster.facts(JOB.checkpoint_topic)
    assert facts is not None
    write(story, FIRST_RUN_KEY, FirstRun(facts.topic_id, 1).to_bytes())
    story.bench.cluster.delete(topic)
    with pytest.raises(StateRefused, match=f"topic {topic} .* samzapy does not create it again"):
        create_topics(settings_of(story), story.bench.log, story.bench.clock)
    assert story.bench.cluster.facts(topic) is None
