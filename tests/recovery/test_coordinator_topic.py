"""A coordinator topic with records that cannot be read, and one that was deleted for that, on the in-memory log."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import StateRefused
from samzapy.model.barrier import BARRIER_KEY, Barrier
from samzapy.model.ownership import FIRST_RUN_KEY, LEASE_KEY, Ledger, container_key
from samzapy.ops.topics import prepare_topics
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


@pytest.mark.parametrize("key", [container_key(0), FIRST_RUN_KEY, LEASE_KEY])
def test_where_it_still_counts_the_topic_is_deleted_and_the_job_goes_on(job: MemoryJob, key: bytes) -> None:
    topic = job.topics.job.coordinator_topic
    epoch = ledger(job).epoch
    write(job, key, JUNK)
    job.start(until_end=True)
    with pytest.raises(StateRefused) as refused:
        job.coordinator.begin()
    assert topic in refused.value.message
    assert "`samzapy reset JOB.yaml --coordinator --execute`" in refused.value.remedy
    if key == LEASE_KEY:
        with pytest.raises(StateRefused, match="lease"):
            read_lease(job.log.restore_consumer("test"), topic, job.clock)

    job.log.admin().delete([topic])
    prepare_topics(job.settings, job.log)
    goes_on(job)
    assert ledger(job).epoch > epoch


def test_above_a_forged_epoch_the_next_go_on_once_that_topic_is_deleted(job: MemoryJob) -> None:
    names, forged = job.topics.job, 10**30
    barrier = Barrier(names.name, names.id, "Partition 0", "", forged, "nobody", "n")
    job.log.plain_producer("stranger").send(names.checkpoint_topic, barrier.to_bytes(), BARRIER_KEY, 0)
    job.log.admin().delete([names.coordinator_topic])
    prepare_topics(job.settings, job.log)
    goes_on(job)
    assert ledger(job).epoch > forged
