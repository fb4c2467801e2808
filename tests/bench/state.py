"""State: restoring it from the changelog, starting with it on this machine, and committing beside a lot of it.

State is built once by a job that keeps a value of 100 bytes for each key, and stays in the kept folder and on the kept broker.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.bench import topics
from tests.bench.place import FOR_EVER, PARTITIONS, Place
from tests.bench.runs import LiveJob, Loop, cpu_of, cpu_of_children_s, live_job, run_job, run_loops
from tests.bench.yardstick import Figures, Side, Sides
from tests.broker import create_topic
from tests.integration.processes import until

VALUE_BYTES = 100
UPDATES = 1000  # in a commit
COMMITS = 15
RESTORED_KEYS, SMALL_RESTORED_KEYS = 1_000_000, 100_000
STARTED_KEYS, SMALL_STARTED_KEYS = (10_000, 1_000_000, 10_000_000), (10_000, 100_000)
COMMITTED_KEYS, SMALL_COMMITTED_KEYS = (20_000, 2_000_000), (20_000, 100_000)
KEPT = "kept"


def restore(place: Place) -> Sides:
    """W4: a changelog of a million keys into an empty RocksDB; the start of the process is not counted."""
    keys = restored_keys(place)
    sides = [Side("loop", partial(_restore_loop, place, keys)), Side("samzapy", partial(_restore_job, place, keys))]
    return Sides(sides, [("samzapy", "loop")], keys)


def restored_keys(place: Place) -> int:
    return SMALL_RESTORED_KEYS if place.small else RESTORED_KEYS


def start(place: Place) -> Sides:
    """A start with local state, small and large: until all tasks run, and what of it the stores took."""
    sizes = SMALL_STARTED_KEYS if place.small else STARTED_KEYS
    sides = [Side(f"{keys:,} keys", partial(_start, place, keys)) for keys in sizes]
    return Sides(sides, [(side.name, sides[0].name) for side in sides[1:]], sizes[-1])


def commits(place: Place) -> Sides:
    """The time of a commit of a thousand updates, beside little state and beside a lot."""
    sizes = SMALL_COMMITTED_KEYS if place.small else COMMITTED_KEYS
    sides = [Side(f"{keys:,} keys", partial(_commits, place, keys)) for keys in sizes]
    return Sides(sides, [(sides[1].name, sides[0].name)], sizes[-1])


# -- built state ---------------------------------------------------------------------------------------------------------------------


def _key(number: int) -> bytes:
    return b"k%09d" % number


def _values(numbers: Iterator[int] | range) -> Iterator[tuple[bytes, bytes, int]]:
    """Values as a record has them: some of it repeats, some does not."""
    draw = random.Random(42)
    for number in numbers:
        yield _key(number), b'{"at":%d,"id":"%032x"}' % (number, draw.getrandbits(128)) + b"x" * (VALUE_BYTES - 60), -1


def _built(place: Place, keys: int) -> Path:
    """The job file of a stopped job with that many keys, all of them local and in its changelog."""
    job = place.kept / f"bench-state-{keys}" / "job.yaml"
    given, built = f"bench-keys-{keys}", job.parent / "built"
    if built.exists() and topics.end_offsets(place.servers, given) >= keys:
        return place.job_file(job.parent, "Keep", _inputs(given), stores=_stores())
    place.say(f"  building state of {keys:,} keys, once")
    shutil.rmtree(job.parent, ignore_errors=True)
    own = (f"bench-state-{keys}-1-", f"_bench-state-{keys}_1")
    topics.delete(place.servers, [given, *(name for name in topics.names(place.servers) if any(part in name for part in own))])
    create_topic(place.servers, given, PARTITIONS, **FOR_EVER)
    fill(place, given, keys)
    job.parent.mkdir(parents=True)
    place.job_file(job.parent, "Keep", _inputs(given), stores=_stores())
    run_job(job)
    built.touch()
    return job


def fill(place: Place, topic: str, keys: int) -> None:
    """One record for each key."""
    topics.fill(place.servers, topic, _values(range(keys)))


def _inputs(topic: str) -> list[dict[str, Any]]:
    return [{"topic": topic, "key": "bytes", "value": "bytes"}]


def _stores() -> dict[str, dict[str, str]]:
    return {KEPT: {"key": "bytes", "value": "bytes"}}


def _restored(status: dict[str, Any]) -> list[dict[str, Any]]:
    return [task["stores"][KEPT]["restore"] for task in status["tasks"]]


# -- one run of a side ---------------------------------------------------------------------------------------------------------------


def _restore_loop(place: Place, keys: int) -> Figures:
    _built(place, keys)
    idle_cpu_s = _idle_restore_loop_cpu_s(place)
    before = cpu_of_children_s()
    with place.attempt() as name:
        answer = run_loops(Loop(place.servers, "restore", f"bench-state-{keys}-1-{KEPT}-changelog", folder=str(place.runs / name / "db")))[
            0
        ]
    if answer["records"] < keys:
        raise AssertionError(f"the loop read {answer['records']} records of a changelog of {keys} keys")
    return {"seconds": answer["seconds"], "cpu_us_per_record": (cpu_of_children_s() - before - idle_cpu_s) / keys * 1e6}


def _restore_job(place: Place, keys: int) -> Figures:
    """With a state directory that is empty. All stores are restored side by side, so the longest is the whole."""
    job = _built(place, keys)
    idle_cpu_s = _idle_restore_job_cpu_s(place, keys)
    before = cpu_of_children_s()
    with place.attempt() as name:
        with live_job(job, f"state.dir={place.runs / name / 'state'}") as live:
            restored = _restored(live.running())
        if sum(one["records"] for one in restored) < keys or {one["source"] for one in restored} != {"changelog"}:
            raise AssertionError(f"{keys} keys were to be restored from the changelog: {restored}")
        seconds = max(one["seconds"] for one in restored)
    return {"seconds": seconds, "cpu_us_per_record": (cpu_of_children_s() - before - idle_cpu_s) / keys * 1e6}


@cache
def _idle_restore_loop_cpu_s(place: Place) -> float:
    with place.attempt() as name:
        return cpu_of(lambda: run_loops(Loop(place.servers, "restore", place.empty(), folder=str(place.runs / name / "db"))))


@cache
def _idle_restore_job_cpu_s(place: Place, keys: int) -> float:
    """Of the same run with the state still there."""
    return cpu_of(lambda: _start(place, keys))


def _start(place: Place, keys: int) -> Figures:
    job = _built(place, keys)
    started = time.monotonic()
    with live_job(job) as live:
        status = live.running()
        seconds = time.monotonic() - started
    restored = _restored(status)
    if {one["source"] for one in restored} != {"local"}:
        raise AssertionError(f"the local state of {keys} keys was not used: {restored}")
    return {"start_s": seconds, "stores_s": max(one["seconds"] for one in restored)}


def _commits(place: Place, keys: int) -> Figures:
    """Updates of keys that are there, a thousand at a time; each batch is awaited before the next."""
    job, topic = _built(place, keys), f"bench-keys-{keys}"
    draw = random.Random(keys)
    with live_job(job) as live:
        live.running()
        _update(place, live, topic, draw, keys, 2)
        before = live.commits()
        _update(place, live, topic, draw, keys, COMMITS)
        after = live.commits()
    count = after[0] - before[0]
    if count < COMMITS:
        raise AssertionError(f"{COMMITS} batches of updates, but {count} commits")
    return {"commit_ms": (after[1] - before[1]) / count * 1000}


def _update(place: Place, live: LiveJob, topic: str, draw: random.Random, keys: int, batches: int) -> None:
    for _ in range(batches):
        commits_before = live.commits()[0]
        topics.fill(place.servers, topic, _values(draw.randrange(keys) for _ in range(UPDATES)))
        end = topics.end_offsets(place.servers, topic)

        def committed(before: int = commits_before, end: int = end) -> bool:
            status = live.status() or {"tasks": []}
            positions = sum(at for task in status["tasks"] for at in task["positions"].values())
            return positions == end and live.commits()[0] > before

        until(committed, f"{UPDATES} updates of {topic} are committed")
