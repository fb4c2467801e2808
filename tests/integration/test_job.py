"""The main job on a real broker: what is promised to a user, run as a user would."""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.broker import admin, create_topic, delete_topic, ends
from tests.integration.job import Job

pytestmark = pytest.mark.kafka
WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "and", "runs")


@pytest.fixture
def name() -> str:
    return f"job-{secrets.token_hex(4)}"


def sentences(count: int) -> list[str]:
    seed = random.Random(secrets.randbits(32))
    return [" ".join(seed.choices(WORDS, k=5)) for _ in range(count)]


def counted(lines: list[str], partitions: int = 4) -> dict[tuple[int, str], int]:
    """What each task must have counted, by (partition, word)."""
    return dict(Counter((i % partitions, word) for i, line in enumerate(lines) for word in line.split()))


def over_tasks(counts: dict[tuple[int, str], int]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for (_, word), n in counts.items():
        total[word] += n
    return dict(total)


def each_once(counts: dict[tuple[int, str], int]) -> set[tuple[int, str, int]]:
    """Every update that must be seen: 1, 2, … n for each task's word."""
    return {(p, word, i) for (p, word), n in counts.items() for i in range(1, n + 1)}


@pytest.mark.parametrize("guarantee", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.prove)])
def test_containers_are_killed_and_nothing_is_lost(kafka: str, tmp_path: Path, name: str, guarantee: str) -> None:
    job = Job(kafka, tmp_path, name, commit={"interval": "200ms", "guarantee": guarantee})
    lines = sentences(6000)
    job.feed(lines[:2400])
    with job.running("--local") as run:
        for part in (lines[2400:3600], lines[3600:4800], lines[4800:]):
            status = run.until(lambda s: any(c["state"] == "RUNNING" and c["pid"] for c in s["containers"]))
            victim = next(c for c in status["containers"] if c["state"] == "RUNNING" and c["pid"])
            os.kill(victim["pid"], signal.SIGKILL)
            job.feed(part)
            run.until(lambda s, v=victim: all(c["pid"] != v["pid"] for c in s["containers"]))
        run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert run.stop() == 0
    expected = counted(lines)
    assert job.stored() == expected
    assert job.export() == over_tasks(expected)
    updates = job.updates()
    assert set(updates) == each_once(expected)
    if guarantee == "exactly_once":
        assert len(updates) == len(set(updates))


