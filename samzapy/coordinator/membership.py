"""What the coordinator knows of each container, and what the job's state follows from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samzapy.ports import ContainerHandle

STARTING, RUNNING, STOPPING, STOPPED, LOST, FAILED = "STARTING", "RUNNING", "STOPPING", "STOPPED", "LOST", "FAILED"
DEGRADED, FINISHED, FENCED = "DEGRADED", "FINISHED", "FENCED"
WAITING = "WAITING"


@dataclass(slots=True)
class Member:
    """One container. Times are monotonic seconds.

    Attributes:
        launch_id: of the newest launch; a container registers with it, once.
        incarnation: what the coordinator topic names; "" while nobody is.
        launch_at: when to launch it (again); None while it is launched or done.
        deaths: when it died, for the budget.
        done: it ended in an orderly way and is not started again.
    """

    number: int
    tasks: tuple[str, ...]
    preferred_host: str | None = None
    launch_id: str = ""
    launch_at: float | None = 0.0
    handle: ContainerHandle | None = None
    incarnation: str = ""
    registered: bool = False
    heard_at: float = 0.0
    state: str = STARTING
    host: str | None = None
    pid: int | None = None
    restarts: int = 0
    deaths: list[float] = field(default_factory=list)
    done: bool = False
    report: Mapping[str, Any] = field(default_factory=dict)
    last_error: str = ""
    commits_before: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.number, "state": self.state, "host": self.host, "preferred_host": self.preferred_host, "pid": self.pid,
            "restarts": self.restarts, "tasks": list(self.tasks), "last_error": self.last_error or None,
        }  # fmt: skip

    def task_reports(self) -> list[dict[str, Any]]:
        """Its tasks' last reports; tasks it has not spoken of yet are waiting."""
        told = {t["name"]: t for t in self.report.get("tasks", ()) if isinstance(t, dict)}
        alive = self.state in (RUNNING, STARTING, STOPPING, STOPPED)
        result = []
        for name in self.tasks:
            report = told.get(name, {})
            result.append(
                {
                    "name": name,
                    "state": report.get("state", WAITING) if alive else WAITING,
                    "container": self.number,
                    "partitions": report.get("partitions", []),
                    "lag": report.get("lag"),
                    "processed": report.get("processed", 0),
                    "skipped": report.get("skipped", 0),
                    "positions": report.get("positions", {}),
                    "reason": report.get("reason", ""),
                    "stores": report.get("stores", {}),
                    "metrics": report.get("metrics", {}),
                }
            )
        return result


def job_state(members: Sequence[Member], stopping: bool, was_running: bool) -> str:
    """STARTING until every task runs for the first time; then RUNNING while every task runs, DEGRADED while one does not."""
    if stopping:
        return STOPPING
    tasks = [t for m in members for t in m.task_reports()]
    if tasks and all(t["state"] in (RUNNING, STOPPED) for t in tasks) and all(m.state in (RUNNING, STOPPED) for m in members):
        return RUNNING
    return DEGRADED if was_running else STARTING
