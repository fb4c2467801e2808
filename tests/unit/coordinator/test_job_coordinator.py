"""The coordinator on the in-memory log, with containers that are played by the test, on a clock that the test steps."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from samzapy.api.errors import Fenced, LauncherError, LogError, OwnedElsewhere, StateMismatch, StateRefused, Superseded
from samzapy.coordinator.job_coordinator import ATTEMPTS, BEGIN_S, JobCoordinator
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings, InputTopics, Process
from samzapy.model.caution import Caution, caution_from_json, piece_of
from samzapy.model.dead_letter import Origin
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import ContainerRecord, FirstRun, Ledger
from samzapy.model.process_end import ProcessEnd, exited, killed_by, other
from samzapy.plan import restarts
from samzapy.plan.grouping import group
from samzapy.ports import TopicSpec
from samzapy.readers import read_ledger
from samzapy.signing import BODY, TOO_OLD, Gate, is_signed_body, signed_headers
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from tests.unit.coordinator.stepped import SteppedClock

JOB = Job("job", "1")
LIMIT_S = 300.0  # of the stepped clock


class Handle:
    def __init__(self) -> None:
        self.ended: ProcessEnd | None = None

    def exited(self) -> ProcessEnd | None:
        return self.ended

    def kill(self) -> None:
        self.ended = self.ended or other("killed")


class Stage:
    """A launcher whose containers do nothing by themselves, and the coordinator that launches them. `beside` another one: over the same log,
    by the same clock. The coordinator's thread goes on only while something is awaited here, and for a turn at each look at the roster."""

    def __init__(
        self,
        beside: Stage | None = None,
        containers: int = 1,
        is_alive: Callable[[str], bool] = lambda url: False,
        partitions: int = 2,
        slots: dict[str, int | None] | None = None,
        input_topics: InputTopics | None = None,
        ends: dict[str, int] | None = None,
        **settings: Any,
    ) -> None:
        self.clock = beside.clock if beside else SteppedClock()
        self.cluster = beside.cluster if beside else MemoryCluster(self.clock)
        self.log = beside.log if beside else MemoryLog(self.cluster)
        self.log.admin().create([TopicSpec(JOB.coordinator_topic, 1)])
        self.launches: list[tuple[int, str, Handle]] = []
        self.asked_for: list[str | None] = []
        self.slots = slots or {"h": None}
        tasks = group({"in": partitions}, set(), has_stores=False)
        coordinator_settings = CoordinatorSettings(
            containers=containers, lease_s=settings.pop("lease_s", 30.0), host_affinity_s=settings.pop("host_affinity_s", 0.3),
            stop_timeout_s=5.0, **settings,
        )  # fmt: skip
        process = Process("h", 1, "s", lambda host, pid, start: False)
        self.coordinator = JobCoordinator(
            job=JOB,
            run_id=f"run-{id(self)}",
            tasks=tasks,
            payload={},
            ends=ends,
            settings=coordinator_settings,
            log=self.log,
            clock=self.clock,
            launcher=self,
            process=process,
            is_alive=is_alive,
            input_topics=input_topics,
        )
        self.decommissioned: set[str] = set()
        self.coordinator.listens_at("http://127.0.0.1:1", "")
        self.code: int | BaseException | None = None

    @property
    def roster(self) -> Roster:
        """What containers and people ask, after a turn of the coordinator."""
        self.clock.step()
        return self.coordinator.roster

    def hosts(self) -> Mapping[str, int | None]:
        assert not self.coordinator.roster.lock._is_owned(), "a launcher may be late, and heartbeats wait for the lock"  # type: ignore[attr-defined]
        return dict(self.slots)

    def leaving(self) -> Collection[str]:
        return self.decommissioned

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> Handle:
        handle = Handle()
        self.launches.append((container, str(payload["launch_id"]), handle))
        self.asked_for.append(preferred_host)
        return handle

    def close(self) -> None:
        for _, _, handle in self.launches:
            handle.kill()

    def __enter__(self) -> Stage:
        self.thread = self.clock.start(self._run)
        return self

    def _run(self) -> None:
        try:
            self.code = self.coordinator.run()
        except BaseException as error:
            self.code = error

    def __exit__(self, *_: object) -> None:
        self.coordinator.kill_now()
        self.await_end()

    def await_launch(self, number: int) -> tuple[int, str, Handle]:
        self.clock.until(lambda: len(self.launches) >= number, LIMIT_S, f"launch {number}")
        return self.launches[number - 1]

    def register(self, container: int, launch: str, incarnation: str, facts: Mapping[str, Any]) -> ContainerRecord:
        """Ask until it is named; the record that names it."""
        ask = self.coordinator.roster.register
        self.clock.until(lambda: ask(container, launch, incarnation, facts) is not None, LIMIT_S, f"container {container} is named")
        return self.ledger().containers[container]

    def await_end(self) -> int | BaseException | None:
        self.clock.until(lambda: self.code is not None, LIMIT_S, "the end of the run")
        return self.code

    def ledger(self) -> Ledger:
        return read_ledger(self.log.restore_consumer("t"), JOB.coordinator_topic, self.clock)


