"""The interface: who may do what, what is answered, and that the OpenAPI file says so."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import openapi_spec_validator
import pytest
from starlette.testclient import TestClient

from samzapy.signing import signed_headers
from samzapy.web.access import MAX_CHANGES, MAX_WRONG, May, derived_token
from samzapy.web.app import web_app
from samzapy.web.openapi import FILE, document, text
from samzapy.web.route import Route
from samzapy.web.routes import TABLE
from tests.page.staged import ABOUT, OPERATE, SETTINGS, TOKEN, VIEW, J, Stage, contents, live

BEARER = {VIEW: {"Authorization": f"Bearer {VIEW}"}, OPERATE: {"Authorization": f"Bearer {OPERATE}"}}
URL = "http://127.0.0.1:1"
BODIES: dict[str, Any] = {
    "scale": {"containers": 3}, "replay": {"all": True}, "discard": {"all": True}, "profile": {"seconds": 0.5}, "trace": {"records": 2, "seconds": 0.5},
}  # fmt: skip


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage(looks_inside=True)
    stage.beat(lag=3)
    stage.set_aside(2, "ValueError: bad price '1,50'")
    yield stage
    stage.close()


@pytest.fixture
def client(stage: Stage) -> TestClient:
    facts = live(stage)
    return TestClient(web_app(facts, facts, contents(stage), TOKEN, inside=stage.looking()), base_url=URL)


def ask(client: TestClient, row: Route, token: str | None = OPERATE, **more: Any) -> Any:
    path = row.path.format(job="visits", id="1", task="Partition 1", container="1", which="0.0", topic="visits", run="run-1")
    dry = {"dry_run": True} if row.body and "dry_run" in row.body.model_fields else {}
    body = {"json": {**BODIES.get(row.name, {}), **dry}} if row.body else {}
    headers = BEARER[token] if token else {}
    return client.request(row.method, path, headers={**headers, **more.pop("headers", {})}, **body, **more)


def check_answer(row: Route, answer: Any) -> None:
    """It is what the route's schema says."""
    assert 200 == answer.status_code, answer.text
    content = answer.json()
    models = row.answer if isinstance(row.answer, list) else [row.answer]
    for one in content if isinstance(row.answer, list) else [content]:
        models[0].model_validate(one, strict=True)


