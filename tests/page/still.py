"""A job that does not run, for routes and the page: its last run failed."""

from __future__ import annotations

from typing import Any

from samzapy.model.run_record import RunRecord
from samzapy.model.states import RunOutcome
from samzapy.web.stopped_job import StillFacts, StillTask

BEGAN_MS = 1_700_000_000_000
ERROR = "SZ200: process of Partition 0 raised ValueError: no such page: visits[0]@812"
FAILED_RUN = RunRecord(
    run_id="run-7", began_ms=BEGAN_MS, told_ms=BEGAN_MS + 4000, ended_ms=BEGAN_MS + 4_000_000, started_by="ada@host-a", host="host-a", pid=4711,
    how="--local", containers=2, tasks=2, outcome=RunOutcome.FAILED, ended_by="an error", error=ERROR, remedy="Fix the task, then run the job again.",
    counts={"processed": 88_120, "sent": 88_000, "skipped": 3, "dead_letters": 12, "commits": 512, "restarts": 1},
    events=[
        {"at_ms": BEGAN_MS, "kind": "job", "what": "state", "text": "the job is RUNNING", "container": None, "state": "RUNNING"},
        {"at_ms": BEGAN_MS + 1, "kind": "container", "what": "failed", "text": "container 1 failed", "container": 1},
    ],
    errors=[{"type": "ValueError", "place": "counts.py:31", "count": 3, "first_ms": 1, "last_ms": 2, "text": "ValueError: no such page", "record": "visits[0]@812"}],
)  # fmt: skip
JOBS: list[dict[str, Any]] = [
    {"job": "visits", "id": "1", "state": "FAILED", "url": None, "run_id": "run-7"},
    {"job": "orders", "id": "1", "state": "STOPPED", "url": None, "run_id": "run-2"},
    {"job": "pages", "id": "1", "state": "RUNNING", "url": "http://127.0.0.1:7", "run_id": "r"},
]


def still_facts() -> StillFacts:
    tasks = [
        StillTask(name="Partition 0", partitions=["visits.0"], positions={"visits[0]": 812}, lag=1234, sequence=9, stores={"counts": 700}),
        StillTask(name="Partition 1", partitions=["visits.1"], positions={"visits[1]": 99}, lag=0, sequence=9, stores={"counts": 70}),
    ]
    sentence = f"The job does not run; its last run failed at 2023-11-14 23:20:00 +0000: {ERROR}."
    return StillFacts(tasks=tasks, runs=[FAILED_RUN], state=RunOutcome.FAILED, sentence=sentence, error=ERROR, run_id="run-7", heard_ms=FAILED_RUN.ended_ms)