def beat(stage: Stage, incarnation: str, state: str = "RUNNING") -> str:
    tasks = [{"name": f"Partition {i}", "state": state, "processed": 1, "lag": 0} for i in range(2)]
    return str(stage.roster.heartbeat(0, incarnation, {"state": state, "tasks": tasks, "commits": 1})["command"])


def test_a_container_is_named_in_the_topic_before_it_is_answered() -> None:
    with Stage() as stage:
        _, launch, _ = stage.await_launch(1)
        given = stage.register(0, launch, "one", {"host": "here", "pid": 7})
        named = stage.ledger().containers[0]
        assert (named.incarnation, named.epoch, named.host) == ("one", given.epoch, "here")
        assert given.tasks == ("Partition 0", "Partition 1")
        assert beat(stage, "one") == "run"


def test_a_launch_registers_once_and_a_second_copy_of_it_is_refused() -> None:
    with Stage() as stage:
        _, launch, _ = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        stage.register(0, launch, "one", {})  # the same one again: its answer was lost
        with pytest.raises(Superseded):
            stage.register(0, launch, "copy", {})
        with pytest.raises(Superseded):
            stage.register(0, "unknown", "x", {})
        assert stage.ledger().containers[0].incarnation == "one"


def test_a_dead_container_is_ended_fenced_and_started_again() -> None:
    with Stage() as stage:
        began_ms = stage.clock.now_ms()
        _, launch, handle = stage.await_launch(1)
        first = stage.register(0, launch, "one", {"host": "h", "pid": 7})
        assert stage.roster.status()["containers"][0]["last_restart"] is None
        zombie = stage.log.transactional_producer(JOB.container_transactional_id(0))
        zombie.init()
        zombie.begin()
        handle.ended = killed_by(signal.SIGKILL)
        _, second_launch, _ = stage.await_launch(2)
        assert stage.ledger().containers[0].incarnation == ""
        zombie.send(JOB.coordinator_topic, b"late", b"late", 0)  # without a record a commit asks nobody
        with pytest.raises(Fenced):
            zombie.commit()
        with pytest.raises(Superseded):
            beat(stage, "one")
        assert stage.register(0, second_launch, "two", {}).epoch > first.epoch
        told = stage.roster.status()["containers"][0]
        assert told["restarts"] == 1
        assert ("killed by SIGKILL", "process 7 on h") == (told["last_restart"]["reason"], told["last_restart"]["process"])
        assert told["last_restart"]["at_ms"] >= began_ms


def test_a_container_that_falls_silent_loses_its_tasks_when_its_lease_is_over() -> None:
    with Stage(lease_s=0.5) as stage:
        _, launch, handle = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        stage.await_launch(2)
        assert str(handle.ended) == "killed"
        with pytest.raises(Superseded):
            beat(stage, "one")


@pytest.mark.parametrize("kind", ["in_doubt_lost", "in_doubt_committed", "aborted"])
def test_a_coordinator_topic_that_cannot_be_written_for_a_while_ends_nothing(kind: str) -> None:
    with Stage(lease_s=0.6) as stage:
        _, launch, handle = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        stage.cluster.fail_next("commit", kind)
        stage.cluster.fail_next("commit", kind)
        handle.ended = other("killed")
        _, second, _ = stage.await_launch(2)
        assert stage.ledger().containers[0].incarnation == ""
        stage.register(0, second, "two", {})
        assert stage.ledger().containers[0].incarnation == "two"
        assert stage.code is None


