"""Who counts as gone, what is done to them at the broker, and whether they are started again."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt
from samzapy.coordinator.ended_containers import Liveness
from samzapy.coordinator.membership import Applicant, Launch, Member
from samzapy.model.caution import Condemned
from samzapy.model.dead_letter import Origin
from samzapy.model.process_end import ProcessEnd, exited, killed_by, killed_or_crashed
from samzapy.model.states import ContainerOutcome, ContainerState, TaskState
from samzapy.plan.container_phases import Phase
from samzapy.plan.declared_dead import ASKED
from samzapy.ports import TopicSpec
from tests.unit.coordinator.parts import JOB, LEASE_S, REGISTER_S, Handle, Parts

T0, T1 = "Partition 0", "Partition 1"
BOOM = {"code": "SZ200", "message": "boom", "fatal": True, "exit_code": 1}
BY_SIGKILL = killed_by(signal.SIGKILL)
LATER = {"code": "SZ300", "message": "the brokers are away.", "fatal": False, "exit_code": 1}


def liveness(parts: Parts) -> Liveness:
    return Liveness(parts.roster, parts.ownership, parts.settings, parts.clock)


def look(parts: Parts, member: Member) -> None:
    assert member in parts.roster.members.values()
    liveness(parts).check_members()


def kill(member: Member, end: ProcessEnd = BY_SIGKILL) -> None:
    assert isinstance(member.launch.handle, Handle)
    member.launch.handle.ended = end


def why_ending(member: Member) -> str:
    return member.ending.why if member.ending else ""


def say(parts: Parts, member: Member, outcome: str, error: dict[str, Any] | None = None, states: Mapping[str, str] | None = None) -> None:
    """Its final report."""
    tasks = [{"name": name, "state": state} for name, state in (states or {}).items()]
    parts.roster.report_final(member.number, member.owner.incarnation, {"outcome": outcome, "error": error, "tasks": tasks})


def relaunched(parts: Parts, member: Member) -> Member:
    """It was started again, and is named again."""
    members = parts.roster.members
    members.launch(member, Launch(id="again", handle=Handle()), "")
    members.apply(member, "again", {"host": "h", "pid": 1})
    members.name(member, Applicant("again", {"host": "h", "pid": 1}), (T0,), member.owner.epoch + 1)
    return member


@pytest.mark.parametrize(
    ("phase", "passed_s", "why"),
    [
        (Phase.LIVE, 0.0, ""),
        (Phase.LIVE, LEASE_S, ""),
        (Phase.LIVE, LEASE_S + 0.1, "silent for 10.1 s, its lease of 10 s is over"),
        (Phase.STOPPING, LEASE_S + 0.1, "silent for 10.1 s, its lease of 10 s is over"),
        (Phase.LAUNCHED, REGISTER_S, ""),
        (Phase.LAUNCHED, REGISTER_S + 0.1, "did not register within 120 s, in which it starts and imports the job's modules"),
        (Phase.APPLYING, REGISTER_S + 0.1, "did not register within 120 s, in which it starts and imports the job's modules"),
        (Phase.LAUNCHED, LEASE_S + 0.1, ""),  # one that starts has no lease yet
        (Phase.DONE, 1000.0, ""),
        (Phase.WANTED, 1000.0, ""),
    ],
)
def test_who_is_gone_and_why(phase: Phase, passed_s: float, why: str) -> None:
    parts = Parts()
    member = parts.add(0, (T0, T1), phase)
    parts.clock.advance(passed_s)

    look(parts, member)

    assert why == why_ending(member)


@pytest.mark.parametrize(("end", "what"), [(exited(3), "ended"), (BY_SIGKILL, "ended"), (None, "held")])
def test_only_code_of_a_silent_container_is_said_to_have_held_it(end: ProcessEnd | None, what: str) -> None:
    """A hint takes `held` for code that kept Python's lock, and then says nothing of deaths."""
    parts = Parts()
    parts.settings = replace(parts.settings, last_place=lambda number, pid: "pay.py:9 in check")
    member = parts.add(0, (T0, T1), Phase.LIVE)
    if end is None:
        parts.clock.advance(LEASE_S + 0.1)
    else:
        kill(member, end)
    look(parts, member)
    (told,) = [event for event in parts.roster.events.since(0) if "pay.py:9" in event["text"]]
    assert (what, "container 0 was at pay.py:9 in check when it ended") == (told["what"], told["text"])