def name_of(row: Route) -> str:
    return row.name


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_every_route_answers_as_its_schema_says(client: TestClient, row: Route) -> None:
    answer = ask(client, row)
    check_answer(row, answer)
    assert "no-store" == answer.headers["Cache-Control"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_nobody_may_more_than_the_token_says(client: TestClient, stage: Stage, row: Route) -> None:
    assert (200 if row.who is May.ANYTHING_OPEN else 401) == ask(client, row, None).status_code
    assert (403 if row.changes else 200) == ask(client, row, VIEW).status_code
    assert not stage.is_stopped or row.name == "set-status"


def test_the_committed_file_is_what_the_table_makes() -> None:
    assert FILE.read_text() == text(), "python -m samzapy.web.openapi --write"


def test_every_path_of_the_file_is_there(client: TestClient) -> None:
    for path, methods in document()["paths"].items():
        if path.endswith("/stream"):
            continue
        for method in methods:
            names = {"job": "visits", "id": "1", "task": "Partition 0", "container": "0", "which": "0.0", "topic": "visits", "run": "run-1"}
            answer = client.request(method.upper(), path.format(**names))
            assert answer.status_code in (200, 401), path


def test_the_file_is_what_openapi_says_it_must_be() -> None:
    openapi_spec_validator.validate(json.loads(FILE.read_text()))


def test_references_in_the_file_lead_somewhere() -> None:
    names = set(re.findall(r"#/components/schemas/(\w+)", text()))
    assert names <= document()["components"]["schemas"].keys()
    assert len(document()["paths"]) > 20


def test_a_method_that_a_path_has_not_is_told_with_those_it_has(client: TestClient) -> None:
    for path, methods in document()["paths"].items():
        there = {method.upper() for method in methods}
        for method in {"GET", "PUT", "POST", "OPTIONS", "DELETE"} - there - ({"GET"} if "/dead-letters/" in path else set()):  # any word may be a letter's
            answer = client.request(method, re.sub(r"\{\w+\}", "x", path))
            assert 405 == answer.status_code, (method, path)
            assert there == {each.strip() for each in answer.headers["Allow"].split(",")} - {"HEAD"}, path
            assert "application/problem+json" == answer.headers["Content-Type"]
    missing = client.get("/v2")
    assert (404, "there is nothing at this path") == (missing.status_code, missing.json()["detail"])


def test_numbers_may_have_a_fraction_where_they_may_and_of_noughts_where_not(client: TestClient, stage: Stage) -> None:
    assert 422.08339090476375 == client.get(f"{J}/series?step=422.08339090476375", headers=BEARER[VIEW]).json()["step_s"]
    scaled = client.post(f"{J}/scale", headers=BEARER[OPERATE], json={"containers": 3.0, "dry_run": True})
    assert 200 == scaled.status_code, scaled.text
    assert "containers: Input should be a valid integer" in client.post(f"{J}/scale", headers=BEARER[OPERATE], json={"containers": 2.5}).json()["detail"]


def test_another_job_is_not_here(client: TestClient) -> None:
    answer = client.get("/v1/jobs/other/1")
    assert (404, "application/problem+json", "Not found") == (answer.status_code, answer.headers["Content-Type"], answer.json()["title"])
    assert 404 == client.get(f"{J}/tasks/nobody", headers=BEARER[VIEW]).status_code


def test_rows_are_sorted_found_and_given_a_page_at_a_time(client: TestClient) -> None:
    def rows(query: str) -> Any:
        return client.get(f"{J}/rows?{query}", headers=BEARER[VIEW]).json()

    first = rows("sort=-lag&limit=3")
    assert ["Partition 3", "Partition 2", "Partition 1"] == [row["name"] for row in first["items"]]
    assert (4, "3") == (first["found"], first["next"])
    last = rows(f"sort=-lag&limit=3&offset={first['next']}")
    assert (["Partition 0"], None) == ([row["name"] for row in last["items"]], last["next"])
    assert ["Partition 2"] == [row["name"] for row in rows("find=partition+2")["items"]]


@pytest.mark.parametrize("query", ["limit=0", "limit=1e3", "limit=-1", "limit=٣", "sort=;", "offset=99999999999999999999", "limit=NaN", "find=" + 201 * "a"])
def test_a_parameter_that_is_none_is_refused_in_words(client: TestClient, query: str) -> None:
    answer = client.get(f"{J}/rows?{query}", headers=BEARER[VIEW])
    assert 400 == answer.status_code
    assert query.split("=")[0] in answer.json()["detail"]


WRONG_BODIES = [
    b"", b"[]", b"{", b'{"containers": 0}', b'{"containers": "many"}', b'{"containers": 1e400}', b"\xff", b"[" * 50_000,
    b'{"containers": true}', b'{"containers": "3"}', b'{"containers": 3, "dry_run": "no"}',
]  # fmt: skip


@pytest.mark.parametrize("body", WRONG_BODIES)
def test_a_body_that_is_not_understood_changes_nothing(client: TestClient, stage: Stage, body: bytes) -> None:
    assert 400 == client.post(f"{J}/scale", content=body, headers=BEARER[OPERATE]).status_code
    assert [] == stage.changes.asked


@pytest.mark.parametrize("row", [row for row in TABLE if row.changes], ids=name_of)
def test_a_misspelt_field_or_parameter_is_named_and_nothing_is_done(client: TestClient, stage: Stage, row: Route) -> None:
    path = row.path.format(job="visits", id="1", task="Partition 1", container="1")
    for more in ({"json": {**BODIES.get(row.name, {}), "dryrun": True}}, {"json": BODIES.get(row.name, {}), "params": {"dryrun": "true"}}):
        answer = client.request(row.method, path, headers=BEARER[OPERATE], **more)
        assert 400 == answer.status_code, answer.text
        assert "'dryrun'" in answer.json()["detail"]
        assert row.body is None or all(field in answer.json()["detail"] or "params" in more for field in row.body.model_fields)
    assert [] == stage.changes.asked
    assert not stage.is_stopped


@pytest.mark.parametrize("row", [row for row in TABLE if not row.changes], ids=name_of)
def test_a_misspelt_filter_is_not_answered_with_everything(client: TestClient, row: Route) -> None:
    answer = ask(client, row, params={"fnd": "x"})
    assert (400, True) == (answer.status_code, "'fnd'" in answer.json()["detail"]), answer.text


def test_a_body_without_end_is_cut_off(client: TestClient) -> None:
    assert 413 == client.post(f"{J}/scale", content=b" " * 70_000, headers=BEARER[OPERATE]).status_code


def test_what_is_asked_for_is_done_once_and_noted_with_who_asked(client: TestClient, stage: Stage) -> None:
    told = client.post(f"{J}/scale", json={"containers": 3, "dry_run": True}, headers=BEARER[OPERATE]).json()
    assert [] == stage.changes.asked
    done = client.post(f"{J}/scale", json={"containers": 3}, headers=BEARER[OPERATE]).json()

    assert [3] == stage.changes.asked
    assert told == done
    assert "2 → 3 containers for 4 tasks; at least 1 tasks move" in done["effect"]
    assert ["operate (testclient) asked for: scale; " + done["effect"]] == [e["text"] for e in stage.roster.events.since() if e["kind"] == "people"]


def test_samzas_way_to_stop(client: TestClient, stage: Stage) -> None:
    assert 400 == client.put(f"{J}?status=started", headers=BEARER[OPERATE]).status_code
    assert 200 == client.put(f"{J}?status=stopped", headers=BEARER[OPERATE]).status_code
    assert stage.is_stopped


def test_the_job_file_is_named_to_those_who_may_look(client: TestClient) -> None:
    """The page puts it in place of JOB.yaml in every command that it shows."""
    for name in ("called", "called_to_look"):
        assert ABOUT[name] == client.get("/v1/me", headers=BEARER[VIEW]).json()[name]
        assert "" == client.get("/v1/me").json()[name]


def test_a_foreign_page_changes_nothing(client: TestClient, stage: Stage) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:2"}, {"Sec-Fetch-Site": "cross-site"}):
        assert 403 == client.post(f"{J}/scale", json={"containers": 3}, headers={**BEARER[OPERATE], **headers}).status_code
    assert 200 == client.post(f"{J}/scale", json={"containers": 3}, headers={**BEARER[OPERATE], "Origin": URL}).status_code
    assert 1 == len(stage.changes.asked)


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_a_foreign_name_is_not_answered(client: TestClient, row: Route) -> None:
    assert 421 == ask(client, row, headers={"Host": "evil.example"}).status_code


def test_wrong_tokens_are_not_tried_for_long_and_the_runs_own_are_always_taken(stage: Stage) -> None:
    facts, fixed = live(stage), "a-token-of-the-job-file"
    client = TestClient(web_app(facts, facts, contents(stage), TOKEN, inside=stage.looking(), tokens={May.VIEW: fixed}), base_url=URL)
    get = lambda token: client.get(f"{J}/events", headers={"Authorization": f"Bearer {token}"})  # noqa: E731
    assert 200 == get(fixed).status_code
    for n in range(MAX_WRONG):
        assert 403 == get(f"wrong{n}").status_code
    for token in ("wrong", fixed):  # which a person chose, and others might guess
        assert (429, "60") == (get(token).status_code, get(token).headers["Retry-After"])
    assert [200] * 3 == [get(token).status_code for token in (VIEW, OPERATE, TOKEN)]


def test_changes_have_a_limit_but_for_the_command_line(client: TestClient) -> None:
    for dry_run in [True] * (MAX_CHANGES + 1) + [False] * MAX_CHANGES:
        assert 200 == client.post(f"{J}/scale", json={"containers": 3, "dry_run": dry_run}, headers=BEARER[OPERATE]).status_code
    assert 200 == client.post(f"{J}/scale", json={"containers": 3, "dry_run": True}, headers=BEARER[OPERATE]).status_code
    assert 429 == client.post(f"{J}/scale", json={"containers": 3}, headers=BEARER[OPERATE]).status_code
    body = json.dumps({"containers": 3}).encode()
    signed = signed_headers(TOKEN, "POST", f"{J}/scale", body, time.time())
    assert 200 == client.post(f"{J}/scale", content=body, headers=signed).status_code
    assert 403 == client.post(f"{J}/scale", content=body, headers=signed).status_code, "a signature counts once"


def test_where_the_job_file_says_so_no_record_is_shown_and_the_rest_is(stage: Stage) -> None:
    facts = live(stage)
    hidden = contents(stage, SETTINGS.model_copy(update={"web": SETTINGS.web.model_copy(update={"data": False})}))
    client = TestClient(web_app(facts, facts, hidden, TOKEN, inside=stage.looking()), base_url=URL)
    assert not ask(client, next(row for row in TABLE if row.name == "me")).json()["data"]
    refused = {row.name for row in TABLE if ask(client, row).status_code == 403}
    assert {"records", "dead-letters", "dead-letter", "replay", "discard", "trace"} == refused
    assert "web.data: false" in ask(client, next(row for row in TABLE if row.name == "records")).json()["detail"]


@pytest.mark.parametrize("row", TABLE, ids=name_of)
def test_a_route_that_reads_records_says_so_in_its_row(row: Route) -> None:
    assert row.of_records is not {"letters", "records", "trace"}.isdisjoint(row.act.__code__.co_names)


def test_derived_tokens_do_not_lead_back() -> None:
    assert 43 == len(VIEW) == len(OPERATE)
    assert 3 == len({VIEW, OPERATE, TOKEN})
    assert VIEW == derived_token(TOKEN, May.VIEW)


def test_a_token_for_people_signs_nothing(client: TestClient) -> None:
    body = b'{"containers": 3}'
    signed = signed_headers(OPERATE, "POST", f"{J}/scale", body, time.time())
    assert 403 == client.post(f"{J}/scale", content=body, headers=signed).status_code


def test_the_short_paths_of_the_command_line(client: TestClient, stage: Stage) -> None:
    assert client.get("/api/v1/status").json().keys() == client.get(J).json().keys()
    assert 200 == client.get("/api/v1/job-model").status_code
    assert "error" in client.post("/api/v1/scale", json={"containers": 3}).json()
    assert 403 == client.post("/api/v1/scale", json={"containers": 3}).status_code
    assert 200 == client.post("/api/v1/restart", headers={"Authorization": f"Bearer {TOKEN}"}).status_code
    assert [("restart", None)] == stage.changes.asked
    assert "samzapy_job_state" in client.get("/metrics").text


def test_who_looks_inside_is_not_counted_as_changing_and_may_not_look_at_what_is_not_there(client: TestClient, stage: Stage) -> None:
    for _ in range(MAX_CHANGES + 1):
        assert 200 == client.post(f"{J}/containers/1/stack", headers=BEARER[OPERATE]).status_code
    assert 403 == client.post(f"{J}/containers/1/stack", headers={**BEARER[OPERATE], "Origin": "http://evil.example"}).status_code
    missing = client.post(f"{J}/containers/9/stack", headers=BEARER[OPERATE])
    assert (409, "there is no container 9.") == (missing.status_code, missing.json()["detail"])
    assert 404 == client.post(f"{J}/containers/-1/stack", headers=BEARER[OPERATE]).status_code
    assert 409 == client.post(f"{J}/tasks/nobody/trace", json={}, headers=BEARER[OPERATE]).status_code
    assert 400 == client.post(f"{J}/tasks/Partition 0/trace", json={"records": 101}, headers=BEARER[OPERATE]).status_code
    assert [] == [e for e in stage.roster.events.since() if e["kind"] == "people"]
    assert 200 == client.post(f"{J}/tasks/Partition 0/trace", json={"records": 2}, headers=BEARER[OPERATE]).status_code
    (event,) = [e for e in stage.roster.events.since() if e["kind"] == "people"]
    assert "operate (testclient) asked for a trace of the next 2 records of Partition 0" == event["text"]
