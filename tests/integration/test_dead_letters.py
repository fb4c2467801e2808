"""Bad records on a real broker: with kills, with what only the broker refuses, and back to where they came from."""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.broker import Record, admin, ends, produce, read_all
from tests.integration.job import TASK, Job

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def name() -> str:
    return f"job-{secrets.token_hex(4)}"


def own(record: Record) -> dict[str, bytes | None]:
    return {header: data for header, data in record.headers if header.startswith("samzapy-")}


def origins(job: Job) -> list[tuple[str, int, int]]:
    """Where the committed dead letters came from."""
    found = [own(r) for r in read_all(job.servers, f"{job.name}-1-dead-letter")]
    texts = [[(h[f"samzapy-{k}"] or b"").decode() for k in ("topic", "partition", "offset")] for h in found if "samzapy-topic" in h]
    return [(topic, int(partition), int(offset)) for topic, partition, offset in texts]


def limit_records(servers: str, topic: str, size: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(servers)
    for future in client.incremental_alter_configs([resource]).values():
        future.result(30)


def everything(job: Job) -> dict[str, int]:
    return {f"{job.input}[{p}]": end for p, end in ends(job.servers, job.input).items()}


@pytest.mark.parametrize(
    ("task", "guarantee"),
    [
        ("Counting", "exactly_once"),
        pytest.param("Counting", "at_least_once", marks=pytest.mark.prove),
        pytest.param("CountingBatches", "exactly_once", marks=pytest.mark.prove),
        pytest.param("CountingBatches", "at_least_once", marks=pytest.mark.prove),
    ],
)
def test_with_kills_each_record_ends_once_as_output_or_dead_letter(
    kafka: str, tmp_path: Path, name: str, task: str, guarantee: str
) -> None:
    on_error = {"then": "dead_letter", "retries": 1}
    job = Job(kafka, tmp_path, name, task=task, on_error=on_error, commit={"interval": "200ms", "guarantee": guarantee})
    lines = [f"word{i % 97}" if i % 10 else f"word{i % 97} boom" for i in range(3000)]
    job.feed(lines[:1000])
    with job.running("--local") as run:
        for part in (lines[1000:2000], lines[2000:]):
            status = run.until(lambda s: any(c["state"] == "RUNNING" and c["pid"] for c in s["containers"]))
            victim = next(c for c in status["containers"] if c["state"] == "RUNNING" and c["pid"])
            job.feed(part)
            os.kill(victim["pid"], signal.SIGKILL)
            run.until(lambda s, v=victim: all(c["pid"] != v["pid"] for c in s["containers"]))
        run.until_caught_up(everything(job))
        assert 0 == run.stop()
    bad = [(job.input, i % 4, i // 4) for i, line in enumerate(lines) if "boom" in line]
    good = Counter((i % 4, line) for i, line in enumerate(lines) if "boom" not in line)
    assert sorted(bad) == sorted(origins(job))
    assert good == job.stored()
    updates = [(p, word, n) for (p, word), count in good.items() for n in range(1, count + 1)]
    assert sorted(updates) == sorted(job.updates()) if guarantee == "exactly_once" else set(updates) == set(job.updates())


@pytest.mark.parametrize("guarantee", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.prove)])
def test_records_that_only_the_broker_refuses_are_found_and_set_aside(kafka: str, tmp_path: Path, name: str, guarantee: str) -> None:
    job = Job(kafka, tmp_path, name, on_error={"then": "dead_letter"}, commit={"interval": "200ms", "guarantee": guarantee})
    job.feed(["before"] * 8)
    with job.running("--local") as run:
        run.until_caught_up(everything(job))
        limit_records(kafka, job.output, 8000)
        lines = [f"word{i % 7}" if i not in (101, 250) else "x" * 9000 for i in range(400)]
        job.feed(lines)
        run.until(lambda _: 2 == len(origins(job)))  # positions tell what was processed: the commit that the broker refuses comes after it
        run.until_caught_up(everything(job))
        assert 0 == run.stop()
    assert sorted((job.input, i % 4, 2 + i // 4) for i in (101, 250)) == sorted(origins(job))
    good = Counter((i % 4, line) for i, line in enumerate(["before"] * 8)) + Counter(
        (i % 4, line) for i, line in enumerate(lines) if len(line) < 9000
    )
    assert good == job.stored()
    updates = {(p, word, n) for (p, word), count in good.items() for n in range(1, count + 1)}
    assert updates == set(job.updates())


@pytest.mark.parametrize("guarantee", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.prove)])
def test_a_topic_that_takes_less_than_a_batch_refuses_nothing(kafka: str, tmp_path: Path, name: str, guarantee: str) -> None:
    """`max.message.bytes` bounds batches, and librdkafka's are a megabyte by default."""
    job = Job(kafka, tmp_path, name, commit={"guarantee": guarantee})
    limit_records(kafka, job.output, 20_000)
    job.feed([f"word{i % 7}" for i in range(6000)])
    done = job.run_to_end()
    assert (0, False) == (done.returncode, "aborted" in done.stderr), done.stderr
    assert 6000 == len(job.updates())


@pytest.mark.parametrize("how", ["crash", pytest.param("hold", marks=pytest.mark.prove)])
def test_a_record_that_ends_its_container_is_found_and_set_aside(kafka: str, tmp_path: Path, name: str, how: str) -> None:
    containers = {"count": 1, "lease": "3s" if how == "hold" else "10s", "heartbeat": "500ms", "max_restarts": 2}
    job = Job(kafka, tmp_path, name, partitions=2, task="Deadly", on_error={"then": "dead_letter"}, containers=containers)
    lines = [how if i == 37 else f"word{i % 97}" for i in range(60)]
    job.feed(lines)
    done = job.run_to_end()
    assert 0 == done.returncode, done.stderr
    assert [(job.input, 1, 18)] == origins(job)
    good = Counter((i % 2, line) for i, line in enumerate(lines) if line != how)
    assert good == job.stored()
    assert sorted((p, w, n) for (p, w), count in good.items() for n in range(1, count + 1)) == sorted(job.updates())
    letter = next(own(r) for r in read_all(job.servers, f"{job.name}-1-dead-letter") if "samzapy-topic" in own(r))
    line = TASK.splitlines().index(next(text for text in TASK.splitlines() if ("string_at" if how == "crash" else "re.match") in text))
    assert f".py:{line + 1} in process" in (letter["samzapy-error"] or b"").decode()


@pytest.mark.prove
def test_a_record_that_ends_its_container_is_named_where_errors_stop_the_job(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, partitions=2, task="Deadly", containers={"count": 2, "heartbeat": "500ms"})
    job.feed(["crash" if i == 777 else f"word{i % 97}" for i in range(1000)])
    done = job.run_to_end()
    assert 1 == done.returncode
    assert f"process failed 2 times on record {job.input}[1]@388: it ended its container's process each time" in done.stderr
    assert "killed by SIGSEGV" in done.stderr
    assert 388 == sum(n for (p, _), n in job.stored().items() if p == 1)


def test_a_record_that_barely_fits_its_input_does_not_stop_a_job_with_dead_letters(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, partitions=1, on_error={"then": "dead_letter"})
    produce(kafka, job.input, [(None, b"\xff" * 1_048_000, 0)], message_max_bytes=20_000_000, compression_type="none")
    produce(kafka, job.input, [(None, b"\xff" * 10_000_000, 0)], message_max_bytes=20_000_000, compression_type="zstd")
    produce(kafka, job.input, [(None, b"fine", 0)])
    done = job.run_to_end()
    assert 0 == done.returncode, done.stderr
    assert ["fine"] == [word for (_, word) in job.stored()]
    letters = [r for r in read_all(kafka, f"{job.name}-1-dead-letter") if "samzapy-topic" in own(r)]
    assert [None, b"key=- value=10000000 headers=0"] == [own(r).get("samzapy-truncated") for r in letters]
    assert 1_048_000 == len(letters[0].value or b"")


@pytest.mark.prove
def test_a_record_too_large_to_decompress_is_set_aside_and_the_job_goes_on(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, partitions=1, on_error={"then": "dead_letter"})
    large = {"message_max_bytes": 200_000_000, "compression_type": "zstd", "queue_buffering_max_kbytes": 400_000}
    produce(kafka, job.input, [(None, b"before", 0)])
    produce(kafka, job.input, [(None, bytes(90_000_000), 0)], **large)
    produce(kafka, job.input, [(None, b"after", 0)])
    done = job.run_to_end()
    assert 0 == done.returncode, done.stderr
    assert {"before", "after"} == {word for (_, word) in job.stored()}
    assert [(job.input, 0, 1)] == origins(job)
    assert f"{job.input}[0]@1 cannot be read" in done.stderr


def test_dead_letters_are_listed_shown_and_sent_back_once(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, partitions=2, on_error={"then": "dead_letter"})
    now = int(time.time() * 1000)  # a record that is older than its topic's retention would be gone before the end of this
    produce(kafka, job.input, [Record(0, 0, b"\xff\x00", "fü boom".encode(), [("trace", b"\x01")], now)])
    produce(kafka, job.input, [Record(1, 0, None, b"\xff no text", [], now - 3_600_000), (None, b"fine", 1)])
    assert 0 == job.run_to_end().returncode

    listed = job.command("dlq", "list", str(job.file), "--json")
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {f"{job.input}[0]@0": "ValueError: boom!", f"{job.input}[1]@0": "SerdeError"} == {
        r["origin"]: r["error"].split(": ", 1)[0] if r["error"].startswith("Serde") else r["error"] for r in rows
    }
    assert ["Partition 0", "Partition 1"] == sorted(r["task"] for r in rows)
    table = job.command("dlq", "list", str(job.file))
    assert 3 == len(table.stdout.splitlines())

    shown = job.command("dlq", "show", str(job.file), f"{job.input}[0]@0")
    assert (0, True, True, True) == (
        shown.returncode, '"fü boom"' in shown.stdout, "trace: \\x01" in shown.stdout, "in process: raise ValueError" in shown.stdout
    )  # fmt: skip
    number = next(str(r["number"]) for r in rows if r["partition"] == 1)
    document = json.loads(job.command("dlq", "show", str(job.file), number, "--json").stdout)
    assert (b"\xff no text", None) == (base64.b64decode(document["value_base64"]), document["key"])
    assert 2 == job.command("dlq", "show", str(job.file), "77").returncode

    dry = job.command("dlq", "replay", str(job.file), "--all")
    assert f"would send back {job.input}[0]@0" in dry.stderr
    assert {0: 1, 1: 2} == ends(kafka, job.input)
    assert 2 == job.command("dlq", "replay", str(job.file)).returncode
    first = next(str(r["number"]) for r in rows if r["partition"] == 0)
    assert first in table.stdout
    one = job.command("dlq", "replay", str(job.file), first, "--execute")
    assert (0, True) == (one.returncode, "1 record sent back" in one.stderr), one.stderr
    rest = job.command("dlq", "replay", str(job.file), "--all", "--execute")
    assert "1 record sent back" in rest.stderr
    assert "nothing to send back" in job.command("dlq", "replay", str(job.file), "--all", "--execute").stderr

    again = read_all(kafka, job.input)
    assert 5 == len(again)
    back = next(r for r in again if r.partition == 0 and r.offset > 0)
    assert (b"\xff\x00", "fü boom".encode(), ("trace", b"\x01")) == (back.key, back.value, back.headers[0])
    assert ["samzapy-replay-of"] == [header for header, _ in back.headers[1:]]
    assert [now, now - 3_600_000] == [r.timestamp for r in sorted(again) if r.headers[-1:] and r.headers[-1][0] == "samzapy-replay-of"]


def test_who_goes_back_before_a_record_that_was_sent_back_is_told_so_and_it_is_not_sent_once_more(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, partitions=1, on_error={"then": "dead_letter"})
    job.feed(["boom", "fine"])
    assert 0 == job.run_to_end().returncode
    assert "1 record sent back" in job.command("dlq", "replay", str(job.file), "--all", "--execute").stderr
    told = f"a record of {job.input} was sent back from the dead letters before (the first: {job.input}[0]@0). If the job reads {job.input}[0] from 0 on, it "
    back = ("checkpoint", "set", str(job.file), "--to-earliest", "--reset-state")
    for command in (("reset", str(job.file)), back, (*back, "--execute")):
        done = job.command(*command)
        assert (0, True) == (done.returncode, told in done.stderr), done.stderr

    assert 0 == job.run_to_end().returncode  # the record and its copy fail
    assert [0, 0, 2] == sorted(offset for _, _, offset in origins(job))
    listed = job.command("dlq", "list", str(job.file), "--waiting", "--json").stdout
    second = next(row["number"] for row in map(json.loads, listed.splitlines()) if row["offset"] == 0)
    left_out = f"{second} is not sent back: its record, {job.input}[0]@0, was sent back before"
    for execute in ((), ("--execute",)):
        assert left_out in job.command("dlq", "replay", str(job.file), "--all", *execute).stderr
    assert 2 + 2 == len(read_all(kafka, job.input)), "what was fed, its copy, and a copy of that"
    assert "1 record sent back" in job.command("dlq", "replay", str(job.file), second, "--execute").stderr


@pytest.mark.prove
def test_a_task_that_skips_the_copies_while_it_reads_again_counts_each_record_once(kafka: str, tmp_path: Path, name: str) -> None:
    """As docs/how-to/backfill.md says; what another job gave on of a record that was sent back to it is no copy."""
    job = Job(kafka, tmp_path, name, partitions=1, on_error={"then": "dead_letter"})
    job.feed(["boom", "fine"])
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(job.input, b"given", headers={"samzapy-replay-of": f"{job.name}-0-1-dead-letter[0]@0"})
    assert 0 == producer.flush(30)
    assert 0 == job.run_to_end().returncode
    (module,) = tmp_path.glob("task_*.py")
    fixed = module.read_text().replace('if word == "boom":', 'if word == "never":').replace(
        "        for word in envelope.message.split():",
        '        if self.rebuilds and (dict(envelope.headers).get("samzapy-replay-of") or b"").startswith(self.letters):\n'
        '            return\n        for word in envelope.message.split():',
    ).replace("        self.counts = context", '        self.rebuilds = context.params.get("rebuilds", False)\n'
              f'        self.letters = b"{job.name}-1-dead-letter["\n        self.counts = context')  # fmt: skip
    module.write_text(fixed)
    job.command("dlq", "replay", str(job.file), "--all", "--execute")
    assert 0 == job.run_to_end().returncode
    assert {"boom": 1, "fine": 1, "given": 1} == job.export()

    for arguments, boom in (((), 2), (("--set", "params.rebuilds=true"), 1)):
        assert 0 == job.command("checkpoint", "set", str(job.file), "--to-earliest", "--reset-state", "--execute").returncode
        assert 0 == job.run_to_end(*arguments).returncode
        assert {"boom": boom, "fine": 1, "given": 1} == job.export()


@pytest.mark.prove
def test_a_replay_that_is_killed_in_between_sends_nothing_twice(kafka: str, tmp_path: Path, name: str) -> None:
    job = Job(kafka, tmp_path, name, partitions=2, on_error={"then": "dead_letter"})
    bad = [f"boom {i}" for i in range(5000)]
    job.feed(["fine", *bad, "fine"])
    assert 0 == job.run_to_end().returncode

    seen = [killed_after_the_first_batch(job) for _ in range(2)]
    last = job.command("dlq", "replay", str(job.file), "--all", "--execute")

    assert 0 == last.returncode, last.stderr
    assert sorted(seen, reverse=True) == seen, "each time there is less to send"
    assert 1000 < seen[-1] < seen[0] == len(bad)
    assert Counter({line.encode(): 2 for line in bad} | {b"fine": 2}) == Counter(r.value for r in read_all(kafka, job.input))
    assert 2 == job.command("dlq", "show", str(job.file), f"{job.input}[0]@0").returncode, "nothing came of what was fine"
    assert "nothing to send back" in job.command("dlq", "replay", str(job.file), "--all", "--execute").stderr


def killed_after_the_first_batch(job: Job) -> int:
    """`samzapy dlq replay`, killed once it says that a batch is sent; how many it said there were to send."""
    command = [sys.executable, "-m", "samzapy", "dlq", "replay", str(job.file), "--all", "--execute"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=job.folder) as process:
        assert process.stderr is not None
        said = next(line for line in process.stderr if line.startswith("sent back 1000 of "))
        process.kill()
    assert -signal.SIGKILL == process.returncode
    return int(said.split()[-1])