@pytest.mark.parametrize(
    ("outcome", "error", "why"),
    [
        (ContainerOutcome.SUPERSEDED, {"code": "SZ313", "message": "it was stopped for long."}, "it was stopped for long"),
        (ContainerOutcome.SUPERSEDED, None, "it gave its tasks up"),
        ("stopped", None, ASKED),
    ],
)
def test_what_it_says_itself_is_why(outcome: str, error: dict[str, Any] | None, why: str) -> None:
    parts = Parts()
    member = parts.add(0, (T0, T1))
    say(parts, member, outcome, error)

    look(parts, member)

    assert why == why_ending(member)


def test_a_process_that_ended_is_gone_whatever_it_last_said() -> None:
    parts = Parts()
    member = parts.add(0, (T0,))
    say(parts, member, "failed", LATER)
    parts.roster.any_commit = True
    kill(member, exited(1))

    look(parts, member)

    assert ("exit code 1", ContainerState.LOST, LATER["message"]) == (why_ending(member), member.state, member.history.last_error)


def test_a_task_that_is_not_released_within_the_lease_is_taken_by_force() -> None:
    parts = Parts()
    member = parts.add(0, (T0, T1))
    parts.roster.members.order_release(member, {T1})
    for _ in range(3):  # it is well and says so
        parts.clock.advance(LEASE_S / 2)
        parts.roster.members.hear(member)
        look(parts, member)

    assert "did not release Partition 1 within its lease of 10 s" == why_ending(member)
    assert isinstance(member.launch.handle, Handle)
    assert member.launch.handle.was_killed


def test_while_the_job_stops_nobody_who_was_never_named_is_waited_for() -> None:
    parts = Parts(containers=2)
    starting, not_launched = parts.add(0, phase=Phase.LAUNCHED), parts.add(1, phase=Phase.WANTED)
    handle = starting.launch.handle
    parts.roster.request_stop()

    look(parts, starting)
    look(parts, not_launched)

    assert [(True, ContainerState.STOPPED)] * 2 == [(m.is_done, m.state) for m in (starting, not_launched)]
    assert isinstance(handle, Handle)
    assert handle.was_killed


@pytest.mark.parametrize("outcome", ["finished", "stopped"])
def test_an_orderly_end_while_the_job_stops_is_the_end(outcome: str) -> None:
    parts = Parts()
    member = parts.add(0, (T0,))
    say(parts, member, outcome)
    parts.roster.request_stop()

    look(parts, member)

    assert (True, ContainerState.STOPPED, "") == (member.is_done, member.state, why_ending(member))


def test_who_finished_all_that_it_had_is_done_and_its_tasks_are() -> None:
    parts = Parts()
    member = parts.add(0, (T0, T1))
    say(parts, member, "finished", None, {T0: TaskState.STOPPED, T1: TaskState.STOPPED})

    look(parts, member)

    assert (True, {T0, T1}) == (member.is_done, parts.roster.finished)


def test_who_finished_without_having_taken_up_a_task_is_started_again_for_it() -> None:
    parts = Parts()
    member = parts.add(0, (T0, T1))
    say(parts, member, "finished", None, {T0: TaskState.STOPPED, T1: TaskState.RESTORING})

    look(parts, member)
    liveness(parts).end_lost()

    assert {T0} == parts.roster.finished
    assert (False, ContainerState.STARTING, 0, parts.clock.monotonic()) == (member.is_done, member.state, member.history.restarts, member.wanted.since)


