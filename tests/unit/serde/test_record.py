"""Objects of a class as JSON: `record:module:Class`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.alias_generators import to_camel, to_pascal

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


class UserOfExtensions(typing_extensions.TypedDict):  # what pydantic requires before Python 3.12
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
    (UserOfExtensions, {"name": "ada"}, b'{"name":"ada"}'),
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
        (UserOfExtensions, [("name", "ada")], "takes dict, not"),
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
    assert "if not, the value itself is wrong" in refused.value.remedy


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


# -- what could not be read back -----------------------------------------------------------------------------------------------------


@dataclass
class Account:
    cents: int
    owner: str | None = None
    is_open: bool = True


@dataclass
class Savings(Account):
    rate: float = 0.0


class Line(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(ge=0)]
    kind: Literal["in", "out"] = "in"


class Named(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    first_name: str


class Pair(TypedDict):
    a: int
    b: NotRequired[int]


@dataclass
class Part:
    a: int = 0


@dataclass
class OtherPart:
    b: str


@dataclass
class LikePart:
    a: int


class Whole(msgspec.Struct):
    parts: list[Part]
    by_name: dict[str, Part] = {}
    of_any: Any = None


@dataclass
class Even:
    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("n is odd")


@dataclass
class Cents:
    cents: int

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        return {"cents": int(old["cents"])}


def without(value: Any, name: str) -> Any:
    delattr(value, name)
    return value


def odd() -> Even:
    value = Even(2)
    value.n = 3
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Account(125.0), r"Account, because it could not be read back: Expected `int`, got `float` - at `\$.cents`\. Its cents is 125.0 \(float\)"),  # type: ignore[arg-type]
        (Account(None), r"got `null` - at `\$.cents`\. Its cents is None \(NoneType\)"),  # type: ignore[arg-type]
        (Account("5"), r"got `str` - at `\$.cents`\. Its cents is '5' \(str\)"),  # type: ignore[arg-type]
        (Account(True), r"got `bool` - at `\$.cents`"),
        (Account(1, is_open=1), r"Expected `bool`, got `int` - at `\$.is_open`"),  # type: ignore[arg-type]
        (Savings(1.5), r"write this Savings, .*`\$.cents`"),  # type: ignore[arg-type]
        (without(Account(1), "cents"), "cannot write .*cents"),
        (without(Count(1), "n"), "cannot write .*'n' is unset"),
        (Line(-1), r"`int` >= 0 - at `\$.n`.* Its n is -1 \(int\)"),
        (Line(1, "up"), r"Invalid enum value 'up' - at `\$.kind`"),  # type: ignore[arg-type]
        (Named(7), r"`\$.firstName`"),  # type: ignore[arg-type]
        (Point(1, "b"), r"`\$\[1\]`\. Its item 1 is 'b' \(str\)"),  # type: ignore[arg-type]
        (Whole([Part("x")]), r"`\$.parts\[0\].a`"),  # type: ignore[arg-type]
        (Whole([Part(1), OtherPart("x")]), r"Expected `Part`, got `OtherPart`, which also has `b` - at `\$.parts\[1\]`"),  # type: ignore[list-item]
        (Whole([], {"k": OtherPart("x")}), r"got `OtherPart`, .* - at `\$.by_name\['k'\]`"),  # type: ignore[dict-item]
        (Whole([{"b": 1}]), "Expected `Part`, got `dict`, which also has `b`"),  # type: ignore[list-item]
        (odd(), "n is odd"),
        (Cents(1.5), r"`\$.cents`"),  # type: ignore[arg-type]
        (Cents("x"), r"`\$.cents`"),  # type: ignore[arg-type]
        (Lasting("warm"), r"`\$.celsius`"),  # type: ignore[arg-type]
        (Named(b"ada"), r"Expected `str`, got `bytes`, which JSON holds in base64 - at `\$.first_name`"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_could_not_be_read_back_is_refused_with_its_field(value: Any, words: str) -> None:
    cls = Account if isinstance(value, Account) else type(value)
    with pytest.raises(SerdeError, match=words) as refused:
        RecordSerde("record:m:C", cls).encode(value)
    assert refused.value.message.startswith("serde record:m:C cannot write ")
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("value", "words"),
    [({"a": 1.5}, r"`\$.a`\. Its a is 1.5 \(float\)"), ({"b": 1}, "missing required field `a`"), ({"a": 1, "b": None}, r"`\$.b`"), ({}, "missing .*`a`")],
)
def test_a_dict_that_could_not_be_read_back_is_refused_with_its_field(value: Any, words: str) -> None:
    with pytest.raises(SerdeError, match=words):
        RecordSerde("record:m:Pair", Pair).encode(value)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_model_that_was_changed_to_what_could_not_be_read_back_is_refused() -> None:
    order = Order(item="tea", price=1)
    order.price = "dear"  # type: ignore[assignment]
    with pytest.raises(SerdeError, match=r"price"):
        RecordSerde("record:m:Order", Order).encode(order)


@pytest.mark.parametrize(
    ("cls", "value", "read"),
    [
        (Visit, Visit("/", 3), Visit("/", 3.0)),
        (Account, without(Account(1), "owner"), Account(1)),
        (Account, Account(2**64), Account(2**64)),
        (Named, Named("ada"), Named("ada")),
        (Pair, {"a": 1}, {"a": 1}),
        (Pair, {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        (Pair, {"a": 1, "more": "x"}, {"a": 1}),
        (User, {"name": "ada", "more": "x"}, {"name": "ada"}),
        (Whole, Whole((Part(1), Part())), Whole([Part(1), Part()])),
        (Whole, Whole([LikePart(3), {"a": 4}, {}]), Whole([Part(3), Part(4), Part()])),
        (Whole, Whole([], {}, OtherPart("x")), Whole([], {}, {"b": "x"})),
        (Even, Even(4), Even(4)),
        (Cents, Cents(2.0), Cents(2)),
    ],
)  # fmt: skip
def test_what_can_be_read_back_is_written_though_its_types_are_others(cls: Any, value: Any, read: Any) -> None:
    serde = RecordSerde("record:m:C", cls)
    assert read == serde.decode(serde.encode(value))


def test_a_whole_number_with_more_digits_than_can_be_read_is_refused() -> None:
    serde = RecordSerde("record:m:Account", Account)
    assert Account(10**4299) == serde.decode(serde.encode(Account(10**4299)))
    with pytest.raises(SerdeError, match="4300 digits"):
        serde.encode(Account(10**4300))
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(SerdeError, match="out of range"):
            RecordSerde("record:m:Account", Account).encode(Account(10**4300))
    finally:
        sys.set_int_max_str_digits(limit)


FINITE = st.floats(allow_nan=False, allow_infinity=False)
ANYTHING = st.none() | st.booleans() | st.integers() | FINITE | st.text(max_size=3) | st.builds(Part) | st.lists(st.integers(), max_size=2)


@given(st.sampled_from((Account, Visit, Count, Line, Named, Point, Whole, Cents, Part)), st.lists(ANYTHING, min_size=3, max_size=3))
def test_whatever_is_written_can_be_read(cls: Any, fields: list[Any]) -> None:
    serde, names = RecordSerde("record:m:C", cls), tuple(cls.__annotations__)
    value = cls(*fields[: len(names)])
    try:
        data = serde.encode(value)
    except SerdeError:
        with pytest.raises((ValueError, TypeError)):
            msgspec.json.decode(msgspec.json.encode(value), type=cls)
        return
    assert cls is type(serde.decode(data))


# -- old records that fit --------------------------------------------------------------------------------------------------------------


def renamed(kind: str, how: str) -> Any:
    """A class whose field `celsius` was called `temperature`, and has a default; `how` its `upgrade` is written."""
    ways: dict[str, Callable[[dict[str, Any]], Any]] = {
        "by name": lambda old: {"celsius": old["temperature"], "room": old.get("room", "?")},
        "with a default": lambda old: {"celsius": old.get("temperature", 0.0), "room": old.get("room", "?")},
        "if it is there": lambda old: {**old, "celsius": old["temperature"]} if "temperature" in old else old,
        "popped": lambda old: (old.update(celsius=old.pop("temperature")), old)[1],
        "copied and popped": lambda old: (new := dict(old), new.update(celsius=new.pop("temperature")), new)[2],
        "unpacked": lambda old: {"celsius": old["temperature"], **{name: value for name, value in old.items() if name != "temperature"}},
    }
    upgrade = classmethod(lambda cls, old: ways[how](old))
    fields: dict[str, Any] = {"celsius": 0.0, "room": "?"}
    annotations = {"celsius": float, "room": str}
    base: Any = {"dataclass": object, "model": pydantic.BaseModel}.get(kind, msgspec.Struct)
    options = {"omit_defaults": True} if kind == "struct without defaults" else {}
    content = {"__annotations__": annotations, "__module__": __name__, "upgrade": upgrade, **fields}
    made: Any = type(base)("Reading", (base,), content, **options)
    return dataclass(made) if kind == "dataclass" else made


WAYS = ["by name", "with a default", "if it is there", "popped", "copied and popped", "unpacked"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("kind", ["dataclass", "struct", "struct without defaults", "model"])
def test_an_old_record_that_fits_because_of_defaults_is_upgraded_and_others_are_not(kind: str, how: str) -> None:
    cls = renamed(kind, how)
    serde = RecordSerde("record:m:C", cls)

    def read(**fields: Any) -> tuple[float, str]:
        found = serde.decode(json.dumps(fields).encode())
        return found.celsius, found.room

    assert (21.5, "k") == read(temperature=21.5, room="k")
    assert (20.0, "k") == read(celsius=20.0, room="k")
    assert (20.0, "?") == read(celsius=20.0)
    assert (20.0, "?") == read(celsius=20.0, sensor="s1")  # somebody else's record, which has more fields than the class
    assert (0.0, "?") == read(sensor="s1")


class Sparse(msgspec.Struct, omit_defaults=True, rename="camel"):
    celsius: float
    room_number: int = 0

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        return {"roomNumber": old.get("roomNumber", 0), "celsius": old.get("temperature", 0.0)}


@dataclass
class House:
    name: str
    rooms: list[Sparse]
    by_name: dict[str, Sparse]

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "rooms": [Sparse.upgrade(each) for each in old["rooms"]]}


def test_a_default_that_was_written_is_no_field_of_an_old_record_where_the_class_would_not_write_it() -> None:
    serde = RecordSerde("record:m:Sparse", Sparse)
    assert Sparse(21.0, 0) == serde.decode(b'{"celsius":21,"roomNumber":0}')
    assert Sparse(21.0, 7) == serde.decode(b'{"celsius":21,"roomNumber":7}')
    assert Sparse(21.0, 0) == serde.decode(b'{"temperature":21,"roomNumber":0}')
    of_parts = RecordSerde("record:m:House", House)
    same = b'{"name":"a","rooms":[{"celsius":21,"roomNumber":0}],"by_name":{"x":{"celsius":3,"roomNumber":0}}}'
    assert House("a", [Sparse(21.0)], {"x": Sparse(3.0)}) == of_parts.decode(same)


def test_an_old_record_that_fits_and_cannot_be_upgraded_is_refused() -> None:
    @dataclass
    class Reading:
        celsius: float = 0.0

        @classmethod
        def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
            return {"celsius": float(old["temperature"])}

    serde = RecordSerde("record:m:Reading", Reading)
    assert Reading(7.0) == serde.decode(b'{"temperature": 7}')
    with pytest.raises(SerdeError, match="which has the fields of an old version; and its `upgrade` failed: ValueError"):
        serde.decode(b'{"temperature": "warm"}')


@dataclass
class Inner:
    celsius: float = 0.0


@dataclass
class Outer:
    readings: list[Inner]
    by_room: dict[str, Inner]

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        def new(each: dict[str, Any]) -> dict[str, Any]:
            return {"celsius": each["temperature"]} if "temperature" in each else each

        return {"readings": [new(each) for each in old["readings"]], "by_room": {room: new(each) for room, each in old["by_room"].items()}}


def test_parts_of_a_record_are_upgraded_too() -> None:
    serde = RecordSerde("record:m:Outer", Outer)
    old = b'{"readings": [{"temperature": 1.0}, {"celsius": 2.0}], "by_room": {"attic": {"temperature": 3.0}}}'
    assert Outer([Inner(1.0), Inner(2.0)], {"attic": Inner(3.0)}) == serde.decode(old)
    assert Outer([Inner(2.0)], {}) == serde.decode(b'{"readings": [{"celsius": 2.0, "sensor": 5}], "by_room": {}}')


# -- models that do not read what they write -----------------------------------------------------------------------------------------------


def model(**named: Any) -> Any:
    return pydantic.create_model("Priced", **named)


CAMEL = pydantic.ConfigDict(alias_generator=pydantic.AliasGenerator(validation_alias=to_camel, serialization_alias=to_pascal))
OTHER_NAMES = {
    "read by another name": model(unit_price=(float, pydantic.Field(0.0, validation_alias="unitPrice"))),
    "one of several": model(unit_price=(float, pydantic.Field(0.0, validation_alias=pydantic.AliasChoices("unitPrice", "price")))),
    "a path": model(unit_price=(float, pydantic.Field(0.0, validation_alias=pydantic.AliasPath("price", "unit")))),
    "written by another name": model(unit_price=(float, pydantic.Field(0.0, serialization_alias="unitPrice"))),
    "generated": model(__config__=CAMEL, unit_price=(float, 0.0)),
    "inside": model(lines=(list[model(unit_price=(float | None, pydantic.Field(None, validation_alias="unitPrice")))], [])),  # type: ignore[misc]
}
SAME_NAMES = {
    "alias": model(unit_price=(float, pydantic.Field(0.0, alias="unitPrice"))),
    "both": model(unit_price=(float, pydantic.Field(0.0, validation_alias="p", serialization_alias="p"))),
    "one of several": model(unit_price=(float, pydantic.Field(0.0, validation_alias=pydantic.AliasChoices("unitPrice", "unit_price")))),
    "by name": model(__config__=pydantic.ConfigDict(populate_by_name=True), unit_price=(float, pydantic.Field(0.0, validation_alias="unitPrice"))),
    "not written": model(unit_price=(float, pydantic.Field(0.0, validation_alias="unitPrice", exclude=True))),
}


@pytest.mark.parametrize("which", OTHER_NAMES)
def test_a_model_that_reads_other_names_than_it_writes_is_not_kept(which: str) -> None:
    with pytest.raises(ConfigurationError, match=r"Priced writes its field unit_price as .*but reads it from"):
        RecordSerde("record:m:Priced", OTHER_NAMES[which]).check_comes_back()


@pytest.mark.parametrize("which", SAME_NAMES)
def test_a_model_that_reads_the_names_that_it_writes_is_kept(which: str) -> None:
    RecordSerde("record:m:Priced", SAME_NAMES[which]).check_comes_back()


class Secret(pydantic.BaseModel):
    word: pydantic.SecretStr
    parts: list[Any] = []


def test_a_field_that_would_come_back_as_something_else_is_refused_where_it_is_read_back() -> None:
    serde = RecordSerde("record:m:Secret", Secret)
    with pytest.raises(SerdeError, match=r"its word would come back as "):
        serde.encode(Secret(word="hush"))  # type: ignore[arg-type]
    serde.comes_back = False
    assert b'{"word":"**********","parts":[]}' == serde.encode(Secret(word="hush"))  # type: ignore[arg-type]


def test_what_any_holds_may_come_back_as_json_has_it() -> None:
    class Loose(pydantic.BaseModel):
        of_any: Any = None

    serde = RecordSerde("record:m:Loose", Loose)
    given = {"pair": (1, 2), "day": date(2026, 11, 23), "nothing": None}
    assert {"pair": [1, 2], "day": "2026-11-23", "nothing": None} == serde.decode(serde.encode(Loose(of_any=given))).of_any


@dataclass
class Point:
    x: int = 0


@dataclass
class Colored(Point):
    color: str = "red"


@dataclass
class Polyline:
    points: list[Point]


class Model(pydantic.BaseModel):
    x: int = 0


class ColoredModel(Model):
    color: str = "red"


class ModelLine(pydantic.BaseModel):
    points: list[Model]


class Struct(msgspec.Struct):
    x: int = 0


class ColoredStruct(Struct):
    color: str = "red"


class Moved(Point):
    def moved(self) -> int:
        return self.x + 1


SUBCLASSED = {
    "dataclass": (Point, Colored(1)), "in a list": (Polyline, Polyline([Point(1), Colored(2)])), "struct": (Struct, ColoredStruct(1)),
    "with a default": (Account, Savings(1, rate=0.5)), "pydantic": (Model, ColoredModel(x=1)),
    "pydantic, in a list": (ModelLine, ModelLine(points=[ColoredModel(x=2)])),
}  # fmt: skip


@pytest.mark.parametrize("which", SUBCLASSED)
def test_an_object_of_a_subclass_is_refused_where_its_own_fields_would_be_lost(which: str) -> None:
    cls, value = SUBCLASSED[which]
    serde = RecordSerde("record:m:Point", cls)
    with pytest.raises(SerdeError, match=r"color|rate"):
        serde.encode(value)
    serde.comes_back = False  # whoever reads an output may know the subclass
    serde.encode(value)


def test_an_object_of_a_subclass_without_fields_of_its_own_is_written() -> None:
    serde = RecordSerde("record:m:Point", Point)
    assert Point(1) == serde.decode(serde.encode(Moved(1)))
