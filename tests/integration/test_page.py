"""The page's facts on a real job: what the interface tells is what happened, and what the commands tell."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.broker import ends, produce
from tests.integration.job import Job
from tests.page.browser import Watched, chromium

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
BAD = 6


def ask(address: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    """A request with the address's token, as the page makes it."""
    url, _, token = address.partition("/#token=")
    request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode(), {"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_what_the_page_tells_is_what_happened(kafka: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, f"page-{secrets.token_hex(4)}", on_error={"then": "skip"})
    job.feed([f"one two {n}" for n in range(2000)])
    with job.running("--local") as run:
        status = run.until(lambda s: s["state"] == "RUNNING" and all(t["processed"] for t in s["tasks"]))
        victim = status["containers"][1]
        os.kill(victim["pid"], signal.SIGKILL)
        run.until(lambda s: s["state"] == "RUNNING" and s["containers"][1]["pid"] not in (None, victim["pid"]))
        job.feed(["boom"] * BAD)
        run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        status = run.until(lambda s: sum(t["skipped"] for t in s["tasks"]) == BAD and s["rates"]["lag"] == 0)

        shown = job.of("ui", "--no-open")
        assert shown.returncode == 0, shown.stderr
        address, view = shown.stdout.strip(), job.of("ui", "--no-open", "--view").stdout.strip()
        at = f"/v1/jobs/{job.name}/1"

        # What happened: the death with its cause, the start after it, each store's restore with the rule that decided.
        events = ask(view, f"{at}/events")[1]["items"]
        of_victim = [e for e in events if e["container"] == 1]
        died = next(e for e in of_victim if e["what"] == "died")
        after = [e for e in of_victim if e["n"] > died["n"]]
        assert "killed by SIGKILL" in died["text"]
        assert {"launched", "named", "restored"} <= {e["what"] for e in after}
        told = {e["restore"]["task"]: e["restore"]["records"] for e in after if e["what"] == "restored"}
        assert told == {t["name"]: t["stores"]["counts"]["restore"]["records"] for t in status["tasks"] if t["container"] == 1}
        assert ["the job is DEGRADED", "the job is RUNNING"] == [e["text"] for e in events if e["kind"] == "job" and e["n"] > died["n"]][:2]

        # The same numbers everywhere.
        rows = {row["name"]: row["processed"] for row in ask(view, f"{at}/rows")[1]["items"]}
        assert rows == {t["name"]: t["processed"] for t in status["tasks"]}
        with urllib.request.urlopen(f"{status['coordinator']}/metrics", timeout=30) as answer:
            metrics = re.findall(r'^samzapy_processed_records_total\{.*task="([^"]+)"\} (\d+)', answer.read().decode(), re.MULTILINE)
        assert rows == {task: int(n) for task, n in metrics}
        assert all(0.99 < sum(c["loop"].values()) < 1.01 for c in status["containers"])

        # Errors by the line that raised them; commits with their cause.
        (group,) = ask(view, f"{at}/errors")[1]["items"]
        assert ("ValueError", BAD, "skipped") == (group["type"], group["count"], group["action"])
        assert "ValueError" in group["stack"]
        commits = ask(view, f"{at}/commits")[1]["items"]
        assert {"interval"} <= {c["why"] for c in commits}
        assert all(abs(sum(c["parts"].values()) - c["seconds"]) < 0.01 for c in commits)

        # Who may what.
        assert 403 == ask(view, f"{at}/scale", {"containers": 1})[0]
        dry = ask(address, f"{at}/scale", {"containers": 1, "dry_run": True})
        assert (200, 2) == (dry[0], dry[1]["before"])
        assert "2 → 1 containers for 4 tasks" in dry[1]["effect"]
        assert 401 == ask(f"{status['coordinator']}/#token=", f"{at}/config")[0]
        assert "page-" in job.of("top", "--once").stdout
        tokens = [text.partition("=")[2] for text in (address, view)]
        assert run.stop() == 0
    told = (tmp_path / "run.log").read_text()
    assert not any(token in told for token in tokens)


def test_when_all_is_read_every_number_is_that_of_what_was_fed(kafka: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, f"page-{secrets.token_hex(4)}")
    fed = {0: 100, 1: 2000, 2: 1300, 3: 1}
    produce(kafka, job.input, [(None, b"one two", partition) for partition, count in fed.items() for _ in range(count)])
    with job.running("--local") as run, chromium() as browser:
        status = run.until(lambda s: s["rates"]["lag"] == 0 and sum(t["processed"] for t in s["tasks"]) == sum(fed.values()))
        assert {f"Partition {p}": (n, 0) for p, n in fed.items()} == {t["name"]: (t["processed"], t["lag"]) for t in status["tasks"]}
        with urllib.request.urlopen(f"{status['coordinator']}/metrics", timeout=30) as answer:
            metrics = re.findall(r'^samzapy_processed_records_total\{.*task="([^"]+)"\} (\d+)', answer.read().decode(), re.MULTILINE)
        assert {f"Partition {p}": n for p, n in fed.items()} == {task: int(n) for task, n in metrics}

        url, _, token = job.of("ui", "--no-open", "--view").stdout.strip().partition("/#token=")
        watched = Watched(browser)
        page = watched.open(url, token)
        page.wait_for_selector(f".tiles :text('{sum(fed.values()):,}')")
        watched.go("Tasks")
        for partition, count in fed.items():
            page.wait_for_selector(f"tbody tr:has-text('Partition {partition}') td:nth-child(8):text-is('{count:,}')")
        assert [] == watched.wrong
