"""What a process exits with: a command, a run of a job, and a container that a job has started.

Each error class of samzapy.api.errors has one of these. `of_container` says with which code a container exits (container/process.py for CRASHED and
ORPHANED), `of_run` with which a run does: coordinator/job_coordinator.py asks it when the job has ended, cli/running.py when signals came; a coordinator
that was fenced has the code of that error, one that hangs (cli/apart.py) FAILED. cli/main.py says with which code any other command exits, and
cli/interrupt.py, which is read before anything else, what it is after Ctrl-C (130).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

OK = 0  # finished, or stopped on request
FAILED = 1  # the job or the command failed, or was refused to protect the job's records and state
CONFIGURATION = 2  # usage or configuration
NOT_RUNNING = 3  # the job is not running, or is still starting
UNREACHABLE = 4  # Kafka or Spark does not answer or refuses access, or a topic is missing
OWNED_ELSEWHERE = 5  # another run owns the job; of a container: it was replaced, or its lease is over
CRASHED = 70  # a container raised what it should have handled
ORPHANED = 71  # a container whose parent process ended
SIGNALLED = 128  # plus the signal's number: killed before the final commit

_OF_CONTAINERS = {"failed": FAILED, "superseded": OWNED_ELSEWHERE}


def of_container(outcome: str) -> int:
    """Of a container that ended so (`ContainerOutcome`)."""
    return _OF_CONTAINERS.get(outcome, OK)


def of_run(failure: Mapping[str, Any] | None, signals: Sequence[int] = ()) -> int:
    """Of a run of a job.

    Args:
        failure: the error that ended the job, as reports carry it.
        signals: those that came. The first asks for a final commit, the second ends the run before it.
    """
    if failure is not None:
        return int(failure.get("exit_code", FAILED))
    return SIGNALLED + signals[-1] if len(signals) > 1 else OK
