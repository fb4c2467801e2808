"""Bad topics on a real broker, met by the commands a user would run: exit code, error code, words, no traceback, and nothing is altered.

A refusal changes nothing, so one job is spoiled and mended again and again.
"""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.broker import add_partitions, admin, create_topic, delete_topic, produce, read_all
from tests.integration.job import Job

pytestmark = pytest.mark.kafka
LIMIT_S = 30.0
CHECKPOINT = b"checkpoint"
WORDS = ["the fox", "the dog", "a fox", "a dog"]


@pytest.fixture
def job(kafka: str, tmp_path: Path) -> Job:
    """One that has run to the end, with one container and two tasks."""
    job = Job(kafka, tmp_path, f"bad-{secrets.token_hex(4)}", partitions=2, containers={"count": 1, "max_restarts": 2})
    job.feed(WORDS)
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    return job


def set_policy(job: Job, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(job.servers)
    client.incremental_alter_configs([resource])[resource].result(LIMIT_S)


def delete_before(job: Job, topic: str, partition: int, offset: int) -> None:
    client, place = admin(job.servers), TopicPartition(topic, partition, offset)
    [answer] = client.delete_records([place]).values()
    answer.result(LIMIT_S)


def write(job: Job, topic: str, key: bytes | None, value: bytes | None) -> None:
    produce(job.servers, topic, [(key, value, 0)])


def refused(done: CompletedProcess[str], exit_code: int, code: str, *words: str) -> None:
    assert exit_code == done.returncode, done.stderr
    assert code in re.findall(r"error\[(SZ\d{3})\]", done.stderr), done.stderr
    assert [] == [w for w in words if w not in done.stderr], done.stderr
    assert "Traceback" not in done.stderr


def test_bad_topics_are_refused_each_by_its_name_and_a_mended_job_goes_on(job: Job) -> None:
    checkpoints = f"__samza_checkpoint_{job.name}_1"
    good = next(r.value for r in reversed(read_all(job.servers, checkpoints)) if (r.partition, r.key) == (0, CHECKPOINT))
    counted = job.stored()

    in_the_way = job.folder / "a-file"
    in_the_way.write_text("")
    refused(job.run_to_end("--set", f"state.dir={in_the_way}"), 2, "SZ100", "a-file", "is a file, not a directory")
    set_policy(job, job.changelog, "compact,delete")
    refused(job.run_to_end(), 1, "SZ303", job.changelog, "cleanup.policy=compact,delete", "set cleanup.policy=compact for")
    set_policy(job, job.changelog, "compact")
    write(job, checkpoints, CHECKPOINT, b'{"version":99,"crc":0}')
    refused(job.run_to_end(), 1, "SZ330", f"{checkpoints}[0]", "version 99", "samzapy reset")
    for verbs in (("checkpoint", "show"), ("state", "verify")):
        refused(job.of(*verbs), 1, "SZ330", checkpoints, "version 99")
    write(job, checkpoints, CHECKPOINT, good)

    job.feed(WORDS)
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    assert {place: 2 * n for place, n in counted.items()} == job.stored()


def test_partitions_that_somebody_adds_to_the_jobs_own_topics_are_not_used_and_harm_nothing(job: Job) -> None:
    counted = job.stored()
    own = [job.changelog, f"__samza_checkpoint_{job.name}_1", f"__samza_coordinator_{job.name}_1"]
    for topic in own:
        add_partitions(job.servers, topic, 5)
    told = job.command("topics", str(job.file))
    assert (0, 3) == (told.returncode, told.stdout.count("the others are empty, and are not used")), told.stdout
    job.feed(WORDS)
    done = job.run_to_end()
    assert 0 == done.returncode, done.stderr
    assert [True] * 3 == [f"{topic} has 5 partitions" in done.stderr for topic in own], done.stderr
    assert {place: 2 * n for place, n in counted.items()} == job.stored()

    produce(job.servers, own[2], [(b"key", b"value", 1)])
    refused(job.run_to_end(), 1, "SZ303", own[2], "there are records in the others", " --coordinator --execute`")
    assert 0 == job.command("reset", str(job.file), "--coordinator", "--execute").returncode
    done = job.run_to_end()
    assert 0 == done.returncode, done.stderr
    assert {place: 2 * n for place, n in counted.items()} == job.stored()


@pytest.mark.prove
def test_a_job_that_nothing_else_mends_is_reset(job: Job) -> None:
    counted = job.stored()
    set_policy(job, job.changelog, "delete")
    write(job, job.changelog, None, b"no key")
    set_policy(job, job.changelog, "compact")
    passed_over = job.run_to_end()
    assert (0, True) == (passed_over.returncode, "a record without a key; it was skipped" in passed_over.stderr), passed_over.stderr
    add_partitions(job.servers, job.changelog, 3)
    produce(job.servers, job.changelog, [(b"key", b"value", 2)])
    refused(job.run_to_end(), 1, "SZ303", "has 3 partitions, the job needs 2, and there are records in the others")
    add_partitions(job.servers, job.input, 3)
    refused(job.run_to_end(), 2, "SZ110", job.input, "3 partitions now, 2 when", "samzapy reset")
    write(job, f"__samza_coordinator_{job.name}_1", b"container/0", b"[" * 100_000)

    assert job.command("reset", str(job.file), "--execute").returncode == 0

    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    assert counted == job.stored()


@pytest.mark.prove
def test_a_truncated_changelog_is_refused_by_run_and_by_state_restore(job: Job) -> None:
    set_policy(job, job.changelog, "delete")
    delete_before(job, job.changelog, 0, 3)
    set_policy(job, job.changelog, "compact")
    whole = job.run_to_end()
    assert whole.returncode == 0, whole.stderr
    assert "was truncated at its start; the local store is complete" in whole.stderr
    for verbs in (("export", "counts"), ("scan", "counts"), ("get", "counts", "fox")):
        done = job.of("state", *verbs)
        refused(done, 1, "SZ330", f"{job.changelog}[0]", "truncated", "silently miss keys")
        assert "" == done.stdout

    shutil.rmtree(job.state)

    refused(job.run_to_end(), 1, "SZ330", f"{job.changelog}[0]", "truncated", "silently miss keys")
    refused(job.of("state", "restore"), 1, "SZ330", "truncated", "silently miss keys")
    verified = job.of("state", "verify")
    assert (1, True) == (verified.returncode, "refused" in verified.stdout), verified.stdout


@pytest.mark.prove
def test_a_change_that_no_checkpoint_names_is_refused_by_run_and_by_state(job: Job) -> None:
    checkpoints = f"__samza_checkpoint_{job.name}_1"
    older = next(r.value for r in reversed(read_all(job.servers, checkpoints)) if (r.partition, r.key) == (0, CHECKPOINT))
    job.feed(WORDS)
    with job.running("--local") as run:
        run.until_running()
        assert job.export().keys() == {word for line in WORDS for word in line.split()}
        assert run.stop() == 0
    assert job.run_to_end().returncode == 0
    assert job.of("state", "verify").returncode == 0
    write(job, checkpoints, CHECKPOINT, older)

    lost = ("SZ330", f"{job.changelog}[0] holds a change", "later checkpoints were lost")
    refused(job.run_to_end(), 1, *lost)
    refused(job.of("state", "restore"), 1, *lost)
    verified = job.of("state", "verify")
    assert (1, True) == (verified.returncode, "refused" in verified.stdout and lost[-1] in verified.stdout), verified.stdout


@pytest.mark.prove
def test_a_topic_that_was_made_again_is_another_topic(job: Job) -> None:
    delete_topic(job.servers, job.input)
    refused(job.run_to_end(), 4, "SZ302", f"no input topic {job.input}", "Create")
    create_topic(job.servers, job.input, 2)
    refused(job.run_to_end(), 1, "SZ320", f"{job.input}[", "deleted and created again", "on_out_of_range")
    delete_topic(job.servers, job.changelog)
    for verbs in (("export", "counts"), ("verify",), ("restore",)):
        refused(job.of("state", *verbs), 1, "SZ330", job.changelog, "was deleted since the checkpoint", "samzapy reset")

    refused(job.run_to_end(), 1, "SZ330", job.changelog, "was deleted", "samzapy does not create it", "samzapy reset")
    create_topic(job.servers, job.changelog, 2, cleanup_policy="compact")
    refused(job.run_to_end(), 1, "SZ330", job.changelog, "deleted and created again", "samzapy reset")
    for verbs in (("export", "counts"), ("restore",)):
        refused(job.of("state", *verbs), 1, "SZ330", job.changelog, "deleted and created again", "samzapy reset")


SLOW = """
from pathlib import Path
from threading import Event

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class Slow(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])
        self.mark = Path(context.params["mark"])
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        n = (self.counts.get(envelope.message) or 0) + 1
        self.counts.put(envelope.message, n)
        collector.send(OutgoingMessageEnvelope(self.out, n, envelope.message, partition=0))
        if envelope.message == "slow" and not self.mark.exists():
            self.mark.write_text("once")
            Event().wait(600)
"""


def test_a_process_that_outlasts_its_transaction_is_named_ended_and_counted_once(kafka: str, tmp_path: Path) -> None:
    name = f"slow-{secrets.token_hex(4)}"
    (tmp_path / "slow_task.py").write_text(SLOW)
    job = Job(
        kafka, tmp_path, name, partitions=1, params={"out": f"{name}-out", "mark": str(tmp_path / "mark")},
        commit={"interval": "200ms", "timeout": "3s"}, containers={"count": 1, "heartbeat": "200ms", "lease": "2s"},
    )  # fmt: skip
    job.feed(["quick", "slow", "quick"])

    done = job.run_to_end("--set", "task=slow_task:Slow")

    assert done.returncode == 0, done.stderr
    assert f"on record {job.input}[0]@1" in done.stderr
    assert "did not return within commit.timeout (3 s)" in done.stderr
    assert "slow_task.py" in done.stderr
    assert [(0, "quick", 1), (0, "slow", 1), (0, "quick", 2)] == job.updates()
    assert {(0, "quick"): 2, (0, "slow"): 1} == job.stored()
