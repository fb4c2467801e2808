"""Pause, resume and commit by the commands, on a real Kafka: a container is killed meanwhile, and every record counts once. And while records come on
and on: soon none is processed any more, in processes that stay and forget nothing."""

from __future__ import annotations

import json
import os
import secrets
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from samzapy.cli.records import log_of
from samzapy.clock import SystemClock
from samzapy.model.run_record import runs_of
from samzapy.readers import read_ledger
from tests.broker import ends, read_all
from tests.figures import Tell
from tests.integration.job import Job
from tests.integration.test_page import ask
from tests.integration.trouble import Feed

pytestmark = [pytest.mark.kafka, pytest.mark.prove]


PAUSED_WITHIN_S, PAUSED_S = 1.0, 3.0
TASK = """
import os
import time

from samzapy import StreamTask

class Telling(StreamTask):
    def init(self, context):
        self.out, self.n = context.params["out"], 0

    def process(self, envelope, collector, coordinator):
        self.n += 1  # in memory only
        told = {"at": time.time(), "offset": envelope.offset, "pid": os.getpid(), "n": self.n}
        collector.send(self.out, told, None, partition=envelope.partition)
"""


def processed(status: dict[str, Any]) -> dict[str, int]:
    return {t["name"]: t["processed"] for t in status["tasks"]}


def test_a_paused_job_processes_nothing_though_a_container_dies_and_goes_on_where_it_stood(kafka: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, f"pause-{secrets.token_hex(4)}")
    first, second = [f"one two {n}" for n in range(3000)], [f"one three {n}" for n in range(500)]
    job.feed(first)
    with job.running("--local") as run:
        run.until(lambda s: s["state"] == "RUNNING" and all(t["processed"] for t in s["tasks"]))
        told = job.of("pause", "--dry-run")
        assert (0, "RUNNING") == (told.returncode, run.until_running()["state"])
        assert "would do: 4 tasks in 2 containers commit" in told.stderr
        paused = job.of("pause", "--json")
        assert paused.returncode == 0, paused.stderr
        assert {"command": "pause", "done": True}.items() <= json.loads(paused.stdout).items()
        status = run.until(lambda s: s["state"] == "PAUSED")
        assert "`samzapy resume JOB.yaml`" in status["reason"]
        shown = job.of("status")
        assert "PAUSED" in shown.stdout
        assert "paused by the command line (127.0.0.1)" in shown.stdout
        assert f"`samzapy resume {job.file}`" in shown.stdout
        assert "paused by" in job.of("top").stdout
        before = processed(status)

        job.feed(second)
        victim = status["containers"][1]
        os.kill(victim["pid"], signal.SIGKILL)
        run.until(lambda s: s["state"] == "PAUSED" and s["containers"][1]["pid"] not in (None, victim["pid"]))
        status = run.until(lambda s: s["rates"]["lag"] is not None and s["rates"]["lag"] >= len(second))
        own = {t["name"] for t in status["tasks"] if t["container"] == 0}
        assert {name: n for name, n in before.items() if name in own} == {name: n for name, n in processed(status).items() if name in own}
        assert {0} == {n for name, n in processed(status).items() if name not in own}, "the new process has processed nothing"
        assert job.command("scale", str(job.file), "--containers", "1").returncode == 0, "tasks move while it is paused"
        assert "PAUSED" == run.until(lambda s: len(s["containers"]) == 1)["state"]

        resumed = job.of("resume")
        assert resumed.returncode == 0, resumed.stderr
        run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        committed = job.of("commit")
        assert committed.returncode == 0, committed.stderr
        expected = Counter(word for line in first + second for word in line.split())
        assert expected == Counter(word for _, word, _ in job.updates())
        assert expected == Counter(job.export())
        assert job.of("pause").returncode == 0
        assert job.of("stop").returncode == 0, "a paused job stops"
    assert 3 == job.of("pause").returncode
    job.feed(["four"])
    ended = job.run_to_end()
    assert ended.returncode == 0, "a new run begins unpaused"
    assert 1 == job.export()["four"]

    log = log_of(kafka)
    ledger = read_ledger(log.restore_consumer("t"), f"__samza_coordinator_{job.name}_1", SystemClock())
    last, before_it = runs_of(ledger.history)
    assert ("FINISHED", "--local --until-end", 1) == (last.outcome, last.how, last.counts["processed"])
    assert "STOPPED" == before_it.outcome
    assert before_it.ended_by.startswith("the command line")
    assert (len(first) + len(second), 1) == (before_it.counts["processed"], before_it.counts["restarts"])


def test_soon_after_a_pause_nothing_is_processed_and_the_processes_go_on_where_they_stood(kafka: str, tmp_path: Path, tell: Tell) -> None:
    name = f"pause-{secrets.token_hex(4)}"
    job = Job(kafka, tmp_path, name, task="Telling", stores={}, outputs=[{"topic": f"{name}-out", "value": "json"}])
    (tmp_path / f"task_{name.replace('-', '_')}.py").write_text(TASK)
    with job.running("--local") as run:
        pids = {c["pid"] for c in run.until_running()["containers"]}
        address, at = job.of("ui", "--no-open").stdout.strip(), f"/v1/jobs/{name}/1"
        with Feed(kafka, job.input, dict.fromkeys(range(job.partitions), (250.0, "a record"))):
            run.until(lambda s: all(t["processed"] > 100 for t in s["tasks"]))
            paused_at = time.time()
            assert 200 == ask(address, f"{at}/pause", {})[0]
            run.until(lambda s: s["state"] == "PAUSED")
            threading.Event().wait(PAUSED_S)  # records come, and wait
            status = run.until(lambda s: s["rates"]["lag"] is not None and s["rates"]["lag"] > 500)
            assert pids == {c["pid"] for c in status["containers"]}
            resumed_at = time.time()
            assert 200 == ask(address, f"{at}/resume", {})[0]
            before = processed(status)
            status = run.until(lambda s: s["state"] == "RUNNING" and all(n > before[name] for name, n in processed(s).items()))
            assert pids == {c["pid"] for c in status["containers"]}
        run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert run.stop() == 0

    told = [{**json.loads(r.value or b""), "partition": r.partition} for r in read_all(kafka, job.output)]
    late_s = max(one["at"] for one in told if one["at"] < resumed_at) - paused_at
    tell(f"the last record before the rest was processed {late_s:.2f} s after the pause was asked for; then none for {resumed_at - paused_at:.1f} s")
    assert late_s <= PAUSED_WITHIN_S
    assert pids == {one["pid"] for one in told}
    for partition, end in ends(kafka, job.input).items():
        own = [one for one in told if one["partition"] == partition]
        assert list(range(end)) == [one["offset"] for one in own], "each once, in order"
        assert list(range(1, end + 1)) == [one["n"] for one in own], "what a task keeps in memory is kept"
