"""Values that another Avro schema wrote, and the defaults of fields that it did not have."""

from __future__ import annotations

import datetime
import io
import uuid
from decimal import Decimal
from typing import Any

import pytest

from samzapy.serde.avro import AvroSchema

UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def written(schema: AvroSchema, value: Any) -> bytes:
    out = io.BytesIO()
    schema.write(out, value)
    return out.getvalue()


# -- defaults ------------------------------------------------------------------------------------------------------------------------

A = {"name": "a", "type": "long"}
POINT = record({"name": "x", "type": "int"}, {"name": "y", "type": "int", "default": 7}, name="P")
DECIMAL = logical("bytes", "decimal", precision=6, scale=2)


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        (logical("long", "timestamp-millis"), 0, EPOCH), (logical("long", "timestamp-micros"), 5, EPOCH + datetime.timedelta(microseconds=5)),
        (logical("int", "date"), 1, datetime.date(1970, 1, 2)), (DECIMAL, "\u0001", Decimal("0.01")), ("bytes", "\u00ff", b"\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, "\u0000\u00ff", b"\x00\xff"), (logical("string", "uuid"), str(uuid.UUID(int=5)), uuid.UUID(int=5)),
        (["bytes", "null"], "\u00ff", b"\xff"), (["null", "bytes"], None, None), ("double", 1, 1.0), (POINT, {"x": 1}, {"x": 1, "y": 7}),
        ({"type": "array", "items": DECIMAL}, ["\u0001"], [Decimal("0.01")]), ({"type": "map", "values": POINT}, {"k": {"x": 2}}, {"k": {"x": 2, "y": 7}}),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "A"), ("string", "x", "x"), ("boolean", True, True), (["string", "null"], None, None),
    ],
)  # fmt: skip
def test_a_default_is_a_value_of_its_type(kind: Any, default: Any, value: Any) -> None:
    old, new = AvroSchema(record(A)), AvroSchema(record(A, {"name": "v", "type": kind, "default": default}))
    read = old.read(written(old, {"a": 1}), 0, new)
    assert read == {"a": 1, "v": value}
    assert type(read["v"]) is type(value)
    assert new.read(written(new, read)) == read  # it can be put back
    assert new.read(written(new, {"a": 1})) == read  # and is what is written for a field that is left out


def test_a_value_has_lists_and_dicts_of_its_own_where_it_lacks_a_field() -> None:
    old = AvroSchema(record(A))
    tags = {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []}
    inner, counts = record(tags, name="I"), {"type": "map", "values": "int"}
    new = AvroSchema(record(A, tags, {"name": "in", "type": inner, "default": {}}, {"name": "m", "type": counts, "default": {}}))
    data = written(old, {"a": 1})
    one = old.read(data, 0, new)
    one["tags"].append("ada's")
    one["in"]["tags"].append("ada's")
    one["m"]["k"] = 1
    untouched = {"a": 1, "tags": [], "in": {"tags": []}, "m": {}}
    assert old.read(data, 0, new) == untouched
    assert new.read(written(new, {"a": 1})) == untouched


def test_a_default_of_another_type_hinders_no_reading() -> None:
    wrong = AvroSchema(record(A, {"name": "v", "type": logical("string", "uuid"), "default": ""}))
    one = {"a": 1, "v": uuid.UUID(int=1)}
    assert wrong.read(written(wrong, one), 0, AvroSchema(record(A))) == {"a": 1}
    with pytest.raises(ValueError, match="UUID"):
        wrong.read(written(wrong, {"a": 1}))


# -- logical types -------------------------------------------------------------------------------------------------------------------

MILLIS, MICROS, UUID = logical("long", "timestamp-millis"), logical("long", "timestamp-micros"), logical("string", "uuid")
FIXED = {"type": "fixed", "name": "F", "size": 2}
NOON = datetime.datetime(2024, 1, 2, 12, tzinfo=UTC)
MS = int(NOON.timestamp() * 1000)


