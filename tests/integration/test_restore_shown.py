"""What the page is told of a long restore: frame by frame it goes on and never back, and half-way the end is known."""

from __future__ import annotations

import json
import secrets
import shutil
import time
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.figures import Tell
from tests.integration.trouble import Trouble

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(900)]
KEYS, PER_RECORD, TASKS = 6_000_000, 1000, 2  # two million are restored within three frames


def frames(address: str, name: str) -> Iterator[dict[str, Any]]:
    """What a tab is sent: the first frame whole, then what changed; here with what did not."""
    url, _, token = address.partition("/#token=")
    request = urllib.request.Request(f"{url}/v1/jobs/{name}/1/stream", headers={"Authorization": f"Bearer {token}"})
    whole: dict[str, Any] = {}
    with urllib.request.urlopen(request, timeout=60) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                whole |= json.loads(line.removeprefix(b"data: "))
                yield whole


def test_the_bar_of_a_restore_goes_on_and_never_back(kafka: str, tmp_path: Path, tell: Tell) -> None:
    """Millions of keys whose local state is gone; as the check of the page has it."""
    job = Trouble(kafka, tmp_path, f"bar-{secrets.token_hex(4)}", TASKS, containers={"count": 1})
    job.feed([f"keys {PER_RECORD}"] * (KEYS // PER_RECORD))
    assert job.run_to_end().returncode == 0
    shutil.rmtree(job.state)

    shown, came, changes = looked_at_until_it_runs(job)
    by_store: dict[str, list[dict[str, Any]]] = {}
    for restores in shown:
        for restore in restores:
            by_store.setdefault(restore["task"], []).append(restore)
    assert len(by_store) == TASKS
    assert len(came) - changes <= came[-1] - came[0] + 1.5, "a frame a second at most, and one at once when the job's state changes"
    for told in by_store.values():
        assert len({restore["needed"] for restore in told}) == 1, "the whole of the bar stays what it is"
        left = [restore["remaining"] for restore in told]
        assert left == sorted(left, reverse=True), "never back"
        assert 2 * len(set(left)) >= len(left) >= 3, "most frames have news"
        for restore in [one for one in told if "eta_s" in one]:
            have = restore["needed"] - restore["remaining"]
            assert abs(restore["eta_s"] - restore["remaining"] * restore["seconds"] / have) <= 0.1
    report(shown, came, tell)


def looked_at_until_it_runs(job: Trouble) -> tuple[list[list[dict[str, Any]]], list[float], int]:
    """The job starts; the restores that each frame tells of, when it came, and how often the job's state changed."""
    shown, came, states = [], [], []
    with job.running("--local") as run:
        run.until(lambda s: any((store.get("restore") or {}).get("remaining") for t in s["tasks"] for store in t["stores"].values()))
        address = job.of("ui", "--no-open", "--view").stdout.strip()
        for frame in frames(address, job.name):
            shown.append(frame["restores"])
            came.append(time.monotonic())
            states.append(frame["job"]["state"])
            if not frame["restores"] and frame["job"]["state"] == "RUNNING":
                break
        status = run.until_running()
    assert sum(t["stores"]["counts"]["restore"]["records"] for t in status["tasks"]) >= KEYS
    return shown, came, sum(before != after for before, after in pairwise(states))


def report(shown: list[list[dict[str, Any]]], came: list[float], tell: Tell) -> None:
    """How often it moved, and how well half-way the end was known: depends on what else the machine does."""
    have = [sum(r["needed"] - r["remaining"] for r in restores) for restores in shown if len(restores) == TASKS]
    moved = [at for at, before, after in zip(came[1:], have, have[1:], strict=False) if after > before]
    apart = sorted(after - before for before, after in pairwise(moved))
    half = next(n for n, part in enumerate(have) if 2 * part >= sum(r["needed"] for r in shown[n]))
    eta_s, took_s = max(r["eta_s"] for r in shown[half]), came[-1] - came[half]
    tell(
        f"{len(have)} frames, {len(moved)} of {len(have) - 1} moved the bar, {apart[len(apart) // 2]:.2f} s apart (most {apart[-1]:.2f} s); "
        f"half-way {eta_s:.1f} s were told to be left, it took {took_s:.1f} s ({100 * (eta_s / took_s - 1):+.0f} %)"
    )
