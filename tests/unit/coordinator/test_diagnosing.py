"""Hints of a job over time: what containers report and what happens to them, until the sentence that people read."""

from __future__ import annotations

import pytest

from samzapy.coordinator.diagnosing import job_facts
from samzapy.coordinator.events import CONTAINER
from samzapy.model.offsets import TopicPartition
from samzapy.model.process_end import other
from samzapy.plan.open_transaction import OpenTransaction, reason_json
from tests.page.scenes import Failing, Restoring, Scene, Skewed, Stuck, Well


def act(scene: Scene) -> list[str]:
    return [hint["code"] for hint in scene.roster.diagnosing.to_json() if hint["severity"] == "act"]


@pytest.mark.parametrize(("kind", "codes"), [(Well, []), (Skewed, ["skew"]), (Stuck, ["stuck-hook"]), (Restoring, []), (Failing, ["flapping"])])
def test_a_job_in_trouble_has_its_hint_and_no_other_that_needs_somebody(kind: type[Scene], codes: list[str]) -> None:
    scene = kind().play()
    assert codes == act(scene)
    if kind is Well:
        assert [] == scene.roster.diagnosing.to_json()
    if kind is Failing:
        assert any(hint["sentence"].startswith("Container 2 is probably out of memory: it died 4 times") for hint in scene.roster.diagnosing.to_json())
    scene.close()


def test_code_that_kept_the_interpreter_is_named_at_once_and_forgotten_when_it_is_over() -> None:
    scene = Well()
    scene.play()
    with scene.roster.lock:
        held = {"n": 1, "at_ms": scene.clock.now_ms(), "at": "pay.py:9 in check", "seconds": 5.0}
        scene.roster.events.take_held(1, "i1", [held])
    for _ in range(6):
        scene.clock.ago_s -= 2.0
        scene.step(2.0)
    assert ["interpreter-held"] == act(scene)
    assert "for more than 5.0 s, at pay.py:9 in check" in scene.roster.status()["hints"][0]["sentence"]
    for _ in range(45):
        scene.clock.ago_s -= 2.0
        scene.step(2.0)
    assert [] == act(scene)
    scene.close()


def test_tasks_that_were_rebuilt_after_a_death_are_told_and_those_of_a_start_are_not() -> None:
    def restored(task: str, n: int) -> dict[str, object]:
        return {"n": n, "kind": "restore", "task": task, "store": "counts", "source": "changelog", "records": 9, "seconds": 4.0, "at_ms": scene.clock.now_ms()}

    scene = Well()
    with scene.roster.lock:
        scene.roster.events.take(1, "i1", [restored("Partition 1", 1), restored("Partition 4", 2)])
    scene.play()
    assert [] == scene.roster.diagnosing.to_json()
    with scene.roster.lock:
        scene.roster.events.add(CONTAINER, "died", "container 1 died: killed", container=1, end=other("killed").to_json())
        scene.roster.events.take(1, "i2", [restored("Partition 1", 1), restored("Partition 4", 2)])
    for _ in range(20):
        scene.clock.ago_s -= 2.0
        scene.step(2.0)
    assert ["2 of 12 tasks were rebuilt from their changelogs after a death, 8 s in all."] == [h["sentence"] for h in scene.roster.diagnosing.to_json()]
    scene.close()


def test_why_a_container_ended_is_told_as_long_as_a_record_is_searched_for() -> None:
    """Its death is forgotten after ten minutes; while it is searched for, the hint said "without a known reason" beside the reason in `status`."""
    scene = Well()
    scene.play()
    status = scene.roster.status()
    status["containers"][1]["last_restart"] = {"at_ms": 0, "process": "host-1", "reason": "killed by SIGKILL"}
    scene.roster.diagnosing.look(status, {1: {"under_way": ["in", 0, 1, 2]}})
    (hint,) = [hint for hint in scene.roster.diagnosing.to_json() if hint["code"] == "searching"]
    assert str(hint["sentence"]).startswith("Container 1 ended (killed by SIGKILL), and was started again.")
    scene.close()


def test_records_that_are_almost_all_too_late_are_told() -> None:
    scene = Well()
    scene.play()
    status = scene.roster.status()
    for n in range(4):
        late = [{**task, "operators": {"clicks": {"in": 100 * n, "out": 0, "late": 99 * n}}} for task in status["tasks"][:1]]
        scene.roster.diagnosing.look({**status, "tasks": [*late, *status["tasks"][1:]]}, {})
    (hint,) = [hint for hint in scene.roster.diagnosing.to_json() if hint["code"] == "too-late"]
    assert hint["sentence"].startswith("99 % of the records that Partition 0 got for clicks in the last minute were too late")
    scene.close()


