"""Pause, resume and commit by the commands, on a real Kafka: a container is killed meanwhile, and every record counts once."""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from samzapy.cli.records import log_of
from samzapy.clock import SystemClock
from samzapy.model.run_record import runs_of
from samzapy.readers import read_ledger
from tests.broker import ends
from tests.integration.job import Job

pytestmark = [pytest.mark.kafka, pytest.mark.prove]


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