@pytest.mark.parametrize(
    ("was", "value", "file", "read"),
    [
        ("long", MS, MILLIS, NOON), ("int", 86_400, MICROS, EPOCH + datetime.timedelta(microseconds=86_400)),
        (MILLIS, NOON, "long", MS), (MILLIS, NOON, MICROS, NOON),
        (logical("int", "date"), NOON.date(), "long", 19_724), (MILLIS, NOON, "double", float(MS)),
        ("int", 19_724, logical("int", "date"), NOON.date()), ("bytes", b"\x04\xd2", DECIMAL, Decimal("12.34")), (DECIMAL, Decimal("12.34"), "bytes", b"\x04\xd2"),
        (DECIMAL, Decimal("12.34"), logical("bytes", "decimal", precision=8, scale=4), Decimal("12.34")),
        ("string", str(uuid.UUID(int=5)), UUID, uuid.UUID(int=5)), (UUID, uuid.UUID(int=5), "string", str(uuid.UUID(int=5))),
        (["null", "long"], MS, ["null", MILLIS], NOON), ("long", MS, ["null", MILLIS], NOON),
        (["null", "long"], MS, MILLIS, NOON), ({"type": "array", "items": "long"}, [MS], {"type": "array", "items": MILLIS}, [NOON]),
        ({"type": "map", "values": "long"}, {"k": MS}, {"type": "map", "values": MILLIS}, {"k": NOON}),
        (FIXED, b"\x04\xd2", {**FIXED, **logical("fixed", "decimal", precision=4, scale=2)}, Decimal("12.34")),
        ({**FIXED, **logical("fixed", "decimal", precision=4, scale=2)}, Decimal("12.34"), FIXED, b"\x04\xd2"),
        (record({"name": "was", "type": "long"}, name="I"), {"was": MS},
         record({"name": "at", "type": MILLIS, "aliases": ["was"]}, name="J", aliases=["I"]), {"at": NOON}),
    ],
)  # fmt: skip
def test_a_value_has_the_logical_types_of_the_schema_that_reads_it(was: Any, value: Any, file: Any, read: Any) -> None:
    old, new = AvroSchema(record({"name": "v", "type": was})), AvroSchema(record({"name": "v", "type": file}))
    for _ in range(2):  # worked out once, and kept
        found = old.read(written(old, {"v": value}), 0, new)
        assert found == {"v": read}
        assert type(found["v"]) is type(read)
    assert old.read(written(old, {"v": value})) == {"v": value}
    assert new.read(written(new, found)) == found


def test_it_has_them_in_records_that_contain_themselves() -> None:
    old = AvroSchema(record({"name": "at", "type": "long"}, {"name": "next", "type": ["null", "R"]}))
    new = AvroSchema(record({"name": "at", "type": MILLIS}, {"name": "next", "type": ["null", "R"]}))
    assert old.read(written(old, {"at": MS, "next": {"at": 0, "next": None}}), 0, new) == {"at": NOON, "next": {"at": EPOCH, "next": None}}


@pytest.mark.parametrize(
    ("was", "value", "file"),
    [
        (logical("long", "local-timestamp-millis"), NOON.replace(tzinfo=None), MILLIS),
        (logical("int", "date"), NOON.date(), MILLIS), (logical("int", "date"), NOON.date(), logical("int", "time-millis")),
    ],
)  # fmt: skip
def test_logical_types_that_mean_different_things_are_refused(was: Any, value: Any, file: Any) -> None:
    old, new = AvroSchema(record({"name": "v", "type": was})), AvroSchema(record({"name": "v", "type": file}))
    with pytest.raises(ValueError, match=f"the writer's schema says {was['logicalType']}, the schema in the file {file['logicalType']}"):
        old.read(written(old, {"v": value}), 0, new)


def test_one_type_that_two_others_read_is_refused_where_these_have_other_logical_types() -> None:
    inner = record({"name": "at", "type": "long"}, name="I")
    old = AvroSchema(record({"name": "a", "type": inner}, {"name": "b", "type": "I"}))
    at = {"name": "at", "type": logical("long", "timestamp-millis")}
    two = [record(at, name="J", aliases=["I"]), record({**at, "type": "long"}, name="K", aliases=["I"])]
    with pytest.raises(ValueError, match="two types of the file, J and K, read one type of the writer's schema"):
        old.read(written(old, {"a": {"at": 0}, "b": {"at": 0}}), 0, AvroSchema(record({"name": "a", "type": two[0]}, {"name": "b", "type": two[1]})))
    plain = [record({"name": "at", "type": "long"}, name=name, aliases=["I"]) for name in ("J", "K")]
    found = old.read(written(old, {"a": {"at": 0}, "b": {"at": 1}}), 0, AvroSchema(record({"name": "a", "type": plain[0]}, {"name": "b", "type": plain[1]})))
    assert found == {"a": {"at": 0}, "b": {"at": 1}}


def test_bytes_that_are_read_as_a_decimal_are_bounded_as_one() -> None:
    old, new = AvroSchema("bytes"), AvroSchema(logical("bytes", "decimal", precision=4))
    with pytest.raises(ValueError, match="a decimal of 400000 bytes"):
        old.read(written(old, b"\x7f" * 400_000), 0, new)
    with pytest.raises(ValueError, match="more than the 4 digits of its precision"):
        old.read(written(old, b"\x7f\xff\xff"), 0, new)


# -- schemas that refer to others -----------------------------------------------------------------------------------------------------

