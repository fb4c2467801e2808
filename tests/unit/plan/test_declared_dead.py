"""When a container is declared dead, and what else follows from what is known of it."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.model.process_end import exited, other, silent
from samzapy.plan.container_phases import Event, Phase
from samzapy.plan.declared_dead import (
    Dismiss,
    Fail,
    Finish,
    JobCondition,
    Judgement,
    Leave,
    LifeSigns,
    Limits,
    Lose,
    Wait,
    after_end,
    judge,
)

LIMITS = Limits(lease_s=10.0, register_timeout_s=120.0)
FATAL = {"code": "SZ200", "message": "boom", "fatal": True}
LATER = {"code": "SZ300", "message": "no broker answers.", "fatal": False}
NO_ACCESS = {"code": "SZ304", "message": "no.", "fatal": False}
STOPS = JobCondition(is_stopping=True)
GOES_ON = JobCondition()


@pytest.mark.parametrize(
    ("facts", "job", "expected"),
    [
        # nobody is lost who does not run
        (LifeSigns(phase=Phase.WANTED, is_launched=False, silent_s=1e6), GOES_ON, Wait()),
        (LifeSigns(phase=Phase.PARKED, is_launched=False, silent_s=1e6), GOES_ON, Wait()),
        (LifeSigns(phase=Phase.ENDING, exited=other("killed"), silent_s=1e6), GOES_ON, Wait()),
        (LifeSigns(phase=Phase.DONE, exited=other("killed"), silent_s=1e6), STOPS, Wait()),
        # while it starts
        (LifeSigns(phase=Phase.LAUNCHED, is_launched=False, silent_s=1e6), STOPS, Wait()),  # its launcher has not returned yet
        (LifeSigns(phase=Phase.LAUNCHED, silent_s=120.0), GOES_ON, Wait()),
        (LifeSigns(phase=Phase.LAUNCHED, silent_s=120.1), GOES_ON, Lose(other("did not register within 120 s, in which it starts and imports the job's modules"))),
        (LifeSigns(phase=Phase.APPLYING, silent_s=120.1), GOES_ON, Lose(other("did not register within 120 s, in which it starts and imports the job's modules"))),
        (LifeSigns(phase=Phase.APPLYING, exited=exited(1)), GOES_ON, Lose(exited(1))),
        # while it runs
        (LifeSigns(phase=Phase.LIVE, silent_s=10.0), GOES_ON, Wait()),
        (LifeSigns(phase=Phase.LIVE, silent_s=10.1), GOES_ON, Lose(silent(10.1, 10.0))),
        (LifeSigns(phase=Phase.STOPPING, silent_s=10.1), STOPS, Lose(silent(10.1, 10.0))),
        (LifeSigns(phase=Phase.LIVE, overdue=("a", "b")), GOES_ON, Lose(other("did not release a, b within its lease of 10 s"))),
        (LifeSigns(phase=Phase.LIVE, exited=other("killed"), silent_s=10.1, overdue=("a",)), GOES_ON, Lose(other("killed"))),  # the surest is said
        # when the job stops, those that were never named are not waited for; the others have a commit to make
        (LifeSigns(phase=Phase.WANTED, is_launched=False), STOPS, Dismiss()),
        (LifeSigns(phase=Phase.PARKED, is_launched=False), STOPS, Dismiss()),
        (LifeSigns(phase=Phase.LAUNCHED), STOPS, Dismiss()),
        (LifeSigns(phase=Phase.APPLYING), STOPS, Dismiss()),
        (LifeSigns(phase=Phase.LIVE), STOPS, Wait()),
        (LifeSigns(phase=Phase.STOPPING), STOPS, Wait()),
    ],
)
def test_what_is_seen_of_a_container(facts: LifeSigns, job: JobCondition, expected: Judgement) -> None:
    assert expected == judge(facts, job, LIMITS)


@pytest.mark.parametrize(
    ("outcome", "more", "job", "expected"),
    [
        ("finished", {}, GOES_ON, Finish()),
        ("finished", {}, STOPS, Finish()),
        ("finished", {"not_taken_up": ("c",)}, GOES_ON, Leave("it finished before it learned that it also has c")),
        ("finished", {"not_taken_up": ("c",)}, STOPS, Finish()),
        ("stopped", {}, GOES_ON, Leave()),
        ("stopped", {}, STOPS, Finish()),
        ("superseded", {"error": {"message": "it was paused."}}, GOES_ON, Lose(other("it was paused"))),
        ("superseded", {}, GOES_ON, Lose(other("it gave its tasks up"))),
        ("failed", {"error": FATAL}, GOES_ON, Fail(FATAL)),
        ("failed", {"error": LATER}, GOES_ON, Wait()),  # until its process has ended
        ("failed", {"error": LATER, "exited": exited(4)}, GOES_ON, Lose(exited(4))),
        ("failed", {"error": LATER}, JobCondition(all_failed_alike=True), Fail(LATER)),
        ("failed", {"error": NO_ACCESS, "refusals": 2}, GOES_ON, Wait()),
        ("failed", {"error": NO_ACCESS, "refusals": 3}, GOES_ON, Fail(NO_ACCESS)),
        ("failed", {"error": LATER, "refusals": 3}, GOES_ON, Wait()),
    ],
)
def test_what_a_container_says_of_its_end(outcome: str, more: dict[str, Any], job: JobCondition, expected: Judgement) -> None:
    assert expected == judge(LifeSigns(phase=Phase.LIVE, outcome=outcome, **more), job, LIMITS)


@pytest.mark.parametrize(
    ("is_asked", "is_stopping", "all_finished", "is_surplus", "expected"),
    [
        (False, False, False, False, Event.RESTART),
        (True, False, False, False, Event.RESTART),
        (True, False, True, False, Event.END),
        (False, False, True, False, Event.RESTART),  # it died: what it had not committed is to be done again
        (False, True, False, True, Event.END),
        (False, False, False, True, Event.REMOVE),
        (True, False, False, True, Event.REMOVE),
    ],
)
def test_what_follows_when_it_was_ended(is_asked: bool, is_stopping: bool, all_finished: bool, is_surplus: bool, expected: Event) -> None:
    assert expected is after_end(is_asked, is_stopping, all_finished, is_surplus)
