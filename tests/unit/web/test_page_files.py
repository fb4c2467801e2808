"""The page's files: what is sent, how large it is, and what must not be in them."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from samzapy.web.app import web_app
from samzapy.web.files import PAGE
from tests.page.staged import OPERATE, TOKEN, Stage, contents, live
from tests.page.vendor import VENDOR, rewritten

OURS = [path for path in PAGE.rglob("*") if path.suffix in (".js", ".css", ".html", ".svg") and VENDOR not in path.parents]
FIRST_LOAD_BYTES = 100 << 10
FORBIDDEN = ("innerHTML", "outerHTML", "insertAdjacentHTML", "dangerouslySetInnerHTML", "document.write", "eval(", "new Function", "localStorage", "cookie")


@pytest.fixture
def client() -> TestClient:
    stage = Stage()
    facts = live(stage)
    return TestClient(web_app(facts, facts, contents(stage), TOKEN), base_url="http://127.0.0.1:1")


def loaded(client: TestClient, path: str, seen: dict[str, int]) -> None:
    """A file and all that it refers to, each once."""
    if path in seen:
        return
    answer = client.get(path)
    assert 200 == answer.status_code, path
    assert "gzip" == answer.headers["Content-Encoding"]
    seen[path] = len(gzip.compress(answer.content, 6))
    for found in re.findall(r"""(?:src|href)="(/[^"]+)"|(?:from ?|import )["'](\.[^"']+)["']""", answer.text):
        loaded(client, found[0] or str(Path(path, "..", found[1]).resolve()), seen)


def test_the_first_load_is_small_and_whole(client: TestClient) -> None:
    seen: dict[str, int] = {}
    loaded(client, "/", seen)

    assert {"/page/app.js", "/page/vendor/preact.js", "/page/vendor/uPlot.js", "/page/theme.css"} <= seen.keys()
    assert sum(seen.values()) <= FIRST_LOAD_BYTES


def test_a_file_is_not_sent_again_while_it_is_the_same(client: TestClient) -> None:
    tag = client.get("/page/app.js").headers["ETag"]
    assert 304 == client.get("/page/app.js", headers={"If-None-Match": tag}).status_code


@pytest.mark.parametrize("path", ["/page/../routes.py", "/page/vendor/VENDOR.json", "/page/", "/page/%2e%2e/access.py", "/page/vendor/preact.LICENSE"])
def test_nothing_else_is_there(client: TestClient, path: str) -> None:
    assert 404 == client.get(path).status_code


def test_the_policy_allows_this_page_and_nothing_else(client: TestClient) -> None:
    headers = client.get("/").headers
    assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert ("nosniff", "no-referrer") == (headers["X-Content-Type-Options"], headers["Referrer-Policy"])
    assert "set-cookie" not in headers
    assert "access-control-allow-origin" not in headers


def test_what_others_wrote_is_text_and_never_markup() -> None:
    for path in OURS:
        text = path.read_text()
        for forbidden in FORBIDDEN:
            assert forbidden not in text, (path.name, forbidden)
        assert not re.search(r"<script>|<style|\son[a-z]+=\"", text), path.name
        assert not re.search(r"https?://(?!www\.w3\.org)", text), path.name


def test_the_libraries_are_their_packages_own_files() -> None:
    listed = json.loads((VENDOR / "VENDOR.json").read_text())
    hashes = {name: value for package in listed for name, value in package["sha256"].items()}

    assert {path.name for path in VENDOR.iterdir()} == {*hashes, "VENDOR.json"}
    assert hashes == {name: hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() for name in hashes}
    assert 'import{h}from"./preact.js";\n' == rewritten('import{h}from"preact";\n//# sourceMappingURL=x.map')


def test_the_token_is_no_part_of_what_is_asked_for() -> None:
    """It comes in the part of the address that browsers do not send, and goes out in a header."""
    code = (PAGE / "lib" / "api.js").read_text()
    assert "history.replaceState" in code
    assert "Bearer ${token}" in code
    assert 1 == len(re.findall(r"\$\{token\}", code))
    assert OPERATE not in code
