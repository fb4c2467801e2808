"""When and where a container is launched, what becomes of it when there is no slot, and when it comes back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from samzapy.coordinator.membership import Launch, Member, Wanted
from samzapy.coordinator.starting import REPLACED_ENDS_S, Starting
from samzapy.model.ownership import LeaseRecord
from samzapy.model.states import ContainerState
from samzapy.plan.container_phases import Phase
from tests.unit.coordinator.parts import AFFINITY_S, Handle, Launcher, Parts


class Stage:
    """Parts, a launcher and what starts containers on it."""

    def __init__(self, slots: Mapping[str, int | None], containers: int = 1) -> None:
        self.parts = Parts(tasks=4, containers=containers)
        self.roster, self.clock, self.launcher = self.parts.roster, self.parts.clock, Launcher(slots)
        self.planned = 0
        names = map(str, itertools.count(1))
        self.starting = Starting(
            self.roster, self.parts.ownership, self.parts.settings, self.clock, self.launcher, {"job": "file"}, self._plan, lambda: next(names)
        )

    def _plan(self, slots: Mapping[str, int | None]) -> None:
        self.planned += 1

    def want(self, number: int = 0, preferred: str | None = None, back_off_s: float = 0.0) -> Member:
        now = self.clock.monotonic()
        member = Member(number=number, preferred_host=preferred, wanted=Wanted(since=now, not_before=now + back_off_s))
        self.roster.members.add(member)
        return member

    def turn(self, seconds: float = 0.0) -> list[tuple[int, str | None]]:
        """One turn after so many seconds; what has been launched by then."""
        self.clock.advance(seconds)
        self.starting.make_room()
        self.starting.launch_wanted()
        return self.launcher.launched


def test_a_container_is_launched_once_with_an_id_of_its_own_and_the_job_model() -> None:
    stage = Stage({"a": 1})
    member = stage.want()
    stage.starting.control_url = "http://127.0.0.1:1"

    assert [(0, "a")] == stage.turn() == stage.turn(60.0)
    payload = stage.launcher.payloads[0]
    assert ("file", 0, "1", "http://127.0.0.1:1") == (payload["job"], payload["container"], payload["launch_id"], payload["control_url"])
    assert ("1", ContainerState.STARTING, Phase.LAUNCHED, "a") == (member.launch.id, member.state, member.phase, member.launch.host)
    assert set(stage.roster.tasks) == member.launch.knows


def test_a_back_off_is_waited_for() -> None:
    stage = Stage({"a": None})
    stage.want(back_off_s=4.0)

    assert [] == stage.turn(3.9)
    assert [(0, "a")] == stage.turn(0.2)


def test_its_host_is_waited_for_as_long_as_host_affinity_says_and_then_any_is_taken() -> None:
    stage = Stage({"b": 1})
    member = stage.want(preferred="a")

    assert [] == stage.turn(AFFINITY_S - 0.1)
    assert "no executor on a, waiting for it" == member.reason
    assert [(0, "b")] == stage.turn(0.2)
    assert ("no executor on a within 5 s", "") == (member.affinity.reason, member.reason)


def test_if_no_host_comes_the_run_that_was_replaced_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage({})
    stage.want()
    stage.starting.replaced = LeaseRecord(run_id="other", url="", host="elsewhere", pid=4711, process_start="1@a", renewed_ms=0)
    stage.turn(REPLACED_ENDS_S - 0.1)
    assert [] == caplog.messages
    stage.turn(0.2)
    stage.turn(60.0)
    [told] = caplog.messages
    assert "process 4711 on elsewhere, may hold them" in told
    assert "`kill -9 4711`" in told


def test_a_host_that_comes_in_time_is_taken() -> None:
    stage = Stage({"b": 1})
    member = stage.want(preferred="a")
    stage.turn(1.0)
    stage.launcher.slots_of["a"] = 1

    assert [(0, "a")] == stage.turn(1.0)
    assert "" == member.affinity.reason


def test_the_wait_for_a_host_begins_after_the_back_off() -> None:
    stage = Stage({"b": 1})
    stage.want(preferred="a", back_off_s=4.0)

    assert [] == stage.turn(4.0 + AFFINITY_S - 0.1)
    assert [(0, "b")] == stage.turn(0.2)


def test_a_slot_that_a_container_of_ours_has_is_not_free() -> None:
    stage = Stage({"a": 1, "b": 1}, containers=2)
    stage.parts.add(0, host="a")
    stage.want(1, preferred="a")

    assert [] == stage.turn(AFFINITY_S - 0.1)
    assert [(1, "b")] == stage.turn(0.2)


def test_without_a_slot_it_is_parked_only_if_others_can_take_its_tasks() -> None:
    stage = Stage({"h": 1}, containers=2)
    alone = stage.want(0)
    other = Member(number=9, phase=Phase.LAUNCHED, launch=Launch(id="l", host="h", handle=Handle()))  # starting, has nobody's tasks yet
    stage.roster.members.add(other)
    assert [] == stage.turn(AFFINITY_S + 0.1)
    assert (False, "all 1 slots are taken") == (alone.phase is Phase.PARKED, alone.reason)

    stage.parts.add(9, host="h")  # now it runs
    assert [] == stage.turn()
    assert (True, ContainerState.LOST, "all 1 slots are taken; its tasks run elsewhere", 1) == (
        alone.phase is Phase.PARKED, alone.state, alone.reason, stage.planned
    )  # fmt: skip


def test_a_parked_container_comes_back_when_there_has_been_a_slot_for_a_while() -> None:
    stage = Stage({"h": 1}, containers=2)
    stage.parts.add(1)
    member = stage.want(0)
    stage.turn(AFFINITY_S + 0.1)
    assert Phase.PARKED is member.phase

    stage.launcher.slots_of["new"] = 1
    stage.turn(1.0)
    del stage.launcher.slots_of["new"]  # it went again: the while begins anew
    stage.turn(AFFINITY_S)
    stage.launcher.slots_of["new"] = 1
    stage.turn(1.0)
    assert [] == stage.turn(AFFINITY_S - 0.1)
    assert Phase.PARKED is member.phase

    assert [(0, "new")] == stage.turn(0.2)
    assert (Phase.LAUNCHED, ContainerState.STARTING, 2) == (member.phase, member.state, stage.planned)


def test_no_more_come_back_than_there_are_slots() -> None:
    stage = Stage({"h": 1}, containers=4)
    stage.parts.add(3)
    parked = [stage.want(number) for number in range(3)]
    stage.turn(AFFINITY_S + 0.1)
    stage.launcher.slots_of["new"] = 2
    stage.turn(1.0)

    assert 2 == len(stage.turn(AFFINITY_S))
    assert [Phase.LAUNCHED, Phase.LAUNCHED, Phase.PARKED] == [m.phase for m in parked]
