"""string, integer, bytes, json: what they write, what they refuse."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.api.errors import SerdeError
from samzapy.serde.basic import MAX_JSON_BYTES, BytesSerde, IntegerSerde, JsonSerde, StringSerde
from samzapy.serde.record import RecordSerde

STRING, INTEGER, BYTES, JSON = StringSerde(), IntegerSerde(), BytesSerde(), JsonSerde()
INT64 = st.integers(-(2**63), 2**63 - 1)
JSON_VALUES = st.recursive(
    st.booleans()
    | INT64
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=20,
)


class Colour(enum.IntEnum):
    RED = 3


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_comes_back(value: str) -> None:
    assert value == STRING.decode(STRING.encode(value))


@given(INT64)
def test_integers_come_back_as_kafkas_long_serializer_writes_them(value: int) -> None:
    data = INTEGER.encode(value)
    assert value.to_bytes(8, "big", signed=True) == data
    assert value == INTEGER.decode(data)


@given(JSON_VALUES)
def test_json_comes_back(value: Any) -> None:
    assert value == JSON.decode(JSON.encode(value))


def test_what_they_write() -> None:
    assert STRING.encode("é") == b"\xc3\xa9"
    assert STRING.encode("") == b""
    assert INTEGER.encode(-2) == b"\xff" * 7 + b"\xfe"
    assert INTEGER.encode(Colour.RED) == b"\x00" * 7 + b"\x03"
    assert JSON.encode({"a": [1, None, "é"]}) == '{"a":[1,null,"é"]}'.encode()
    assert JSON.encode(Counter("aab")) == b'{"a":2,"b":1}'
    assert BYTES.encode(bytearray(b"\x00x")) == b"\x00x"
    assert BYTES.encode(memoryview(b"x")) == b"x"
    assert BYTES.decode(b"") == b""


@pytest.mark.parametrize(
    ("serde", "value", "words"),
    [
        (STRING, b"bytes", "takes text"),
        (STRING, 7, "takes text"),
        (STRING, "\ud800", "not valid text"),
        (INTEGER, True, "takes int"),
        (INTEGER, 1.0, "takes int"),
        (INTEGER, "1", "takes int"),
        (INTEGER, 2**63, "64 bits"),
        (INTEGER, -(2**63) - 1, "64 bits"),
        (BYTES, "text", "takes bytes"),
        (BYTES, 7, "takes bytes"),
        (JSON, {1: 2}, "cannot write"),
        (JSON, object(), "cannot write"),
        (JSON, 2**64, "cannot write"),
        (JSON, "\ud800", "cannot write"),
        (JSON, float("nan"), "NaN"),
        (JSON, {"a": [1, {"b": float("inf")}]}, "NaN"),
        (JSON, ["null", (float("-inf"),)], "NaN"),
        (JSON, "x" * MAX_JSON_BYTES, "more than"),
    ],
)
def test_a_value_of_another_kind_is_refused(serde: Any, value: Any, words: str) -> None:
    with pytest.raises(SerdeError, match=words) as caught:
        serde.encode(value)
    assert caught.value.remedy
    assert len(str(caught.value)) < 500


def test_not_a_number_in_a_dataclass_is_refused() -> None:
    @dataclasses.dataclass
    class Point:
        x: float

    assert JSON.encode(Point(1.5)) == b'{"x":1.5}'
    with pytest.raises(SerdeError, match="NaN"):
        JSON.encode(Point(float("nan")))


def test_an_honest_null_is_written() -> None:
    assert JSON.encode({"a": None, "b": 1.5}) == b'{"a":null,"b":1.5}'
    assert JSON.decode(b"null") is None


@pytest.mark.parametrize(
    ("serde", "data", "words"),
    [
        (STRING, b"\xff", "not UTF-8"),
        (INTEGER, b"", "has 0"),
        (INTEGER, b"1234567", "has 7"),
        (INTEGER, b"123456789", "has 9"),
        (JSON, b"", "cannot read"),
        (JSON, b"{", "cannot read"),
        (JSON, b"1 2", "cannot read"),
        (JSON, b"NaN", "cannot read"),
        (JSON, b"\xff", "cannot read"),
        (JSON, b"[" * 100_000 + b"]" * 100_000, "cannot read"),
        (JSON, b'"' + b"x" * MAX_JSON_BYTES + b'"', "more than"),
    ],
)
def test_bytes_of_another_kind_are_refused(serde: Any, data: bytes, words: str) -> None:
    with pytest.raises(SerdeError, match=words) as caught:
        serde.decode(data)
    assert caught.value.remedy
    assert len(str(caught.value)) < 500


@given(st.binary() | JSON_VALUES.map(JSON.encode) | st.text(st.characters(exclude_categories=["Cs"])).map(str.encode))
def test_a_quick_decode_gives_the_same_or_a_value_error(data: bytes) -> None:
    for serde in (STRING, JSON):
        try:
            value = serde.decode(data)
        except SerdeError:
            with pytest.raises(ValueError):
                serde.quick_decode(data)
        else:
            assert repr(value) == repr(serde.quick_decode(data))  # 0.0 is not -0.0 there


@pytest.mark.parametrize("serde", [IntegerSerde(), JsonSerde(), StringSerde()])
def test_a_number_of_a_million_digits_is_refused_as_any_other_and_not_printed(serde: Any) -> None:
    with pytest.raises(SerdeError, match="a whole number of 3321929 bits"):
        serde.encode(10**1_000_000)


def test_json_reads_integers_beyond_64_bits_as_floats_and_refuses_to_write_them() -> None:
    """As the pages say; what orjson does."""
    assert (2**64 - 1, -(2**63)) == (JsonSerde.decode(b"18446744073709551615"), JsonSerde.decode(b"-9223372036854775808"))
    assert 18446744073709551616.0 == JsonSerde.decode(b"18446744073709551616")
    assert isinstance(JsonSerde.decode(b"18446744073709551616"), float)
    with pytest.raises(SerdeError, match="64-bit"):
        JsonSerde.encode(2**64)


def test_json_says_how_deep_it_writes() -> None:
    value: Any = []
    for _ in range(253):
        value = [value]
    assert value == JsonSerde.decode(JsonSerde.encode(value))
    with pytest.raises(SerdeError, match=r"nested up to 254 deep \(it reads 1024\)"):
        JsonSerde.encode(JsonSerde.decode(b"[" * 1024 + b"]" * 1024))


class AB(TypedDict):
    a: int
    b: int


def test_of_a_key_that_an_object_has_twice_the_last_value_counts() -> None:
    data = b'{"a": 1, "b": 0, "a": 2}'
    assert JsonSerde().decode(data) == {"a": 2, "b": 0}
    assert RecordSerde("record", AB).decode(data) == {"a": 2, "b": 0}
