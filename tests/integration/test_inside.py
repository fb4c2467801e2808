"""Looking inside a real job, and at one that does not run: what is told is what happened."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.broker import ends
from tests.figures import Tell
from tests.integration.job import Job
from tests.integration.processes import until
from tests.integration.test_page import ask
from tests.integration.trouble import Trouble

pytestmark = [pytest.mark.kafka, pytest.mark.prove]


def test_a_trace_tells_what_is_committed_and_code_that_keeps_the_interpreter_is_named(kafka: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, f"inside-{secrets.token_hex(4)}", task="Deadly", on_error={"then": "skip"}, containers={"count": 1, "lease": "6s"})
    with job.running("--local") as run, ThreadPoolExecutor() as pool:
        run.until(lambda s: s["state"] == "RUNNING")
        asked = pool.submit(lambda: job.command("debug", "trace", str(job.file), "Partition 2", "--records", "3", "--seconds", "40", "--json"))
        run.until(lambda s: "a trace of the next 3 records of Partition 2" in (tmp_path / "run.log").read_text())
        job.feed([f"w{n}" for n in range(40)])
        done = asked.result()
        assert done.returncode == 0, done.stderr
        traced = json.loads(done.stdout)["records"]
        status = run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert [f"{job.input}[2]@{n}" for n in range(3)] == [one["record"] for one in traced]
        told = [(s["partition"], json.loads(s["key"]), int(s["value"])) for one in traced for s in one["sent"]]
        assert [update for update in job.updates() if update[0] == 2][:3] == told
        stored = job.stored()
        assert all(stored[2, json.loads(put["key"])] == int(put["new"]) for one in traced for put in one["puts"])
        assert status is not None

        shown = job.command("debug", "stack", str(job.file))
        assert "(the loop)" in shown.stdout
        job.feed(["hold"])
        run.until(lambda s: s["containers"][0]["restarts"] > 0)
        events = ask(job.of("ui", "--no-open", "--view").stdout.strip(), f"/v1/jobs/{job.name}/1/events")[1]["items"]
        (held, *_) = [e["text"] for e in events if e["what"] == "held"]
        assert re.search(r"task_\w+\.py:\d+ in process", held), held


def test_what_hangs_is_named_soon(kafka: str, tmp_path: Path, tell: Tell) -> None:
    """What sleeps: its line and record, within a second of the question. What keeps the interpreter, of which nothing is heard: its file and line in an
    event, two seconds after the lease is over at the latest."""
    job = Trouble(kafka, tmp_path, f"hangs-{secrets.token_hex(4)}", containers={"count": 1, "lease": "10s", "max_restarts": 50})
    lines = (tmp_path / f"task_{job.name.replace('-', '_')}.py").read_text().splitlines()
    line_of = {word: next(n for n, line in enumerate(lines, 1) if word in line) for word in ("it sleeps", "it holds on")}
    module = f"task_{job.name.replace('-', '_')}.py"

    def since() -> float:
        return float(until(lambda: (job.told.exists() and job.told.read_text()) or None, "the hook has begun"))

    with job.running("--local") as run:
        run.until_running()
        address = job.of("ui", "--no-open").stdout.strip()
        at = f"/v1/jobs/{job.name}/1"
        job.feed(["wait 1", "wait 1", "sleep 25"])
        since()
        began = time.monotonic()
        status, stack = ask(address, f"{at}/containers/0/stack", {})
        answered_s = time.monotonic() - began
        assert 200 == status, stack
        began = time.monotonic()
        shown = job.command("debug", "stack", str(job.file))
        command_s = time.monotonic() - began
        for told in (json.dumps(stack), shown.stdout):
            assert f"{module}:{line_of['it sleeps']} in process" in told
            assert f"{job.input}[2]@0" in told
        tell(f"a stack: answered after {answered_s:.2f} s, shown by the command after {command_s:.2f} s, of which Python's start is a part")
        assert answered_s <= 1.0

        run.until(lambda s: all(t["processed"] for t in s["tasks"] if t["name"] != "Partition 3"))  # it has woken up
        job.told.unlink()
        job.feed(["hold"])
        held_at = since()

        def named() -> dict[str, Any] | None:
            events = ask(address, f"{at}/events")[1]["items"]
            return next((e for e in events if e["what"] == "held" and f"{module}:{line_of['it holds on']}" in e["text"]), None)

        until(named, "an event names the line", within_s=60.0)
        heard_s = time.time() - held_at
        tell(f"code that keeps the interpreter, lease 10 s: an event named its line {heard_s:.1f} s after it began")
        assert heard_s <= 12.0


@contextmanager
def page_of(job: Job) -> Iterator[str]:
    """The address that `samzapy ui` prints of a job that does not run; it is asked to end as by Ctrl-C, and has to."""
    command = [sys.executable, "-m", "samzapy", "ui", str(job.file), "--no-open"]
    process = subprocess.Popen(command, cwd=job.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_of_a_job_that_does_not_run_the_page_says_how_it_ended_and_what_waits(kafka: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, f"still-{secrets.token_hex(4)}")
    at = f"/v1/jobs/{job.name}/1"

    def told() -> tuple[dict[str, Any], Any]:
        with page_of(job) as address:
            status: dict[str, Any] = ask(address, at)[1]
            assert 409 == ask(address, f"{at}/scale", {"containers": 3})[0]
            assert (job.name, True) in [(j["jobName"], j["is_here"]) for j in ask(address, "/v1/jobs")[1]["items"]]
            return status, ask(address, f"{at}/events")[1]["items"]

    assert "NEVER RAN" == told()[0]["state"]
    job.feed(["one two"] * 40)
    assert job.run_to_end().returncode == 0
    job.feed(["three"] * 12)
    status, events = told()
    assert ("FINISHED", 12, 40) == (status["state"], status["rates"]["lag"], status["last_run"]["counts"]["processed"])
    assert any("the job is RUNNING" in event["text"] for event in events)
    assert "samzapy run JOB.yaml" == status["hints"][0]["remedy"]

    job.feed(["boom"])
    assert job.run_to_end().returncode != 0
    status, _ = told()
    assert ("FAILED", "act") == (status["state"], status["hints"][0]["severity"])
    assert "boom" in status["hints"][0]["sentence"]
