"""User code that hangs, or that holds the interpreter's lock, wherever samzapy calls it: it is named, its record is set aside, and the job ends.

tests/recovery has the same of a task's own methods; here are functions of programs, and serdes.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.broker import create_topic, produce, read_all

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(600)]
RECORDS, BAD = 60, 37
CODE = '''
import re
import threading

from samzapy import StreamTask
from samzapy.streams import App


def hang(value):
    if value == "bad":
        threading.Event().wait()
    return value


def hold(value):
    if value == "bad":
        re.match(r"(a+)+$", "a" * 60 + "b")
    return value


def program(function, between):
    app = App()
    stream = app.stream("given", key=str, value=str, watermark_delay="0s")
    if between:
        stream = stream.key_by(lambda value: value, "by-value", key=str)
    stream.map(function, value=str).to("made")
    return app


hangs, holds, hangs_later, holds_later = program(hang, False), program(hold, False), program(hang, True), program(hold, True)


class Hanging:
    def encode(self, value):
        return value.encode()

    def decode(self, data):
        return hang(data.decode())


class Holding(Hanging):
    def decode(self, data):
        return hold(data.decode())


class Copy(StreamTask):
    def init(self, context):
        self.made = context.params["made"]

    def process(self, envelope, collector, coordinator):
        collector.send(self.made, envelope.message, key=envelope.key)
'''


@pytest.mark.parametrize("code", ["hangs", "holds", "hangs_later", "holds_later", "Hanging", "Holding"])
def test_what_hangs_is_named_and_its_record_is_set_aside(code: str, kafka: str, tmp_path: Path) -> None:
    name = f"hang-{secrets.token_hex(4)}"
    given, made = create_topic(kafka, f"{name}-in", 2), create_topic(kafka, f"{name}-out", 2)
    values = [b"bad" if number == BAD else b"v%d" % number for number in range(RECORDS)]
    for number, value in enumerate(values):
        produce(kafka, given, [(b"k%d" % number, value)], number % 2)
    (tmp_path / "hanging.py").write_text(CODE)
    document: dict[str, Any] = {
        "job": name, "kafka": {"bootstrap.servers": kafka}, "state": {"dir": str(tmp_path / "state")}, "commit": {"timeout": "8s"},
        "containers": {"count": 1, "heartbeat": "500ms", "lease": "5s", "max_restarts": 8}, "on_error": {"then": "dead_letter"},
    }  # fmt: skip
    if code[0].isupper():
        inputs, outputs = [{"topic": given, "key": "string", "value": f"hanging:{code}"}], [{"topic": made, "key": "string", "value": "string"}]
        document |= {"task": "hanging:Copy", "params": {"made": made}, "inputs": inputs, "outputs": outputs}
    else:
        document |= {"app": f"hanging:{code}", "streams": {"given": {"topic": given}, "made": {"topic": made}}}
    (tmp_path / "job.yaml").write_text(json.dumps(document))
    command = [sys.executable, "-m", "samzapy", "run", str(tmp_path / "job.yaml"), "--local", "--until-end"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=500, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    assert {value for value in values if value != b"bad"} == {record.value for record in read_all(kafka, made)}
    assert RECORDS - 1 == len(read_all(kafka, made))
    [letter] = [record for record in read_all(kafka, f"{name}-1-dead-letter") if record.value == b"bad"]
    told = dict(letter.headers)["samzapy-error"].decode() + done.stderr
    assert "hanging.py" in told
    assert ("did not return within commit.timeout" if code.lower().startswith("hang") else "in hold") in told