def test_a_budget_that_is_used_up_fails_the_job_with_the_story() -> None:
    with Stage(max_restarts=1) as stage:
        for number in (1, 2):
            _, launch, handle = stage.await_launch(number)
            stage.register(0, launch, f"i{number}", {})
            handle.ended = exited(9)
        assert stage.await_end() == 1
        error = stage.roster.status()["containers"][0]["last_error"]
        assert "died 2 times" in error
        assert "exit code 9" in error


def after(pid: int, predecessor: int) -> dict[str, Any]:
    """The facts of a process that found the trace of another."""
    return {"host": "h", "pid": pid, "predecessor_pid": predecessor, "predecessor_at": "task.py:3 in process"}


def test_the_stack_of_one_death_is_not_told_of_another() -> None:
    with Stage(max_restarts=2) as stage:
        for pid, facts in enumerate([{"host": "h", "pid": 1}, {"host": "other", "pid": 2}, after(3, 1)], 1):  # back on h, the first one's stack lies there
            _, launch, handle = stage.await_launch(pid)
            stage.register(0, launch, f"i{pid}", facts)
            handle.ended = other(f"killed by SIGKILL {pid}")
        assert stage.await_end() == 1
        error = stage.roster.status()["containers"][0]["last_error"]
        assert "killed by SIGKILL 2;" in error
        assert "task.py:3" not in error


def test_deaths_that_bring_the_search_for_a_record_nearer_do_not_use_the_budget_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stage(max_restarts=1) as stage:
        pieces = [None, (0, 500), (15, 30), (20, 21), (20, 21)]
        for number, bounds in enumerate(pieces, 1):
            _, launch, handle = stage.await_launch(number)
            stage.register(0, launch, f"i{number}", after(number, number - 1) if number > 1 else {"host": "h", "pid": 1})
            at = None if bounds is None else piece_of(("in", 0, offset) for offset in range(*bounds)).to_json()
            stage.roster.heartbeat(0, f"i{number}", {"state": "RUNNING", "number": 2, "under_way": at})
            stage.roster.heartbeat(0, f"i{number}", {"state": "RUNNING", "number": 1, "under_way": None})  # an older one that was late
            handle.ended = killed_by(signal.SIGSEGV)
        _, launch, handle = stage.await_launch(6)
        given = None
        while given is None:
            given = stage.roster.register(0, launch, "i6", after(6, 5))
        assert [(Origin("in", 0, 20), 2, "task.py:3 in process")] == [(c.record, c.deaths, c.place) for c in given.caution.condemned]
        assert stage.code is None
        handle.ended = killed_by(signal.SIGSEGV)  # and nobody knows where
        assert stage.await_end() == 1
        error = stage.roster.status()["containers"][0]["last_error"]
        assert "died 2 times" in error
        assert "killed by SIGSEGV, while it processed in[0]@20, at task.py:3 in process" in error


def test_a_record_that_ends_its_container_while_it_is_given_up_ends_the_job_whatever_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stage(max_restarts=100) as stage:
        for number in range(1, 6):
            _, launch, handle = stage.await_launch(number)
            stage.register(0, launch, f"i{number}", after(number, number - 1) if number > 1 else {"host": "h", "pid": 1})
            at = piece_of([("in", 0, 20)]).to_json() if number > 1 else None
            stage.roster.heartbeat(0, f"i{number}", {"state": "RUNNING", "number": 2, "under_way": at})
            handle.ended = exited(70)
        assert stage.await_end() == 1
        assert "record in[0]@20 ended it 4 times, the last times while `on_error` was applied" in stage.roster.status()["containers"][0]["last_error"]


