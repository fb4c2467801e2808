"""`samzapy jobs`: the jobs that a Kafka cluster knows, by their coordinator topics."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from samzapy.api.errors import ClusterUnreachable, SamzapyError, StateRefused
from samzapy.cli.common import AsJson, print_json, say
from samzapy.cli.coordinator_http import http_json, is_status
from samzapy.cli.records import Servers, log_of
from samzapy.cli.tables import print_table
from samzapy.clock import SystemClock
from samzapy.model.names import Job, job_of_coordinator_topic
from samzapy.model.ownership import LeaseRecord
from samzapy.model.states import JobState
from samzapy.ports import Log
from samzapy.readers import read_lease

ASK_S = 2.0


def jobs(
    servers: Servers = "localhost:9092",
    running: Annotated[bool, typer.Option("--running", help="Only those that run now.")] = False,
    as_json: AsJson = False,
) -> None:
    """The jobs of a Kafka cluster: which run, where, and how the last run of each ended.

    A job is known by its coordinator topic, which its first run creates and `samzapy reset` deletes."""
    found = [one for one in jobs_of(log_of(servers)) if one["state"] == JobState.RUNNING or not running]
    if as_json:
        for one in found:
            print_json(one)
    elif found:
        rows = [(f"{j['job']}-{j['id']}", j["state"], j["host"], j["url"], _time(j["heard_ms"]), j["error"] or None) for j in found]
        print_table(("JOB", "STATE", "HOST", "URL", "LAST HEARD", "ERROR"), rows)
    else:
        say(f"no job {'runs' if running else 'is known'} at {servers}")


def jobs_of(log: Log) -> list[dict[str, Any]]:
    """What is known of each job, by name. A coordinator that answers is asked; of the others the coordinator topic tells."""
    with log.admin() as admin:
        names = [(job, topic) for topic in admin.names() if (job := job_of_coordinator_topic(topic)) is not None]
    with log.restore_consumer("jobs") as consumer:
        found = []
        for job, topic in sorted(names, key=lambda pair: str(pair[0])):
            try:
                lease, error = read_lease(consumer, topic, SystemClock()), ""
            except StateRefused as refused:
                lease, error = None, refused.message
            found.append(_document(job, lease, error))
    return found


def _document(job: Job, lease: LeaseRecord | None, error: str) -> dict[str, Any]:
    base: dict[str, Any] = {"job": job.name, "id": job.id}
    if lease is None:
        return {**base, "state": "UNKNOWN" if error else "NEVER RAN", "run_id": None, "host": None, "url": None, "heard_ms": None, "error": error}
    why_not = None if lease.ended else _why_no_answer(job, lease.url)
    is_running = not lease.ended and why_not is None
    state = lease.outcome or "ENDED" if lease.ended else JobState.RUNNING if is_running else "NOT ANSWERING"
    url = lease.url if is_running else None
    return {**base, "state": state, "run_id": lease.run_id, "host": lease.host, "url": url, "heard_ms": lease.renewed_ms, "error": why_not or lease.error}


def _why_no_answer(job: Job, url: str) -> str | None:
    """None: the job's coordinator answers. "": nobody does, or another job's; else what is wrong with the answer."""
    try:
        answer = http_json("GET", url + "/api/v1/status", timeout_s=ASK_S) if url else {}
    except ClusterUnreachable:
        return ""
    except SamzapyError as error:
        return error.message
    return None if is_status(answer) and (answer.get("job"), answer.get("id")) == (job.name, job.id) else ""


def _time(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
