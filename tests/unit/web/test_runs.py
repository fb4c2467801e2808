"""The last runs by the interface, and what their configurations changed."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from samzapy.api.errors import ConfigurationError
from samzapy.web.app import web_app
from tests.page.staged import TOKEN, J, Stage, contents, get, live


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.ran("old", 48)
    stage.ran("failed", 3, outcome="FAILED", error="SZ210: it broke", config=[], events=[{"n": 1, "at_ms": 1, "kind": "job", "what": "state", "text": "x"}])
    return stage


def client_of(stage: Stage, **of_contents: Any) -> TestClient:
    facts, made = live(stage), contents(stage)
    for name, value in of_contents.items():
        setattr(made.runs, name, value)
    return TestClient(web_app(facts, facts, made, TOKEN), base_url="http://127.0.0.1:1")


def test_the_newest_comes_first_and_what_is_long_is_left_to_one(stage: Stage) -> None:
    client = client_of(stage)
    rows = get(client, f"{J}/runs")["items"]
    assert [("run-1", "", 4), ("failed", "FAILED", 4), ("old", "STOPPED", None)] == [(r["run_id"], r["outcome"], r["changes"]) for r in rows]
    assert not {"config", "events", "errors"} & rows[0].keys()
    one = get(client, f"{J}/runs/failed")
    assert ("SZ210: it broke", [1], "old") == (one["error"], [e["n"] for e in one["events"]], one["against"])
    get(client, f"{J}/runs/nobody", 404)


def test_a_configuration_is_compared_with_another_runs_and_with_the_file(stage: Stage) -> None:
    client = client_of(stage)
    against_old = get(client, f"{J}/runs/run-1?against=old")
    assert [("commit.interval", "1s", "500ms", "visits.yaml:9", "--set:1")] == [tuple(row.values()) for row in against_old["changes"]]
    against_file = get(client, f"{J}/runs/run-1?against=file")
    assert [("commit.interval", "500ms", "1s", "--set:1", "visits.yaml:7")] == [tuple(row.values()) for row in against_file["changes"]]
    assert "nothing is known of a run before it" == get(client, f"{J}/runs/old")["problem"]
    get(client, f"{J}/runs/run-1?against=nobody", 409)


def test_a_job_file_that_is_wrong_by_now_is_told(stage: Stage) -> None:
    def broken() -> Any:
        raise ConfigurationError("visits.yaml is gone.", "")

    one = get(client_of(stage, _file=broken), f"{J}/runs/run-1?against=file")
    assert ([], "visits.yaml is gone.") == (one["changes"], one["problem"])


def test_a_job_without_records_of_runs_shows_this_one(stage: Stage) -> None:
    stage.cluster.delete(stage.roster.job.coordinator_topic)
    assert ["run-1"] == [r["run_id"] for r in get(client_of(stage), f"{J}/runs")["items"]]
    assert [] == get(client_of(stage, _this=lambda: None), f"{J}/runs")["items"]
