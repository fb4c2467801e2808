"""Kafka answers, and refuses the coordinator's records for good, as it does where the clock of the driver's host is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from samzapy.api.errors import StateRefused, TimestampRefused
from samzapy.model.process_end import exited
from samzapy.ports import TopicSpec
from tests.unit.coordinator.test_job_coordinator import JOB, Stage, beat

TWO_HOURS_MS = 7_200_000


@contextmanager
def a_job_whose_clock_goes_wrong(containers: int = 1) -> Iterator[Stage]:
    """Each of its containers runs; nothing can be written to the coordinator topic any more."""
    with Stage(containers=containers, lease_s=3.0) as stage:
        for number in range(containers):
            stage.await_launch(number + 1)
        for number, launch, _ in list(stage.launches):
            stage.register(number, launch, f"i{number}", {"host": "h", "pid": number})
        stage.cluster.clients_ahead_ms = TWO_HOURS_MS
        yield stage


def await_refusal(stage: Stage) -> None:
    stage.clock.until(lambda: keep_beating(stage) and bool(stage.roster.status()["reason"]), 30.0, "the lease is to be renewed")


def keep_beating(stage: Stage) -> bool:
    for number in stage.coordinator.roster.members:
        stage.coordinator.roster.heartbeat(number, f"i{number}", {"state": "RUNNING", "commits": 1})
    return True


@pytest.mark.parametrize("reported", ["before the write is in doubt", "afterwards"])
def test_a_container_that_fails_ends_the_job_although_nothing_can_be_written(reported: str, caplog: pytest.LogCaptureFixture) -> None:
    with a_job_whose_clock_goes_wrong() as stage:
        if reported == "afterwards":
            await_refusal(stage)
        began_s = stage.clock.monotonic()
        error = {"code": "SZ200", "message": "boom.", "fatal": True, "exit_code": 3}
        stage.coordinator.roster.report_final(0, "i0", {"outcome": "failed", "error": error})
        stage.launches[0][2].ended = exited(1)
        assert 3 == stage.await_end()
        assert stage.clock.monotonic() - began_s < 5.0
        (container,) = stage.coordinator.roster.status()["containers"]
        assert ("FAILED", "SZ200: boom.") == (container["state"], container["reason"])
    assert "container 0 failed with error SZ200: the job is being stopped" in caplog.text


def test_a_container_that_dies_shows_why_it_waits_and_ends_the_job_when_the_refusals_do_not() -> None:
    with a_job_whose_clock_goes_wrong() as stage:
        await_refusal(stage)
        stage.launches[0][2].ended = exited(9)
        stage.clock.until(lambda: stage.roster.status()["containers"][0]["state"] == "LOST", 5.0, "its death is seen")
        status = stage.roster.status()
        assert "exit code 9; waits until the coordinator topic can be written" == status["containers"][0]["reason"]
        assert "SZ316" in status["reason"]
        assert "clock" in status["reason"]
        assert "RUNNING" != status["state"]
        assert TimestampRefused.exit_code == stage.await_end()
        assert "SZ316" == stage.coordinator.roster.failure[1]["code"]  # type: ignore[index]
        assert 1 == len(stage.launches)


def test_a_container_that_dies_is_started_again_when_the_clock_is_right_again() -> None:
    with a_job_whose_clock_goes_wrong() as stage:
        await_refusal(stage)
        stage.launches[0][2].ended = exited(9)
        stage.clock.until(lambda: stage.roster.status()["containers"][0]["state"] == "LOST", 5.0, "its death is seen")
        stage.cluster.clients_ahead_ms = 0
        _, launch, _ = stage.await_launch(2)
        assert "" == stage.roster.status()["reason"]
        assert "again" == stage.register(0, launch, "again", {}).incarnation


def test_healthy_containers_go_on_and_a_stop_ends_them_at_once(caplog: pytest.LogCaptureFixture) -> None:
    with a_job_whose_clock_goes_wrong(containers=2) as stage:
        until_s = stage.clock.monotonic() + 130.0
        stage.clock.until(lambda: (keep_beating(stage) and stage.roster.is_stopping) or stage.clock.monotonic() > until_s, 200.0, "two minutes")
        assert stage.code is None
        assert {"RUNNING"} == {c["state"] for c in stage.roster.status()["containers"]}
        told = [r for r in caplog.records if "could not be written" in r.getMessage()]
        assert 2 <= len(told) <= 4
        stage.coordinator.request_stop()
        assert "stop" == beat(stage, "i0")
        asked_s = stage.clock.monotonic()
        for number in range(2):
            why = None if number else {"code": "SZ316", "message": "the clock.", "fatal": False, "exit_code": 1}
            stage.coordinator.roster.report_final(number, f"i{number}", {"outcome": "stopped", "error": why})
        assert 0 == stage.await_end()
        assert stage.clock.monotonic() - asked_s < 5.0
    assert "container 0 made no final commit" in caplog.text
    assert "all its work is committed" not in caplog.text


def test_a_stop_does_not_wait_for_a_container_that_cannot_be_ended_in_the_topic() -> None:
    with a_job_whose_clock_goes_wrong() as stage:
        await_refusal(stage)
        stage.launches[0][2].ended = exited(9)
        stage.clock.until(lambda: stage.roster.status()["containers"][0]["state"] == "LOST", 5.0, "its death is seen")
        asked_s = stage.clock.monotonic()
        stage.coordinator.request_stop()
        assert 0 == stage.await_end()
        assert stage.clock.monotonic() - asked_s < 4.0  # a stop's own patience is 5 s here


@pytest.mark.parametrize(("is_made_again", "what"), [(False, "deleted while"), (True, "deleted and created again while")])
def test_a_coordinator_topic_that_is_gone_ends_the_job_by_its_name_before_a_write_waits_for_it(
    is_made_again: bool, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Stage(lease_s=3.0) as stage:
        stage.await_launch(1)
        stage.cluster.delete(JOB.coordinator_topic)
        if is_made_again:
            stage.log.admin().create([TopicSpec(JOB.coordinator_topic, 1)])
        assert StateRefused.exit_code == stage.await_end()
    assert f"{JOB.coordinator_topic}: {what} the job ran" in caplog.text
    assert re.search(r"`samzapy run [^`]+` makes this topic", caplog.text)  # a test before it may have named its job file
    assert "the next run waits until the lease has ended" not in caplog.text
