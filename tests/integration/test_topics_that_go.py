"""A changelog or checkpoint topic that is deleted while the job runs ends it by its name; the next run does not make it again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.broker import add_partitions, admin, create_topic, delete_topic, ends, produce
from tests.integration.job import PATIENCE_S, Job

pytestmark = pytest.mark.kafka
PASSING = """
from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class Passing(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])

    def process(self, envelope, collector, coordinator):
        collector.send(OutgoingMessageEnvelope(self.out, envelope.offset, "k", partition=envelope.partition))
"""


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


def test_an_output_deleted_while_the_job_runs_is_named_and_not_made_again(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=2, containers={"count": 1})
    job.feed(["a b", "c d"])
    with job.running("--local") as running:
        running.until_caught_up({f"{job.input}[{p}]": 1 for p in (0, 1)})
        delete_topic(kafka, job.output)
        job.feed(["late", "later"])
        assert 1 == running.process.wait(PATIENCE_S)
    log = (tmp_path / "run.log").read_text()
    assert f"SZ330]: {job.output}: deleted while the job ran" in log
    assert "KeyError" not in log

    again = job.run_to_end("--create-topics")  # which makes outputs that have `partitions`; this one does not
    assert 0 != again.returncode
    assert job.output in again.stderr
    assert job.output not in admin(kafka).list_topics(timeout=10).topics


def test_an_input_of_a_job_without_state_may_grow_and_no_container_is_restarted(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=2, task="Passing", stores={}, containers={"count": 2})
    (tmp_path / f"task_{unique.replace('-', '_')}.py").write_text(PASSING.replace(", partition=envelope.partition", ""))
    job.feed(["one", "two"])
    with job.running("--local") as running:
        before = running.until_caught_up({f"{job.input}[{p}]": 1 for p in (0, 1)})
        add_partitions(kafka, job.input, 4)
        job.partitions = 4
        job.feed(["three", "four", "five", "six"])
        after = running.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert 0 == running.stop()
    assert [c["pid"] for c in before["containers"]] == [c["pid"] for c in after["containers"]]
    assert [0, 0] == [c["restarts"] for c in after["containers"]]
    assert 4 == len(after["tasks"])
    assert 6 == len(job.updates())
    log = (tmp_path / "run.log").read_text()
    assert "SZ302" not in log
    assert "nknown partition" not in log


@pytest.mark.prove
def test_the_largest_input_may_leave_and_its_tasks_stay_without_partitions(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=2, task="Passing", stores={}, containers={"count": 2})
    (tmp_path / f"task_{unique.replace('-', '_')}.py").write_text(PASSING.replace(", partition=envelope.partition", ""))
    larger = create_topic(kafka, f"{unique}-larger", 4)
    each = [(None, b"x", p) for p in range(4)]
    small = json.loads(job.file.read_text())
    both = {**small, "inputs": [*small["inputs"], {"topic": larger, "value": "string"}]}

    def run(document: dict[str, Any]) -> str:
        job.file.write_text(json.dumps(document))
        found = job.run_to_end()
        assert found.returncode == 0, found.stderr
        return found.stderr

    job.feed(["one", "two"])
    produce(kafka, larger, each)
    run(both)
    job.feed(["three"])
    assert f"{larger}[3] is no longer an input; if it is added again, it is read from 1" in run(small)
    produce(kafka, larger, each)
    assert f"{larger}[3] is an input again; it was at 1; it is read from 1" in run(both)
    assert 3 + 8 == len(job.updates())
    job.file.write_text(json.dumps(small))
    with job.running("--local") as running:
        status = running.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert 4 == len(status["tasks"])
        assert 0 == running.stop()


@pytest.mark.prove
def test_a_coordinator_topic_deleted_while_the_job_runs_is_named_and_the_next_run_makes_it(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=2, containers={"count": 1})
    topic = f"__samza_coordinator_{unique}_1"
    job.feed(["a b", "c d"])
    with job.running("--local") as running:
        running.until_caught_up({f"{job.input}[{p}]": 1 for p in (0, 1)})
        delete_topic(kafka, topic)
        told = job.of("status")
        assert running.process.poll() is not None or (0, True) == (told.returncode, "RUNNING" in told.stdout), told.stderr
        assert 1 == running.process.wait(PATIENCE_S)
    log = (tmp_path / "run.log").read_text()
    assert f"SZ330]: {topic}: deleted while the job ran" in log
    assert "could not be written" not in log
    again = job.run_to_end()
    assert again.returncode == 0, again.stderr
    assert {(0, "a"): 1, (0, "b"): 1, (1, "c"): 1, (1, "d"): 1} == job.stored()


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
        add_partitions(kafka, job.input, 4)
        job.feed(["late later"] * 20)
        assert 2 == running.process.wait(PATIENCE_S)
    log = (tmp_path / "run.log").read_text()
    assert "SZ110]" in log
    assert "State cannot be rolled back" in log
    assert {(0, "a"): 1, (0, "b"): 1, (1, "c"): 1, (1, "d"): 1} == job.stored()


def set_policy(servers: str, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    client = admin(servers)
    for future in client.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]).values():
        future.result(10)


def empty(servers: str, topic: str) -> None:
    """Every record is deleted; the topic stays, with its id and its settings."""
    set_policy(servers, topic, "delete")
    client = admin(servers)
    for future in client.delete_records([TopicPartition(topic, p, -1) for p in ends(servers, topic)]).values():
        future.result(10)
    set_policy(servers, topic, "compact")


@pytest.mark.prove
def test_emptied_checkpoints_process_nothing_a_second_time(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=2, task="Passing", stores={}, containers={"count": 1})
    (tmp_path / f"task_{unique.replace('-', '_')}.py").write_text(PASSING)
    job.feed(["one", "two", "three", "four"])
    checkpoints = f"__samza_checkpoint_{unique}_1"
    with job.running("--local") as running:
        status = running.until_caught_up({f"{job.input}[{p}]": 2 for p in (0, 1)})
        while len(job.updates()) < 4:
            assert running.process.poll() is None
        empty(kafka, checkpoints)
        os.kill(status["containers"][0]["pid"], signal.SIGKILL)
        assert 1 == running.process.wait(PATIENCE_S)
    for said in ((tmp_path / "run.log").read_text(), job.run_to_end().stderr):
        assert "SZ330]: Partition " in said
        assert f"{checkpoints}[" in said
        assert "holds no checkpoint and starts at offset" in said
    assert 4 == len(job.updates())

    # the printed way out
    assert 0 == job.command("checkpoint", "set", str(job.file), "--to-latest", "--keep-state", "--execute").returncode
    job.feed(["five"])
    again = job.run_to_end()
    assert again.returncode == 0, again.stderr
    assert 5 == len(job.updates())


def test_a_policy_that_deletes_is_told_while_the_job_runs_and_so_is_its_end(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, partitions=1, containers={"count": 1})
    topics = [job.changelog, f"__samza_checkpoint_{unique}_1"]
    with job.running("--local") as running:
        running.until_running()
        for topic in topics:
            set_policy(kafka, topic, "delete")
        running.until(lambda s: all(f"{t} has cleanup.policy=delete" in s["reason"] for t in topics))
        assert f"{topics[1]} has cleanup.policy=delete" in job.of("status").stdout
        for topic in topics:
            set_policy(kafka, topic, "compact")
        running.until(lambda s: s["reason"] == "" and s["state"] == "RUNNING")
        assert 0 == running.stop()
    log = (tmp_path / "run.log").read_text()
    assert f"set cleanup.policy=compact for {job.changelog}" in log
    assert "the settings of the job's topics are correct again" in log
