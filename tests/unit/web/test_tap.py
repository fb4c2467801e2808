"""Records of topics by the interface: the newest, those after a cursor, those that match; bounded, and without a trace in Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from samzapy.config.secrets import _kept_out, keep_out
from samzapy.web import tap as web_tap
from samzapy.web.app import web_app
from tests.page.staged import TOKEN, J, Stage, contents, get, live

AT = f"{J}/topics/visits/records"


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def client(stage: Stage) -> TestClient:
    facts = live(stage)
    return TestClient(web_app(facts, facts, contents(stage), TOKEN), base_url="http://127.0.0.1:1")


def values(found: dict[str, Any]) -> list[str]:
    return [item["value"]["text"] for item in found["items"]]


def test_a_burst_with_a_filter_gives_exactly_those_that_match_and_leaves_no_trace(client: TestClient, stage: Stage) -> None:
    stage.feed(b'"old"')
    begun = get(client, f"{AT}?from=now")
    assert ([], 0) == (begun["items"], begun["behind"])
    for n in range(1000):
        stage.feed(b'{"n": %d, "is": "%s"}' % (n, b"needle" if n % 100 == 7 else b"hay"), partition=n % 4)
    groups = dict(stage.cluster.group_offsets)

    found, after = [], begun["next"]
    while True:
        page = get(client, f"{AT}?contains=NEEDLE&limit=3&after={after}")
        found += values(page)
        after = page["next"]
        if not page["behind"]:
            break
    assert sorted(f'{{"n": {n}, "is": "needle"}}' for n in range(7, 1000, 100)) == sorted(found)
    assert [] == get(client, f"{AT}?after={after}")["items"]
    assert groups == stage.cluster.group_offsets


def test_the_newest_the_oldest_and_one_partition(client: TestClient, stage: Stage) -> None:
    stage.feed(*(b"%d" % n for n in range(30)))
    stage.feed(b"100", partition=2)
    assert ["0", "1", "2"] == values(get(client, f"{AT}?from=first&limit=3&partition=0"))
    last = get(client, f"{AT}?limit=5&partition=0")
    assert (["25", "26", "27", "28", "29"], 0, 1) == (values(last), last["behind"], last["partitions"])
    assert ["100"] == values(get(client, f"{AT}?partition=2"))
    assert "100" in values(get(client, AT))
    first = get(client, f"{AT}?from=first&limit=2&partition=0")
    assert 28 == first["behind"]
    assert ["2", "3"] == values(get(client, f"{AT}?limit=2&partition=0&after={first['next']}"))


def test_what_no_serde_reads_what_is_large_and_what_is_secret(client: TestClient, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("samzapy.config.secrets._kept_out", set(_kept_out))
    keep_out(["hunter2hunter2"])
    stage.feed(b"<img src=x>\x1b[2J", b'"' + b"x" * 50_000 + b'"', b'"hunter2hunter2"', b'"9223372036854775807"', b"9223372036854775807")
    rows = get(client, AT)["items"]
    assert ("<img src=x>\\x1b[2J", True) == (rows[0]["value"]["text"], "cannot read" in rows[0]["value"]["problem"])
    assert (web_tap.MAX_TEXT, True, 50_002) == (len(rows[1]["value"]["text"]), rows[1]["value"]["is_cut"], rows[1]["value"]["bytes"])
    assert ("***", "9223372036854775807") == (rows[2]["value"]["text"], rows[4]["value"]["text"])
    assert "ada" == rows[0]["key"]["text"]
    stage.feed(b"1", headers=[("to", b"Bearer hunter2hunter2"), ("hunter2hunter2", b"x" * 195 + b"hunter2hunter2")])
    assert [["to", "Bearer ***"], ["***", "x" * 195 + "***"]] == get(client, f"{AT}?limit=1")["items"][-1]["headers"]
    stage.feed(b"", key=None)
    assert None is get(client, f"{AT}?limit=1")["items"][-1]["key"]["text"]


@pytest.mark.parametrize("value", [b'{"pad": "%s", "end": "Needle"}' % (b"x" * 50_000), b"\xff" * 50_000 + b" Needle"])
def test_a_text_is_found_wherever_it_stands_in_a_record(client: TestClient, stage: Stage, value: bytes) -> None:
    stage.feed(b'{"end": "hay"}', value)
    stage.feed(b"1", key=b"k" * 5000 + b"Needle")
    found = get(client, f"{AT}?contains=needle")["items"]
    assert [1, 2] == [row["offset"] for row in found]
    assert (web_tap.MAX_TEXT, True) == (len(found[0]["value"]["text"]), found[0]["value"]["is_cut"])
    assert all({"text", "bytes", "is_cut", "problem"} == row[part].keys() for row in found for part in ("key", "value"))
    assert [] == get(client, f"{AT}?contains=none")["items"], "a value that is missing is no text"


def test_one_request_reads_no_more_than_its_bounds(client: TestClient, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.feed(*(b"%d" % n for n in range(100)))
    monkeypatch.setattr(web_tap, "MAX_READ", 40)
    page = get(client, f"{AT}?from=first&contains=99")
    assert ([], 40, 60) == (page["items"], page["read"], page["behind"])
    page = get(client, f"{AT}?contains=99&after={page['next']}")
    page = get(client, f"{AT}?contains=99&after={page['next']}")
    assert (["99"], 0) == (values(page), page["behind"])
    monkeypatch.setattr(web_tap, "MAX_BYTES", 10)
    assert get(client, f"{AT}?from=first")["read"] < 10
    monkeypatch.setattr(web_tap, "MAX_PARTITIONS", 3)
    assert "Choose one" in get(client, AT, 409)["remedy"]
    get(client, f"{AT}?partition=3")


@pytest.mark.parametrize("path", [f"{J}/topics/secrets/records", f"{J}/topics/__consumer_offsets/records", f"{AT}?partition=99"])
def test_other_topics_are_not_here(client: TestClient, path: str) -> None:
    get(client, path, 404)


@pytest.mark.parametrize("query", ["after=x", "after=0:1,", "after=0:-1", "partition=x", "partition=-1"])
def test_what_is_no_cursor_is_refused(client: TestClient, query: str) -> None:
    get(client, f"{AT}?{query}", 409)


def test_records_that_are_gone_are_counted(client: TestClient, stage: Stage) -> None:
    from samzapy.model.offsets import TopicPartition

    stage.feed(*(b"%d" % n for n in range(10)))
    after = get(client, f"{AT}?from=first&limit=2&partition=0")["next"]
    stage.cluster.delete_records(TopicPartition("visits", 0), 6)
    page = get(client, f"{AT}?after={after}&partition=0")
    assert (["6", "7", "8", "9"], 4) == (values(page), page["passed_over"])
    stage.cluster.delete("visits")
    get(client, AT, 404)


def test_topics_are_those_of_the_job_and_nobody_looks_without_a_token(client: TestClient) -> None:
    assert [("visits", "input"), ("visit-counts", "output")] == [(t["topic"], t["kind"]) for t in get(client, f"{J}/topics")["items"]]
    assert 401 == client.get(AT).status_code