@pytest.mark.parametrize(
    ("error", "any_commit", "fails"),
    [
        (BOOM, True, True),  # starting again would find the same
        (LATER, True, False),
        (LATER, False, True),  # every container ended with it before any commit
    ],
)
def test_which_error_ends_the_job(error: dict[str, Any], any_commit: bool, fails: bool) -> None:
    parts = Parts()
    member = parts.add(0, (T0,))
    say(parts, member, "failed", error)
    parts.roster.any_commit = any_commit
    kill(member)

    look(parts, member)

    assert ((0, error) if fails else None) == parts.roster.failure
    assert fails == parts.roster.is_stopping


def test_one_of_two_with_an_error_does_not_end_the_job() -> None:
    parts = Parts(containers=2)
    member = parts.add(0, (T0,))
    say(parts, member, "failed", LATER)
    parts.add(1, (T1,))
    kill(member)

    look(parts, member)

    assert parts.roster.failure is None


def test_who_is_lost_is_ended_in_the_topic_and_fenced_and_then_wanted_again() -> None:
    parts = Parts()
    parts.log.admin().create([TopicSpec("out", 1)])
    member = parts.add(0, (T0, T1))
    zombie = parts.log.transactional_producer(JOB.container_transactional_id(0))
    zombie.init()
    zombie.begin()
    zombie.send("out", b"late", b"late", 0)
    kill(member)

    look(parts, member)
    assert "i0" == parts.ledger().containers[0].incarnation, "only noted so far"
    liveness(parts).end_lost()

    assert ("", (T0, T1)) == (parts.ledger().containers[0].incarnation, parts.ledger().containers[0].tasks)
    with pytest.raises(Fenced):
        zombie.commit()
    assert ((), "", False, None, 1) == (
        member.tasks, member.owner.incarnation, member.is_named, member.launch.handle, member.history.restarts
    )  # fmt: skip
    assert {T0: 0, T1: 0} == {task: number for task, (number, _) in parts.roster.left.items()}
    assert [True] == ["killed by SIGKILL" in str(death) for death in member.history.deaths]


def test_what_cannot_be_written_is_tried_again_and_nothing_is_decided_before() -> None:
    parts = Parts()
    member = parts.add(0, (T0,))
    kill(member)
    look(parts, member)
    parts.cluster.fail_next("commit", "in_doubt_lost")

    with pytest.raises((InDoubt, ClusterUnreachable)):
        liveness(parts).end_lost()
    assert ("killed by SIGKILL", (T0,), 0) == (why_ending(member), member.tasks, member.history.restarts)
    parts.ownership.read()
    liveness(parts).end_lost()

    assert ("", (), 1) == (why_ending(member), member.tasks, member.history.restarts)
    assert "" == parts.ledger().containers[0].incarnation


def test_each_further_death_waits_longer_until_the_budget_is_used_up() -> None:
    parts = Parts(max_restarts=3, restart_window_s=300.0)
    waits = []
    for _ in range(4):
        member = parts.add(0, (T0,)) if not waits else relaunched(parts, parts.roster.members[0])
        kill(member, exited(9))
        look(parts, member)
        liveness(parts).end_lost()
        if parts.roster.failure is None:
            waits.append(member.wanted.not_before - parts.clock.monotonic())
        parts.clock.advance(1.0)

    assert sorted(waits) == waits
    assert 0.0 == waits[0] < waits[1] < waits[2]
    assert parts.roster.failure is not None
    assert (0, "SZ340") == (parts.roster.failure[0], parts.roster.failure[1]["code"])
    assert 4 == str(parts.roster.failure[1]["message"]).count("exit code 9")


def test_the_way_past_a_record_that_ends_containers_even_when_it_is_given_up_is_told() -> None:
    parts = Parts()
    member = parts.add(0, (T0,))
    parts.roster.caution = replace(parts.roster.caution, condemned=(Condemned(Origin("in", 2, 7), 99, "killed by SIGSEGV", 0),))
    kill(member)
    look(parts, member)
    liveness(parts).end_lost()

    assert parts.roster.failure is not None
    assert "record in[2]@7 ended it 99 times" in str(parts.roster.failure[1]["message"])
    assert "--topic in --partition 2 --to-offset 8 --keep-state --execute`" in str(parts.roster.failure[1]["remedy"])


