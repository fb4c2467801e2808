"""A coordinator topic with records that cannot be read, and one that was deleted for that, on the in-memory log."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import StateRefused
from samzapy.model.barrier import BARRIER_KEY, Barrier
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import (
    FIRST_RUN_KEY,
    LEASE_KEY,
    Ledger,
    container_key,
    end_offsets_key,
    input_key,
    locality_key,
    startpoint_key,
)
from samzapy.ops.prepare_topics import prepare_topics
from samzapy.readers import read_lease, read_ledger
from tests.recovery.memory_job import MemoryJob

JUNK = b"[" * 1000


@pytest.fixture
def job(tmp_path: Path) -> MemoryJob:
    """One that has run twice, so that its epochs are no small numbers."""
    job = MemoryJob(tmp_path, tasks=2)
    for _ in range(2):
        job.feed(4)
        job.until_end()
    return job


def write(job: MemoryJob, key: bytes, value: bytes) -> None:
    job.log.plain_producer("stranger").send(job.topics.job.coordinator_topic, value, key, 0)


def ledger(job: MemoryJob) -> Ledger:
    return read_ledger(job.log.restore_consumer("test"), job.topics.job.coordinator_topic, job.clock)


def goes_on(job: MemoryJob) -> None:
    """Another run, to its end, without a container that has to be started again."""
    job.feed(4)
    launches = job.launches
    job.until_end()
    assert (0, 2) == (job.exit_code, job.launches - launches)
    assert job.verdict().clean, str(job.verdict())


def test_what_a_newer_record_of_its_key_replaced_need_not_be_readable(job: MemoryJob) -> None:
    before = ledger(job)
    for key, good in (
        (container_key(0), before.containers[0].to_bytes()),
        (FIRST_RUN_KEY, before.first_run.to_bytes()),
        (LEASE_KEY, before.lease.to_bytes()),
    ):
        write(job, key, JUNK)
        write(job, key, good)
    assert before == ledger(job)
    goes_on(job)


@pytest.mark.parametrize("key", [container_key(0), startpoint_key("Partition 0"), FIRST_RUN_KEY, LEASE_KEY])
def test_where_it_still_counts_the_topic_is_deleted_and_the_job_goes_on(job: MemoryJob, key: bytes) -> None:
    topic = job.topics.job.coordinator_topic
    epoch = ledger(job).epoch
    write(job, key, JUNK)
    job.start(until_end=True)
    end = job.log.restore_consumer("test").bounds(TopicPartition(topic, 0)).end
    with pytest.raises(StateRefused) as refused:
        job.coordinator.begin()
    assert end == job.log.restore_consumer("test").bounds(TopicPartition(topic, 0)).end, "nobody was fenced or ended for it"
    assert topic in refused.value.message
    assert "`samzapy reset JOB.yaml --coordinator --execute`" in refused.value.remedy
    if key == LEASE_KEY:
        with pytest.raises(StateRefused, match="lease"):
            read_lease(job.log.restore_consumer("test"), topic, job.clock)

    job.log.admin().delete([topic])
    prepare_topics(job.settings, job.log, job.clock)
    goes_on(job)
    assert ledger(job).epoch > epoch


NOT_NEEDED = [
    locality_key("Partition 0"), container_key(77), end_offsets_key("zzz"), startpoint_key("No such task"), input_key("no-such-topic"),
    "container/\u0663".encode(), b"container/" + b"9" * 5000,
]  # fmt: skip


def test_hints_and_records_of_what_is_not_there_need_not_be_readable(job: MemoryJob, caplog: pytest.LogCaptureFixture) -> None:
    for key in NOT_NEEDED:
        write(job, key, JUNK)
    goes_on(job)
    goes_on(job)
    told = [m for m in caplog.messages if "cannot be read" in m]
    for name in ("locality/Partition 0", "container/77", "end-offsets/zzz"):
        assert len([m for m in told if name in m]) in (1, 2), told  # once a run


def test_what_a_container_that_has_tasks_would_have_said_is_decisive_though_there_are_fewer_now(job: MemoryJob) -> None:
    write(job, container_key(1), JUNK)
    job.start()
    job.coordinator.roster.target = 1
    with pytest.raises(StateRefused, match="container/1"):
        job.coordinator.begin()


@pytest.mark.parametrize("deep", [JUNK, b"[" * 100_000])
def test_a_running_driver_writes_again_what_it_knows_and_all_goes_on(job: MemoryJob, caplog: pytest.LogCaptureFixture, deep: bytes) -> None:
    """Whoever wrote it: a container that dies after that is ended and started again, and so is one that has to look at its record."""
    job.start()
    job.until_idle(2)
    topic_id = job.log.admin().topics([job.topics.input])[job.topics.input].topic_id
    for key in (*NOT_NEEDED, container_key(0), container_key(1), FIRST_RUN_KEY, input_key(topic_id)):
        write(job, key, deep)
    job.feed(4)
    next(a for a in job.actors if a.ended is None).die("killed")
    job.until_idle(2)
    now = ledger(job)
    assert set(NOT_NEEDED[1:5]) == set(now.unreadable)
    assert 1 == len([m for m in caplog.messages if "container/77" in m])
    job.stop()
    assert 0 == job.exit_code
    lease = ledger(job).lease
    assert lease is not None
    assert (True, "FINISHED") == (lease.ended, lease.outcome)
    goes_on(job)


def test_a_stop_is_a_stop_whatever_is_in_the_topic(job: MemoryJob) -> None:
    job.start()
    job.until_idle(2)
    for key in (*NOT_NEEDED, container_key(0), LEASE_KEY, FIRST_RUN_KEY):
        write(job, key, JUNK)
    job.stop()
    assert 0 == job.exit_code
    goes_on(job)


def test_a_write_in_doubt_that_cannot_be_read_ends_the_container_it_was_about(job: MemoryJob) -> None:
    """It may have named this container or not: it is ended by force, and started again."""
    job.start()
    job.until_idle(2)
    job.coordinator._ownership.is_in_doubt = True
    job.coordinator._ownership._doubted.add(container_key(1))
    before = job.launches
    for key in (container_key(0), container_key(1)):
        write(job, key, JUNK)
    job.feed(4)
    job.until(lambda: job.launches > before, "a container that is started again")
    job.until_idle(2)
    assert {} == ledger(job).unreadable
    job.stop()
    goes_on(job)


def test_above_a_forged_epoch_the_next_go_on_once_that_topic_is_deleted(job: MemoryJob) -> None:
    names, forged = job.topics.job, 10**30
    barrier = Barrier(names.name, names.id, "Partition 0", "", forged, "nobody", "n")
    job.log.plain_producer("stranger").send(names.checkpoint_topic, barrier.to_bytes(), BARRIER_KEY, 0)
    job.log.admin().delete([names.coordinator_topic])
    prepare_topics(job.settings, job.log, job.clock)
    goes_on(job)
    assert ledger(job).epoch > forged
