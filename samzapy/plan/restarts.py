"""Whether starting again helps, or an error or deaths end the job.

A container starts over in its process after some errors, up to its budget; others end it, and some of those the job. One that died is
started again by the coordinator, up to another budget (`containers.max_restarts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samzapy.api.errors import (
    BatchUnreadable,
    ClusterUnreachable,
    Fenced,
    InDoubt,
    LogError,
    OffsetOutOfRange,
    SamzapyError,
    TransactionAborted,
)
from samzapy.model.caution import Condemned, Suspects
from samzapy.model.states import ContainerOutcome

STARTS_OVER = (InDoubt, Fenced, TransactionAborted, ClusterUnreachable)  # what leaves a container in doubt: it starts over from its last commit
MET_AGAIN = (OffsetOutOfRange, BatchUnreadable)  # errors of the log that a new process meets again
MAX_RESTARTS_WITHOUT_COMMIT = 5
FIRST_BACKOFF_S = 0.5
MAX_BACKOFF_S = 30.0


def failures_in_a_row(before: int, has_got_on: bool) -> int:
    """How often a container has started over without getting on, the failure just now included. `has_got_on`: since the failure before."""
    return 1 if has_got_on else before + 1


def gives_up(failures: int, is_kafka_away: bool) -> bool:
    """Whether a container that has failed so often in a row ends, instead of starting over. While Kafka is away it does not: it goes on when that
    is back."""
    return failures > MAX_RESTARTS_WITHOUT_COMMIT and not is_kafka_away


def ends_job(error: SamzapyError | None, outcome: ContainerOutcome) -> bool:
    """Whether the error with which a container ended ends the job, because a new process would meet it again."""
    if error is None or outcome == ContainerOutcome.SUPERSEDED:
        return False
    return not isinstance(error, LogError) or isinstance(error, MET_AGAIN)


def all_failed_alike(errors: Sequence[Mapping[str, Any] | None], any_commit: bool) -> bool:
    """Whether every container ended with the same error before any commit: starting them again would not help.

    Args:
        errors: of each container, the one that it ended with, or told of last; None: none.
        any_commit: whether one of them has committed in this run.
    """
    codes = {error.get("code") if error else None for error in errors}
    return not any_commit and len(codes) == 1 and None not in codes


@dataclass(frozen=True, slots=True)
class Restart:
    """Start it again after `delay_s` seconds."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class EndJob:
    """Starting it again would not help."""

    reason: str


def decide_restart(deaths_s: Sequence[float], now_s: float, max_restarts: int, window_s: float) -> Restart | EndJob:
    """What to do about a container that died just now, given when it died before (monotonic seconds, the last one included).

    The first death within the window is answered at once; each further one waits twice as long as the one before.
    """
    recent = [at for at in deaths_s if now_s - at < window_s]
    if len(recent) > max_restarts:
        return EndJob(f"it died {len(recent)} times within {window_s:.0f} s; containers.max_restarts allows {max_restarts} restarts")
    return Restart(0.0 if len(recent) <= 1 else min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (len(recent) - 2)))


def restart_or_end(
    deaths: Sequence[tuple[float, bool]],
    hopeless: Condemned | None,
    suspected: Suspects | None,
    now_s: float,
    max_restarts: int,
    window_s: float,
) -> Restart | EndJob:
    """What to do about a container that died just now.

    Args:
        deaths: its deaths, the last one included: when (monotonic seconds), and whether it counts against the budget.
        hopeless: a record that ends containers although it is only given up.
        suspected: the record that was alone at this death and others, which do not prove that it was the reason.
    """
    if hopeless is not None:
        return EndJob(f"record {hopeless.record} ended it {hopeless.deaths} times, the last times while `on_error` was applied to the record")
    if suspected is not None and suspected.alone > max_restarts:
        return EndJob(f"{suspected.alone} of its processes ended while only record {suspected.piece} was processed; this does not prove that the record ended them")
    if not deaths[-1][1]:
        return Restart(FIRST_BACKOFF_S)
    return decide_restart([at for at, counts in deaths if counts], now_s, max_restarts, window_s)
