"""What the coordinator believes of a container, from its reports."""

from __future__ import annotations

import pytest

from samzapy.coordinator.membership import Member, Owner, job_state
from samzapy.model.states import ContainerState
from samzapy.plan.container_phases import Phase

BOTH = ("Partition 0", "Partition 1")


def running(phase: Phase = Phase.LIVE, state: str = ContainerState.RUNNING, tasks: tuple[str, ...] = BOTH) -> Member:
    incarnation = "" if phase in (Phase.WANTED, Phase.PARKED, Phase.LAUNCHED, Phase.APPLYING) else "i"
    return Member(number=0, phase=phase, state=state, owner=Owner(incarnation=incarnation, tasks=tasks, epoch=7))


@pytest.mark.parametrize(
    ("epoch", "released", "believed"),
    [
        (7, ["Partition 0"], {"Partition 0"}),
        (6, ["Partition 0"], set()),  # reported while an older record held: the task may have come back since
        (8, ["Partition 0"], set()),
        (None, ["Partition 0"], set()),
        (7, ["Partition 9"], set()),  # not its own
        (7, [], set()),
    ],
)
def test_a_release_that_was_reported_under_an_older_record_does_not_count(
    epoch: int | None, released: list[str], believed: set[str]
) -> None:
    member = running()
    member.heard = member.heard.with_report({"epoch": epoch, "released": released})

    assert believed == member.holder().released


@pytest.mark.parametrize(
    ("state", "paused", "at_work"),
    [
        ("RUNNING", False, True), ("STOPPED", False, True), ("RESTORING", True, False), ("BOOTSTRAPPING", False, False),
        ("BOOTSTRAPPING", True, True),  # what it has to read first waits for the end of the pause: who waits for the task would wait for that
    ],
)  # fmt: skip
def test_a_task_is_at_work_when_nothing_but_a_pause_keeps_it_from_its_records(state: str, paused: bool, at_work: bool) -> None:
    member = running()
    member.heard = member.heard.with_report({"paused": paused, "tasks": [{"name": "a", "state": state}]})

    assert at_work == member.is_at_work("a")
    assert not member.is_at_work("b")


def test_a_copy_that_has_a_problem_is_none() -> None:
    member = running()
    copies = [{"task": "a", "lag": 3, "reason": ""}, {"task": "b", "lag": 0, "reason": "its directory is still in use"}]
    member.heard = member.heard.with_report({"standbys": copies})

    assert {"a": 3} == member.holder().copies


@pytest.mark.parametrize(
    ("phase", "state", "live", "ready"),
    [
        (Phase.LIVE, ContainerState.RUNNING, True, True),
        (Phase.LAUNCHED, ContainerState.RUNNING, False, False),
        (Phase.ENDING, ContainerState.RUNNING, False, False),
        (Phase.LIVE, ContainerState.STARTING, True, False),
        (Phase.STOPPING, ContainerState.RUNNING, True, False),
        (Phase.DONE, ContainerState.RUNNING, True, False),
    ],
)
def test_who_is_live_and_who_may_take_a_task(phase: Phase, state: str, live: bool, ready: bool) -> None:
    member = running(phase, state)

    assert (live, ready) == (member.is_live, member.is_ready)


@pytest.mark.parametrize(
    ("tasks", "members", "stopping", "was_running", "expected"),
    [
        ([True, True], [running()], False, False, "RUNNING"),
        ([True, False], [running()], False, False, "STARTING"),
        ([True, False], [running()], False, True, "DEGRADED"),
        ([True], [running(), running(state=ContainerState.STARTING)], False, True, "DEGRADED"),
        ([True], [running(), running(Phase.PARKED, "LOST")], False, True, "RUNNING"),  # its tasks run elsewhere
        ([True], [running(), running(state=ContainerState.STARTING, tasks=())], False, True, "RUNNING"),
        ([], [running()], False, False, "STARTING"),
        ([True], [running()], True, True, "STOPPING"),
    ],
)
def test_the_jobs_state_follows_from_its_tasks_and_containers(
    tasks: list[bool], members: list[Member], stopping: bool, was_running: bool, expected: str
) -> None:
    assert expected == job_state(tasks, members, stopping, was_running)
