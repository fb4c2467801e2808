"""What `--json` prints of keys and values: everything comes back as it was, and nothing can be taken for something else."""

from __future__ import annotations

import base64
import itertools
import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.api.errors import SerdeError
from samzapy.ops.exact_json import exact, from_base64, header
from samzapy.serde.basic import BytesSerde, IntegerSerde, JsonSerde, StringSerde

SERDES: dict[str, Any] = {"string": StringSerde, "integer": IntegerSerde, "json": JsonSerde, "bytes": BytesSerde}


def read(serde: Any, document: dict[str, Any]) -> bytes:
    """As a script reads a field back to the bytes of Kafka."""
    (field,) = document.items()
    if field[0] == "value_base64":
        return base64.b64decode(field[1])
    value = field[1].encode() if serde is BytesSerde else field[1]
    data: bytes = serde.encode(value)
    return data


@given(st.binary(max_size=20), st.sampled_from(sorted(SERDES)))
def test_whatever_bytes_a_serde_reads_come_back(data: bytes, name: str) -> None:
    serde = SERDES[name]
    try:
        value = serde.decode(data)
    except SerdeError:
        return
    document = json.loads(json.dumps(exact("value", data, value)))
    assert serde.decode(read(serde, document)) == value
    assert name == "json" or data == read(serde, document)


def test_bytes_are_their_text_or_base64_and_the_field_says_which() -> None:
    assert {"key": "caf\u00e9"} == exact("key", "caf\u00e9".encode(), "caf\u00e9".encode())
    assert {"key_base64": "/wA="} == exact("key", b"\xff\x00", b"\xff\x00")
    told = [json.dumps(exact("value", data, data)) for data in (b"/wA=", b"\xff\x00", b"\\xff\\x00", b'{"base64": "/wA="}', b"", b"null")]
    assert len(set(told)) == len(told)
    assert {"value": None} == exact("value", None, None)


class Number(int):
    pass


@pytest.mark.parametrize(
    "value",
    [math.nan, -math.inf, Decimal("1.10"), date(2026, 1, 31), (1, 2), {1: 2}, {"a": [b"x"]}, {1}, Number(3), b"unpacked", [[math.inf]]],
    ids=repr,
)
def test_what_json_cannot_hold_exactly_is_given_as_kafka_has_it(value: Any) -> None:
    assert {"value_base64": base64.b64encode(b"packed").decode()} == exact("value", b"packed", value)


def test_deep_values_are_given_as_kafka_has_them() -> None:
    deep: Any = "x"
    for _ in range(1000):
        deep = [deep]
    data = JsonSerde.encode("x") + b""
    assert ["value_base64"] == list(exact("value", data, deep))


def test_headers_are_text_or_an_object() -> None:
    shown = [json.dumps(header(data)) for data in (None, b"", b"a", b"\xff", b'{"base64": "/w=="}')]
    assert ["null", '""', '"a"', '{"base64": "/w=="}'] == shown[:4]
    assert all(a != b for a, b in itertools.combinations(shown, 2))


@pytest.mark.parametrize("text", ["abc", "a b=", "\udcff", "\u00e9"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no base64"):
        from_base64(text)