def test_times_in_seconds_are_told_with_what_to_do() -> None:
    def told(**watermarks: int | None) -> list[dict[str, object]]:
        scene = Well()
        scene.play()
        status = scene.roster.status()
        time = {stage: {"watermark": at} for stage, at in watermarks.items()}
        for _ in range(3):
            scene.roster.diagnosing.look({**status, "tasks": [{**task, "time": time} for task in status["tasks"]]}, {})
        hints = [hint for hint in scene.roster.diagnosing.to_json() if hint["code"] == "times-in-seconds"]
        scene.close()
        return hints

    (hint,) = told(**{"halls-1-by-hall": 1_699_999_000, "readings": 1_700_000_000, "other": None})
    assert str(hint["sentence"]).startswith("Event time of readings in Partition 0 is 1970-01-20 16:13:20 UTC: its records' times look like seconds")
    assert hint["severity"] == "act"
    assert "multiply them by 1000" in str(hint["remedy"])
    assert [] == told(readings=1_700_000_000_000, small=60_000, none=None)


def test_slow_decisions_of_the_brokers_are_forgotten_soon_and_those_of_seldom_commits_are_not() -> None:
    def decided(at_ms: int, seconds: float) -> dict[str, object]:
        return {"container": 0, "at_ms": at_ms, "parts": {"decide": seconds}}

    def told(now_ms: int, *commits: dict[str, object]) -> float | None:
        return job_facts(scene.roster.status(), {}, commits, [], now_ms).containers[0].decide_s

    scene = Well()
    scene.step(2.0)
    assert 1.0 == told(20_000, decided(10_000, 1.0), decided(19_000, 0.01))
    assert 0.01 == told(31_000, decided(10_000, 1.0), decided(19_000, 0.01))
    assert 1.0 == told(65_000, decided(10_000, 1.0)), "one commit a minute"
    assert told(75_000, decided(10_000, 1.0)) is None
    scene.close()


def test_deletions_that_a_task_may_have_missed_are_told_as_its_container_reports_them() -> None:
    missed = [{"topic": "users", "partition": "users[0]", "sentence": "It may have missed deletions.", "remedy": "Fill it again."}]
    scene = Well()
    scene.play()
    status = scene.roster.status()
    task = status["tasks"][0]
    for _ in range(3):
        scene.roster.diagnosing.look(status, {task["container"]: {"tasks": [{"name": task["name"], "reason": "", "unread_deletions": missed}]}})
    told = [(hint["severity"], hint["sentence"], hint["remedy"]) for hint in scene.roster.diagnosing.to_json() if hint["code"] == "unread-deletions"]
    scene.close()
    assert [("look", "It may have missed deletions.", "Fill it again.")] == told


class Idle(Scene):
    """Three containers for the work of less than one."""

    is_busy = False

    def arriving(self, name: str) -> float:
        return 4000.0 if self.is_busy else 200.0

    def told_after(self, most_s: float, turn_s: float = 10.0) -> float | None:
        """The seconds until the only hint is told that it has too many containers; None: it is not within so many."""
        began = self.time
        while self.time - began < most_s:
            self.clock.ago_s -= turn_s
            self.step(turn_s)
            told = self.roster.diagnosing.to_json()
            if told:
                assert ["over-provisioned"] == [hint["code"] for hint in told]
                return self.time - began
        return None


def test_more_containers_than_are_needed_are_told_after_half_an_hour_of_that_and_a_busy_minute_begins_it_anew() -> None:
    scene = Idle()
    assert scene.told_after(600) is None
    scene.is_busy = True
    assert scene.told_after(60) is None
    scene.is_busy = False
    assert 1790 <= (scene.told_after(1900) or 0) <= 1860
    (hint,) = scene.roster.diagnosing.to_json()
    assert ("know", "samzapy scale JOB.yaml --containers 1") == (hint["severity"], hint["remedy"])
    scene.close()


def test_looks_that_come_late_do_not_make_the_half_hour_longer() -> None:
    scene = Idle()
    assert 1790 <= (scene.told_after(2200, turn_s=4.0) or 0) <= 1860
    scene.close()


def test_a_task_that_waits_for_a_strangers_transaction_is_told_with_where_to_look() -> None:
    scene, waits = Well(), OpenTransaction(TopicPartition("visits", 3), 912)
    scene.play()
    status = scene.roster.status()
    told = reason_json(waits)
    status["tasks"][3]["reason"] = told["reason"]
    number = status["tasks"][3]["container"]
    for _ in range(3):
        scene.roster.diagnosing.look(status, {number: {"tasks": [{"name": "Partition 3", **told}]}})
    (hint,) = scene.roster.diagnosing.to_json()
    assert f"Partition 3 waits: {waits}." == hint["sentence"]
    assert "describe-producers --topic visits --partition 3` gives the ProducerId" in hint["remedy"]
    of_the_jobs_own = reason_json(OpenTransaction(TopicPartition("visits", 3), 912, is_jobs_own=True))
    assert ["reason"] == list(of_the_jobs_own)
    scene.close()
