"""`samzapy pause`, `samzapy resume` and `samzapy commit`: orders to a running job that move no task."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from samzapy.cli.change import AT_WORK, TokenFile, done, found_run
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, say
from samzapy.cli.job import Job
from samzapy.cli.time_limit import Timeout
from samzapy.model.states import ContainerState, JobState

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what it would do.")]


def pause(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    timeout: Timeout = 60.0,
    token_file: TokenFile = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Pause the running job: it processes nothing until `samzapy resume JOB.yaml`. Its containers commit first, and keep their tasks and state.

    A container that restarts stays paused. The pause ends with the run: a later `samzapy run` is not paused."""
    job = Job(file, more, sets)
    return done(job, "pause", _order(job, "pause", timeout, token_file, dry_run), as_json)


def resume(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    timeout: Timeout = 60.0,
    token_file: TokenFile = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Let a paused job continue where it stopped."""
    job = Job(file, more, sets)
    return done(job, "resume", _order(job, "resume", timeout, token_file, dry_run), as_json)


def commit(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    timeout: Timeout = 60.0,
    token_file: TokenFile = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Let every container of the running job commit now, and wait until all have: before an upgrade, or a copy of an output."""
    job = Job(file, more, sets)
    return done(job, "commit", _order(job, "commit", timeout, token_file, dry_run), as_json)


def _order(job: Job, verb: str, timeout: float, token_file: Any, dry_run: bool) -> int:
    during, after, is_done = ORDERS[verb]
    deadline = time.monotonic() + timeout
    run = found_run(job, token_file, timeout)
    if isinstance(run, int):
        return run
    answer = run.post(verb, {"dry_run": dry_run})
    say(("would do: " if dry_run else "") + str(answer["effect"]))
    if dry_run:
        return 0
    status = run.follow(during, timeout, deadline, lambda s: is_done(s, answer))
    if status is None:
        return 1
    say(after)
    return 0


def _at_work(status: dict[str, Any]) -> list[dict[str, Any]]:
    return [c for c in status["containers"] if c["tasks"] and c["state"] != ContainerState.STOPPED]


def _goes_on(status: dict[str, Any], _: dict[str, Any]) -> bool:
    return not status.get("paused") and all(c["state"] in AT_WORK and not c.get("paused") for c in _at_work(status))


def _has_committed(status: dict[str, Any], answer: dict[str, Any]) -> bool:
    return all(c.get("ordered", 0) >= int(answer["number"]) for c in _at_work(status))


# By the order: what is said while it is carried out and when it is done, and when it is done (the job's status, the answer to the order).
ORDERS: dict[str, tuple[str, str, Callable[[dict[str, Any], dict[str, Any]], bool]]] = {
    "pause": ("pausing", "paused", lambda status, _: bool(status["state"] == JobState.PAUSED)),
    "resume": ("resuming", "goes on", _goes_on),
    "commit": ("committing", "committed", _has_committed),
}
