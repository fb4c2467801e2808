"""What `on_error` says of a record that fails: how often it is tried, how long is waited before that, and what becomes of it when it is given up.

container/processing.py tries it again; container/on_error.py does what is to be done with one that is given up.
"""

from __future__ import annotations

from enum import StrEnum

FAIL, DEAD_LETTER = "fail", "dead_letter"  # of `then`; the third is `skip`
FIRST_BACKOFF_S = 0.01
MAX_BACKOFF_S = 1.0


class GivenUp(StrEnum):
    """What becomes of a record that is given up, in the words that people see."""

    STOP = "stopped the job"
    SKIP = "skipped"
    SET_ASIDE = "set aside"
    IGNORE = "ignored when it was read again"  # it took effect, or was given up, when it came first


def what_becomes(then: str, comes_again: bool = False) -> GivenUp:
    """What becomes of a record that is given up. `comes_again`: it is read again, and its offset was committed before."""
    if then == FAIL:
        return GivenUp.STOP
    if comes_again:
        return GivenUp.IGNORE
    return GivenUp.SET_ASIDE if then == DEAD_LETTER else GivenUp.SKIP


def ends_job(then: str) -> bool:
    """Whether a record that is given up ends the job; else the job goes on after it."""
    return what_becomes(then) is GivenUp.STOP


def sets_aside(then: str) -> bool:
    """Whether a record that is given up goes to the dead-letter topic."""
    return what_becomes(then) is GivenUp.SET_ASIDE


def retries_after(error: BaseException, retries: int) -> int:
    """How often a record that raised this is tried again. What is not committed takes memory: after a commit it may have enough, so that is one more."""
    return retries + 1 if isinstance(error, MemoryError) else retries


def is_tried_again(attempts: int, retries: int) -> bool:
    """Whether a record that has failed so often is tried again."""
    return attempts <= retries


def backoff_s(attempts: int) -> float:
    """Seconds to wait after this many attempts at a record."""
    return min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(attempts - 1, 30))
