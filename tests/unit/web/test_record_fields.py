"""Keys and values that the user's code decodes: what that code does there does nothing to this process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.config.load import load_job
from samzapy.serde.registry import is_users
from samzapy.web import record_fields
from samzapy.web.record_fields import DIED, SLOW, RecordFields
from samzapy.wiring.serdes import KEY, VALUE

MODULE = '''
import os, re, sys, threading
class Own:
    def encode(self, value): return value.encode()
    def decode(self, data):
        print("what it prints is no answer")
        if data == b"crash": os.kill(os.getpid(), 11)
        if data == b"exit": os._exit(0)
        if data == b"sys": sys.exit(0)
        if data == b"sleep": threading.Event().wait(600)
        if data == b"lock": re.match(rb"(a+)+$", b"a" * 40 + b"!")
        if data == b"raise": raise KeyError("no such field")
        if data == b"repr": return Odd()
        if data == b"process": return str(os.getpid())
        return data.decode()
class Odd:
    def __repr__(self): os._exit(3)
class Unmade:
    def __init__(self): raise ValueError("not today")
class Killer:
    def __init__(self): os.kill(os.getpid(), 9)
'''


@pytest.fixture
def fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordFields]:
    (tmp_path / "fields_of_mine.py").write_text(MODULE)
    file = tmp_path / "job.yaml"
    file.write_text("job: j\ntask: fields_of_mine:Own\nkafka: {bootstrap.servers: nowhere:1}\ninputs: [{topic: in, key: string, value: json}]\n")
    monkeypatch.setattr(record_fields, "DECODE_S", 1.0)
    made = RecordFields(load_job([file]).settings, [tmp_path])
    yield made
    made.close()


def shown(fields: RecordFields, data: bytes | None, serde: str = "fields_of_mine:Own", part: str = VALUE, limit: int = 100) -> tuple[str | None, str]:
    found = fields.field(serde, "in", part, data, limit)
    assert {"text", "bytes", "is_cut", "problem"} == set(found)
    assert (0 if data is None else len(data)) == found["bytes"]
    return found["text"], found["problem"]


def test_it_is_decoded_in_another_process_which_stays(fields: RecordFields) -> None:
    first, second = shown(fields, b"process"), shown(fields, b"process", part=KEY)
    assert first == second
    assert str(os.getpid()) != first[0]
    assert ("été", "") == shown(fields, "été".encode())
    assert (None, "") == shown(fields, None)
    assert {"text": "ab", "bytes": 4, "is_cut": True, "problem": ""} == fields.field("fields_of_mine:Own", "in", VALUE, b"abcd", 2)
    assert 3_000_000 == len(shown(fields, b"x" * 3_000_000, limit=4_000_000)[0] or "")


def test_the_whole_text_is_searched_there(fields: RecordFields) -> None:
    data = b"x" * 5000 + b"Needle"
    for find, expected in (("needle", True), ("hay", False)):
        found = fields.field("fields_of_mine:Own", "in", VALUE, data, 2, find)
        assert (expected, "xx", True) == (found["is_found"], found["text"], found["is_cut"])


@pytest.mark.parametrize("data", [b"crash", b"exit", b"sys", b"repr"])
def test_what_ends_a_process_ends_that_one_once(fields: RecordFields, data: bytes) -> None:
    before = shown(fields, b"process")
    assert (data.decode(), DIED) == shown(fields, data)
    after = shown(fields, b"process")
    assert before != after
    assert (data.decode(), DIED) == shown(fields, data)  # known by now
    assert after == shown(fields, b"process")


@pytest.mark.parametrize("data", [b"sleep", b"lock"])
def test_what_takes_too_long_is_given_up(fields: RecordFields, data: bytes) -> None:
    shown(fields, b"first")
    began = time.monotonic()
    assert (data.decode(), SLOW) == shown(fields, data)
    assert time.monotonic() - began >= 1.0
    assert ("next", "") == shown(fields, b"next")


def test_what_it_raises_is_told(fields: RecordFields) -> None:
    text, problem = shown(fields, b"raise")
    assert "raise" == text
    assert "no such field" in problem
    assert "cannot be made: ValueError: not today" in shown(fields, b"x", "fields_of_mine:Unmade")[1]
    assert "importing the serde's module ended the process" in shown(fields, b"x", "fields_of_mine:Killer")[1]


def test_after_five_ends_in_a_minute_nothing_is_tried_for_a_while(fields: RecordFields, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(fields, b"first")
    monkeypatch.setattr(fields, "_deaths", [time.monotonic()] * 5)
    text, problem = shown(fields, b"second")
    assert ("second", True) == (text, problem.startswith("not decoded: in the last 60 s, decoding other records ended 5 processes"))
    monkeypatch.setattr(fields, "_deaths", [time.monotonic() - 61] * 5)
    assert ("second", "") == shown(fields, b"second")


def test_whose_code_it_is() -> None:
    assert [True, True] == [is_users(name) for name in ("record:module:Class", "module:Class")]
    assert [False] * 5 == [is_users(name) for name in ("json", "string", "avro:a.avsc", "registry", "registry:a.avsc")]
