"""What `on_error` says of a record that fails: how often it is tried, whether the job ends with it, and whether it is set aside.

container/on_error.py does what it says.
"""

from __future__ import annotations

FAIL, SKIP, DEAD_LETTER = "fail", "skip", "dead_letter"


def ends_job(then: str) -> bool:
    """Whether a record that is given up ends the job; else the job goes on after it."""
    return then == FAIL


def sets_aside(then: str) -> bool:
    """Whether a record that is given up goes to the dead-letter topic."""
    return then == DEAD_LETTER


def retries_after(error: BaseException, retries: int) -> int:
    """How often a record that raised this is tried again. What is not committed takes memory: after a commit it may have enough, so that is one more."""
    return retries + 1 if isinstance(error, MemoryError) else retries


def is_tried_again(attempts: int, retries: int) -> bool:
    """Whether a record that has failed so often is tried again."""
    return attempts <= retries
