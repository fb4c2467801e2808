"""What happens on a bad day, while records keep coming: a minute of kills over a large state, new code in all containers, and compaction that
removes deletions within seconds. The results are compared with what was sent. `KEYS` sets the size of the large state (default 2,000,000)."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from samzapy.dev.kafka import LocalKafka
from tests.broker import create_topic, read_all
from tests.figures import Tell
from tests.integration.job import Job
from tests.recovery.keys_job import KeysJob, KeysRun, is_settled, pids

pytestmark = [pytest.mark.prove, pytest.mark.kafka, pytest.mark.timeout(1800)]
KEYS = int(os.environ.get("KEYS", "2000000"))
MANY = {"containers": {"count": 2, "max_restarts": 500}, "commit": {"interval": "500ms"}}


@pytest.fixture
def cleaning_kafka(tmp_path: Path) -> Iterator[str]:
    """A broker that compacts five times a second."""
    cluster = LocalKafka.start(port=0, directory=tmp_path / "kafka", overrides={"log.cleaner.backoff.ms": "200"}, tied=True)
    try:
        yield cluster.bootstrap_servers
    finally:
        cluster.stop()


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def kill_for(run: KeysRun, seconds: float, chance: random.Random) -> int:
    """SIGKILL to one container after another; how many there were."""
    count, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        wait(chance.uniform(0.5, 4.0))
        status = run.until(lambda s: any(c["pid"] for c in s["containers"]))
        victim = chance.choice([c["pid"] for c in status["containers"] if c["pid"]])
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
        count += 1
    return count


def test_a_minute_of_kills_over_a_large_state(kafka: str, tmp_path: Path, unique: str, tell: Tell) -> None:
    job, chance, killed = KeysJob(kafka, tmp_path, unique, 4, **MANY), random.Random(41), 0
    with job.running("--local") as run:
        job.fill(KEYS)
        run.until_caught_up(job.ends())
        with job.busy():
            killed += kill_for(run, 30, chance)
            os.kill(run.process.pid, signal.SIGKILL)  # the driver; its containers end by themselves
            run.process.wait()
    with job.running("--local") as run, job.busy():
        run.until(is_settled)
        killed += kill_for(run, 30, chance)
    with job.running("--local") as run:
        run.until_caught_up(job.ends())
        assert 0 == run.stop()
    tell(f"{KEYS} keys, {killed} containers and a driver killed")
    assert killed >= 10
    assert [] == job.wrong()


NEW_CODE = '''

class New(Counting):
    def process(self, envelope, collector, coordinator):
        for word in envelope.message.split():
            n = (self.counts.get(word) or 0) + 1
            self.counts.put(word, n)
            collector.send(OutgoingMessageEnvelope(self.out, n, word, partition=envelope.partition, headers={"code": "new"}))

Counting = New
'''


def test_new_code_comes_into_all_containers_while_records_keep_coming(kafka: str, tmp_path: Path, unique: str, tell: Tell) -> None:
    job = KeysJob(kafka, tmp_path, unique, 4, **MANY)
    (module,) = tmp_path.glob("task_*.py")
    with job.running("--local") as run:
        with job.busy():
            before = pids(run.until_running())
            wait(3.0)
            module.write_text(module.read_text() + NEW_CODE)
            done = run.command("restart")
            assert 0 == done.returncode, done.stderr
            assert not set(before.values()) & set(pids(run.until(is_settled)).values())
            wait(3.0)
        run.until_caught_up(job.ends())
        assert 0 == run.stop()
    assert [] == job.wrong()
    records = read_all(kafka, job.output)
    for partition in range(4):
        code = [dict(r.headers or []).get("code", b"old") for r in records if r.partition == partition]
        first = code.index(b"new")
        assert 0 < first < len(code)
        assert {b"new"} == set(code[first:]), "a record by the old code after one by the new"
    tell(f"{len(records)} records, {done.stderr.strip().splitlines()[-1]}")


KEEPER = '''

class Keeper(StreamTask):
    def init(self, context):
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        key, value = envelope.message.split("=")
        self.counts.put(key, int(value) if value else None)
'''
EAGER = {
    "cleanup_policy": "compact", "delete_retention_ms": 4000, "min_compaction_lag_ms": 0, "max_compaction_lag_ms": 1000,
    "segment_ms": 1000, "min_cleanable_dirty_ratio": 0.01,
}  # fmt: skip


class Kept:
    """Lines `key=value`, or `key=` that deletes it, and what they leave."""

    def __init__(self, job: Job) -> None:
        self.job, self.chance, self.left = job, random.Random(7), dict[tuple[int, str], int]()

    def feed(self, count: int) -> None:
        lines = []
        for n in range(count):
            key, value = f"k{self.chance.randrange(400)}", self.chance.choice(["", str(n)])
            lines.append(f"{key}={value}")
            if value:
                self.left[n % self.job.partitions, key] = n
            else:
                self.left.pop((n % self.job.partitions, key), None)
        self.job.feed(lines)

    @contextmanager
    def fed(self) -> Iterator[None]:
        stopping = threading.Event()

        def run() -> None:
            while not stopping.wait(0.1):
                self.feed(40)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def stored(self) -> dict[tuple[int, str], int]:
        done = self.job.of("state", "export", "counts", "--json")
        assert 0 == done.returncode, done.stderr
        entries = map(json.loads, done.stdout.splitlines())
        return {(e["partition"], e["key"]): e["value"] for e in entries}


def test_what_was_deleted_stays_so_however_soon_compaction_removes_the_deletions(cleaning_kafka: str, tmp_path: Path, unique: str, tell: Tell) -> None:
    """Local stores come and go: that of the moment, none, and one of a time whose deletions are gone."""
    job = KeysJob(cleaning_kafka, tmp_path, unique, 4, task="Keeper", **MANY)
    (module,) = tmp_path.glob("task_*.py")
    module.write_text(module.read_text() + KEEPER)
    create_topic(cleaning_kafka, job.changelog, 4, **EAGER)
    kept, chance, old = Kept(job), random.Random(3), tmp_path / "old"
    with kept.fed():
        for turn in range(4):
            with job.running("--local") as run:
                run.until(is_settled)
                killed = kill_for(run, 12, chance)
                run.until(is_settled)
                assert 0 == run.stop()
            tell(f"turn {turn}: {killed} containers killed")
            if turn == 0:
                shutil.copytree(job.state, old, symlinks=True)
            elif turn == 1:
                shutil.rmtree(job.state)
            elif turn == 2:
                shutil.rmtree(job.state)
                shutil.copytree(old, job.state, symlinks=True)
    with job.running("--local") as run:
        run.until_caught_up(job.ends())
        assert 0 == run.stop()
    assert kept.left == kept.stored()
    shutil.rmtree(job.state)
    assert 0 == job.run_to_end().returncode
    assert kept.left == kept.stored()
