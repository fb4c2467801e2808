"""What shows only over minutes, for the rules of hints: deaths that go on, and memory that grows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

DEATHS_MS = 600_000  # deaths are counted over this time
DYING_MS = 20_000
GROWTH_S, GROWTH_PARTS, OVER = 600.0, 5, 1.15
SUDDEN_S, SUDDEN_BYTES = 20.0, 200 << 20


def is_dying(at_ms: Sequence[int], now_ms: int) -> bool:
    """Whether one more death is to be expected after those at these times: the last is not longer ago than twice the time between two of them, or
    DYING_MS."""
    gaps = [after - before for before, after in pairwise(at_ms)][-2:]
    return bool(at_ms) and now_ms - at_ms[-1] <= max(DYING_MS, 2 * max(gaps, default=0))


def memory_growth_mib(marks: Sequence[tuple[float, int]], budget_bytes: int) -> float:
    """MiB a minute by which a process grows (`growth_mib`, `sudden_growth_mib`), once it takes more than its stores and caches may: a cache that fills is
    no leak. 0: it does not."""
    if marks[-1][1] <= OVER * budget_bytes:
        return 0.0
    return growth_mib(marks) or sudden_growth_mib(marks, OVER * budget_bytes)


def growth_mib(marks: Sequence[tuple[float, int]]) -> float:
    """MiB a minute over all marks (when, bytes), if they span ten minutes and each fifth of them grew by a tenth of the whole at least; else 0."""
    (began, first), (ended, last) = marks[0], marks[-1]
    if ended - began < 0.95 * GROWTH_S:
        return 0.0
    ends = [marks[part * (len(marks) - 1) // GROWTH_PARTS][1] for part in range(GROWTH_PARTS + 1)]
    if min(after - before for before, after in pairwise(ends)) < 0.1 * (last - first):
        return 0.0
    return max(0.0, (last - first) / 2**20 * 60.0 / (ended - began))


def sudden_growth_mib(marks: Sequence[tuple[float, int]], cache_bytes: float) -> float:
    """MiB a minute over the marks of the last SUDDEN_S, if they grew at each of them, and by more than the caches and SUDDEN_BYTES in all; else 0."""
    ended, last = marks[-1]
    recent = [mark for mark in marks if ended - mark[0] <= SUDDEN_S + 5.0]
    began, first = recent[0]
    if ended - began < 0.95 * SUDDEN_S or last - marks[0][1] <= cache_bytes + SUDDEN_BYTES:
        return 0.0
    if min(after - before for (_, before), (_, after) in pairwise(recent)) <= 0:
        return 0.0
    return (last - first) / 2**20 * 60.0 / (ended - began)
