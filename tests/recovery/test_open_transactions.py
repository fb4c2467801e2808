"""A transaction that a stranger leaves open on a topic that a job reads: records after it cannot be read, by anybody.

On an input the task waits at it and the others go on; on a changelog or a checkpoint partition the restore waits, because the barrier is after it.
Either is told as the task's `reason`, and right when the transaction has ended.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.broker import create_topic, ends, produce, wait_for_records
from tests.integration.job import Job, Running
from tests.integration.test_job import each_once, sentences

pytestmark = pytest.mark.kafka
INTERNAL = {"changelog": "{job}-1-counts-changelog", "checkpoint": "__samza_checkpoint_{job}_1"}


class Stranger:
    """Somebody else's producer, with a transaction open on one partition."""

    def __init__(self, servers: str, topic: str, partition: int, value: bytes) -> None:
        own = {"transactional.id": f"stranger-{secrets.token_hex(4)}", "transaction.timeout.ms": 300_000}
        self._producer = Producer({"bootstrap.servers": servers, **own})
        self._producer.init_transactions()
        self._producer.begin_transaction()
        self._producer.produce(topic, value, b"stranger", partition)
        self._producer.flush()
        self.commit, self.abort = self._producer.commit_transaction, self._producer.abort_transaction


@pytest.fixture
def job(kafka: str, tmp_path: Path) -> Job:
    return Job(kafka, tmp_path, f"open-{secrets.token_hex(4)}", partitions=2)


def task(status: dict[str, Any], number: int) -> dict[str, Any]:
    return next((one for one in status["tasks"] if one["name"] == f"Partition {number}"), {"state": "", "reason": "", "positions": {}})


def at_the_ends(run: Running, job: Job) -> dict[str, Any]:
    return run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(job.servers, job.input).items()})


@contextmanager
def waiting_at_an_input(job: Job) -> Iterator[tuple[Running, Stranger]]:
    """A job that has caught up, a stranger's transaction at the end of partition 0 with a word in it, and more words after it and beside it."""
    with job.running("--local") as run:
        run.until_running()
        job.feed(["first", "first"])
        at_the_ends(run, job)
        stranger = Stranger(job.servers, job.input, 0, b"within")
        produce(job.servers, job.input, [(None, b"after", 0), (None, b"beside", 1)])
        wait_for_records(job.servers, job.output, 3)
        yield run, stranger


@pytest.mark.parametrize("end", ["commit", pytest.param("abort", marks=pytest.mark.prove)])
def test_on_an_input_the_task_waits_and_says_so_the_others_go_on_and_its_end_is_right(job: Job, end: str) -> None:
    with waiting_at_an_input(job) as (run, stranger):
        at_the_ends(run, job)  # those of whoever reads what is committed: before the open transaction
        assert {(0, "first"): 1, (1, "first"): 1, (1, "beside"): 1} == job.stored()
        status = run.until(lambda s: job.input in task(s, 0)["reason"])
        assert "" == task(status, 1)["reason"]
        told = job.command("lag", str(job.file)).stderr
        assert f"note: {job.input}[0]: a producer has an open transaction there" in told
        assert "(2 offsets)" in told
        assert [2, 0] == [json.loads(line)["uncommitted"] for line in job.command("lag", str(job.file), "--json").stdout.splitlines()]

        getattr(stranger, end)()

        wait_for_records(job.servers, job.output, 5 if end == "commit" else 4)
        run.until(lambda s: task(s, 0)["reason"] == "")
        assert "note" not in job.command("lag", str(job.file)).stderr
        assert 0 == run.stop()
    within = {(0, "within"): 1} if end == "commit" else {}
    expected = {(0, "first"): 1, (1, "first"): 1, (1, "beside"): 1, (0, "after"): 1, **within}
    assert expected == job.stored()
    assert sorted(each_once(expected)) == sorted(job.updates())


