"""Live frames: bounded by what is shown, and only what changed."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from samzapy.coordinator.http import REQUEST_S
from samzapy.model.states import TaskState
from samzapy.web import frames as web_frames
from samzapy.web.app import web_app
from samzapy.web.frames import Streams, View, _cells, changed, make_frame
from tests.page.staged import HEADERS, TOKEN, J, Stage, contents, live

MAX_FRAME = 32 << 10


@pytest.mark.parametrize(("tasks", "containers"), [(10, 2), (1000, 64), (10_000, 64)])
def test_a_frame_fits_however_large_the_job_is(tasks: int, containers: int) -> None:
    stage = Stage(tasks, containers)
    stage.beat(lag=9)
    stage.beat(lag=11, state="RESTORING")

    assert len(orjson.dumps(make_frame(live(stage), View()))) <= MAX_FRAME


def test_tasks_that_no_container_reports_are_in_a_frame() -> None:
    """As after a container's death, until the next one reports."""
    stage = Stage(4, 1)
    facts, status = live(stage), live(stage).status()
    for task in status["tasks"]:
        task["state"] = TaskState.WAITING
    facts.status = lambda: status  # type: ignore[method-assign]
    assert {"WAITING": 4} == orjson.loads(orjson.dumps(make_frame(facts, View())))["job"]["states"]


def test_only_what_changed_is_sent_again() -> None:
    stage = Stage()
    facts, view, sent = live(stage), View("name"), dict[str, Any]()
    stage.beat(lag=3)
    first = changed(make_frame(facts, view), sent)
    assert {"Partition 0", "Partition 1", "Partition 2", "Partition 3"} == first["rows"].keys()
    assert [] == [name for name in changed(make_frame(facts, view), sent) if name not in ("job", "rows")]

    view.find = "partition 1"
    then = changed(make_frame(facts, view), sent)
    assert ["Partition 1"] == then["order"]
    assert {"Partition 0", "Partition 2", "Partition 3"} == {name for name, row in then["rows"].items() if row is None}


@pytest.mark.parametrize(("lag", "behind_s", "expected"), [(0, 0.0, "4r"), (700, 2.5, "4r"), (700, 10.0, "4l"), (700, None, "4l")])
def test_a_task_is_behind_where_a_busy_one_would_not_be(lag: int, behind_s: float | None, expected: str) -> None:
    stage = Stage(4, 1)
    stage.beat(lag=lag)
    facts = live(stage)
    status = facts.status()
    for task in status["tasks"]:
        task["behind_s"] = behind_s
    assert {"0": expected} == _cells(status)


def test_news_are_told_once() -> None:
    stage = Stage()
    facts, view, sent = live(stage), View(), dict[str, Any]()
    assert ["the job is RUNNING"] == [event["text"] for event in changed(make_frame(facts, view), sent)["news"]]
    assert "news" not in changed(make_frame(facts, view), sent)


def test_a_stream_ends_by_itself_before_it_is_cut_however_long_its_frames_take() -> None:
    """Each frame takes half of the time that a request may take."""
    stage = Stage()
    stage.beat()
    ticks = count(0.0, REQUEST_S / 2)
    streams = Streams(live(stage), lambda: next(ticks))
    told = told_by(streams)
    assert (1, 1) == (told.count("event: frame"), told.count("event: again"))


def test_each_frame_tells_the_drivers_time_also_one_without_news() -> None:
    stage = Stage()
    stage.beat()
    ticks, times = count(0.0, REQUEST_S / 4), count(1000, 7)
    streams = Streams(live(stage), lambda: next(ticks), lambda: next(times))
    told = told_by(streams)
    assert [1000, 1007, 1014] == [frame["now_ms"] for frame in frames_of(told)]


def test_a_state_that_lasts_less_than_a_second_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container dies, and its tasks run again before a second has passed."""
    stage = Stage()
    stage.beat()
    later, ticks = iter(["DEGRADED"] + 2 * ["RUNNING"] + ["DEGRADED"] + 4 * ["RUNNING"]), count(0.0, REQUEST_S / 5)

    async def look(_s: float) -> None:
        stage.roster.state = next(later, "RUNNING")

    monkeypatch.setattr(web_frames, "asyncio", SimpleNamespace(sleep=look))  # the rest of the process goes on with the real one
    told = told_by(Streams(live(stage), lambda: next(ticks)))
    assert ["RUNNING", "DEGRADED", "RUNNING", "DEGRADED"] == [frame["job"]["state"] for frame in frames_of(told) if "job" in frame]


def test_one_stream_too_many_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_frames, "MAX_STREAMS", 0)
    answer = asked("")
    assert (429, "10", "Close the page in another tab.") == (answer.status_code, answer.headers["Retry-After"], answer.json()["remedy"])


@pytest.mark.parametrize("offset", ["9" * 5000, "x", "-1", "\u0663", "1.5"])
def test_an_offset_that_is_no_number_is_refused(offset: str) -> None:
    answer = asked(f"?offset={offset}")
    assert (400, "application/problem+json") == (answer.status_code, answer.headers["Content-Type"])
    assert "offset=" in answer.json()["detail"]
    assert len(answer.text) < 500


def told_by(streams: Streams) -> str:
    with TestClient(Starlette(routes=[Route("/stream", streams.open)])) as client:
        return client.get("/stream").text


def frames_of(told: str) -> list[dict[str, Any]]:
    return [orjson.loads(line.removeprefix("data: ")) for line in told.splitlines() if line.startswith("data: {") and line != "data: {}"]


def asked(query: str) -> Any:
    stage = Stage()
    facts = live(stage)
    client = TestClient(web_app(facts, facts, contents(stage), TOKEN), base_url="http://127.0.0.1:1")
    return client.get(f"{J}/stream{query}", headers=HEADERS)
