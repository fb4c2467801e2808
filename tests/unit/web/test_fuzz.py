"""Requests of all shapes that the OpenAPI file allows, and others: never a 500, and each answer is as the file says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from samzapy.web.app import web_app
from samzapy.web.openapi import document
from tests.page.staged import OPERATE, TOKEN, VIEW, Stage, contents, live

DOCUMENT = document()
PATHS = {"job": "visits", "id": "1"}
OPERATIONS = sorted((path, method) for path, methods in DOCUMENT["paths"].items() for method in methods if not path.endswith("/stream"))
KNOWN = ["Partition 0", "0", "1", "run-1", "file", "visits", "visit-counts", "0-0", "", ".", "..", "%2e%2e", "\x00", "é", "9" * 30, "a/b", "-1"]
words = st.one_of(st.sampled_from(KNOWN), st.text(max_size=12), st.integers(-5, 10**20).map(str), st.floats().map(str))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)


def schema(reference: dict[str, Any]) -> dict[str, Any]:
    return {**reference, "components": DOCUMENT["components"]}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request: of a route of the file, with parameters that it has, now and then with others."""
    path, method = draw(st.sampled_from(OPERATIONS))
    operation = DOCUMENT["paths"][path][method]
    url = re.sub(r"{(\w+)}", lambda m: PATHS[m[1]] if m[1] in PATHS and draw(st.integers(0, 9)) else _quoted(draw(words) or "x"), path)
    query = {p["name"]: draw(_value(p["schema"])) for p in operation.get("parameters", ()) if p["in"] == "query" and draw(st.booleans())}
    body: bytes | None = None
    if "requestBody" in operation:
        name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        fields = DOCUMENT["components"]["schemas"][name].get("properties", {})
        filled = {field: draw(st.one_of(st.integers(-1, 5), values)) for field in fields if draw(st.booleans())}
        body = draw(st.one_of(st.just(json.dumps(filled).encode()), st.binary(max_size=20), values.map(lambda v: json.dumps(v).encode())))
    token = draw(st.sampled_from([OPERATE, OPERATE, VIEW, "", "wrong"]))
    return {"method": method, "url": url, "params": query, "content": body, "token": token, "operation": operation}


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


def _value(of: dict[str, Any]) -> st.SearchStrategy[str]:
    fit = st.sampled_from(of["enum"]) if "enum" in of else st.integers(0, 30).map(str)
    return st.one_of(fit, words)


class Asked:
    """A job, and how often its interface answered with which status. The interface is made anew now and then: it counts who asks too often."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.stage.beat()
        self.stage.set_aside(1, "ValueError: bad price")
        self.stage.feed(b'{"n": 1}', b"\xff", key=None)
        self.statuses: Counter[int] = Counter()
        self.facts, self.contents = live(self.stage), contents(self.stage)
        self._client = self._made()

    def _made(self) -> TestClient:
        return TestClient(web_app(self.facts, self.facts, self.contents, TOKEN), "http://127.0.0.1", raise_server_exceptions=True)

    def client(self) -> TestClient:
        if not self.statuses.total() % 10:
            self._client = self._made()
        return self._client


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    assert min(asked.statuses[status] for status in (200, 400, 401, 403, 404)) > 0, asked.statuses
    assert asked.statuses[429] < 0.1 * asked.statuses.total()
    asked.stage.close()


def _ask(asked: Asked, request: dict[str, Any]) -> None:
    stage, client = asked.stage, asked.client()
    operation, stage.is_stopped = request["operation"], False
    headers = {"Authorization": f"Bearer {request['token']}"} if request["token"] else {}
    answer = client.request(request["method"], request["url"], params=request["params"], content=request["content"], headers=headers)
    asked.statuses[answer.status_code] += 1
    found = operation["responses"].get(str(answer.status_code))
    assert answer.status_code < 500, (request, answer.text)
    if answer.headers["content-type"].startswith("application/problem+json"):
        assert found is not None or answer.status_code in (404, 405), (request, answer.status_code)
        Draft202012Validator(schema({"$ref": "#/components/schemas/Problem"})).validate(answer.json())
    elif answer.status_code == 200 and "application/json" in found["content"]:
        Draft202012Validator(schema(found["content"]["application/json"]["schema"])).validate(answer.json())
    assert not stage.is_stopped or request["token"] == OPERATE


@given(requests())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_is_answered_otherwise_than_the_file_says(asked: Asked, request: dict[str, Any]) -> None:
    _ask(asked, request)


@pytest.mark.prove
@given(requests())
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
def test_neither_are_two_thousand(asked: Asked, request: dict[str, Any]) -> None:
    _ask(asked, request)