ORDER = record({"name": "o", "type": "long"}, name="Order", namespace="a")
PAYMENT = record({"name": "p", "type": "string"}, {"name": "of", "type": ["null", "a.Order", "a.Payment"], "default": None}, name="Payment", namespace="a")
PAID = {"p": "x", "of": {"o": 1}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (["a.Order", "a.Payment"], PAID), (["a.Payment", "a.Order"], {"p": "x", "of": PAID}), ("a.Payment", PAID), (["null", "a.Payment"], PAID),
        ({"type": "array", "items": "a.Payment"}, [PAID, PAID]), ({"type": "map", "values": ["null", "a.Payment"]}, {"k": PAID, "l": None}),
        (["null", {"type": "array", "items": "a.Payment"}], [PAID]), (record({"name": "v", "type": "a.Payment"}), {"v": PAID}),
    ],
)  # fmt: skip
def test_a_schema_may_refer_to_others_at_its_top(schema: Any, value: Any) -> None:
    made = AvroSchema(schema, [ORDER, PAYMENT])
    assert made.read(written(made, value)) == value
    assert made.read(written(made, value), 0, AvroSchema(schema, [ORDER, PAYMENT])) == value
    with pytest.raises(ValueError, match=r"is <7> of type"):
        made.write(io.BytesIO(), 7)


def test_what_refers_to_others_is_read_by_a_schema_that_has_them_in_it() -> None:
    made = AvroSchema(["a.Order", "a.Payment"], [ORDER, PAYMENT])
    wider = {**ORDER, "fields": [{"name": "o", "type": logical("long", "timestamp-millis")}, {"name": "more", "type": "int", "default": 3}]}
    assert made.read(written(made, {"o": 0}), 0, AvroSchema([wider, PAYMENT])) == {"o": EPOCH, "more": 3}


# -- unions that are the same in both ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("branches", "value"),
    [
        (["null", "string", DECIMAL], Decimal("1.27")), (["null", "string", DECIMAL], Decimal("12.34")),
        (["null", "long", logical("int", "date")], datetime.date(2024, 5, 1)),
        (["null", "double", logical("long", "timestamp-millis")], EPOCH), (["null", "bytes", logical("string", "uuid")], uuid.UUID(int=7)),
        (["null", logical("long", "timestamp-millis"), logical("int", "date")], datetime.date(2024, 5, 1)), (["null", logical("int", "date"), "string"], None),
    ],
)  # fmt: skip
def test_a_field_that_stayed_the_same_is_read_the_same_when_another_is_added(branches: list[Any], value: Any) -> None:
    before = AvroSchema(record({"name": "v", "type": branches}))
    after = AvroSchema(record({"name": "v", "type": branches}, {"name": "more", "type": "int", "default": 0}))
    assert {"v": value, "more": 0} == before.read(written(before, {"v": value}), wanted=after)


@pytest.mark.parametrize(
    ("was", "value", "file", "read"),
    [
        ("string", "1.25", DECIMAL, b"1.25"), (logical("long", "timestamp-millis"), EPOCH, logical("long", "timestamp-nanos"), EPOCH),
        (logical("long", "timestamp-nanos"), 5, logical("long", "timestamp-millis"), 5),
    ],
)  # fmt: skip
def test_what_is_no_logical_type_of_the_same_bytes_stays_what_was_written(was: Any, value: Any, file: Any, read: Any) -> None:
    before, after = AvroSchema(record({"name": "v", "type": was})), AvroSchema(record({"name": "v", "type": file}))
    assert {"v": read} == before.read(written(before, {"v": value}), wanted=after)


def test_a_type_that_two_others_read_is_none_of_the_business_of_another_fields_logical_type() -> None:
    key = {"name": "k", "type": "string"}
    before = AvroSchema(record({"name": "p", "type": record(key, name="P")}, {"name": "q", "type": "P"}, {"name": "t", "type": "long"}))
    after = AvroSchema(
        record(
            {"name": "p", "type": record(key, name="P")}, {"name": "q", "type": record(key, name="P2", aliases=["P"])},
            {"name": "t", "type": logical("long", "timestamp-millis")},
        )
    )  # fmt: skip
    data = written(before, {"p": {"k": "a"}, "q": {"k": "b"}, "t": 0})
    assert {"p": {"k": "a"}, "q": {"k": "b"}, "t": EPOCH} == before.read(data, wanted=after)


def test_a_default_that_contains_itself_hinders_no_reading() -> None:
    looped = AvroSchema(record({"name": "next", "type": ["R", "null"], "default": {}}, A))
    assert {"next": None, "a": 1} == looped.read(written(looped, {"next": None, "a": 1}))


@pytest.mark.parametrize("kind", [["double", "string"], ["null", "double", "string"]])
def test_a_default_of_a_union_is_text_where_it_is_text(kind: Any) -> None:
    assert "1" == AvroSchema(record()).read(b"", wanted=AvroSchema(record({"name": "v", "type": kind, "default": "1"})))["v"]


def test_values_are_copied_only_where_a_default_may_have_been_put_in() -> None:
    item = {"name": "items", "type": {"type": "array", "items": "string"}, "default": []}
    old, with_items, more = AvroSchema(record(A)), AvroSchema(record(A, item)), AvroSchema(record(A, item, {"name": "b", "type": "int", "default": 0}))
    assert [True, False] == [schema._reading(more)[3] for schema in (old, with_items)]
