"""The page's facts of a job that does not run: of the same routes and forms as one that runs."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from samzapy.api.errors import ClusterUnreachable
from samzapy.web.app import web_app
from samzapy.web.cluster import FRESH_S, Cluster
from samzapy.web.frames import View, make_frame
from samzapy.web.open_status import HIDDEN
from samzapy.web.stopped_job import FRESH_S as STILL_FRESH_S
from samzapy.web.stopped_job import Still
from tests.page.staged import ABOUT, TOKEN, Stage, contents, live
from tests.page.still import FAILED_RUN, JOBS, still_facts
from tests.unit.web.test_routes import BEARER, OPERATE, TABLE, URL, VIEW, J, Route, ask, check_answer, name_of


@pytest.fixture
def client() -> TestClient:
    still = Still(ABOUT, still_facts)
    return TestClient(web_app(still, still, contents(Stage()), TOKEN, cluster=Cluster(lambda: JOBS)), base_url=URL)


@pytest.mark.parametrize("row", [row for row in TABLE if not row.changes and row.name != "dead-letter"], ids=name_of)
def test_every_route_that_looks_answers_as_its_schema_says(client: TestClient, row: Route) -> None:
    check_answer(row, ask(client, row))


def test_its_page_gets_frames_with_all_that_a_running_jobs_frames_have() -> None:
    still = make_frame(Still(ABOUT, still_facts), View())
    stage = Stage()
    stage.beat()
    running = make_frame(live(stage), View())
    assert (running.keys(), set(running["job"]) - set(still["job"])) == (still.keys(), set())
    assert still["job"]["is_still"]


@pytest.mark.parametrize("row", [row for row in TABLE if row.changes and row.name not in ("replay", "discard")], ids=name_of)
def test_nothing_can_be_done_and_the_refusal_says_what_can(client: TestClient, row: Route) -> None:
    answer = ask(client, row)
    assert 409 == answer.status_code
    assert "the job is not running" in answer.json()["detail"]
    assert "samzapy run JOB.yaml" in answer.json()["remedy"]


def test_it_tells_how_the_last_run_ended_what_waits_and_what_to_type(client: TestClient) -> None:
    status = client.get(J, headers=BEARER[VIEW]).json()
    assert ("FAILED", 1234, FAILED_RUN.run_id) == (status["state"], status["rates"]["lag"], status["last_run"]["run_id"])
    assert [1234, 0] == [task["lag"] for task in status["tasks"]]
    (hint,) = status["hints"]
    assert ("act", "samzapy run JOB.yaml") == (hint["severity"], hint["remedy"])
    assert "no such page" in hint["sentence"]
    assert FAILED_RUN.remedy == hint["evidence"]["what_to_do_first"]
    events = client.get(f"{J}/events", headers=BEARER[VIEW]).json()["items"]
    assert ["the job is RUNNING", "container 1 failed"] == [event["text"] for event in events]
    assert ["ValueError"] == [group["type"] for group in client.get(f"{J}/errors", headers=BEARER[VIEW]).json()["items"]]
    assert "no such page" in status["last_run"]["error"]
    for path in (J, "/api/v1/status"):
        told = client.get(path).text
        assert "no such page" not in told
        assert f"SZ200: {HIDDEN}" in told
    assert "config" not in status["last_run"]


def test_other_jobs_of_the_cluster_are_told_to_those_who_may_look(client: TestClient) -> None:
    def jobs(**headers: str) -> list[Any]:
        return [(j["jobName"], j["status"], j["url"]) for j in client.get("/v1/jobs", headers=headers).json()["items"]]

    assert [("visits", "FAILED", "")] == jobs()
    orders = ("orders", "STOPPED", "")
    assert [orders, ("pages", "RUNNING", "http://127.0.0.1:7"), ("visits", "FAILED", "")] == jobs(**BEARER[OPERATE])


def test_kafka_is_read_now_and_then_however_many_ask() -> None:
    now, read = [0.0], [0, 0]

    def facts() -> Any:
        read[0] += 1
        return still_facts()

    def cluster() -> Any:
        read[1] += 1
        if read[1] == 2:
            raise ClusterUnreachable("no broker answers.")
        return JOBS

    still, jobs = Still(ABOUT, facts, lambda: now[0]), Cluster(cluster, lambda: now[0])
    for _ in range(9):
        still.status()
        assert jobs.jobs()
    assert [1, 1] == read
    now[0] = max(FRESH_S, STILL_FRESH_S)
    still.status()
    assert [] == jobs.jobs()
    assert [2, 2] == read