def test_one_that_was_asked_to_stop_costs_no_budget() -> None:
    parts = Parts(max_restarts=0)
    member = parts.add(0, (T0,))
    parts.roster.members.ask_to_stop(member, "its restart was requested")
    say(parts, member, "stopped")

    look(parts, member)
    liveness(parts).end_lost()

    assert (0, (), ContainerState.STARTING, None) == (member.history.restarts, member.history.deaths, member.state, parts.roster.failure)
    assert "its restart was requested" in str(member.history.last_restart)


def test_one_too_many_is_not_started_again() -> None:
    parts = Parts(containers=2)
    parts.add(0, (T0,))
    member = parts.add(1, (T1,))
    parts.roster.target = 1
    parts.roster.desired = {T0: 0, T1: 0}
    kill(member)

    look(parts, member)
    liveness(parts).end_lost()

    assert [0] == sorted(parts.roster.members)
    assert parts.roster.must_plan


def test_the_copy_that_lags_least_on_another_host_takes_over() -> None:
    parts = Parts(containers=3)
    lost = parts.add(0, (T0,))
    for number, lag in ((1, 500), (2, 3)):
        copies = [{"task": T0, "lag": lag, "reason": ""}]
        parts.roster.members.report(parts.add(number, host=f"h{number}"), {"standbys": copies})
    kill(lost)

    look(parts, lost)
    liveness(parts).end_lost()

    assert 2 == parts.roster.desired[T0]
    assert ContainerState.RUNNING == parts.roster.members[2].state


# -- killed for memory, refused by Kafka -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "memory", "kills", "likely"),
    [
        (killed_by(signal.SIGKILL), 500 << 20, 0, True),
        (killed_or_crashed("its Python worker ended without a message"), 500 << 20, 0, True),
        (killed_by(signal.SIGKILL), 100 << 20, 0, False),
        (killed_by(signal.SIGKILL), 100 << 20, 1, True),
        (exited(1), 500 << 20, 1, False),
        (killed_by(signal.SIGTERM), 500 << 20, 0, False),
    ],
)
def test_a_container_killed_without_a_word_is_told_with_its_memory(end: ProcessEnd, memory: int, kills: int, likely: bool) -> None:
    parts = Parts(memory_bytes=512 << 20, oom_kills=lambda: kills)
    member = parts.add(0, (T0, T1), memory_bytes=memory)
    kill(member, end)

    look(parts, member)

    ending = why_ending(member)
    assert ending.startswith(str(end))
    assert likely == ("too little memory is the likely cause" in ending)
    assert ("MiB" in ending) == ("SIGKILL" in str(end) or "crashed" in str(end))


@pytest.mark.parametrize(("code", "ends"), [("SZ304", True), ("SZ305", True), ("SZ306", True), ("SZ300", False)])
def test_the_third_refusal_by_kafka_ends_the_job_with_its_own_exit_code(code: str, ends: bool) -> None:
    refused = {"code": code, "message": "no.", "fatal": False, "exit_code": 4}
    parts = Parts()
    parts.roster.any_commit = True
    member = parts.add(0, (T0, T1))
    for number in (1, 2, 3):
        say(parts, member, "failed", refused)
        for _ in range(10):  # its process takes its time to end
            look(parts, member)
            say(parts, member, "failed", refused)  # and reports it again
        assert (number == 3 and ends) == (parts.roster.failure is not None)
        if parts.roster.failure is None:
            kill(member)
            look(parts, member)
            liveness(parts).end_lost()
            relaunched(parts, member)
    assert not ends or parts.roster.failure == (0, refused)


def test_refusals_far_apart_do_not_add_up() -> None:
    parts = Parts()
    parts.roster.any_commit = True
    member = parts.add(0, (T0, T1))
    for _ in range(5):
        say(parts, member, "failed", {"code": "SZ304", "message": "no.", "fatal": False, "exit_code": 4})
        kill(member)
        look(parts, member)
        liveness(parts).end_lost()
        relaunched(parts, member)
        parts.clock.advance(parts.settings.restart_window_s)
    assert parts.roster.failure is None
