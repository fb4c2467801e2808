"""Dead letters by the interface: seen, found, shown, sent back once, discarded; bounded, and by who may."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from samzapy.api.errors import OffsetOutOfRange
from samzapy.clock import SystemClock
from samzapy.config.secrets import _kept_out, keep_out
from samzapy.model.dead_letter import REPLAY_OF
from samzapy.model.offsets import TopicPartition
from samzapy.ops import letters as ops_letters
from samzapy.readers import read_to_end
from samzapy.web import letters as web_letters
from samzapy.web.app import web_app
from tests.page.staged import OPERATE, TOKEN, VIEW, J, Stage, contents, get, live

AT = f"{J}/dead-letters"


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    for n in range(60):
        stage.set_aside(n, ("ValueError: bad price", "KeyError: 'user'", "my.Own: x")[n % 3], b'{"price": "1,50", "n": %d}' % n)
    return stage


@pytest.fixture
def client(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(web_letters, "FRESH_S", 0.0)
    facts = live(stage)
    return TestClient(web_app(facts, facts, contents(stage), TOKEN), base_url="http://127.0.0.1:1")


def post(client: TestClient, what: str, status: int = 200, token: str = OPERATE, **body: Any) -> Any:
    answer = client.post(f"{AT}/{what}", json=body, headers={"Authorization": f"Bearer {token}"})
    assert status == answer.status_code, answer.text
    return answer.json()


def sent(stage: Stage) -> list[Any]:
    consumer = stage.log.restore_consumer("t")
    return [m for batch in read_to_end(consumer, TopicPartition("visits", 0), SystemClock()) for m in batch]


def people(stage: Stage) -> list[str]:
    return [e["text"] for e in stage.roster.events.since() if e["kind"] == "people"]


def test_they_are_grouped_found_and_given_a_page_at_a_time(client: TestClient) -> None:
    first = get(client, f"{AT}?limit=50")
    assert (60, 60, 60, "50", True) == (first["found"], first["waiting"], first["all"], first["next"], first["is_whole"])
    assert [("KeyError", 20), ("ValueError", 20), ("my.Own", 20)] == sorted((g["error"], g["count"]) for g in first["groups"])
    rest = get(client, f"{AT}?limit=50&offset={first['next']}")
    assert (10, None) == (len(rest["items"]), rest["next"])
    assert 60 == len({row["origin"] for row in first["items"] + rest["items"]})
    assert ["visits[0]@17"] == [row["origin"] for row in get(client, f'{AT}?find="n": 17}}')["items"]]
    assert 20 == get(client, f"{AT}?error=KeyError")["found"]
    assert 0 == get(client, f"{AT}?task=Partition 7")["found"]


def test_one_is_shown_by_the_serdes_of_its_input(client: TestClient, stage: Stage) -> None:
    one = get(client, f"{AT}/visits[0]@17")
    assert ("visits[0]@17", "Partition 0", 4) == (one["origin"], one["task"], one["attempts"])
    assert ("ada", '{"price": "1,50", "n": 17}', "") == (one["key"]["text"], one["value"]["text"], one["value"]["problem"])
    assert [["trace", "\\xff1"]] == one["headers"]
    assert "counts.py:31" in one["stack"]
    assert one == get(client, f"{AT}/{one['number']}")

    stage.set_aside(99, "ValueError: no json", b"\x1b[31m\xff<b>", None)
    odd = get(client, f"{AT}/visits[0]@99")
    assert (None, "\\x1b[31m\\xff<b>") == (odd["key"]["text"], odd["value"]["text"])
    assert "serde json cannot read" in odd["value"]["problem"]
    get(client, f"{AT}/visits[0]@12345", 404)
    for nothing in ("0.123456", "9.1", "٣.1", "1.", "0.-1"):
        get(client, f"{AT}/{nothing}", 404)


def test_a_value_is_cut_and_holds_no_secret(client: TestClient, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("samzapy.config.secrets._kept_out", set(_kept_out))
    keep_out(["hunter2hunter2"])
    stage.set_aside(99, "ValueError: hunter2hunter2", b'"hunter2hunter2 ' + b"x" * 100_000 + b'"')
    one = get(client, f"{AT}/visits[0]@99")
    assert (web_letters.MAX_TEXT, True, 100_017) == (len(one["value"]["text"]), one["value"]["is_cut"], one["value"]["bytes"])
    assert "hunter2" not in str(one) + str(get(client, AT))
    stage.set_aside(98, "ValueError: x", headers=[("to", b"Bearer hunter2hunter2"), ("hunter2hunter2", b"x" * 195 + b"hunter2hunter2")])
    one = get(client, f"{AT}/visits[0]@98")
    assert [["to", "Bearer ***"], ["***", "x" * 195 + "***"]] == one["headers"]


def test_a_replay_says_what_it_would_send_sends_it_once_and_is_noted(client: TestClient, stage: Stage) -> None:
    told = post(client, "replay", which=["visits[0]@17"], dry_run=True)
    assert (1, ["visits[0]@17"]) == (told["count"], told["origins"])
    assert ([], []) == (sent(stage), people(stage))
    assert told == post(client, "replay", which=["visits[0]@17"])
    (record,) = sent(stage)
    assert (b'{"price": "1,50", "n": 17}', b"ada") == (record.value(), record.key())
    assert (REPLAY_OF, ("trace", b"\xff1")) == (record.headers()[-1][0], record.headers()[0])
    assert [f"operate (testclient) asked for: dead letters: replay; {told['effect']}"] == people(stage)

    again = post(client, "replay", which=["visits[0]@17"])
    assert (0, ["visits[0]@17 was sent back before"]) == (again["count"], again["not_sent"])
    assert (1, 1) == (len(sent(stage)), len(people(stage)))
    assert 59 == get(client, AT)["waiting"]
    assert get(client, f"{AT}/visits[0]@17")["replayed_ms"]
    assert 19 == post(client, "replay", error="my.Own")["count"]
    assert 40 == post(client, "replay", all=True)["count"]
    assert 60 == len(sent(stage)) == len({m.value() for m in sent(stage)})
    assert (0, 60) == (get(client, AT)["found"], get(client, f"{AT}?state=all")["found"])


def test_what_cannot_go_back_stays_and_says_why(client: TestClient, stage: Stage) -> None:
    stage.set_aside(70, "ValueError: x", topic="elsewhere")
    stage.set_aside(71, "ValueError: x", truncated="key=3 value=9 headers=0")
    told = post(client, "replay", all=True, dry_run=True)
    assert 60 == told["count"]
    assert any("visits[0]@71: its dead letter is shortened" in why for why in told["not_sent"])
    assert any("no task of this job reads elsewhere" in why for why in told["not_sent"])
    refused = post(client, "replay", 409, which=["elsewhere[0]@70"])
    assert "no task of this job reads" in refused["detail"]
    assert refused["remedy"]
    assert [] == sent(stage)


def test_a_record_that_failed_again_after_it_was_sent_back_is_left_out_of_all_and_goes_if_it_is_selected(client: TestClient, stage: Stage) -> None:
    dead_letters = TopicPartition(stage.roster.job.dead_letter_topic, 17 % 2)
    (first,) = [
        m
        for batch in read_to_end(stage.log.restore_consumer("t"), dead_letters, SystemClock())
        for m in batch
        if ("samzapy-offset", b"17") in m.headers()
    ]
    assert 1 == post(client, "replay", which=["visits[0]@17"])["count"]
    stage.log.plain_producer("job").send(dead_letters.topic, first.value(), first.key(), dead_letters.partition, headers=first.headers())
    told = post(client, "replay", all=True)
    assert (59, 60) == (told["count"], len(sent(stage)))
    (why,) = told["not_sent"]
    assert "its record, visits[0]@17, was sent back before; select it to send it once more" in why
    assert 1 == post(client, "replay", which=[why.partition(":")[0]])["count"]
    assert 61 == len(sent(stage))


def test_discarded_ones_are_not_sent_back(client: TestClient, stage: Stage) -> None:
    told = post(client, "discard", error="KeyError", dry_run=True)
    assert 20 == told["count"] == post(client, "discard", error="KeyError")["count"]
    assert (0, 40) == (post(client, "discard", error="KeyError")["count"], post(client, "replay", all=True)["count"])
    assert 2 == len(people(stage))


@pytest.mark.parametrize("body", [{}, {"all": True, "error": "x"}, {"which": ["0.1"], "all": True}, {"which": ["nothing"]}])
def test_what_is_not_chosen_in_one_way_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    assert "dlq list" in post(client, "replay", 409, **body)["remedy"]


def test_who_may_only_look_changes_nothing(client: TestClient, stage: Stage) -> None:
    for what in ("replay", "discard"):
        post(client, what, 403, token=VIEW, all=True)
    assert 401 == client.get(AT).status_code
    assert [] == sent(stage)


def test_many_are_looked_at_from_the_newest_and_sent_back_by_the_command(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops_letters, "RECENT", 20)
    found = get(client, f"{AT}?limit=500")
    assert (20, False) == (found["all"], found["is_whole"])
    assert {f"visits[0]@{n}" for n in range(40, 60)} == {row["origin"] for row in found["items"]}
    old = get(client, f"{AT}/0.0")
    assert ("visits[0]@0", False, None) == (old["origin"], old["is_known"], old["replayed_ms"])
    monkeypatch.setattr(web_letters, "MAX_CHANGE_BYTES", 1000)
    assert "samzapy dlq replay JOB.yaml --all" in post(client, "replay", 409, all=True)["remedy"]


def test_large_ones_are_looked_at_from_the_newest_and_what_was_dealt_with_does_not_wait(client: TestClient, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(60, 600):
        stage.set_aside(n, f"ValueError: number {n}", b"x" * 200)
    assert 540 == post(client, "discard", error="ValueError: number")["count"]
    monkeypatch.setattr(ops_letters, "RECENT_BYTES", 50_000)
    monkeypatch.setattr(ops_letters, "GROWTH", 1)
    found = get(client, f"{AT}?state=all&limit=500")
    assert not found["is_whole"]
    assert found["all"] < 500
    assert {f"visits[0]@{n}" for n in range(600 - found["all"], 600)} == {row["origin"] for row in found["items"]}
    assert 0 == found["waiting"]


def test_traces_of_many_do_not_push_out_the_ones_that_wait(client: TestClient, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(60, 200):
        stage.set_aside(n, f"TimeoutError: {n}")
    assert 140 == post(client, "discard", error="TimeoutError")["count"]
    monkeypatch.setattr(ops_letters, "RECENT", 200)
    assert (60, 200, True) == ((found := get(client, AT))["waiting"], found["all"], found["is_whole"])


def test_what_is_removed_while_they_are_read_is_no_reason_to_tell_the_others_wrongly(client: TestClient, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 20 == post(client, "discard", error="KeyError")["count"]
    read, told = ops_letters.read_ranges, list[int]()

    def removed_once(*args: Any) -> Any:
        if not told:
            told.append(1)
            raise OffsetOutOfRange("removed")
        return read(*args)

    monkeypatch.setattr(ops_letters, "read_ranges", removed_once)
    assert (40, 60, True) == ((found := get(client, AT))["waiting"], found["all"], found["is_whole"])


def test_a_job_without_a_dead_letter_topic_has_none(client: TestClient, stage: Stage) -> None:
    stage.cluster.delete(stage.roster.job.dead_letter_topic)
    assert (0, [], True) == ((found := get(client, AT))["found"], found["groups"], found["is_whole"])
    get(client, f"{AT}/0.0", 404)
    assert 0 == post(client, "replay", all=True)["count"]
