"""Whether a container that died is started again, and when, or its deaths end the job: the restart budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from samzapy.model.caution import Condemned, Suspects

FIRST_BACKOFF_S = 0.5
MAX_BACKOFF_S = 30.0


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
        return EndJob(f"record {hopeless.record} ended it {hopeless.deaths} times, the last ones while `on_error` was applied to the record")
    if suspected is not None and suspected.alone > max_restarts:
        return EndJob(f"{suspected.alone} of its processes ended while record {suspected.piece} alone was processed; that does not prove that it ended them")
    if not deaths[-1][1]:
        return Restart(FIRST_BACKOFF_S)
    return decide_restart([at for at, counts in deaths if counts], now_s, max_restarts, window_s)
