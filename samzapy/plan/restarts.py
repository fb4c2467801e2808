"""When a container that died is started again: the restart budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FIRST_BACKOFF_S = 0.5
MAX_BACKOFF_S = 30.0


@dataclass(frozen=True, slots=True)
class Restart:
    """Start it again after `delay_s` seconds."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The budget is used up."""

    reason: str


def decide_restart(deaths_s: Sequence[float], now_s: float, max_restarts: int, window_s: float) -> Restart | GiveUp:
    """What to do about a container that died just now, given when it died before (monotonic seconds, the last one included).

    The first death within the window is answered at once; each further one waits twice as long as the one before.
    """
    recent = [at for at in deaths_s if now_s - at < window_s]
    if len(recent) > max_restarts:
        return GiveUp(f"it died {len(recent)} times within {window_s:.0f} s; containers.max_restarts allows {max_restarts} restarts")
    return Restart(0.0 if len(recent) <= 1 else min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (len(recent) - 2)))
