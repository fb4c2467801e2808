"""Hints of a job over time: what containers report and what happens to them, until the sentence that people read."""

from __future__ import annotations

import pytest

from samzapy.coordinator.diagnosing import growth_mib
from samzapy.coordinator.events import CONTAINER
from tests.page.scenes import Failing, Restoring, Scene, Skewed, Stuck, Well

MIB = 2**20


def act(scene: Scene) -> list[str]:
    return [hint["code"] for hint in scene.roster.diagnosing.to_json() if hint["severity"] == "act"]


@pytest.mark.parametrize(("kind", "codes"), [(Well, []), (Skewed, ["skew"]), (Stuck, ["stuck-hook"]), (Restoring, []), (Failing, ["flapping"])])
def test_a_job_in_trouble_has_its_hint_and_no_other_that_needs_somebody(kind: type[Scene], codes: list[str]) -> None:
    scene = kind().play()
    assert codes == act(scene)
    if kind is Well:
        assert [] == scene.roster.diagnosing.to_json()
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
        scene.roster.events.add(CONTAINER, "died", "container 1 died: killed", container=1)
        scene.roster.events.take(1, "i2", [restored("Partition 1", 1), restored("Partition 4", 2)])
    for _ in range(20):
        scene.clock.ago_s -= 2.0
        scene.step(2.0)
    assert ["2 of 12 tasks were rebuilt from their changelogs after a death, 8 s in all."] == [h["sentence"] for h in scene.roster.diagnosing.to_json()]
    scene.close()


def test_memory_grows_only_if_it_does_so_for_ten_minutes_without_a_pause() -> None:
    leak = [(10.0 * n, 700 * MIB + int(5 * n * MIB)) for n in range(61)]
    filled = [(10.0 * n, 700 * MIB + min(200, 20 * n) * MIB) for n in range(61)]
    assert 30.0 == pytest.approx(growth_mib(leak))
    assert 0.0 == growth_mib(filled)
    assert 0.0 == growth_mib(leak[:30]), "five minutes of it"
    assert 0.0 == growth_mib([(at, 700 * MIB) for at, _ in leak])