@pytest.mark.prove
def test_a_bounded_run_ends_before_it_and_says_so(job: Job) -> None:
    job.feed(["first", "first"])
    stranger = Stranger(job.servers, job.input, 0, b"within")
    produce(job.servers, job.input, [(None, b"after", 0)])

    done = job.run_to_end()

    assert 0 == done.returncode, done.stderr
    assert {(0, "first"): 1, (1, "first"): 1} == job.stored()
    told = [line.partition("WARNING ")[2] for line in done.stderr.splitlines() if "transaction is open" in line]
    words = "another application's transaction is open at offset 1; that transaction and the records after it are not part of this run"
    assert [f"{job.input}[0]: {words}"] == told

    stranger.commit()
    done = job.run_to_end()
    assert {(0, "first"): 1, (1, "first"): 1, (0, "within"): 1, (0, "after"): 1} == job.stored()
    assert "transaction is open" not in done.stderr


@pytest.mark.parametrize("bounded", [pytest.param(False, marks=pytest.mark.prove), True], ids=["goes-on", "bounded"])
def test_a_bootstrap_input_is_read_whole_before_the_others(kafka: str, tmp_path: Path, bounded: bool) -> None:
    """What was written to it after the transaction's first record is read before the first record of another input, also in a bounded run."""
    name = f"open-{secrets.token_hex(4)}"
    table = f"{name}-table"
    create_topic(kafka, table, 1)
    inputs = [{"topic": table, "value": "string", "bootstrap": True}, {"topic": f"{name}-in", "value": "string"}]
    job = Job(kafka, tmp_path, name, partitions=1, inputs=inputs)
    stranger = Stranger(kafka, table, 0, b"within")
    produce(kafka, table, [(None, b"after", 0)])
    job.feed(["word"])

    with job.running("--local", *(["--until-end"] if bounded else [])) as run:
        run.until(lambda s: table in task(s, 0)["reason"])
        assert [] == job.updates()
        stranger.commit()
        wait_for_records(job.servers, job.output, 3)
        assert 0 == (run.process.wait(60) if bounded else run.stop())
    assert [(0, "within", 1), (0, "after", 1), (0, "word", 1)] == job.updates()
    assert bounded == ("the run waits until that transaction has ended" in (tmp_path / "run.log").read_text())


@contextmanager
def waiting_to_restore(job: Job, topic: str) -> Iterator[tuple[Running, Stranger]]:
    """A job with state, stopped; a stranger's transaction on partition 0 of one of its topics; and started again."""
    job.feed(sentences(200))
    assert 0 == job.run_to_end().returncode
    stranger = Stranger(job.servers, INTERNAL[topic].format(job=job.name), 0, b"\0" * 8)
    with job.running("--local") as run:
        run.until(lambda s: task(s, 0)["state"] == "RESTORING" and task(s, 1)["state"] == "RUNNING")
        yield run, stranger


@pytest.mark.prove
@pytest.mark.parametrize("topic", ["changelog", "checkpoint"])
def test_on_a_topic_of_its_own_the_restore_waits_and_says_so_the_others_go_on_and_its_end_is_right(job: Job, topic: str) -> None:
    with waiting_to_restore(job, topic) as (run, stranger):
        before = job.stored()
        produce(job.servers, job.input, [(None, b"more", 0), (None, b"more", 1)])
        wait_for_records(job.servers, job.output, sum(before.values()) + 1)
        assert {**before, (1, "more"): 1} == job.stored()
        run.until(lambda s: INTERNAL[topic].format(job=job.name) in task(s, 0)["reason"])

        stranger.abort()

        status = at_the_ends(run, job)
        assert "" == task(status, 0)["reason"]
        assert 0 == run.stop()
    expected = {**before, (0, "more"): 1, (1, "more"): 1}
    assert expected == job.stored()
    assert sorted(each_once(expected)) == sorted(job.updates())


@pytest.mark.prove
def test_one_that_was_open_before_the_last_commit_is_not_taken_for_a_lost_end(job: Job) -> None:
    """The changelog's visible end is before the checkpoint's position; the records after it are hidden, not lost."""
    with job.running("--local") as run:
        run.until_running()
        stranger = Stranger(job.servers, job.changelog, 0, b"\0" * 8)
        job.feed(["hidden", "hidden"])
        at_the_ends(run, job)
        assert 0 == run.stop()
    with job.running("--local") as run:
        run.until(lambda s: job.changelog in task(s, 0)["reason"])

        stranger.abort()

        at_the_ends(run, job)
        assert 0 == run.stop()
    assert {(0, "hidden"): 1, (1, "hidden"): 1} == job.stored()
