"""The example jobs on a real broker, as the README tells to run them: with a killed container, and a restart between two halves."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.page_views import direct_join, page_views, users
from jobs.wikipedia import Totals, direct_pass, sum_of_windows
from jobs.wikipedia_feed import lines
from tests.broker import create_topic, delete_topic, ends, produce, read_all
from tests.command_server import run_samzapy
from tests.integration.job import PATIENCE_S, Coordinator, Running

pytestmark = pytest.mark.kafka
ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 2


class Example:
    """An example's own job file, under a job name of the test's own."""

    def __init__(self, servers: str, file: str, folder: Path, *sets: str) -> None:
        self.folder, self.file = folder, ROOT / "config" / file
        name = f"{self.file.stem}-{secrets.token_hex(3)}"
        own = [f"job={name}", f"kafka.bootstrap.servers={servers}", f"state.dir={folder / 'state'}"]
        self.sets = [word for s in [*own, "commit.interval=200ms", *sets] for word in ("--set", s)]
        self._coordinator = Coordinator(name, lambda: self._run("status", str(self.file), "--json"))

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_samzapy([*arguments, *self.sets], ROOT, PATIENCE_S)

    def run_to_end(self, *arguments: str) -> None:
        done = self._run("run", str(self.file), "--local", "--until-end", *arguments)
        assert done.returncode == 0, done.stderr

    def status(self) -> dict[str, Any] | None:
        return self._coordinator.status()

    def start(self) -> Running:
        self._coordinator.follow(self.folder / "run.log")
        process = subprocess.Popen(
            [sys.executable, "-m", "samzapy", "run", str(self.file), "--local", *self.sets],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "run.log").open("ab"),
            start_new_session=True,
        )
        return Running(self, process)


def fresh(servers: str, *topics: str) -> None:
    """The examples' topics have fixed names."""
    from tests.broker import admin

    client = admin(servers)
    for topic in topics:
        if topic in client.list_topics(timeout=10).topics:
            delete_topic(servers, topic)
        while topic in client.list_topics(timeout=10).topics:
            pass
        create_topic(servers, topic, PARTITIONS)


def spread(records: Iterable[bytes]) -> list[tuple[None, bytes, int]]:
    return [(None, line, i % PARTITIONS) for i, line in enumerate(records)]


def feed_through(servers: str, part: Sequence[bytes], feed: Example, parser: Example) -> None:
    produce(servers, "wikipedia-feed", spread(part))
    feed.run_to_end()
    parser.run_to_end()


@pytest.mark.prove
def test_the_wikipedia_windows_sum_up_to_a_direct_pass_over_kill_and_restart(kafka: str, tmp_path: Path) -> None:
    fresh(kafka, "wikipedia-feed", "wikipedia-raw", "wikipedia-edits", "wikipedia-stats")
    all_lines = list(lines())
    half = len(all_lines) // 2
    feed, parser = Example(kafka, "wikipedia-feed.yaml", tmp_path), Example(kafka, "wikipedia-parser.yaml", tmp_path)
    stats = Example(kafka, "wikipedia-stats.yaml", tmp_path, "window=500ms")

    feed_through(kafka, all_lines[:half], feed, parser)
    run = stats.start()
    try:
        status = run.until_running()
        os.kill(status["containers"][0]["pid"], signal.SIGKILL)
        run.until(lambda s: s["containers"][0]["pid"] != status["containers"][0]["pid"])
        run.until_caught_up({f"wikipedia-edits[{p}]": end for p, end in ends(kafka, "wikipedia-edits").items()})
        assert run.stop() == 0
    finally:
        run.process.kill()
        run.process.wait()
    feed_through(kafka, all_lines[half:], feed, parser)
    stats.run_to_end()

    expected, _ = direct_pass(all_lines)
    windows = [json.loads(r.value or b"") for r in read_all(kafka, "wikipedia-stats")]
    assert sum_of_windows(windows) == expected
    newest = {w["task"]: w["all_time"] for w in sorted(windows, key=lambda w: w["window"])}
    total = Totals()
    for counts in newest.values():
        total.edits += counts["edits"]
        total.bytes_added += counts["bytes_added"]
    assert (total.edits, total.bytes_added) == (expected.edits, expected.bytes_added)


def test_every_page_view_meets_its_user_though_the_users_come_last_in_time(kafka: str, tmp_path: Path) -> None:
    fresh(kafka, "users", "page-views", "page-views-enriched")
    views, people = list(page_views(2000, 100, seed=1)), list(users(100, seed=1))
    produce(kafka, "page-views", views)
    produce(kafka, "users", people)
    job = Example(kafka, "page-views.yaml", tmp_path)
    job.run_to_end("--profile", str(tmp_path / "profiles"))
    profiles = [path.read_text() for path in (tmp_path / "profiles").glob("container-*.folded")]
    assert profiles
    assert any("samzapy.container.container:Container." in text for text in profiles)  # the run loop was seen, where there was much to do
    joined = sorted(json.dumps(json.loads(r.value or b""), sort_keys=True) for r in read_all(kafka, "page-views-enriched"))
    assert joined == sorted(json.dumps(v, sort_keys=True) for _, v in direct_join(iter(people), iter(views)))