@pytest.mark.parametrize("max_restarts", [2, 5])
def test_who_is_killed_from_outside_at_the_same_record_passes_nothing_by_and_ends_the_job_with_its_name(
    monkeypatch: pytest.MonkeyPatch, max_restarts: int
) -> None:
    monkeypatch.setattr(restarts, "FIRST_BACKOFF_S", 0.0)
    with Stage(max_restarts=max_restarts) as stage:
        for number in range(1, max_restarts + 3):
            _, launch, handle = stage.await_launch(number)
            stage.register(0, launch, f"i{number}", {})
            at = piece_of([("in", 0, 20)]).to_json() if number > 1 else None
            stage.roster.heartbeat(0, f"i{number}", {"state": "RUNNING", "number": 2, "under_way": at})
            handle.ended = killed_by(signal.SIGKILL)
        assert stage.await_end() == 1
        assert () == stage.roster.caution.condemned
        assert stage.roster.failure is not None
        error = stage.roster.failure[1]
        told = f"{max_restarts + 1} of its processes ended while only record in[0]@20 was processed; this does not prove that the record ended them"
        assert told in error["message"]
        assert "`samzapy checkpoint set JOB.yaml --topic in --partition 0 --to-offset 21 --keep-state --execute`" in error["remedy"]


def test_a_container_that_says_why_it_ended_makes_no_record_a_suspect() -> None:
    with Stage() as stage:
        _, launch, handle = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        at = piece_of([("in", 0, 5)]).to_json()
        error = {"code": "SZ301", "message": "no broker answers.", "fatal": False}
        stage.roster.heartbeat(0, "one", {"state": "RUNNING", "commits": 1, "under_way": at})
        stage.roster.report_final(0, "one", {"outcome": "failed", "under_way": at, "error": error})
        handle.ended = exited(1)
        stage.await_launch(2)
        assert Caution() == stage.roster.caution


def test_why_a_container_ended_itself_is_told_with_its_end_and_to_the_next_one() -> None:
    why = "SZ200: a hook on record in[0]@5 did not return within commit.timeout (60 s); it was at task.py:3 in process: hang()"
    with Stage() as stage:
        _, launch, handle = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        at = piece_of([("in", 0, 5)]).to_json()
        stage.roster.heartbeat(0, "one", {"state": "RUNNING", "commits": 1, "under_way": at, "ends": why})
        handle.ended = exited(5)
        _, launch, _ = stage.await_launch(2)
        given = None
        while given is None:
            given = stage.roster.register(0, launch, "two", {})
        assert f"exit code 5: {why}" == given.caution.why
        assert 1 == given.caution.deaths, "the record may be the reason"
        assert [(at, 1)] == [(suspect.piece.to_json(), suspect.proofs) for suspect in given.caution.suspects], "as of any process that ends by itself"
        assert f"exit code 5: {why}" == stage.roster.status()["containers"][0]["last_restart"]["reason"]
        assert given.caution == caution_from_json(given.caution.to_json())


def test_a_tasks_own_error_stops_the_job_without_a_restart_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with Stage(containers=2) as stage:
        handles = [stage.await_launch(number)[2] for number in (1, 2)]
        for number, launch, _ in stage.launches:
            stage.register(number, launch, f"i{number}", {})
        for number, message in ((0, "boom in 0."), (1, "boom in 1.")):
            error = {"code": "SZ200", "message": message, "fatal": True, "exit_code": 1}
            stage.roster.report_final(number, f"i{number}", {"outcome": "failed", "error": error})
            handles[number].ended = exited(1)
        assert stage.await_end() == 1
        assert len(stage.launches) == 2
        assert stage.roster.status()["state"] == "FAILED"
    lines = [record.getMessage() for record in caplog.records]
    assert [1, 1] == [sum(words in line for line in lines) for words in ("boom in 0.", "boom in 1.")], lines
    assert "boom in" in lines[-1], "what ended the job is the last that is said"


def test_a_container_that_gave_up_because_nobody_answered_it_is_started_again() -> None:
    with Stage() as stage:
        _, launch, handle = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        said = {"code": "SZ313", "message": "container 0 stops: the coordinator was silent.", "fatal": True, "exit_code": 5}
        stage.roster.report_final(0, "one", {"outcome": "superseded", "error": said})
        _, second, _ = stage.await_launch(2)
        assert stage.register(0, second, "two", {}).incarnation == "two"
        assert "the coordinator was silent" in str(stage.coordinator.roster.members[0].history.deaths[0])
        assert str(handle.ended) == "killed"
        assert stage.code is None


