"""Live change: tasks move by agreement, containers come and go, each is asked for where its state is. Containers are puppets that obey."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from samzapy.api import exit_codes
from samzapy.api.errors import (
    ClusterUnreachable,
    ConfigurationError,
    LauncherError,
    LogError,
    SamzapyError,
    StateMismatch,
    StateRefused,
    Superseded,
    TopicMissing,
)
from samzapy.cli.change import has_scaled
from samzapy.clock import SystemClock
from samzapy.coordinator.membership import Launch, Member, Owner
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import InputTopics
from samzapy.model.process_end import executor_lost, exited, other
from samzapy.plan.container_phases import Phase
from samzapy.plan.grouping import group
from samzapy.web.live import Live
from tests.unit.coordinator.test_job_coordinator import JOB, LIMIT_S, Handle, Stage


class Puppet:
    """A container that does at once what it is told."""

    def __init__(self, stage: Stage, number: int, host: str, launch: int) -> None:
        self.stage, self.number, self.host = stage, number, host
        _, launch_id, self.handle = stage.await_launch(launch)
        self.incarnation = f"i{launch}"
        record = stage.register(number, launch_id, self.incarnation, {"host": host, "pid": 100 + launch})
        self.epoch, self.tasks = record.epoch, list(record.tasks)
        self.released: list[str] = []
        self.copies: dict[str, int] = {}
        self.is_gone = False

    def beat(self) -> str:
        """One heartbeat, and what its answer asks for."""
        if self.is_gone:
            return "gone"
        tasks = [{"name": t, "state": "RUNNING", "positions": {}} for t in self.tasks]
        copies = [{"task": t, "reason": "", "lag": lag} for t, lag in self.copies.items()]
        report = {"state": "RUNNING", "epoch": self.epoch, "released": self.released, "tasks": tasks, "standbys": copies, "commits": 1}
        try:
            answer = self.stage.roster.heartbeat(self.number, self.incarnation, report)
        except Superseded:
            self.is_gone = True
            return "gone"
        self._heed(answer)
        return str(answer["command"])

    def _heed(self, answer: dict[str, Any]) -> None:
        if answer["epoch"] > self.epoch:
            record = self.stage.ledger().containers[self.number]
            assert record.incarnation == self.incarnation
            assert set(self.tasks) <= set(record.tasks), "nothing is taken away that was not released"
            self.epoch, self.tasks, self.released = record.epoch, list(record.tasks), []
        for task in answer["release"]:
            if task in self.tasks:
                self.tasks.remove(task)
                self.released.append(task)
        self.copies = {t: self.copies.get(t, 50_000) for t in answer["standby"]}
        if answer["command"] == "stop":
            self.stage.roster.report_final(self.number, self.incarnation, {"outcome": "stopped", "error": None})
            self.handle.ended = exited(0)
            self.is_gone = True


class Cast:
    """All puppets of a stage: whoever is launched is played, on the host that was asked for."""

    def __init__(self, stage: Stage, default_host: str = "h") -> None:
        self.stage, self.default_host = stage, default_host
        self.puppets: list[Puppet] = []

    def play(self, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = self.stage.clock.monotonic() + LIMIT_S
        while True:
            while len(self.puppets) < len(self.stage.launches):
                index = len(self.puppets)
                number = self.stage.launches[index][0]
                self.puppets.append(Puppet(self.stage, number, self.stage.asked_for[index] or self.default_host, index + 1))
            for puppet in self.puppets:
                puppet.beat()
            owned = [t for p in self.puppets if not p.is_gone and p.handle.ended is None for t in p.tasks]
            assert len(owned) == len(set(owned)), f"a task with two owners: {owned}"
            status = self.stage.roster.status()
            if until(status):
                return status
            assert self.stage.clock.monotonic() < deadline, f"never so: {status}"

    def of(self, number: int) -> Puppet:
        return [p for p in self.puppets if p.number == number][-1]


def settled(containers: int) -> Callable[[dict[str, Any]], bool]:
    def is_so(status: dict[str, Any]) -> bool:
        return (
            status["state"] == "RUNNING"
            and not status["moves"]
            and len([c for c in status["containers"] if c["state"] == "RUNNING"]) == containers
        )

    return is_so


def owners(status: dict[str, Any]) -> dict[str, int]:
    return {t["name"]: t["container"] for t in status["tasks"]}


def test_scaling_up_and_down_moves_only_what_must_and_never_lets_two_own_a_task() -> None:
    with Stage(containers=2, partitions=8) as stage:
        cast = Cast(stage)
        before = owners(cast.play(settled(2)))
        stage.coordinator.changes.scale(4)
        after = owners(cast.play(settled(4)))
        assert 4 == sum(before[t] != after[t] for t in before)
        assert [2, 2, 2, 2] == [list(after.values()).count(n) for n in range(4)]
        stage.coordinator.changes.scale(2)
        back = owners(cast.play(lambda s: settled(2)(s) and len(s["containers"]) == 2))
        assert all(back[t] == n for t, n in after.items() if n < 2)
        assert [p.number for p in cast.puppets] == [0, 1, 2, 3]


def test_more_containers_than_slots_are_refused_with_both_numbers_and_more_than_tasks_are_not_started() -> None:
    with Stage(partitions=6, slots={"a": 2, "b": 2}) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        with pytest.raises(LauncherError, match=r"5 containers need .* 4 slots"):
            stage.coordinator.changes.scale(5)
        with pytest.raises(ConfigurationError):
            stage.coordinator.changes.scale(0)
    with Stage(partitions=2) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        assert {"containers": 2, "before": 1, "tasks": 2} == stage.coordinator.changes.scale(9)
        cast.play(settled(2))


@pytest.mark.parametrize("is_stopping", [False, True])
def test_a_preview_refuses_what_the_order_refuses_and_changes_nothing(is_stopping: bool) -> None:
    with Stage(containers=2, partitions=6, slots={"a": 2, "b": 2}) as stage:
        Cast(stage).play(settled(2))
        live = Live(stage.coordinator, {})
        stage.roster.is_stopping = is_stopping
        restart = partial(live.restart, is_checked=False)
        for verb, number in ((live.scale, 0), (live.scale, 5), (restart, 7), (restart, None), (restart, 1), (live.scale, 3)):
            before = stage.roster.target, stage.coordinator.changes.is_under_way
            preview = outcome(verb, number, dry_run=True)
            assert before == (stage.roster.target, stage.coordinator.changes.is_under_way)
            assert preview == outcome(verb, number, dry_run=False)
            assert is_stopping is ("is stopping" in preview) or number in (0, 5)
            assert number != 5 or "4 slots" in preview


def outcome(verb: Callable[..., Any], number: int | None, dry_run: bool) -> str:
    try:
        return str(verb(number, "ann", dry_run)["effect"])
    except SamzapyError as refused:
        return refused.message


def test_a_planned_move_waits_until_its_target_is_warm() -> None:
    with Stage(partitions=4, slots={"a": 1, "b": 1}, has_changelogs=True) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        stage.coordinator.changes.scale(2)
        status = cast.play(lambda s: bool(s["moves"]) and all("50000 records behind" in m["why"] for m in s["moves"]))
        assert {0} == set(owners(status).values())
        new = cast.of(1)
        for task in list(new.copies):
            new.copies[task] = 5
        status = cast.play(settled(2))
        assert [2, 2] == [list(owners(status).values()).count(n) for n in (0, 1)]


def test_a_container_that_does_not_release_in_time_is_ended_by_force() -> None:
    with Stage(containers=1, partitions=2, lease_s=1.0) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        stubborn = cast.of(0)
        stubborn._heed = lambda answer: None  # type: ignore[method-assign]
        stage.coordinator.changes.scale(2)
        status = cast.play(settled(2))
        assert stubborn.is_gone
        assert 1 == sum(c["restarts"] for c in status["containers"])
        assert {0, 1} == set(owners(status).values())


def test_a_rolling_restart_takes_one_at_a_time_and_brings_each_back() -> None:
    with Stage(containers=3, partitions=3) as stage:
        cast = Cast(stage)
        cast.play(settled(3))
        first = {p.incarnation for p in cast.puppets}
        stage.coordinator.changes.restart(None)
        down: list[int] = []

        def is_done(status: dict[str, Any]) -> bool:
            down.append(sum(c["state"] != "RUNNING" for c in status["containers"]))
            return len(cast.puppets) == 6 and settled(3)(status)

        status = cast.play(is_done)
        assert max(down) <= 1
        assert first.isdisjoint(p.incarnation for p in cast.puppets[3:])
        assert [0, 0, 0] == [c["restarts"] for c in status["containers"]], "a restart that was asked for is no death"
        assert ["its restart was requested"] * 3 == [c["last_restart"]["reason"] for c in status["containers"]]
        with pytest.raises(ConfigurationError, match="no container 7"):
            stage.coordinator.changes.restart(7)


def test_a_request_to_restart_one_does_not_end_the_restart_of_the_others() -> None:
    with Stage(containers=3, partitions=3) as stage:
        cast = Cast(stage)
        cast.play(settled(3))
        stage.coordinator.changes.restart(None)
        stage.coordinator.changes.restart(0)
        cast.play(lambda s: len(cast.puppets) == 6 and settled(3)(s))
        assert [0, 1, 2] == sorted(p.number for p in cast.puppets[3:])


def test_whoever_asked_for_another_number_of_containers_than_the_last_is_told() -> None:
    with Stage(partitions=4) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        stage.coordinator.changes.scale(2)
        assert not has_scaled(stage.roster.status(), 2)
        stage.coordinator.changes.scale(1)
        with pytest.raises(ConfigurationError, match="a later request replaced this one: the job scales to 1, not to 2 containers"):
            has_scaled(stage.roster.status(), 2)
        assert has_scaled(cast.play(lambda s: settled(1)(s) and len(s["containers"]) == 1), 1)


def test_a_dead_container_goes_back_to_its_host_or_after_a_while_to_another() -> None:
    with Stage(containers=2, partitions=4, slots={"a": 2, "b": 2}, host_affinity_s=0.5) as stage:
        cast = Cast(stage)
        cast.play(settled(2))
        homes = {p.number: p.host for p in cast.puppets}
        cast.of(1).handle.ended = other("killed")
        cast.play(lambda s: len(cast.puppets) == 3 and settled(2)(s))
        assert homes[1] == cast.of(1).host
        del stage.slots[homes[1]]
        cast.of(1).handle.ended = executor_lost("")
        status = cast.play(lambda s: len(cast.puppets) == 4 and settled(2)(s))
        assert homes[0] == cast.of(1).host
        assert "no executor on" in status["containers"][1]["affinity"]["reason"]
        assert {"hits": 2, "misses": 1} == {k: status["containers"][1]["affinity"][k] for k in ("hits", "misses")}


def test_a_host_that_comes_within_the_affinity_time_is_waited_for() -> None:
    with Stage(containers=2, partitions=4, slots={"a": 2, "b": 2}, host_affinity_s=30.0) as stage:
        cast = Cast(stage)
        cast.play(settled(2))
        lost = cast.of(1).host
        del stage.slots[lost]
        cast.of(1).handle.ended = executor_lost("")
        cast.play(lambda s: f"no executor on {lost}, waiting for it" == s["containers"][1]["reason"])
        stage.slots[lost] = 2
        cast.play(lambda s: len(cast.puppets) == 3 and settled(2)(s))
        assert lost == cast.of(1).host


def test_the_containers_of_a_host_that_is_being_decommissioned_leave_it_one_after_the_other() -> None:
    with Stage(containers=4, partitions=4, slots={"a": 2, "b": 2}, host_affinity_s=30.0) as stage:
        cast = Cast(stage)
        cast.play(settled(4))
        there = {p.number for p in cast.puppets if p.host == "a"}
        assert 2 == len(there)
        at_once: list[int] = []

        def left(status: dict[str, Any]) -> bool:
            at_once.append(sum(m.phase is not Phase.LIVE for m in stage.coordinator.roster.members.values()))
            return len(cast.puppets) == 6 and settled(4)(status)

        stage.decommissioned = {"a"}
        stage.slots = {"b": 4}  # it gets no new tasks
        status = cast.play(left)
        assert {"b"} == {c["host"] for c in status["containers"]}
        assert there == {p.number for p in cast.puppets[4:]}
        assert 1 == max(at_once)
        told = {(c["restarts"], c["last_restart"]["reason"]) for c in status["containers"] if c["id"] in there}
        assert {(0, "its host was being decommissioned")} == told


def test_a_host_that_lost_an_executor_and_has_another_keeps_its_other_containers() -> None:
    with Stage(containers=4, partitions=4, slots={"a": 2, "b": 2}, host_affinity_s=30.0) as stage:
        cast = Cast(stage)
        cast.play(settled(4))
        lost, stays = [p for p in cast.puppets if p.host == "a"]
        stage.decommissioned = {"a"}  # as Spark tells of a host one of whose executors was lost a moment ago
        stage.slots = {"b": 2}
        lost.handle.ended = executor_lost("")
        cast.play(lambda _: stage.coordinator.changes.is_under_way)
        stage.decommissioned, stage.slots = set(), {"a": 2, "b": 2}
        cast.play(lambda s: len(cast.puppets) == 5 and settled(4)(s) and not stage.coordinator.changes.is_under_way)
        assert stays is cast.of(stays.number)
        assert "a" == stage.coordinator.roster.members[stays.number].preferred_host


def test_without_a_slot_its_tasks_go_to_the_others_and_home_again_when_there_is_one() -> None:
    with Stage(containers=3, partitions=6, slots={"a": 1, "b": 1, "c": 1}, host_affinity_s=0.3) as stage:
        cast = Cast(stage)
        before = owners(cast.play(settled(3)))
        lost = cast.of(2).host
        others = {p.number: p.incarnation for p in cast.puppets[:2]}
        del stage.slots[lost]
        cast.of(2).handle.ended = executor_lost("")
        status = cast.play(lambda s: s["state"] == "RUNNING" and set(owners(s).values()) == {0, 1})
        assert "slots are taken; its tasks run elsewhere" in status["containers"][2]["reason"]
        assert others == {n: cast.of(n).incarnation for n in (0, 1)}, "the others never stop"
        stage.slots[lost] = 1
        assert before == owners(cast.play(settled(3)))
        assert lost == cast.of(2).host


def test_a_copy_takes_over_at_once_and_the_tasks_go_back_when_the_container_is_there_again() -> None:
    with Stage(containers=2, partitions=4, slots={"a": 1, "b": 1}, has_changelogs=True, standby=1) as stage:
        cast = Cast(stage)
        before = owners(cast.play(lambda s: settled(2)(s) and all(t["standby"] for t in s["tasks"])))
        assert all(c["host"] != cast.of(before[t["name"]]).host for t in stage.roster.status()["tasks"] for c in t["standby"])
        for puppet in cast.puppets:
            puppet.copies = dict.fromkeys(puppet.copies, 3)
        cast.of(1).handle.ended = other("killed")
        cast.play(lambda s: set(owners(s).values()) == {0} and all(t["state"] == "RUNNING" for t in s["tasks"]))

        def warm(status: dict[str, Any]) -> bool:
            for puppet in cast.puppets:
                puppet.copies = dict.fromkeys(puppet.copies, 3)
            return settled(2)(status)

        assert [2, 2] == [list(owners(cast.play(warm)).values()).count(n) for n in (0, 1)]


@pytest.mark.parametrize("kind", ["in_doubt_lost", "in_doubt_committed", "aborted"])
def test_a_record_of_a_move_that_is_in_doubt_is_looked_up_and_not_guessed(kind: str) -> None:
    with Stage(containers=1, partitions=4) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        stage.coordinator.changes.scale(2)
        cast.play(lambda s: any("released" in m["why"] for m in s["moves"]))
        stage.cluster.fail_next("commit", kind)
        assert [2, 2] == [list(owners(cast.play(settled(2))).values()).count(n) for n in (0, 1)]


def test_a_lost_lease_is_a_death_and_no_reason_to_end_the_job() -> None:
    with Stage() as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        puppet = cast.of(0)
        error = {"code": "SZ313", "message": "the coordinator was silent", "fatal": False, "exit_code": 5}
        stage.roster.report_final(0, puppet.incarnation, {"outcome": "superseded", "error": error})
        puppet.handle.ended = exited(5)
        cast.play(lambda s: len(cast.puppets) == 2 and settled(1)(s))
        assert stage.code is None


def test_partitions_that_come_are_given_to_tasks_of_their_own() -> None:
    counts = {"in": 2}
    input_topics = InputTopics({"topic-id": ("in", 2)}, lambda: group(counts, set(), has_stores=False))
    with Stage(containers=2, input_topics=input_topics, growth_s=0.1) as stage:
        cast = Cast(stage)
        cast.play(settled(2))
        assert {"topic-id": 2} == stage.ledger().first_partitions
        counts["in"] = 4
        status = cast.play(lambda s: len(s["tasks"]) == 4 and settled(2)(s) and None not in owners(s).values())
        assert [2, 2] == [list(owners(status).values()).count(n) for n in (0, 1)]


def test_partitions_that_a_broadcast_input_gets_are_said_in_log_and_status_as_long_as_nobody_reads_them(caplog: pytest.LogCaptureFixture) -> None:
    counts = {"in": 4, "rules": 1}
    tasks = group(counts, {"rules"}, has_stores=False)
    with Stage(containers=1, input_topics=InputTopics({}, lambda: group(counts, {"rules"}, has_stores=False)), growth_s=0.1) as stage:
        stage.roster.tasks.update(tasks)
        cast = Cast(stage)
        cast.play(settled(1))
        counts["rules"] = 2
        why = "rules[1]: added while the job runs; this run does not read them, the next `samzapy run` does"
        cast.play(lambda s: [why] * 4 == [t["reason"] for t in s["tasks"]])
        assert [f"{why}, from their start"] == [m for m in caplog.messages if "rules[1]" in m]
        assert stage.code is None


def test_partitions_that_nobody_reads_end_the_job_if_event_time_goes_on_without_them() -> None:
    """Else what is in them would be late in the next run."""
    counts = {"in": 4, "rules": 1}
    tasks = group(counts, {"rules"}, has_stores=False)
    found = InputTopics({}, lambda: group(counts, {"rules"}, has_stores=False), timed=frozenset({"rules"}))
    with Stage(containers=1, input_topics=found, growth_s=0.1) as stage:
        stage.roster.tasks.update(tasks)
        cast = Cast(stage)
        cast.play(settled(1))
        counts["rules"] = 2
        cast.play(lambda s: s["state"] != "RUNNING")
        assert stage.roster.failure is not None
        error = stage.roster.failure[1]
        assert ("SZ110", True) == (error["code"], str(error["message"]).startswith("rules[1]: added while the job runs."))
        assert 1 == exit_codes.of_run(error), "a service manager starts it again"


def test_settings_that_lose_state_are_said_once_and_shown_until_they_are_right_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    wrong = ""
    with Stage(containers=1, input_topics=InputTopics({}, check=lambda: wrong), growth_s=0.1) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        for wrong in ("log has cleanup.policy=delete", "log has cleanup.policy=delete; other has it too", ""):
            looks = stage.clock.monotonic() + 1.0
            cast.play(lambda s, wrong=wrong, looks=looks: s["reason"] == wrong and stage.clock.monotonic() > looks)
        first, second, right = (m for m in caplog.messages if "cleanup.policy" in m)
        assert first.startswith("log has cleanup.policy=delete. The job goes on")
        assert second.startswith("log has cleanup.policy=delete; other has it too. The job goes on")
        assert right.startswith("the settings of the job's topics are correct again")
        assert stage.code is None


def test_partitions_that_a_job_with_state_cannot_take_end_it_with_the_way_out() -> None:
    has_grown = False

    def look() -> dict[str, Any]:
        if has_grown:
            raise StateMismatch("4 partitions now, 2 when its state was begun.", "Give the job a new id.")
        return {}

    with Stage(input_topics=InputTopics({}, look), growth_s=0.1) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        has_grown = True
        cast.play(lambda s: cast.of(0).is_gone)
        assert StateMismatch.exit_code == stage.await_end()


@pytest.mark.parametrize("error", [ClusterUnreachable("no answer.", ""), LogError("not now.", ""), TopicMissing("a broker does not know it.", "")])
def test_a_look_at_the_topics_that_fails_ends_nothing(error: LogError) -> None:
    looks: list[int] = []

    def look() -> dict[str, Any]:
        looks.append(1)
        if len(looks) <= 3:
            raise error
        return group({"in": 4}, set(), has_stores=False)

    with Stage(containers=1, input_topics=InputTopics({}, look), growth_s=0.1) as stage:
        cast = Cast(stage)
        cast.play(lambda s: len(s["tasks"]) == 4 and settled(1)(s))
        assert stage.code is None


def test_a_topic_that_is_gone_ends_the_job_without_waiting_for_final_commits() -> None:
    is_lost = False

    def check() -> None:
        if is_lost:
            raise StateRefused("in: deleted and created again while the job ran.", "Bring it back.")

    with Stage(input_topics=InputTopics({}, check=check), growth_s=0.1) as stage:
        cast = Cast(stage)
        cast.play(settled(1))
        is_lost = True
        assert StateRefused.exit_code == stage.await_end()  # the container never answered
        assert not cast.of(0).is_gone


def test_a_container_that_finished_before_it_heard_of_a_task_is_started_again_for_it() -> None:
    def last_word(*ended: str) -> dict[str, Any]:
        return {"state": "STOPPED", "tasks": [{"name": t, "state": "STOPPED"} for t in ended], "outcome": "finished", "error": None}

    with Stage(partitions=2) as stage:
        _, launch, _ = stage.await_launch(1)
        assert ("Partition 0", "Partition 1") == stage.register(0, launch, "one", {"host": "h", "pid": 1}).tasks
        stage.roster.report_final(0, "one", last_word("Partition 0"))
        _, launch, _ = stage.await_launch(2)
        assert "Partition 1" in stage.register(0, launch, "two", {"host": "h", "pid": 2}).tasks
        assert 0 == stage.roster.status()["containers"][0]["restarts"]
        stage.roster.report_final(0, "two", last_word("Partition 0", "Partition 1"))
        assert 0 == stage.await_end()


def test_a_standby_copy_makes_way_for_the_container_on_its_host_that_the_task_moves_to() -> None:
    roster = Roster(JOB, "run", group({"in": 2}, set(), has_stores=True), 3, None, SystemClock())
    for number, host, standby in ((0, "a", ("Partition 0", "Partition 1")), (1, "b", ()), (2, "a", ())):
        owner = Owner(incarnation=f"i{number}", host=host)
        roster.members.add(Member(number=number, phase=Phase.LIVE, owner=owner, standby=standby, launch=Launch(handle=Handle())))
    roster.warm = {2: ["Partition 1"]}

    assert ["Partition 0"] == roster.heartbeat(0, "i0", {})["standby"]
    assert ["Partition 1"] == roster.heartbeat(2, "i2", {})["standby"]
