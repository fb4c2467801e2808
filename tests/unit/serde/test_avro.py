"""avro: values of a schema come back; bytes that would blow up, run on or lead astray are refused before they are decoded."""

from __future__ import annotations

import datetime
import io
import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.serde.avro import AvroSchema, AvroSerde, avro_serde
from samzapy.serde.avro_fit import refuse_misfit
from samzapy.serde.avro_walk import MAX_EMPTY_ITEMS

EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "namespace": "test.of",
    "fields": [
        {"name": "yes", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "short", "type": "float"},
        {"name": "long", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "text", "type": "string"},
        {"name": "list", "type": {"type": "array", "items": "long"}},
        {"name": "map", "type": {"type": "map", "values": ["null", "string"]}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "other", "type": "Kind", "default": "A"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "next", "type": ["null", "Inner"]}]}},
    ],
}
ENTRIES = st.fixed_dictionaries(
    {
        "yes": st.booleans(),
        "small": st.integers(-(2**31), 2**31 - 1),
        "large": st.integers(-(2**63), 2**63 - 1),
        "short": st.sampled_from([0.0, 1.5, -2.25]),
        "long": st.floats(allow_nan=False),
        "raw": st.binary(),
        "text": st.text(st.characters(exclude_categories=["Cs"])),
        "list": st.lists(st.integers(-(2**63), 2**63 - 1)),
        "map": st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.none() | st.just("x")),
        "kind": st.sampled_from(["A", "B"]),
        "other": st.just("B"),
        "hash": st.binary(min_size=4, max_size=4),
        "when": st.integers(0, 10**12).map(
            lambda ms: datetime.datetime.fromtimestamp(ms // 1000, datetime.UTC)
        ),
        "inner": st.just({"next": {"next": None}}),
    }
)


def serde_of(schema: Any) -> AvroSerde:
    return AvroSerde("avro:test.avsc", AvroSchema(schema))


SERDE = serde_of(EVERYTHING)


@given(ENTRIES)
def test_a_value_comes_back(value: dict[str, Any]) -> None:
    assert value == SERDE.decode(SERDE.encode(value))


@given(ENTRIES, st.data())
def test_cut_or_continued_bytes_are_refused(value: dict[str, Any], data: st.DataObject) -> None:
    encoded = SERDE.encode(value)
    with pytest.raises(SerdeError):
        SERDE.decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])
    with pytest.raises(SerdeError, match="follow the value"):
        SERDE.decode(encoded + b"\x00")


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    try:
        value = SERDE.decode(data)
    except SerdeError:
        return
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(EVERYTHING, named_schemas={}), value)  # it was a value of the schema


def zigzag(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


NULLS = {"type": "array", "items": "null"}
TREE = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (NULLS, zigzag(20_000_000) + b"\x00"),
        (NULLS, zigzag(-20_000_000) + zigzag(1) + b"\x00"),
        (NULLS, (zigzag(MAX_EMPTY_ITEMS) + b"") * 400 + b"\x00"),
        ({"type": "array", "items": {"type": "record", "name": "E", "fields": []}}, zigzag(20_000_000) + b"\x00"),
        ({"type": "array", "items": "long"}, zigzag(2**62) + b"\x00"),
        ({"type": "map", "values": "null"}, zigzag(2**40) + b"\x00"),
        ("bytes", zigzag(2**40)),
        ("bytes", zigzag(-1)),
        ("string", zigzag(5) + b"abc"),
        ("long", b"\xff" * 400_000 + b"\x01"),
        (TREE, b"\x02" * 100_000 + b"\x00"),
        ({"type": "array", "items": NULLS}, (b"\x02" * 3 + b"\x00") * 1000),
        (["null", "long"], zigzag(2)),
        (["null", "long"], zigzag(-1)),
        ({"type": "enum", "name": "K", "symbols": ["A"]}, zigzag(1)),
        ("boolean", b"\x07"),
        ({"type": "fixed", "name": "F", "size": 1 << 40}, b"\x00"),
    ],
)
def test_bombs_are_refused_at_once(schema: Any, data: bytes) -> None:
    serde = serde_of(schema)
    start = time.process_time()
    with pytest.raises(SerdeError) as caught:
        serde.decode(data)
    assert time.process_time() - start < 2
    assert "avro:test.avsc" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_items_without_bytes_are_taken_within_bounds() -> None:
    serde = serde_of(NULLS)
    assert serde.decode(serde.encode([None] * 1000)) == [None] * 1000


@pytest.mark.parametrize("value", [7, {}, {"next": {"next": 7}}, {"next": None, "extra": 1}])
def test_a_value_of_another_shape_is_refused(value: Any) -> None:
    with pytest.raises(SerdeError, match="cannot write"):
        serde_of(TREE).encode(value)


@pytest.mark.parametrize("text", ["", "{", '{"type": "nonsense"}', '{"type": "record"}', "[" * 5000])
def test_a_file_that_is_no_schema_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "user.avsc"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"user\.avsc"):
        avro_serde("avro:user.avsc", path)


def test_two_files_may_use_one_name(tmp_path: Path) -> None:
    for kind in ("long", "string"):
        (tmp_path / f"{kind}.avsc").write_text(json.dumps({"type": "record", "name": "User", "fields": [{"name": "id", "type": kind}]}))
    assert avro_serde("a", tmp_path / "long.avsc").decode(b"\x02") == {"id": 1}
    assert avro_serde("b", tmp_path / "string.avsc").decode(b"\x02x") == {"id": "x"}


# -- decimals ----------------------------------------------------------------------------------------------------------------------

BYTES_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
FIXED_DECIMAL = {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 4, "scale": 2}


