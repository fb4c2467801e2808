"""Objects of a class as JSON: `record:module:Class`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.serde.basic import MAX_JSON_BYTES
from samzapy.serde.record import RecordSerde
from samzapy.serde.registry import serde_named


@dataclass
class Visit:
    page: str
    seconds: float = 0.0


class Count(msgspec.Struct):
    n: int
    last: float | None = None


class Point(NamedTuple):
    x: int
    y: int


class User(TypedDict):
    name: str


class Order(BaseModel):
    item: str
    price: float


class Deep(msgspec.Struct):
    inside: list[Any]


class Odd(msgspec.Struct):
    what: dict[Any, Any]


KINDS = [
    (Visit, Visit("/home", 1.5), b'{"page":"/home","seconds":1.5}'),
    (Count, Count(3), b'{"n":3,"last":null}'),
    (Point, Point(1, 2), b"[1,2]"),
    (User, {"name": "ada"}, b'{"name":"ada"}'),
    (Order, Order(item="tea", price=2.5), b'{"item":"tea","price":2.5}'),
]


@pytest.mark.parametrize(("cls", "value", "data"), KINDS, ids=[k[0].__name__ for k in KINDS])
def test_an_object_comes_back_as_it_was(cls: Any, value: Any, data: bytes) -> None:
    serde = RecordSerde("record:m:C", cls)

    assert data == serde.encode(value)
    assert value == serde.decode(data)
    assert type(value) is type(serde.decode(data))


@pytest.mark.parametrize(
    ("cls", "data", "words"),
    [
        (Visit, b'{"page":7}', "page"),
        (Visit, b"{}", "page"),
        (Count, b'{"n":"3"}', "n"),
        (Count, b'{"n":3} ...', "malformed"),
        (Count, b"\xff", "cannot read"),
        (Point, b"[1]", "length 2"),
        (User, b"[]", "object"),
        (Order, b'{"item":"tea","price":"dear"}', "price"),
        (Deep, b'{"inside":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
        (Count, b" " * (MAX_JSON_BYTES + 1), "at most"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_with_the_field(cls: Any, data: bytes, words: str) -> None:
    with pytest.raises(SerdeError) as refused:
        RecordSerde("record:m:C", cls).decode(data)

    assert "record:m:C" in refused.value.message
    assert words in refused.value.message.lower()
    assert len(refused.value.message) < 600


@pytest.mark.parametrize(
    ("cls", "value", "words"),
    [
        (Visit, {"page": "/home"}, "takes Visit, not"),
        (Count, None, "takes Count, not"),
        (User, [("name", "ada")], "takes dict, not"),
        (Count, Count(1, math.nan), "NaN or infinity"),
        (Visit, Visit("/", math.inf), "NaN or infinity"),
        (Order, Order(item="", price=math.nan), "NaN or infinity"),
        (User, {"name": math.nan}, "NaN or infinity"),
        (Count, Count(object()), "cannot write"),  # type: ignore[arg-type]
        (Visit, Visit("x" * MAX_JSON_BYTES), "more than the"),
    ],
)
def test_what_cannot_be_read_again_is_not_written(cls: Any, value: Any, words: str) -> None:
    with pytest.raises(SerdeError, match=words):
        RecordSerde("record:m:C", cls).encode(value)


def test_a_null_that_is_meant_is_written() -> None:
    assert b'{"n":1,"last":null}' == RecordSerde("record:m:C", Count).encode(Count(1, None))


def test_it_is_named_in_the_job_file(tmp_path: Path) -> None:
    (tmp_path / "shapes_for_serdes.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Circle:\n    r: int\nclass Plain:\n    r = 1\nANSWER = 42\n"
    )

    serde = serde_named("record:shapes_for_serdes:Circle", [tmp_path])
    assert 3 == serde.decode(b'{"r":3}').r
    assert ("record:shapes_for_serdes:Circle", "bytes", False) == (serde.name, serde.key_order, serde.has_prefixes)
    for name, words in (
        ("record:shapes_for_serdes:Plain", "not a class that records can have"),
        ("record:shapes_for_serdes:ANSWER", "not a class that records can have"),
        ("record:shapes_for_serdes:Square", "Square"),
        ("record:nowhere_at_all:Circle", "nowhere_at_all"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            serde_named(name, [tmp_path])


@dataclass
class Renamed:
    name: str
    size: int

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        return {"name": old["title"], "size": len(old["title"])}


class RenamedModel(BaseModel):
    name: str

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        return {"name": old["title"]}


def test_a_class_may_read_what_an_earlier_version_of_it_wrote() -> None:
    serde = RecordSerde("record:m:Renamed", Renamed)
    assert Renamed("abc", 3) == serde.decode(b'{"title": "abc"}')
    assert Renamed("new", 9) == serde.decode(serde.encode(Renamed("new", 9)))
    assert RenamedModel(name="x") == RecordSerde("record:m:RenamedModel", RenamedModel).decode(b'{"title": "x"}')


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"other": 1}', "its `upgrade` failed: KeyError"),
        (b"[1]", "its `upgrade` failed: TypeError"),
        (b"{", "malformed|truncated"),
        (b'{"title": 3}', "its `upgrade` failed"),
    ],
)
def test_what_upgrade_cannot_take_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(SerdeError, match=rf"cannot read .*({why})"):
        RecordSerde("record:m:Renamed", Renamed).decode(data)


def test_a_record_that_is_bad_is_not_put_down_to_upgrade_alone() -> None:
    with pytest.raises(SerdeError) as refused:
        RecordSerde("record:m:Lasting", Lasting).decode(b'{"celsius": "warm"}')
    assert "cannot read b'{\"celsius\": \"warm\"}': Expected `float`" in refused.value.message
    assert "what its `upgrade` gives does not fit either: Expected `float`, got `str` - at `$.celsius`" in refused.value.message
    assert "if not, it is simply bad" in refused.value.remedy


@dataclass
class Lasting:
    celsius: float

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        return {"celsius": old.get("temperature", old.get("celsius"))}


@pytest.mark.parametrize(
    ("cls", "text", "where"),
    [
        (Visit, b'{"page": 7}', "`$.page`"),
        (Count, b'{"last": 1}', "`n`"),
        (Point, b'[1, "b"]', "`$[1]`"),
        (User, b'{"name": null}', "`$.name`"),
        (Order, b'{"item": "tea", "price": "dear"}', "`$.price`"),
    ],
)
def test_what_a_person_wrote_becomes_an_object_or_is_refused_with_its_field(cls: Any, text: bytes, where: str) -> None:
    serde = RecordSerde("record:m:C", cls)
    for _, value, data in (kind for kind in KINDS if kind[0] is cls):
        assert (value, serde.encode(value)) == (serde.of_json(data), data)
        assert data == msgspec.json.encode(serde.plain(value))
    with pytest.raises(SerdeError) as refused:
        serde.of_json(text)
    assert where in refused.value.message
    assert "\n" not in refused.value.message
