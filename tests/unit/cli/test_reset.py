"""`samzapy reset` over a lease that cannot be read: whoever is alive writes it anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.cli import job
from samzapy.cli.reset import _checkpoints, foreign_topics, of_removed_stores, url_of_a_run
from samzapy.config.load import LoadedJob, load_job
from samzapy.model.barrier import BARRIER_KEY, Barrier
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, StoreMark
from samzapy.model.names import Job
from samzapy.model.ownership import LEASE_KEY, LeaseRecord
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import MemoryCluster, MemoryConsumer, MemoryLog
from tests.unit.container.bench import HandClock

TOPIC = Job("job", "1").coordinator_topic
FILE = """
job: job
task: tests.recovery.chain_task:ChainTask
kafka: {bootstrap.servers: "memory:9092"}
inputs: [{topic: in}]
containers: {lease: 1s, heartbeat: 200ms}
"""


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedJob:
    (tmp_path / "job.yaml").write_text(FILE)
    return load_job([tmp_path / "job.yaml"], [])


@pytest.fixture
def cluster() -> MemoryCluster:
    """Whose lease cannot be read."""
    cluster = MemoryCluster(HandClock())
    cluster.create(TopicSpec(TOPIC, 1, {"cleanup.policy": "compact"}))
    MemoryLog(cluster).plain_producer("stranger").send(TOPIC, b"junk", LEASE_KEY, 0)
    return cluster


def test_where_nobody_renews_it_for_as_long_as_a_lease_no_run_is_alive(
    loaded: LoadedJob, cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert url_of_a_run(job.Job.of(loaded, MemoryLog(cluster))) is None
    told = capsys.readouterr().err
    assert "coordinator record lease" in told
    assert "Waiting 1 s to see whether a run renews its lease" in told
    assert "it was not renewed: no run is alive" in told


class RenewedAtTheSecondLook(MemoryLog):
    """A run writes its lease anew between two looks."""

    looks = 0

    def restore_consumer(self, name: str) -> MemoryConsumer:
        self.looks += 1
        if self.looks == 2:
            ended = LeaseRecord(run_id="run", url="", host="h", pid=1, process_start="s", renewed_ms=1, ended=True)
            self.plain_producer("run").send(TOPIC, ended.to_bytes(), LEASE_KEY, 0)
        return super().restore_consumer(name)


def test_what_a_run_wrote_meanwhile_is_what_counts(loaded: LoadedJob, cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert url_of_a_run(job.Job.of(loaded, RenewedAtTheSecondLook(cluster))) is None
    told = capsys.readouterr().err
    assert "Waiting 1 s" in told
    assert "it was not renewed" not in told


@pytest.mark.parametrize(
    ("owner", "told"),
    [
        ("job", None),
        ("another", "log[0] belongs to store 's' of another-1, Partition 0"),
        (None, "log[0] has records, but no sign of job job-1"),
    ],
)
def test_a_changelog_that_is_not_this_jobs_stays(tmp_path: Path, owner: str | None, told: str | None) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(FILE + "stores: {s: {key: string, value: string, changelog: log}}\n")
    cluster = MemoryCluster(HandClock())
    cluster.create(TopicSpec("log", 2, {"cleanup.policy": "compact"}))
    log = MemoryLog(cluster)
    producer = log.plain_producer("writer")
    if owner is not None:
        producer.send("log", Barrier(owner, "1", "Partition 0", "s", 1, "i", "n").to_bytes(), BARRIER_KEY, 0)
    producer.send("log", b"value", b"key", 0)
    assert ({} if told is None else {"log": told}) == foreign_topics(load_job([file], []).settings, log, log.admin(), {})


def test_the_changelog_of_a_store_that_left_the_job_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(FILE + "stores: {s: {key: string, value: string, changelog: log}}\n")
    names = Job("job", "1")
    log = MemoryLog(cluster := MemoryCluster(HandClock()))
    for topic in ("log", "gone-log", names.checkpoint_topic):
        cluster.create(TopicSpec(topic, 1, {"cleanup.policy": "compact"}))
    marks = {store: StoreMark(topic, "id", 0, 1) for store, topic in (("s", "log"), ("gone", "gone-log"), ("deleted", "deleted-log"))}
    checkpoint = Checkpoint(job="job", id="1", task="Partition 0", container=0, incarnation="i", epoch=1, sequence=1, inputs={}, stores=marks)
    log.plain_producer("writer").send(names.checkpoint_topic, checkpoint.to_bytes(), CHECKPOINT_KEY, 0)
    settings = load_job([file], []).settings
    assert {"gone-log": "gone"} == of_removed_stores(settings, log.admin(), _checkpoints(settings, log, log.admin()))