def _decimal_bytes(unscaled: int, schema: dict[str, object]) -> bytes:
    if schema["type"] == "fixed":
        return unscaled.to_bytes(8, "big", signed=True)
    data = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    return _zigzag(len(data)) + data


def _zigzag(number: int) -> bytes:
    number, out = number << 1, b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


@pytest.mark.parametrize("schema", [BYTES_DECIMAL, FIXED_DECIMAL], ids=["bytes", "fixed"])
def test_a_decimal_beyond_its_precision_is_refused_in_both_directions_and_not_rounded(tmp_path: Path, schema: dict[str, object]) -> None:
    path = tmp_path / "d.avsc"
    path.write_text(json.dumps(schema))
    serde = avro_serde("avro:d.avsc", path)
    for text in ("99.99", "-99.99", "0.00", "0.01"):
        value = Decimal(text)
        assert value == serde.decode(serde.encode(value)) == serde.decode(_decimal_bytes(int(value * 100), schema))
    for unscaled in (10_000, -10_000, 12_345, 10**15):
        with pytest.raises(SerdeError, match="more than the 4 digits of its precision"):
            serde.decode(_decimal_bytes(unscaled, schema))
    with pytest.raises(SerdeError):
        serde.encode(Decimal("100.001"))


@pytest.mark.parametrize("precision", [4, 1_000_000])
def test_a_decimal_that_would_take_minutes_is_refused_before_it_is_made(tmp_path: Path, precision: int) -> None:
    path = tmp_path / "d.avsc"
    path.write_text(json.dumps({"type": "array", "items": {"type": "bytes", "logicalType": "decimal", "precision": precision}}))
    serde = avro_serde("avro:d.avsc", path)
    large = b"\x7f" * 400_000
    with pytest.raises(SerdeError, match="a decimal of 400000 bytes"):
        serde.decode(_zigzag(1) + _zigzag(len(large)) + large + b"\0")


# -- values of other types than the schema's ------------------------------------------------------------------------------------------


DAY = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
NAIVE = DAY.replace(tzinfo=None)


def of(kind: Any) -> AvroSerde:
    return AvroSerde("avro:v.avsc", AvroSchema({"type": "record", "name": "V", "fields": [{"name": "v", "type": kind}]}))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("long", 1998.9999999999998), ("long", 1.0), ("long", True), ("long", "7"), ("long", 2**63), ("int", 2**31), ("int", Decimal(1)),
        ("boolean", "false"), ("boolean", 1), ("boolean", None), ("double", "x"), ("double", True), ("float", "1"), ("string", b"x"), ("string", 1),
        ("bytes", "x"), (["null", "boolean"], "false"), (["null", "int"], 1.5), (["long", "string"], 1.5),
        ({"type": "array", "items": "int"}, [1, 1.5]), ({"type": "array", "items": "int"}, "12"), ({"type": "map", "values": "int"}, {1: 1}),
        ({"type": "map", "values": "int"}, {"a": 1.5}), ({"type": "enum", "name": "E", "symbols": ["A"]}, "C"),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc"), ({"type": "long", "logicalType": "timestamp-millis"}, 1.5),
        ("float", 1e300), ("float", -3.5e38), ({"type": "array", "items": "float"}, [1.0, 1e39]), (["null", "float"], 1e300),
        ({"type": "long", "logicalType": "timestamp-millis"}, NAIVE),
        (["null", {"type": "long", "logicalType": "timestamp-micros"}], NAIVE),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {"a": 1.5}),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {}),
    ],
)  # fmt: skip
def test_a_value_of_another_type_than_the_schemas_is_refused_and_not_written_as_another(kind: Any, value: Any) -> None:
    with pytest.raises(SerdeError, match=r"serde avro:v\.avsc cannot write a dict: .*Give it a value that fits the schema"):
        of(kind).encode({"v": value})


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("double", 1, 1.0), ("double", 2**53, float(2**53)), ("float", 1.5, 1.5), ("float", 2, 2.0), ("bytes", bytearray(b"a"), b"a"), (["null", "int"], None, None),
        (["null", "boolean", "int"], True, True), (["null", "int", "long"], 2**40, 2**40), ({"type": "array", "items": "int"}, (1, 2), [1, 2]),
        ("float", float("inf"), float("inf")), (["float", "double"], 1e300, 1e300),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, NAIVE, NAIVE),
        ({"type": "long", "logicalType": "timestamp-millis"}, DAY, DAY), ({"type": "int", "logicalType": "date"}, DAY.date(), DAY.date()),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 7}]}, {}, {"a": 7}),
        ([{"type": "record", "name": n, "fields": [{"name": n, "type": "int"}]} for n in ("A", "B")], {"B": 1}, {"B": 1}),
        ([{"type": "record", "name": n, "fields": [{"name": "a", "type": "int"}]} for n in ("A", "B")], ("B", {"a": 1}), {"a": 1}),
    ],
)  # fmt: skip
def test_a_value_that_the_schema_can_hold_is_written(kind: Any, value: Any, read: Any) -> None:
    assert of(kind).decode(of(kind).encode({"v": value})) == {"v": read}


@given(ENTRIES)
def test_the_quick_check_knows_what_fastavros_own_would_accept(value: dict[str, Any]) -> None:
    schema = AvroSchema(EVERYTHING)
    assert schema._fits(value)
    refuse_misfit(value, schema._parsed)
    assert not schema._fits({**value, "large": 1.5})
    with pytest.raises(ValueError, match=r"large is <1\.5> of type <class 'float'> expected long"):
        refuse_misfit({**value, "large": 1.5}, schema._parsed)
