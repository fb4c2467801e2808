"""The page of a job that does not run, served by the command that shows it, from what Kafka has of the job, for as long as the command runs."""

from __future__ import annotations

import secrets
import threading

from samzapy.api.errors import SamzapyError
from samzapy.cli.common import as_called, to_look
from samzapy.cli.inspect import last_run
from samzapy.cli.job import Job
from samzapy.cli.jobs import jobs_of
from samzapy.cli.lag import committed, ends_of
from samzapy.coordinator.http import Listener
from samzapy.model.ownership import LeaseRecord
from samzapy.model.run_record import RunRecord, runs_of
from samzapy.model.states import JobState, RunOutcome
from samzapy.ops.inspection import job_in_kafka, read_checkpoints
from samzapy.plan.lag import partition_lags
from samzapy.web.about import about_of
from samzapy.web.access import May, derived_token
from samzapy.web.app import web_app
from samzapy.web.cluster import Cluster
from samzapy.web.contents import Contents
from samzapy.web.stopped_job import NEVER_RAN, NOT_KNOWN, Still, StillFacts, StillTask

LOOPBACK = "127.0.0.1"


class StillPage:
    """The page, on a free port of this machine; until the block ends. `address`: with a token, as a browser takes it."""

    def __init__(self, job: Job, may: May) -> None:
        self._token = secrets.token_urlsafe(32)
        still = Still(about_of(job.loaded, as_called("JOB.yaml"), to_look()), lambda: read_still(job))
        contents = Contents(job.settings, job.loaded.folders, job.log, job.clock, file=lambda: [origin.to_json() for origin in job.again().origins])
        cluster = Cluster(lambda: jobs_of(job.log))
        # not at `web.port`: the next run wants that
        self._listener = Listener(web_app(still, still, contents, self._token, cluster=cluster), LOOPBACK, 0)
        self.url = self._listener.url
        self.address = f"{self.url}/#token={derived_token(self._token, may)}"

    def __enter__(self) -> StillPage:
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.stop()

    @staticmethod
    def wait() -> None:
        """Until Ctrl-C."""
        threading.Event().wait()


def read_still(job: Job) -> StillFacts:
    """What Kafka has of the job now. What cannot be read is told in its place."""
    try:
        ledger = job.ledger()
        tasks, problem = _tasks(job), ""
    except SamzapyError as error:  # a page that says why is of more use than none
        return StillFacts(tasks=(), state=NOT_KNOWN, sentence=f"What Kafka has of the job cannot be read: {error.message}", problem=as_called(str(error)))
    lease, runs = ledger.lease, runs_of(ledger.history)
    last = next((run for run in runs if lease is not None and run.run_id == lease.run_id), runs[0] if runs and lease is None else None)
    state, sentence, url = _how(job, lease, last)
    return StillFacts(
        tasks=tasks, runs=runs, state=state, sentence=sentence, url=url, error=lease.error if lease else "", run_id=lease.run_id if lease else "",
        heard_ms=lease.renewed_ms if lease else 0, problem=problem,
    )  # fmt: skip


def _how(job: Job, lease: LeaseRecord | None, last: RunRecord | None) -> tuple[str, str, str]:
    """State, sentence, and the URL of a run that is under way."""
    if lease is None:
        return NEVER_RAN, f"The job does not run; {last_run(None)}.", ""
    if not lease.ended and job.answers(lease.url):
        return JobState.RUNNING, f"The job runs by now: run {lease.run_id} on {lease.host}.", lease.url
    words = last_run(lease).replace(":\n  ", ": ")
    if last is not None and last.ended_by and lease.ended and not lease.error:
        words = f"{words}; {last.ended_by}"
    if not lease.ended:
        return RunOutcome.LOST, f"The job does not run; {words}.", ""
    return (last.outcome if last is not None and last.outcome else lease.outcome or RunOutcome.STOPPED), f"The job does not run; {words.rstrip('.')}.", ""


def _tasks(job: Job) -> list[StillTask]:
    around = job_in_kafka(job.settings, job.log)
    at = committed(job)
    ends, _ = ends_of(job.log, around.tasks)
    checkpoints = {c.task: c for c in read_checkpoints(job.settings, around.topics, job.log, job.clock).values()}
    found = []
    for name, task in around.tasks.items():
        lags = [one.lag for one in partition_lags({name: task}, at, ends)]
        checkpoint = checkpoints.get(name)
        found.append(
            StillTask(
                name=name, partitions=[f"{p.topic}.{p.partition}" for p in task.inputs], positions={str(p): n for p, n in at.get(name, {}).items()},
                lag=None if None in lags else sum(n for n in lags if n is not None), sequence=checkpoint.sequence if checkpoint else -1,
                stores={store: mark.position for store, mark in checkpoint.stores.items()} if checkpoint else {},
            )
        )  # fmt: skip
    return found
