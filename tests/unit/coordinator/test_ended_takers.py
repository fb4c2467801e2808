"""Containers that have ended in a bounded run take no tasks and no slots: what becomes of the tasks of others. Containers are puppets that obey."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.coordinator.ended_containers import Liveness
from samzapy.coordinator.switchboard import Switchboard
from samzapy.model.process_end import executor_lost, exited
from samzapy.plan.container_phases import Phase
from tests.unit.coordinator.parts import Handle, Parts
from tests.unit.coordinator.test_change import Cast, Puppet, settled
from tests.unit.coordinator.test_job_coordinator import LIMIT_S, Stage

ENDS = {"in[0]": 1, "in[1]": 1}
ONE_EACH = {"a": 1, "b": 1}


def finish(puppet: Puppet) -> None:
    """Its tasks have read their inputs to the ends; it reports that and ends."""
    tasks = [{"name": t, "state": "STOPPED"} for t in puppet.tasks]
    final = {"state": "STOPPED", "outcome": "finished", "error": None, "epoch": puppet.epoch, "tasks": tasks}
    puppet.stage.coordinator.roster.report_final(puppet.number, puppet.incarnation, final)
    puppet.handle.ended, puppet.is_gone, puppet.tasks = exited(0), True, []


def phases(stage: Stage) -> dict[int, Phase]:
    return {n: m.phase for n, m in stage.coordinator.roster.members.items()}


def owned(puppet: Puppet, *tasks: str) -> Any:
    return lambda _: sorted(puppet.tasks) == sorted(tasks)


def with_one_that_ended(stage: Stage) -> Cast:
    """Two containers of which the first has ended."""
    cast = Cast(stage)
    cast.play(settled(2))
    finish(cast.of(0))
    cast.play(lambda _: phases(stage)[0] is Phase.DONE)
    return cast


def test_a_run_whose_tasks_have_all_finished_ends_though_a_container_is_parked() -> None:
    with Stage(containers=2, partitions=2, slots=dict(ONE_EACH), host_affinity_s=1.0, ends=ENDS) as stage:
        cast = Cast(stage)
        cast.play(settled(2))
        del stage.slots["b"]
        lost = next(p for p in cast.puppets if p.host == "b")
        stays = next(p for p in cast.puppets if p.host == "a")
        lost.handle.ended = executor_lost("")
        cast.play(owned(stays, "Partition 0", "Partition 1"))
        assert Phase.PARKED is phases(stage)[lost.number]
        finish(stays)
        assert 0 == stage.await_end()


def test_the_slot_of_a_container_that_has_ended_is_free_for_another() -> None:
    with Stage(containers=2, partitions=2, slots=dict(ONE_EACH), host_affinity_s=1.0, ends=ENDS) as stage:
        cast = Cast(stage)
        cast.play(settled(2))
        ended = next(p for p in cast.puppets if p.host == "a")
        lost = next(p for p in cast.puppets if p.host == "b")
        finish(ended)
        cast.play(lambda _: phases(stage)[ended.number] is Phase.DONE)
        del stage.slots["b"]
        lost.handle.ended = executor_lost("")
        cast.play(lambda _: len(cast.puppets) == 3 and cast.puppets[-1].tasks == ["Partition 1"])
        assert (lost.number, "a") == (cast.puppets[-1].number, cast.puppets[-1].host)
        finish(cast.puppets[-1])
        assert 0 == stage.await_end()


@pytest.mark.parametrize("is_released", [False, True])
def test_a_task_that_is_on_its_way_to_a_container_that_ends_is_finished_all_the_same(is_released: bool) -> None:
    with Stage(containers=2, partitions=2, slots={"a": 2}, host_affinity_s=1.0, ends=ENDS) as stage:
        cast = Cast(stage)
        cast.play(settled(2))
        stays, leaves = cast.of(0), cast.of(1)
        stage.coordinator.changes.scale(1)
        until = stage.clock.monotonic() + LIMIT_S
        while not stage.roster.members[1].releasing and stage.clock.monotonic() < until:
            stage.clock.step()
        if is_released:  # in the same turn
            leaves.tasks, leaves.released = [], ["Partition 1"]
            report = {"state": "RUNNING", "epoch": leaves.epoch, "released": leaves.released, "tasks": [], "commits": 1}
            stage.coordinator.roster.heartbeat(1, leaves.incarnation, report)
        finish(stays)
        cast.play(lambda _: phases(stage)[0] is Phase.DONE)
        cast.play(owned(leaves, "Partition 1"))
        assert {"Partition 0"} == stage.roster.finished
        finish(leaves)
        assert 0 == stage.await_end()
        assert {"Partition 0", "Partition 1"} == stage.roster.finished


def test_the_last_container_that_can_run_tasks_is_started_again_though_the_job_was_scaled_down() -> None:
    with Stage(containers=2, partitions=2, slots={"a": 2}, host_affinity_s=1.0, ends=ENDS) as stage:
        cast = with_one_that_ended(stage)
        stage.coordinator.changes.scale(1)
        cast.play(lambda _: not stage.roster.must_plan)
        cast.of(1).handle.ended = exited(9)
        cast.play(lambda _: len(cast.puppets) == 3 and cast.puppets[-1].tasks == ["Partition 1"])
        finish(cast.puppets[-1])
        assert 0 == stage.await_end()
        assert {"Partition 0", "Partition 1"} == stage.roster.finished


def test_a_container_that_has_ended_is_not_restarted_and_who_asks_is_told() -> None:
    with Stage(containers=2, partitions=2, slots={"a": 2}, host_affinity_s=1.0, ends=ENDS) as stage:
        cast = with_one_that_ended(stage)
        with pytest.raises(ConfigurationError, match=r"container 0 has ended: all its tasks have finished"):
            stage.coordinator.changes.restart(0)
        assert [1] == stage.coordinator.changes.restart(None, dry_run=True)["containers"]
        finish(cast.of(1))
        assert 0 == stage.await_end()


def test_a_rolling_restart_goes_on_after_a_container_that_found_no_slot() -> None:
    with Stage(containers=4, partitions=4, slots={"a": 2, "b": 2}, host_affinity_s=1.0) as stage:
        cast = Cast(stage)
        cast.play(settled(4))
        leave = sorted(p.number for p in cast.puppets if p.host == "b")
        stage.decommissioned, stage.slots = {"b"}, {"a": 2}
        cast.play(lambda _: all(phases(stage)[n] is Phase.PARKED for n in leave))
        stage.decommissioned = set()
        cast.play(lambda _: not stage.coordinator.changes.is_under_way)
        again = next(p.number for p in cast.puppets if p.host == "a")
        before = len(stage.launches)
        assert [again] == stage.coordinator.changes.restart(again)["containers"]
        cast.play(lambda status: len(stage.launches) > before and status["state"] == "RUNNING" and not stage.coordinator.changes.is_under_way)
        assert again in [launch[0] for launch in stage.launches[before:]]


def test_a_process_is_killed_without_the_rosters_lock() -> None:
    """A launcher may be late, and heartbeats wait for the lock."""
    parts, held = Parts(tasks=2, containers=2), []
    member = parts.add(0, ("Partition 0",))
    assert isinstance(member.launch.handle, Handle)
    member.launch.handle.ended = exited(9)
    member.launch.handle.kill = lambda: held.append(parts.roster.lock._is_owned())  # type: ignore[method-assign,attr-defined]
    Liveness(parts.roster, parts.ownership, parts.settings, parts.clock).check_members()
    assert [False] == held


def test_a_question_to_a_new_process_stays_when_the_long_poll_of_the_one_before_is_answered() -> None:
    board, answers = Switchboard(), []
    board.arrive(0, "old", 1, [], lambda: None)
    asking = threading.Thread(target=lambda: answers.append(board.ask(0, "new", "stack", {}, LIMIT_S)))
    asking.start()
    while not board._long_polls or board._long_polls[0].incarnation != "new":
        threading.Event().wait(0.01)
    assert [] == board.take(0, "old", 1)
    board.arrive(0, "new", 1, [], lambda: None)
    [question] = board.take(0, "new", 1)
    board.arrive(0, "new", 2, [{"id": question["id"], "found": {"stack": "x"}}], lambda: None)
    asking.join(LIMIT_S)
    assert [{"stack": "x"}] == answers


def test_members_can_be_gone_through_while_others_come_and_go() -> None:
    parts = Parts(tasks=2, containers=2)
    parts.add(0, ("Partition 0",))
    going = parts.roster.members.values()
    it = iter(going)
    next(it)
    parts.roster.members.want(7)
    assert [] == list(it)
    assert [0, 7] == [m.number for m in parts.roster.members.values()]
