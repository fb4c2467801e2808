"""Orders to all containers: how they travel, what state the job is in meanwhile, and that a container that starts again has them too."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.container.heartbeat import instructions_from
from samzapy.model.process_end import killed_by
from samzapy.web.live import Live
from tests.unit.coordinator.test_job_coordinator import JOB, Stage

ABOUT = {"job": JOB.name, "id": JOB.id}


def beat(stage: Stage, incarnation: str, number: int = 0, **more: Any) -> dict[str, Any]:
    tasks = [{"name": f"Partition {i}", "state": "RUNNING", "processed": 1, "lag": 5} for i in stage.coordinator.roster.members[number].tasks and range(2)]
    return stage.roster.heartbeat(number, incarnation, {"state": "RUNNING", "tasks": tasks, "commits": 1, **more})


def test_a_pause_holds_for_every_container_until_it_is_resumed() -> None:
    with Stage() as stage:
        live = Live(stage.coordinator, ABOUT)
        _, launch, handle = stage.await_launch(1)
        stage.register(0, launch, "one", {"host": "h", "pid": 7})
        beat(stage, "one")
        assert ("RUNNING", None, "") == tuple(stage.roster.status()[name] for name in ("state", "paused", "reason"))

        told = live.pause("ann (127.0.0.1)", dry_run=True)
        assert not instructions_from(beat(stage, "one")).paused
        assert told == live.pause("ann (127.0.0.1)", dry_run=False)
        answer = beat(stage, "one")
        assert instructions_from(answer).paused
        assert answer["again_s"] < 1.0, "it is to act soon"
        assert "RUNNING" == stage.roster.state, "it has not said yet that it stands"
        beat(stage, "one", paused=True)
        status = stage.roster.status()
        assert ("PAUSED", "ann (127.0.0.1)") == (status["state"], status["paused"]["by"])
        assert "paused by ann (127.0.0.1)" in status["reason"]
        assert "samzapy resume JOB.yaml" in status["reason"]
        assert "nothing changes" in live.pause("bob", dry_run=False)["effect"]
        assert "ann (127.0.0.1)" == stage.roster.status()["paused"]["by"]

        handle.ended = killed_by(signal.SIGKILL)
        _, again, _ = stage.await_launch(2)
        assert "DEGRADED" == stage.roster.state
        given = None
        while given is None:
            given = stage.roster.register(0, again, "two", {"host": "h", "pid": 8})
        assert given.paused, "before it can process anything"
        beat(stage, "two", paused=True)
        assert "PAUSED" == stage.roster.state

        assert "go on where they stand" in live.resume("bob", dry_run=True)["effect"]
        assert "PAUSED" == stage.roster.state
        live.resume("bob", dry_run=False)
        assert not instructions_from(beat(stage, "two", paused=True)).paused
        beat(stage, "two", paused=False)
        assert ("RUNNING", None) == (stage.roster.state, stage.roster.status()["paused"])
        assert "the job is not paused" in live.resume("bob", dry_run=False)["effect"]
        asked = [e["text"] for e in stage.roster.events.since() if e["kind"] == "people"]
        assert ["ann (127.0.0.1) asked for: pause", "bob asked for: resume"] == [text.partition(";")[0] for text in asked]
        states = [e["state"] for e in stage.roster.events.since() if e["kind"] == "job" and e["what"] == "state"]
        assert ["RUNNING", "PAUSED", "DEGRADED", "PAUSED", "RUNNING"] == states


def test_a_paused_job_falls_behind_and_no_hint_says_that_it_is_stuck() -> None:
    with Stage(lease_s=1000.0) as stage:
        _, launch, _ = stage.await_launch(1)
        stage.register(0, launch, "one", {"host": "h", "pid": 7})
        beat(stage, "one")
        Live(stage.coordinator, ABOUT).pause("ann", dry_run=False)
        beat(stage, "one", paused=True, loop={"process": 0.0, "commit": 0.0, "wait_input": 100.0, "wait_output": 0.0, "restore": 0.0, "other": 0.0})
        stage.clock.sleep(100.0)
        assert [] == stage.roster.status()["hints"]


def test_a_commit_has_a_number_that_grows_and_is_asked_for_until_it_is_told() -> None:
    with Stage() as stage:
        live = Live(stage.coordinator, ABOUT)
        _, launch, _ = stage.await_launch(1)
        stage.register(0, launch, "one", {})
        assert 0 == live.commit("ann", dry_run=True)["number"]
        assert 1 == live.commit("ann", dry_run=False)["number"]
        answer = beat(stage, "one")
        assert (1, True) == (instructions_from(answer).commit, "again_s" in answer)
        beat(stage, "one", ordered=1)
        assert 1 == stage.roster.status()["containers"][0]["ordered"]
        assert 2 == live.commit("ann", dry_run=False)["number"]
        stage.coordinator.request_stop("ann")
        for refused in (live.pause, live.commit):
            with pytest.raises(ConfigurationError, match="the job is stopping"):
                refused("ann", False)


def test_a_stop_tells_how_to_start_the_job_again_as_it_ran() -> None:
    with Stage() as stage:
        assert "`samzapy run JOB.yaml --local`" in Live(stage.coordinator, ABOUT, options="--local").stop("ann", dry_run=True)["effect"]
        assert "`samzapy run JOB.yaml`" in Live(stage.coordinator, ABOUT).stop("ann", dry_run=True)["effect"]
