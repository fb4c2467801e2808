"""What people have ordered of all containers: to pause, to go on, to commit. It travels in the answers to heartbeats; callers hold the roster's lock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from samzapy.coordinator.membership import Member
from samzapy.model.states import ContainerState, JobState
from samzapy.ports import Clock


class Orders:
    """The orders of one run.

    Attributes:
        paused: who paused the job and when (by, at_ms); None: it is not paused.
        commit: how many commits were ordered.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.paused: dict[str, Any] | None = None
        self.commit = 0

    @property
    def is_paused(self) -> bool:
        return self.paused is not None

    def pause(self, by: str) -> None:
        """Read no inputs from now on."""
        self.paused = self.paused or {"by": by, "at_ms": self._clock.now_ms()}

    def resume(self) -> None:
        self.paused = None

    def order_commit(self) -> int:
        """The number of the order; a container that reports it, or a higher one, has committed since."""
        self.commit += 1
        return self.commit

    def to_json(self) -> dict[str, Any]:
        """Of the answer to a heartbeat."""
        return {"paused": self.is_paused, "commit": self.commit}

    def are_open(self, report: Mapping[str, Any]) -> bool:
        """Whether a container has not yet done what was ordered."""
        return (report.get("paused") is True) is not self.is_paused or int(report.get("ordered", 0)) < self.commit

    def state_of(self, found: str, members: Sequence[Member]) -> str:
        """The job's state: PAUSED once each container that runs has said that it is."""
        at_rest = all(m.is_paused for m in members if m.tasks and m.state == ContainerState.RUNNING)
        return JobState.PAUSED if found == JobState.RUNNING and self.is_paused and at_rest else found

    def why_paused(self) -> str:
        """In words, for people; "": it is not."""
        if self.paused is None:
            return ""
        at = time.strftime("%H:%M:%S", time.gmtime(self.paused["at_ms"] / 1000))
        return f"paused by {self.paused['by']} at {at} UTC: no record is processed until `samzapy resume JOB.yaml`"
