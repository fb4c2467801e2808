"""A changelog or checkpoint topic that is deleted while the job runs ends it by its name; the next run does not make it again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions

from tests.broker import admin, create_topic, delete_topic
from tests.integration.job import PATIENCE_S, Job

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("which", ["changelog", pytest.param("checkpoint", marks=pytest.mark.prove)])
def test_a_topic_deleted_while_the_job_runs_is_named_and_not_made_again(kafka: str, tmp_path: Path, unique: str, which: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=2, containers={"count": 1})
    topic = job.changelog if which == "changelog" else f"__samza_checkpoint_{unique}_1"
    job.feed(["a b", "c d"])
    with job.running("--local") as running:
        running.until_caught_up({f"{job.input}[{p}]": 1 for p in (0, 1)})
        delete_topic(kafka, topic)
        assert 1 == running.process.wait(PATIENCE_S)
    log = (tmp_path / "run.log").read_text()
    assert f"SZ330]: {topic}: deleted while the job ran" in log
    assert "KeyError" not in log

    again = job.run_to_end()
    assert 1 == again.returncode
    assert "SZ330" in again.stderr
    assert f"{which} topic {topic}" in again.stderr
    assert "samzapy does not create it" in again.stderr
    assert topic not in admin(kafka).list_topics(timeout=10).topics


def test_nothing_of_an_input_made_again_while_the_job_runs_is_committed_as_the_old_ones(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=1, containers={"count": 1, "lease": "30s"}, commit={"interval": "1s"})
    job.feed(["a b"])
    with job.running("--local") as running:
        status = running.until_caught_up({f"{job.input}[0]": 1})
        while len(job.stored()) < 2:
            assert running.process.poll() is None
        container = status["containers"][0]["pid"]
        threads = Path(f"/proc/{container}/task")
        before = len(list(threads.iterdir()))
        for process in (running.process.pid, container):  # the driver looks as well, and might be first
            os.kill(process, signal.SIGSTOP)
        delete_topic(kafka, job.input)
        create_topic(kafka, job.input)
        job.feed(["new words"] * 20)
        os.kill(container, signal.SIGCONT)
        while len(list(threads.iterdir())) > before // 2:  # until it has given up, and closed its Kafka clients
            assert {(0, "a"): 1, (0, "b"): 1} == job.stored()
        os.kill(running.process.pid, signal.SIGCONT)
        assert 1 == running.process.wait(PATIENCE_S)
    log = (tmp_path / "run.log").read_text()
    assert f"SZ330]: {job.input}: deleted and created again while the job ran" in log
    assert {(0, "a"): 1, (0, "b"): 1} == job.stored()

    again = job.run_to_end()  # what the old topic's offsets mean in the new one is for people to say
    assert "SZ320" in again.stderr
    assert f"input {job.input}[0]: the topic was deleted and created again after the checkpoint" in again.stderr
    assert {(0, "a"): 1, (0, "b"): 1} == job.stored()


def test_what_is_read_after_an_input_of_a_job_with_state_grew_is_not_committed(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=2, containers={"count": 2}, commit={"interval": "1s"})
    job.feed(["a b", "c d"])
    with job.running("--local") as running:
        running.until_caught_up({f"{job.input}[{p}]": 1 for p in (0, 1)})
        while len(job.stored()) < 4:  # read, and not committed yet
            assert running.process.poll() is None
        client = admin(kafka)
        for future in client.create_partitions([NewPartitions(job.input, 4)]).values():
            future.result(10)
        job.feed(["late later"] * 20)
        assert 2 == running.process.wait(PATIENCE_S)
    log = (tmp_path / "run.log").read_text()
    assert "SZ110]" in log
    assert "State cannot be rolled back" in log
    assert {(0, "a"): 1, (0, "b"): 1, (1, "c"): 1, (1, "d"): 1} == job.stored()