@pytest.mark.parametrize(
    ("ends", "said"),
    [(None, "was stopped; all its work is committed"), ({"in[0]": 9}, "was stopped, perhaps before the ends of its inputs; all its work is committed")],
)
def test_a_stop_is_told_with_the_heartbeat_and_the_job_ends_with_0(ends: dict[str, int] | None, said: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with Stage(ends=ends) as stage:
        _, launch, handle = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        assert beat(stage, "one") == "run"
        stage.coordinator.request_stop()
        assert beat(stage, "one") == "stop"
        stage.roster.report_final(0, "one", {"outcome": "stopped", "error": None})
        handle.ended = exited(0)
        assert stage.await_end() == 0
        assert f"job {JOB} {said}" in caplog.messages
        ledger = stage.ledger()
        assert ledger.lease is not None
        assert ledger.lease.ended
        assert ledger.containers[0].incarnation == ""


def test_an_error_that_ends_the_run_is_what_status_tells_of_it_later() -> None:
    class NoRoom(Stage):
        def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> Handle:
            raise LauncherError("no process can be started.", "")

    with NoRoom() as stage:
        assert stage.await_end() == LauncherError.exit_code
        lease = stage.ledger().lease
        assert lease is not None
        assert (True, "FAILED", "SZ340: no process can be started.") == (lease.ended, lease.outcome, lease.error)


def test_a_second_coordinator_is_refused_while_the_first_answers() -> None:
    with Stage() as first:
        _, launch, _ = first.await_launch(1)
        first.register(0, launch, "one", {})
        with Stage(first, is_alive=lambda url: True) as second:
            assert isinstance(second.await_end(), OwnedElsewhere)
        assert beat(first, "one") == "run"


def test_a_takeover_fences_the_old_coordinator_and_its_containers() -> None:
    with Stage(lease_s=0.9) as first:
        _, launch, _ = first.await_launch(1)
        first.register(0, launch, "one", {})
        epoch = first.ledger().epoch
        with Stage(first, is_alive=lambda url: True, takeover=True) as second:
            second.await_launch(1)
            assert second.ledger().containers[0].incarnation == ""
            assert second.ledger().epoch > epoch
            assert first.await_end() == Fenced.exit_code
            assert first.roster.status()["state"] == "FENCED"


def test_of_two_takeovers_at_once_the_one_that_was_fenced_ends_at_once() -> None:
    """An attacker found that it fenced the other one for thirty seconds first."""
    first = Stage()
    earlier = Stage(first, takeover=True).coordinator
    earlier._ownership.take_over()
    with Stage(first, takeover=True) as later:
        later.await_launch(1)
        with pytest.raises(Fenced):  # as the first write of its start does
            earlier._ownership.write((b"key", None))
        began = first.clock.monotonic()
        with pytest.raises(Fenced, match="has taken over"):
            earlier.begin()
        assert first.clock.monotonic() - began < BEGIN_S
        assert later.code is None


def test_a_producer_that_died_without_a_successor_ends_no_coordinator() -> None:
    """Met by chaos: a connection broke within a request, and librdkafka gave the producer up. Nobody had taken over."""
    with Stage(lease_s=3.0) as stage:
        _, launch, _ = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        intruder = stage.log.transactional_producer(JOB.coordinator_transactional_id)
        intruder.init()  # fences it, and writes nothing
        intruder.close()
        before, deadline = renewed_ms(stage), stage.clock.monotonic() + LIMIT_S
        while renewed_ms(stage) == before:
            assert beat(stage, "one") == "run"
            assert stage.clock.monotonic() < deadline, "the lease was not renewed any more"
        assert stage.ledger().containers[0].incarnation == "one"


def renewed_ms(stage: Stage) -> int:
    lease = stage.ledger().lease
    assert lease is not None
    return lease.renewed_ms


def test_control_requests_are_signed_fresh_and_used_once() -> None:
    gate, path = Gate("token"), "/control/heartbeat"
    good = signed_headers("token", "POST", path, b"{}", 100.0)
    assert gate.why_not("POST", path, good, 101.0) == ""
    assert "seen" in gate.why_not("POST", path, good, 102.0)
    assert "not signed" in gate.why_not("POST", "/control/finished", good, 101.0)
    assert "not signed" in gate.why_not("POST", path, {**good, BODY: signed_headers("token", "POST", path, b"{ }", 100.0)[BODY]}, 101.0)
    assert "not signed" in gate.why_not("POST", path, {}, 101.0)
    assert (True, False) == (is_signed_body(good, b"{}"), is_signed_body(good, b"{ }"))
    assert TOO_OLD == gate.why_not("POST", path, signed_headers("token", "POST", path, b"{}", 100.0), 1000.0)


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (FirstRun("another", 2), "was deleted and created again after the job's first run"),
        (FirstRun("topic", 4), "in: 4 partitions now, 2 when this job's state was created"),
        (FirstRun("topic", 2), None),
        (FirstRun("topic", 0), None),  # a job that has no stores any more
    ],
)
def test_what_the_first_run_found_every_other_must_find_before_anything_is_launched(found: FirstRun, error: str | None) -> None:
    inputs = {"in-id": ("in", 2)}
    with Stage(input_topics=InputTopics(inputs, first_run=FirstRun("topic", 2))) as first:
        first.await_launch(1)
        assert FirstRun("topic", 2) == first.ledger().first_run
    with Stage(first, input_topics=InputTopics(inputs, first_run=found), takeover=True) as again:
        if error is None:
            again.await_launch(1)
            assert found == again.ledger().first_run
            return
        ended = again.await_end()
        assert ([], FirstRun("topic", 2)) == (again.launches, again.ledger().first_run)
        with pytest.raises((StateRefused, StateMismatch), match=error):
            raise ended  # type: ignore[misc]


