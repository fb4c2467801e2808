"""What an Avro serde writes comes back as it was, or is refused where it is written."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.api.errors import SerdeError
from samzapy.serde.avro import MAX_AVRO_BYTES, AvroSchema, AvroSerde
from samzapy.serde.avro_bounds import Bounds
from samzapy.serde.avro_walk import MAX_DEPTH, MAX_EMPTY_ITEMS


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def serde_of(schema: Any) -> AvroSerde:
    return AvroSerde("avro:v.avsc", AvroSchema(schema))


def of(kind: Any) -> AvroSerde:
    return serde_of(record({"name": "v", "type": kind}))


# -- bounds of reading ---------------------------------------------------------------------------------------------------------------

LIST = record({"name": "next", "type": ["null", "R"]})
TREE = record({"name": "kids", "type": {"type": "array", "items": "R"}})
NULLS = {"type": "array", "items": "null"}


def deep_list(depth: int) -> Any:
    return None if not depth else {"next": deep_list(depth - 1)}


def deep_tree(depth: int) -> Any:
    return {"kids": [deep_tree(depth - 1)] if depth > 1 else []}


@pytest.mark.parametrize(
    ("schema", "most", "more"),
    [
        (LIST, deep_list(MAX_DEPTH), deep_list(MAX_DEPTH + 1)),
        (TREE, deep_tree(MAX_DEPTH // 2), deep_tree(MAX_DEPTH // 2 + 1)),
        (NULLS, [None] * MAX_EMPTY_ITEMS, [None] * (MAX_EMPTY_ITEMS + 1)),
        ({"type": "array", "items": record()}, [{}] * MAX_EMPTY_ITEMS, [{}] * (MAX_EMPTY_ITEMS + 1)),
        ("bytes", b"x" * (MAX_AVRO_BYTES - 4), b"x" * (MAX_AVRO_BYTES - 3)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 20_000}, Decimal("1" * 9_000), Decimal("1" * 9_900)),
    ],
    ids=["nested records", "nested arrays", "nulls", "empty records", "bytes", "decimal"],
)
def test_a_value_that_could_not_be_read_back_is_refused_where_it_is_written(schema: Any, most: Any, more: Any) -> None:
    serde = serde_of(schema)
    assert serde.decode(serde.encode(most)) == most
    with pytest.raises(SerdeError, match=r"serde avro:v\.avsc cannot write .*it could not be read back: "):
        serde.encode(more)


def nested(depth: int) -> Any:
    return "long" if not depth else {"type": "array", "items": nested(depth - 1)}


@pytest.mark.parametrize(
    ("schema", "can_be"),
    [
        ("long", False), (record({"name": "a", "type": {"type": "map", "values": "string"}}), False), ({"type": "map", "values": "null"}, False), (NULLS, True),
        ({"type": "array", "items": ["null", "long"]}, False), ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, True),
        (nested(MAX_DEPTH), False), (nested(MAX_DEPTH + 1), True), (LIST, True), (TREE, True),
        (record({"name": "a", "type": record({"name": "b", "type": "long"}, name="S")}, {"name": "c", "type": "S"}), False),
        ({"type": "bytes", "logicalType": "decimal", "precision": 30}, False), ({"type": "bytes", "logicalType": "decimal", "precision": 9_900}, True),
    ],
)  # fmt: skip
def test_only_what_a_schema_may_write_beyond_the_bounds_is_walked_over(schema: Any, can_be: bool) -> None:
    made = AvroSchema(schema)
    assert Bounds(made._types).can_be_beyond(made._parsed) is made._is_walked is can_be


# -- whole numbers -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double", 2**53 + 1), ("double", -(2**53) - 1), ("float", 2**24 + 1), (["null", "double", "long"], 2**53 + 1), (["null", "float", "long"], 2**24 + 1),
        (["float", "int"], 2**24 + 1), (["int", "double", "long"], 2**62 + 1), ({"type": "array", "items": ["double", "long"]}, [1, 2**53 + 1]),
        ({"type": "map", "values": ["double", "long"]}, {"a": 2**53 + 1}), (["null", "double", "long"], ("double", 2**53 + 1)),
        ([record({"name": "x", "type": kind}, name=name) for name, kind in (("A", "double"), ("B", "long"))], {"x": 2**53 + 1}),
        ([{"type": "array", "items": "double"}, {"type": "array", "items": "long"}], [2**53 + 1]),
    ],
)  # fmt: skip
def test_a_whole_number_that_would_come_back_as_another_one_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(SerdeError, match=r"would be written as .*: give a number that the type holds; in a union that has long, write it as \('long', …\)"):
        of(kind).encode({"v": value})


def test_records_that_are_apart_by_their_fields_are_known_quickly() -> None:
    order, payment = (record({"name": name, "type": "long"}, {"name": "x", "type": kind}, name=name) for name, kind in (("order", "double"), ("payment", "long")))
    schema = AvroSchema([order, payment])
    assert schema._fits({"order": 1, "x": 0.5})
    assert schema._fits({"payment": 1, "x": 2**53 + 1})
    assert not schema._fits({"order": 1, "payment": 1, "x": 2**53 + 1})
    assert serde_of([order, payment]).decode(serde_of([order, payment]).encode({"payment": 1, "x": 2**53 + 1})) == {"payment": 1, "x": 2**53 + 1}


def test_the_branch_that_holds_it_can_be_named() -> None:
    assert of(["null", "double", "long"]).decode(of(["null", "double", "long"]).encode({"v": ("long", 2**53 + 1)})) == {"v": 2**53 + 1}


NEAR_POWERS = st.builds(lambda power, sign, more: sign * 2**power + more, st.integers(20, 62), st.sampled_from([-1, 1]), st.integers(-1, 1))


@given(st.permutations(["null", "int", "long", "float", "double"]), st.integers(1, 5), NEAR_POWERS)
def test_a_whole_number_comes_back_equal_or_is_refused(branches: list[str], count: int, value: int) -> None:
    serde = of(branches[:count])
    try:
        data = serde.encode({"v": value})
    except SerdeError:
        return
    assert serde.decode(data) == {"v": value}


@given(st.permutations(["float", "double", "int", "long"]), NEAR_POWERS)
def test_what_the_quick_check_of_a_union_knows_comes_back_equal(branches: list[str], value: int) -> None:
    schema = AvroSchema(record({"name": "v", "type": branches}))
    if schema._fits({"v": value}):
        assert of(branches).decode(of(branches).encode({"v": value})) == {"v": value}
    elif abs(value) < 2**24:
        pytest.fail(f"{value} is of {branches} for sure")


# -- times without a zone --------------------------------------------------------------------------------------------------------------

AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
NAIVE = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("float", 2), ({"type": "array", "items": "int"}, (1,)), ("bytes", bytearray(b"a")),
        ({"type": "string", "logicalType": "uuid"}, "00000000-0000-0000-0000-000000000005"),
    ],
)  # fmt: skip
def test_a_datetime_without_a_zone_is_refused_wherever_it_is(kind: Any, value: Any) -> None:
    x = {"name": "x", "type": kind}
    for schema in (record(x, AT), record(AT, x), record(x, {"name": "at", "type": ["null", AT["type"]]})):
        with pytest.raises(SerdeError, match=r"has no time zone: give it one \(tzinfo=UTC\)"):
            serde_of(schema).encode({"x": value, "at": NAIVE})
    inner = record(x, {"name": "all", "type": {"type": "array", "items": [record({"name": "n", "type": "null"}, name="N"), record(AT, name="S")]}})
    with pytest.raises(SerdeError, match="has no time zone"):
        serde_of(inner).encode({"x": value, "all": [("S", {"at": NAIVE})]})


@pytest.mark.parametrize("hours", [-14, 14])
def test_a_time_that_is_outside_the_calendar_in_utc_is_refused(hours: int) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    at = datetime.datetime(1 if hours > 0 else 9999, 1 if hours > 0 else 12, 1 if hours > 0 else 31, 12, tzinfo=zone)
    with pytest.raises(SerdeError, match="cannot write"):
        serde_of(record(AT)).encode({"at": at})


# -- logical types -----------------------------------------------------------------------------------------------------------------


def test_a_fixed_decimal_may_be_named_twice() -> None:
    money = {"type": "fixed", "name": "Money", "size": 8, "logicalType": "decimal", "precision": 10, "scale": 2}
    serde = serde_of(record({"name": "net", "type": money}, {"name": "gross", "type": "Money"}))
    value = {"net": Decimal("1.00"), "gross": Decimal("2.00")}
    assert serde.decode(serde.encode(value)) == value
    with pytest.raises(SerdeError, match="cannot write"):
        serde.encode({"net": Decimal("1.00"), "gross": "2.00"})


def test_a_fixed_uuid_is_its_bytes() -> None:
    serde = of({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"})
    one = uuid.UUID(int=7)
    assert serde.decode(serde.encode({"v": one.bytes})) == {"v": one.bytes}
    with pytest.raises(SerdeError, match=r"R\.v is <.*> of type <class 'uuid\.UUID'> expected"):
        serde.encode({"v": one})


def test_a_number_that_is_no_int_is_rounded_as_a_float_is() -> None:
    assert 1 / 3 == of("double").decode(of("double").encode({"v": Fraction(1, 3)}))["v"]


def test_a_number_of_one_of_several_records_that_contain_each_other_is_checked() -> None:
    """Which records hold floats does not depend on where the search began."""
    inner = record({"name": "a", "type": "A"}, name="B")
    a = record({"name": "b", "type": ["null", inner], "default": None}, {"name": "x", "type": "double"}, name="A")
    c = record({"name": "a", "type": record({"name": "x", "type": "long"}, name="D")}, name="C")
    others = record({"name": "q", "type": "int"}, name="E")
    for first in (["null", a], ["null", a, others]):
        serde = serde_of(record({"name": "f1", "type": first}, {"name": "f2", "type": ["null", "B", c]}))
        with pytest.raises(SerdeError, match="would be written as"):
            serde.encode({"f1": None, "f2": {"a": {"x": 2**60 + 1}}})


@pytest.mark.parametrize(
    ("kind", "default"), [({"type": "string", "logicalType": "uuid"}, ""), ({"type": "int", "logicalType": "date"}, -99_999_999), ("int", 2**40)]
)
def test_a_default_that_could_not_be_read_is_refused_where_it_would_be_written(kind: Any, default: Any) -> None:
    with pytest.raises(SerdeError):
        serde_of(record({"name": "v", "type": kind, "default": default})).encode({})


def test_unions_of_records_and_maps_with_floats_are_known_quickly() -> None:
    item = record({"name": "price", "type": "double"}, {"name": "name", "type": "string"}, name="I")
    assert AvroSchema([item, {"type": "map", "values": "double"}])._fits({"price": 1.5, "name": "x"})
    assert not AvroSchema([record({"name": "n", "type": "long"}, name="N"), {"type": "map", "values": "double"}])._fits({"n": 2**53 + 1})
