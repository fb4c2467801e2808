"""The roster: what containers reported, and how much work it is to tell of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from samzapy.clock import SystemClock
from samzapy.coordinator.membership import Member, Owner
from samzapy.coordinator.roster import Roster
from samzapy.model.job_model import TaskModel
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.process_end import other
from samzapy.model.states import ContainerState
from samzapy.plan.container_phases import Phase


class Counted(list[dict[str, Any]]):
    """A part of a report that counts how often it is gone through."""

    walks = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.walks += 1
        return super().__iter__()


def roster_of(tasks: int, containers: int) -> tuple[Roster, list[Counted]]:
    """Containers that own every n-th task, keep copies of their neighbour's, and have reported once."""
    names = [f"Partition {i}" for i in range(tasks)]
    models = {name: TaskModel(name, i, (TopicPartition("in", i),)) for i, name in enumerate(names)}
    roster = Roster(Job("views", "1"), "run", models, containers, None, SystemClock())
    parts = []
    for n in range(containers):
        mine, copies = names[n::containers], names[(n + 1) % containers :: containers]
        roster.members.add(Member(number=n, phase=Phase.LIVE, state=ContainerState.RUNNING, owner=Owner(incarnation=f"i{n}", tasks=tuple(mine), host=f"h{n}")))
        told = Counted({"name": name, "state": "RUNNING", "lag": n} for name in mine)
        warm = Counted({"task": name, "lag": 3} for name in copies)
        parts += [told, warm]
        roster.heartbeat(n, f"i{n}", {"state": "RUNNING", "tasks": told, "standbys": warm})
    for part in parts:
        part.walks = 0
    return roster, parts


def test_status_goes_through_a_report_once_however_many_tasks_there_are() -> None:
    roster, parts = roster_of(400, 4)

    status = roster.status()
    states = roster.task_states()

    assert ["RUNNING"] * 400 == states == [t["state"] for t in status["tasks"]]
    assert [0, 1, 2, 3] == [t["lag"] for t in status["tasks"][:4]]
    assert [{"container": 3, "host": "h3", "lag": 3}] == status["tasks"][0]["standby"]
    assert all(part.walks <= 2 for part in parts), "a walk per task would block heartbeats for half a second in a job of 1,000 tasks"


def test_what_a_lost_container_reported_is_not_told_any_more() -> None:
    roster, _ = roster_of(4, 2)
    roster.members.lose(roster.members[1], other("killed"))
    assert ContainerState.LOST == roster.members[1].state

    assert ["RUNNING", "WAITING", "RUNNING", "WAITING"] == roster.task_states()
    assert [0, None, 0, None] == [t["lag"] for t in roster.status()["tasks"]]
