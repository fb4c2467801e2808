"""A topic that the job file names as a changelog, and that holds another application's records: the run writes nothing to it."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.api.errors import StateRefused
from samzapy.config.document import settings_from_document
from samzapy.config.schema import Settings
from samzapy.model.barrier import BARRIER_KEY, Barrier
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, StoreMark
from samzapy.model.names import Job
from samzapy.ops.prepare_topics import checked_topics, prepare_topics
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from tests.unit.container.bench import HandClock


@pytest.fixture
def log() -> MemoryLog:
    cluster = MemoryCluster(HandClock())
    cluster.create(TopicSpec("in", 2, {}))
    return MemoryLog(cluster)


def settings(changelog: str | None = "customers") -> Settings:
    store: dict[str, Any] = {} if changelog is None else {"changelog": changelog}
    return settings_from_document(
        {
            "job": "job", "task": "tests.recovery.chain_task:ChainTask", "kafka": {"bootstrap.servers": "memory:9092"}, "inputs": [{"topic": "in"}],
            "stores": {"s": {"key": "string", "value": "string", **store}},
        },
        {},
    )  # fmt: skip


def made_by_a_run(log: MemoryLog, changelog: str = "customers") -> None:
    """The topics as the first run of a job makes them."""
    prepare_topics(settings(changelog), log, HandClock())


def test_another_applications_topic_is_refused_and_nothing_is_made(log: MemoryLog) -> None:
    made_by_a_run(log)
    log.plain_producer("theirs").send("customers", b"{}", b"ann", 1)
    before = sorted(log.admin().names())
    for attempt in (prepare_topics, checked_topics):
        with pytest.raises(StateRefused, match=r"customers\[1\] has records, but no sign of job job-1: not the changelog of store 's' of job-1") as refused:
            attempt(settings(), log, HandClock())
        assert refused.value.remedy == "Give store 's' its own changelog topic."
    assert sorted(log.admin().names()) == before


def test_another_stores_changelog_is_refused(log: MemoryLog) -> None:
    made_by_a_run(log)
    log.plain_producer("theirs").send("customers", Barrier("job", "1", "Partition 0", "t", 1, "i", "n").to_bytes(), BARRIER_KEY, 0)
    with pytest.raises(StateRefused, match="belongs to store 't' of job-1"):
        prepare_topics(settings(), log, HandClock())


def test_a_topic_in_which_a_task_of_this_store_left_its_barrier_is_taken(log: MemoryLog) -> None:
    made_by_a_run(log)
    producer = log.plain_producer("ours")
    producer.send("customers", Barrier("job", "1", "Partition 0", "s", 1, "i", "n").to_bytes(), BARRIER_KEY, 0)
    producer.send("customers", b"1", b"ann", 0)
    prepare_topics(settings(), log, HandClock())


def test_a_topic_that_a_checkpoint_names_is_taken(log: MemoryLog) -> None:
    made_by_a_run(log)
    log.plain_producer("ours").send("customers", b"1", b"ann", 1)
    mark = StoreMark("customers", log.admin().topics(["customers"])["customers"].topic_id, 0, 1)
    checkpoint = Checkpoint(job="job", id="1", task="Partition 1", container=0, incarnation="i", epoch=1, sequence=1, inputs={}, stores={"s": mark})
    log.plain_producer("ours").send(Job("job", "1").checkpoint_topic, checkpoint.to_bytes(), CHECKPOINT_KEY, 1)
    prepare_topics(settings(), log, HandClock())


def test_a_topic_under_its_usual_name_is_the_jobs(log: MemoryLog) -> None:
    made_by_a_run(log, changelog=Job("job", "1").changelog_topic("s"))
    log.plain_producer("ours").send("job-1-s-changelog", b"1", b"ann", 0)
    prepare_topics(settings(None), log, HandClock())