@pytest.mark.prove
def test_a_second_run_goes_on_from_local_state_or_from_the_changelog_alike(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    lines = sentences(4000)
    job.feed(lines[:1000])
    first = job.run_to_end()
    assert first.returncode == 0, first.stderr
    assert job.stored() == counted(lines[:1000])

    job.feed(lines[1000:2000])
    with job.running("--local") as run:
        status = run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        restores = [t["stores"]["counts"]["restore"] for t in status["tasks"]]
        assert [(r["source"], r["records"]) for r in restores] == [("local", 0)] * 4
        assert run.stop() == 0
    assert job.stored() == counted(lines[:2000])

    shutil.rmtree(job.state)
    job.feed(lines[2000:3000])
    with job.running("--local") as run:
        status = run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert {t["stores"]["counts"]["restore"]["source"] for t in status["tasks"]} == {"changelog"}
        closed = signal.SIGTERM if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else signal.SIGHUP  # under nohup a run ignores it too
        assert run.stop(closed) == 0, "a terminal that is closed asks for a stop"
    assert job.stored() == counted(lines[:3000])

    shutil.rmtree(job.state)
    verified = job.of("state", "verify")
    assert (verified.returncode, verified.stdout.count("no local store on this host;")) == (0, 4)
    assert "nothing was compared: this host has no local store of the job" in verified.stderr
    restored = job.of("state", "restore")
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.count("restored") == 4
    verified = job.of("state", "verify")
    assert (verified.returncode, verified.stdout.count("agrees")) == (0, 4), verified.stdout + verified.stderr
    assert "nothing was compared" not in verified.stderr
    job.feed(lines[3000:])
    with job.running("--local") as run:
        status = run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert {t["stores"]["counts"]["restore"]["source"] for t in status["tasks"]} == {"local"}
        refused = job.of("state", "restore")
        assert refused.returncode == 5
        assert "is running" in refused.stderr
        assert run.stop() == 0
    assert job.stored() == counted(lines)
    assert set(job.updates()) == each_once(counted(lines))


@pytest.mark.parametrize(("task", "on_error"), [("Silent", "fail"), pytest.param("Counting", "skip", marks=pytest.mark.prove)])
def test_a_job_without_any_output_commits_to_the_end(kafka: str, tmp_path: Path, name: str, task: str, on_error: str) -> None:
    job = Job(kafka, tmp_path, name, task=task, on_error={"then": on_error})
    job.feed(["boom"] * 400)
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    shown = job.of("checkpoint", "show", "--json")
    assert shown.stdout.count('"next_offset": 100') == 4
    assert job.updates() == []


def test_a_bad_record_stops_the_job_by_name_and_the_rest_is_committed(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    job.feed(["the fox", "a", "b", "c", "the boom", "d", "e", "f"])
    done = job.run_to_end()
    assert done.returncode == 1
    assert f"record {job.input}[0]@1" in done.stderr
    assert "ValueError: boom!" in done.stderr
    assert (0, "the", 2) not in job.updates()
    assert (0, "the", 1) in job.updates()


def test_a_value_of_five_megabytes_is_refused_with_topic_key_and_size(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, partitions=1, task="Huge")
    job.feed(["fine", "huge"])
    done = job.run_to_end()
    assert done.returncode == 1
    takes = rf"changelog {job.changelog}: key 'x+… with its value takes 50001\d\d bytes as a record, its topic's limit is 1048588 \(task_"
    assert re.search(takes, done.stderr), done.stderr
    assert set(job.stored()) == {(0, "before"), (0, "fine")}


@pytest.mark.prove
def test_a_lost_checkpoint_topic_over_state_is_refused_with_the_remedy(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    job.feed(sentences(100))
    assert job.run_to_end().returncode == 0
    topic = f"__samza_checkpoint_{name}_1"
    delete_topic(kafka, topic)
    done = job.run_to_end()
    assert done.returncode == 1
    assert f"{topic} was deleted after the job's first run" in done.stderr
    assert "samzapy reset" in done.stderr
    before = job.stored()
    assert job.command("reset", str(job.file)).returncode == 0
    assert job.stored() == before  # without --execute nothing changes
    assert job.command("reset", str(job.file), "--execute").returncode == 0
    again = job.run_to_end()
    assert again.returncode == 0, again.stderr
    assert job.stored() == before  # counted once, from the beginning


def test_a_second_copy_is_refused_and_the_first_goes_on(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    with job.running("--local") as run:
        run.until_running()
        second = job.command("run", str(job.file), "--local")
        assert second.returncode == 5
        assert str(run.process.pid) in second.stderr
        run.until_running()
        stopped = job.of("stop")
        assert stopped.returncode == 0, stopped.stderr
        assert run.process.wait(timeout=60) == 0
    assert job.of("status").returncode == 3


def test_a_killed_driver_takes_its_containers_with_it_and_the_next_run_goes_on_at_once(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    lines = sentences(2000)
    job.feed(lines[:1000])
    with job.running("--local") as run:
        run.until_running()
        run.process.kill()
        run.process.wait()
    job.feed(lines[1000:])
    done = job.run_to_end()
    assert done.returncode == 0, done.stderr
    assert job.stored() == counted(lines)
    assert len(job.updates()) == sum(counted(lines).values())


def test_when_every_process_gets_sigterm_the_containers_make_their_final_commits_and_nothing_is_sent_twice(kafka: str, tmp_path: Path, name: str) -> None:
    """As systemd stops a service: KillMode=control-group, its default."""
    job = Job(kafka, tmp_path, name, commit={"interval": "15s", "guarantee": "at_least_once"})
    lines = sentences(2000)
    job.feed(lines)
    with job.running("--local") as run:
        told = run.until(lambda s: sum(t["processed"] for t in s["tasks"]) == len(lines))
        for pid in (run.process.pid, *(c["pid"] for c in told["containers"])):
            os.kill(pid, signal.SIGTERM)
        assert run.process.wait(timeout=60) == 0
    log = (tmp_path / "run.log").read_text()
    assert "all its work is committed" in log
    assert log.count("got SIGTERM and goes on") == 2
    assert job.stored() == counted(lines)

    assert job.run_to_end().returncode == 0
    assert len(job.updates()) == sum(counted(lines).values())


def test_missing_topics_are_named_all_at_once_with_exit_code_4(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, inputs=[{"topic": f"{name}-nowhere"}], outputs=[{"topic": f"{name}-neither", "partitions": 2}])
    done = job.run_to_end()
    assert done.returncode == 4
    assert f"{name}-nowhere" in done.stderr
    assert f"{name}-neither" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.prove
def test_an_unreachable_broker_is_named_with_exit_code_4(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    for verb in (["run", str(job.file), "--local"], ["validate", str(job.file), "--connect"], ["status", str(job.file)]):
        done = job.command(*verb, "--set", "kafka.bootstrap.servers=127.0.0.1:1", limit_s=60)
        assert done.returncode == 4, done.stderr
        assert "127.0.0.1:1" in done.stderr
        assert "Traceback" not in done.stderr
        assert (verb[0] == "run") == ("may be started again" in done.stderr)


def test_topics_shows_and_creates_what_the_job_needs(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, outputs=[{"topic": f"{name}-made", "partitions": 3}])
    before = job.of("topics")
    assert before.returncode == 4
    assert f"{name}-made" in before.stdout
    created = job.of("topics", "--create")
    assert created.returncode == 0, created.stderr
    made = admin(kafka).list_topics(timeout=10).topics
    assert len(made[f"{name}-made"].partitions) == 3
    assert len(made[f"__samza_checkpoint_{name}_1"].partitions) == 4


def test_an_internal_topic_with_a_policy_that_deletes_is_refused_with_what_to_set(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    create_topic(kafka, job.changelog, 4, cleanup_policy="delete")
    done = job.run_to_end()
    assert done.returncode == 1
    assert "cleanup.policy=compact" in done.stderr
    assert f"set cleanup.policy=compact for {job.changelog}" in done.stderr


@pytest.mark.prove
def test_changed_serdes_are_refused_over_state(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    job.feed(sentences(100))
    assert job.run_to_end().returncode == 0
    done = job.run_to_end("--set", "stores.counts.value=json")
    assert done.returncode == 2
    assert "'integer'" in done.stderr
    assert "'json'" in done.stderr


@pytest.mark.prove
@pytest.mark.spark
def test_the_same_on_spark_with_a_killed_container(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name)
    lines = sentences(8000)
    job.feed(lines[:4000])
    with job.running("--master", "local[2]") as run:
        status = run.until_running()
        os.kill(status["containers"][0]["pid"], signal.SIGKILL)
        job.feed(lines[4000:])
        run.until(lambda s: s["containers"][0]["pid"] != status["containers"][0]["pid"])
        run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert run.stop() == 0
    assert job.stored() == counted(lines)
    updates = job.updates()
    assert len(updates) == len(set(updates))
    assert set(updates) == each_once(counted(lines))


@pytest.mark.prove
@pytest.mark.spark
def test_more_containers_than_slots_are_refused_with_both_numbers(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, containers={"count": 3})
    done = job.command("run", str(job.file), "--master", "local[2]")
    assert done.returncode == 4
    assert "3 containers" in done.stderr
    assert "2 slots" in done.stderr
    assert [] == [topic for topic in admin(kafka).list_topics(timeout=10).topics if f"{name}_1" in topic or f"{name}-1-" in topic], "it made none"
