"""The records that `samzapy chaos` feeds: what `samzapy tail --json --job` wrote of a topic is read back byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.chaos import _records
from samzapy.cli.common import printable_json
from samzapy.cli.lines import Shown
from samzapy.cli.tail import last_records
from samzapy.config.load import LoadedJob, load_job
from samzapy.serde.registry import serde_named
from samzapy.testing.chaos_plan import Recorded
from tests.unit.cli.test_records import World

JOB = """
job: j
task: builtins:object
kafka: {{bootstrap.servers: "localhost:1"}}
inputs: [{{topic: t, key: {key}, value: {value}}}]
"""


def job(folder: Path, key: str, value: str) -> LoadedJob:
    file = folder / "job.yaml"
    file.write_text(JOB.format(key=key, value=value))
    return load_job([file])


@pytest.mark.parametrize(
    ("key", "value", "records"),
    [
        ("bytes", "bytes", [(b"\xff\x01", b"v"), (b"k", b"\xfe"), (None, b""), (b"", None), (b"text", b"text")]),
        ("string", "json", [(b"k", b'{"x":1}'), (b"k", b'"text"'), (b"k", b"null"), (b"k", None), ("ä".encode(), b"[1.5]")]),
        ("integer", "string", [((7).to_bytes(8, "big"), b"x"), (None, b"")]),
    ],
)
def test_what_tail_wrote_is_fed(tmp_path: Path, key: str, value: str, records: list[tuple[bytes | None, bytes | None]]) -> None:
    world, headers = World(), [("trace", b"\x01\xff"), ("empty", None), ("text", b"x"), ("text", b"again")]
    producer = world.log.plain_producer("x")
    for at, (k, v) in enumerate(records):
        producer.send("t", v, k, 0, 1000 + at, headers)
    shown = Shown(serde_named(key, []), serde_named(value, []))
    lines = [printable_json(json.dumps(shown.document(m), ensure_ascii=False)) for m in last_records(world.log.restore_consumer("t"), world.places, 9, world.clock)]
    (tmp_path / "records").write_text("\n".join(lines))
    found = _records(tmp_path / "records", job(tmp_path, key, value), "json")
    assert found == [Recorded("t", k, v, 0, 1000 + at, tuple(headers)) for at, (k, v) in enumerate(records)]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"key": "a", "key_base64": "YQ==", "value": "x"}, "key and key_base64 cannot both be given"),
        ({"key_base64": 7, "value": "x"}, "key_base64 must be text"),
        ({"key_base64": "?", "value": "x"}, "it is no base64"),
        ({"value": "x", "headers": [["a"]]}, "headers are pairs of a name and a value"),
        ({"value": "x", "headers": [["a", 7]]}, "a header's value is text, null or"),
        ({"value": "x", "headers": [["a", {"base64": 7}]]}, "a header's value is text, null or"),
        ({"value": "x", "partition": 100_000}, "partition and timestamp must be whole numbers, a partition less than 1000"),
        ({"key": "x"}, 'not a document with "value"'),
    ],
)
def test_what_is_wrong_with_a_line_is_told(tmp_path: Path, document: dict[str, Any], why: str) -> None:
    (tmp_path / "records").write_text(json.dumps(document))
    with pytest.raises(ConfigurationError, match=why):
        _records(tmp_path / "records", job(tmp_path, "string", "string"), "json")


def test_no_records_at_all_say_how_to_record_some_with_the_jobs_serdes(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("")
    with pytest.raises(ConfigurationError) as raised:
        _records(tmp_path / "records", job(tmp_path, "string", "json"), "json")
    assert raised.value.remedy == "Record some into a file: samzapy tail t --from-beginning --json --job JOB.yaml"
