"""What the coordinator keeps of what happened: events, commits, groups of errors."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from samzapy.coordinator.events import MAX_EVENTS, MAX_OF_TASKS, Events
from samzapy.coordinator.membership import Member, Owner
from samzapy.coordinator.roster import Roster
from samzapy.model.job_model import TaskModel
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.process_end import killed_by
from samzapy.model.states import ContainerState
from samzapy.plan.container_phases import Phase
from samzapy.testing.manual_clock import ManualClock

COMMIT = {"kind": "commit", "at_ms": 5, "why": "interval", "seconds": 0.03, "newest_s": 0.1, "oldest_s": 0.4}
ERROR = {"kind": "error", "type": "ValueError", "place": "counts.py:31", "first_ms": 1, "last_ms": 2, "tasks": ["Partition 0"], "text": "bad"}


def roster_of_one() -> tuple[Roster, ManualClock]:
    clock = ManualClock()
    tasks = {"Partition 0": TaskModel("Partition 0", 0, (TopicPartition("visits", 0),))}
    roster = Roster(Job("views", "1"), "run", tasks, 1, None, clock)
    roster.members.add(Member(number=0, phase=Phase.LIVE, state=ContainerState.RUNNING, owner=Owner(incarnation="a", tasks=("Partition 0",), host="h")))
    return roster, clock


def report(number: int, news: list[dict[str, Any]], processed: int = 0, lag: int = 0) -> dict[str, Any]:
    task = {"name": "Partition 0", "state": "RUNNING", "lag": lag, "processed": processed, "busy_s": processed / 1000, "event_ms": 1}
    loop = {"process": processed / 1000, "wait_input": 1.0}
    return {"state": "RUNNING", "number": number, "tasks": [task], "news": news, "loop": loop, "sent": {"counts": processed}}


def test_what_is_told_twice_counts_once() -> None:
    roster, _ = roster_of_one()
    news = [{"n": 1, **COMMIT}, {"n": 2, **ERROR, "count": 3}]

    assert 2 == roster.heartbeat(0, "a", report(1, news))["told"]
    roster.heartbeat(0, "a", report(2, [*news, {"n": 3, **ERROR, "count": 4}]))

    assert ["interval"] == [commit["why"] for commit in roster.events.commits()]
    assert [("ValueError", 4)] == [(group["type"], group["count"]) for group in roster.events.errors()]


def test_errors_of_an_earlier_process_are_not_forgotten() -> None:
    events = Events(ManualClock())
    events.take(0, "a", [{"n": 1, **ERROR, "count": 3}])
    events.take(0, "b", [{"n": 1, **ERROR, "count": 2, "tasks": ["Partition 1"]}])

    (group,) = events.errors()
    assert 5 == group["count"]
    assert ["Partition 0", "Partition 1"] == group["tasks"]


def test_each_change_of_a_state_is_an_event_once() -> None:
    roster, _ = roster_of_one()
    roster.state = "RUNNING"
    roster.state = "RUNNING"
    roster.members.lose(roster.members[0], killed_by(signal.SIGKILL))

    assert ["the job is RUNNING", "container 0 died: killed by SIGKILL"] == [event["text"] for event in roster.events.since()]
    assert ["died"] == [event["what"] for event in roster.events.since(1)]


def test_events_have_a_limit() -> None:
    events = Events(ManualClock())
    for n in range(MAX_EVENTS + 5):
        events.add("job", "state", str(n))

    assert MAX_EVENTS == len(events.since())
    assert MAX_EVENTS + 5 == events.last


@pytest.mark.parametrize("kind", ["restore", "task"])
def test_restores_and_moves_of_many_tasks_push_no_other_events_out(kind: str) -> None:
    events = Events(ManualClock())
    events.add("job", "state", "the job is RUNNING")
    for n in range(MAX_EVENTS):
        events.add(kind, "restored", str(n))
    events.add("container", "died", "container 0 died")

    kept = events.since()
    assert ["the job is RUNNING", *map(str, range(MAX_EVENTS - MAX_OF_TASKS, MAX_EVENTS)), "container 0 died"] == [e["text"] for e in kept]
    assert [str(MAX_EVENTS - 1), "container 0 died"] == [e["text"] for e in events.since(events.last - 2)]
    assert [] == events.since(events.last)


def test_status_tells_rates_of_task_container_and_job() -> None:
    roster, clock = roster_of_one()
    roster.heartbeat(0, "a", report(1, []))
    roster.look()
    clock.sleep(2.0)
    roster.heartbeat(0, "a", report(2, [{"n": 1, **COMMIT, "at_ms": clock.now_ms()}], processed=500, lag=40))
    roster.look()

    status = roster.status()
    (task,), (container,) = status["tasks"], status["containers"]
    assert (250.0, 0.25, 1000.0) == (task["rate"], task["busy"], task["us"])
    assert 1.0 == container["loop"]["process"]
    assert "BUSY" == container["badge"]
    assert (250.0, 250.0, 40, 20.0, None) == tuple(status["rates"][name] for name in ("in", "out", "lag", "lag_rate", "caught_up_in_s"))
    assert {"least_s": 0.1, "most_s": 0.4} == status["rates"]["end_to_end"]
    assert [0, 40] == [point["lag"] for point in roster.observed.series(2.0)]


def test_a_hint_is_in_the_status_and_on_the_timeline() -> None:
    roster, clock = roster_of_one()
    hook = {"silent_s": 12.5, "at": "pay.py:31 in charge", "record": " on record visits[0]@7"}
    for n in range(12):
        clock.sleep(1.0)
        roster.heartbeat(0, "a", {**report(n + 1, []), "now": hook})
        roster.look()

    (hint,) = roster.status()["hints"]
    (told,) = [event for event in roster.events.since() if event["what"] == "hint"]
    assert told["at_ms"] - 12_500 == hint["since_ms"], "since the code was called, not since it was noticed"
    assert ("stuck-hook", "act") == (hint["code"], hint["severity"])
    assert "Code of the job in container 0 on record visits[0]@7 has not returned for 12 s; it is at pay.py:31 in charge." == hint["sentence"]
    assert [hint["sentence"]] == [event["text"] for event in roster.events.since() if event["what"] == "hint"]
    for n in range(12, 24):
        clock.sleep(1.0)
        roster.heartbeat(0, "a", {**report(n + 1, []), "now": {**hook, "silent_s": 24.5}})
        roster.look()
    assert "has not returned for 24 s" in roster.status()["hints"][0]["sentence"], "for how long, as of now"
    assert 1 == sum(event["what"] == "hint" for event in roster.events.since())
