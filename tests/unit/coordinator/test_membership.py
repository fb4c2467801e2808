"""What the coordinator believes of a container, from its reports."""

from __future__ import annotations

import pytest

from samzapy.coordinator.membership import Member, Owner, job_state
from samzapy.model.states import ContainerState, TaskState
from samzapy.plan.members import Phase

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
        ([TaskState.RUNNING, TaskState.RUNNING], [running()], False, False, "RUNNING"),
        ([TaskState.RUNNING, TaskState.STOPPED], [running()], False, False, "RUNNING"),
        ([TaskState.RUNNING, TaskState.WAITING], [running()], False, False, "STARTING"),
        ([TaskState.RUNNING, TaskState.WAITING], [running()], False, True, "DEGRADED"),
        ([TaskState.RUNNING], [running(), running(state=ContainerState.STARTING)], False, True, "DEGRADED"),
        ([TaskState.RUNNING], [running(), running(Phase.PARKED, "LOST")], False, True, "RUNNING"),  # its tasks run elsewhere
        ([TaskState.RUNNING], [running(), running(state=ContainerState.STARTING, tasks=())], False, True, "RUNNING"),
        ([], [running()], False, False, "STARTING"),
        ([TaskState.RUNNING], [running()], True, True, "STOPPING"),
    ],
)
def test_the_jobs_state_follows_from_its_tasks_and_containers(
    tasks: list[str], members: list[Member], stopping: bool, was_running: bool, expected: str
) -> None:
    assert expected == job_state(tasks, members, stopping, was_running)