def test_a_coordinator_topic_whose_records_were_deleted_is_refused_before_anything_is_launched() -> None:
    with Stage() as first:
        first.await_launch(1)
        first.coordinator.request_stop()
        assert 0 == first.await_end()
    place = TopicPartition(JOB.coordinator_topic, 0)
    first.cluster.delete_records(place, 1)
    with Stage(first) as again:
        ended = again.await_end()
        assert [] == again.launches
        with pytest.raises(StateRefused, match=rf"{JOB.coordinator_topic} starts at offset 1: records before it were deleted"):
            raise ended  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["in_doubt_lost", "in_doubt_committed", "aborted", "suspicious"])
def test_a_run_whose_first_write_goes_wrong_begins_again_whoever_ran_the_job_before(kind: str) -> None:
    with Stage() as first:
        first.await_launch(1)
        first.coordinator.request_stop()
        assert 0 == first.await_end()
    second = Stage(first)
    second.cluster.fail_next("commit", kind)
    with second:
        _, launch, _ = second.await_launch(1)
        assert "one" == second.register(0, launch, "one", {}).incarnation
        assert second.code is None


def test_a_coordinator_whose_producer_fails_again_and_again_blames_no_other_run() -> None:
    stage = Stage()
    for _ in range(100):
        stage.cluster.fail_next("init", "fenced")
    with stage:
        stage.await_end()
    assert (LogError, True) == (type(stage.code), "times in a row" in str(stage.code)), stage.code


def test_a_start_is_tried_for_longer_than_a_few_late_requests_take() -> None:
    """Found by the simulation, seed 8129: within ten seconds of lost and late requests an own late init fenced the fifth attempt, and the run ended."""
    stage = Stage()
    for _ in range(ATTEMPTS + 2):
        stage.cluster.fail_next("init", "fenced")
    with stage:
        _, launch, _ = stage.await_launch(1)
        assert "one" == stage.register(0, launch, "one", {}).incarnation
        assert stage.code is None


@pytest.mark.parametrize(("replaces", "kind"), [("", Fenced), (None, LogError)])
def test_a_run_that_was_replaced_before_it_began_says_so_though_the_other_has_ended(replaces: str | None, kind: type[LogError]) -> None:
    """`replaces` "": it had looked before the other one came; None: it never could, and the other may have ended long ago."""
    with Stage() as other:
        other.await_launch(1)
        other.coordinator.request_stop()
        assert 0 == other.await_end()
    late = Stage(other).coordinator
    late._ownership.replaces = replaces
    assert kind is type(late._why_not_begun(Fenced("fenced.", ""), 5))
