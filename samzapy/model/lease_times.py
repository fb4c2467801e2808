"""What happens in a lease, and when: parts of it, since a container was last answered, or since the coordinator last wrote that it lives.

A container stops by itself before the coordinator, which counts from when it last heard the container, may give its tasks to others. Each step
leaves time for the one before it. Which step is due for a container that hears nothing says `due_step`; container/heartbeat.py takes it.
"""

from __future__ import annotations

from enum import Enum, auto

LEASE_MS, HEARTBEAT_MS = 10_000, 2000  # unless the job file says otherwise

RENEW = 1 / 3  # the coordinator writes again that it lives
ANSWER = 1 / 3  # an answer to a container is waited for no longer: so one that is lost does not cost the lease
WRITE = 1 / 2  # a process in which the heartbeat's thread cannot run writes where it stands
CLIENT = 0.6  # a Kafka client that is not made by now is given up, with an error that says so
STEP_DOWN = 0.8  # the container's loop is told to stop
DIE = 0.95  # its process ends, whatever the loop does
END = 1.0  # the coordinator ends it
assert RENEW <= ANSWER < WRITE < CLIENT < STEP_DOWN < DIE < END

UNLOCK_S = 2.0  # after the end of a lease: a process that still holds files of a store then is not waited for any longer


class Step(Enum):
    """What a container does that hears nothing from the coordinator."""

    GO_ON = auto()
    STEP_DOWN = auto()
    DIE = auto()


def due_step(silent_s: float, lease_s: float) -> Step:
    """Which step is due. `silent_s`: since what was last answered was sent."""
    used = silent_s / lease_s
    if used >= DIE:
        return Step.DIE
    return Step.STEP_DOWN if used >= STEP_DOWN else Step.GO_ON


def until_next_step_s(silent_s: float, lease_s: float) -> float:
    """Seconds until another step is due; negative: the last one is overdue."""
    next_at = STEP_DOWN if due_step(silent_s, lease_s) is Step.GO_ON else DIE
    return (next_at - silent_s / lease_s) * lease_s
