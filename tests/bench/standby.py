"""What warm copies cost: W2 in two containers on two hosts of a Spark on this machine, with a copy of each store on the other host, and without.

By the rate alone: Spark's executors are no child processes, so their processor time cannot be counted.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.bench import topics
from tests.bench.place import SAMZAPY, Place, expected
from tests.bench.ratios import middle_rate
from tests.bench.runs import LIMIT_S, LiveJob, live_job
from tests.bench.yardstick import Figures, Side, Sides
from tests.integration.processes import until

HOSTS = 2


def standby(place: Place) -> Sides:
    """W2 in two containers on two hosts, with warm copies and without."""
    sides = [Side("no copies", partial(_counted, place, 0)), Side("warm copies", partial(_counted, place, 1))]
    return Sides(sides, [("warm copies", "no copies")], place.records)


def _counted(place: Place, copies: int) -> Figures:
    with place.attempt() as name:
        output = place.output(name)
        job = place.job_file(
            place.runs / name, "CountAndSum", [{"topic": place.input(), "key": "bytes", "value": "json"}], params={"out": output},
            outputs=[{"topic": output, "key": "bytes", "value": "json"}], stores={"sums": {"key": "bytes", "value": "json"}},
            containers={"count": HOSTS, "standby": copies},
        )  # fmt: skip
        with _spark(place) as master, live_job(job, where=("--master", master)) as live:
            _wait_for_all(live, place.records, copies)
        found = topics.outputs(place.servers, [output])
    if found.contents != expected(topics.counted, place.servers, place.input()):
        raise AssertionError(f"the outputs with {copies} copies are not what the input leads to")
    return {"records_per_s": middle_rate(found.times_ms, place.records)}


def _wait_for_all(live: LiveJob, records: int, copies: int) -> None:
    """Until all records are processed and as many copies as wanted are warm."""

    def is_done() -> bool:
        tasks: list[dict[str, Any]] = (live.status() or {"tasks": []})["tasks"]
        is_processed = sum(at for task in tasks for at in task["positions"].values()) == records
        return is_processed and all(sum(copy["lag"] is not None for copy in task["standby"]) == copies for task in tasks)

    until(is_done, f"{records} records are processed, and each store has {copies} warm copies", LIMIT_S)


@contextlib.contextmanager
def _spark(place: Place) -> Iterator[str]:
    """A cluster whose workers are hosts of their own; the URL for --master."""
    where = ["--dir", str(place.runs / "spark")]
    started = subprocess.run(
        [*SAMZAPY, "dev", "spark", "start", "--port", "0", "--workers", str(HOSTS), *where],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=True, timeout=LIMIT_S,
    )  # fmt: skip
    try:
        yield started.stdout.strip()
    finally:
        subprocess.run([*SAMZAPY, "dev", "spark", "stop", *where], stdin=subprocess.DEVNULL, check=True, timeout=LIMIT_S)
