"""Keys that are objects of a class: equal keys are equal bytes, or the class is refused."""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from samzapy import StreamTask
from samzapy.api.errors import ConfigurationError, SerdeError, StateMismatch
from samzapy.config.key_class import key_fields, why_no_key
from samzapy.serde.record import RecordSerde
from samzapy.serde.record_keys import RecordKeySerde, as_key
from samzapy.streams.kinds import kind_of
from samzapy.testing import Harness


class Colour(enum.Enum):
    RED = "r"


@dataclass(frozen=True)
class Place:
    city: str
    country: str = "DE"


@dataclass(frozen=True)
class Good:
    user: str
    at: Place
    day: date
    id: UUID
    colour: Colour
    parts: tuple[str, ...] = ()
    kind: Literal["a", "b"] = "a"
    note: str | None = None
    is_new: bool = False


class GoodStruct(msgspec.Struct, frozen=True):
    a: int
    b: str = "x"


class GoodTuple(NamedTuple):
    a: int
    at: Place


class GoodModel(pydantic.BaseModel):
    a: int


class GoodDict(TypedDict):
    b: str
    a: int


@pytest.mark.parametrize("cls", [Place, Good, GoodStruct, GoodTuple, GoodModel, GoodDict])
def test_classes_whose_fields_have_one_form_may_be_keys(cls: Any) -> None:
    assert "" == why_no_key(cls)
    assert key_fields(cls)


@pytest.mark.parametrize(
    ("kind", "said"),
    [(float, "float"), (Decimal, "decimal"), (datetime, "datetime"), (Any, "any"), (frozenset[str], "frozenset"), (dict[str, str], "dict"),
     (list[int], "list"), (int | bool, "1 and True"), (int | float, "float"), (tuple, "any"), (tuple[float, ...], "float"), (tuple[str, float], "float")],
)  # fmt: skip
def test_a_field_with_several_forms_is_named(kind: Any, said: str) -> None:
    cls = msgspec.defstruct("Key", [("user", str), ("odd", kind)], frozen=True)
    assert "'odd'" in why_no_key(cls)
    assert said in why_no_key(cls)
    outer = msgspec.defstruct("Outer", [("inner", cls)], frozen=True)
    assert "Key" in why_no_key(outer)
    assert "'odd'" in why_no_key(outer)


def test_a_key_that_was_read_without_a_default_is_the_same_bytes_as_one_that_was_made() -> None:
    @dataclass(frozen=True)
    class Outer:
        at: Place
        b: str = "x"
        c: tuple[int, ...] = field(default_factory=tuple)

    serde = RecordKeySerde("record:m:Outer", Outer)
    made = serde.encode(Outer(Place("Ulm")))
    for data in (b'{"at":{"city":"Ulm"}}', b'{"c":[],"at":{"city":"Ulm","country":"DE"}}', b'{"at":{"city":"Ulm"},"b":"x"}'):
        read = serde.decode(data)
        assert read == Outer(Place("Ulm"))
        assert made == serde.encode(read)
        assert made == serde.encode(read), "and again"
    assert b'{"at":{"city":"Ulm","country":"DE"},"b":"x","c":[]}' == made


def test_a_dict_as_key_is_in_the_order_of_its_class() -> None:
    serde = RecordKeySerde("record:m:GoodDict", GoodDict)
    assert b'{"b":"x","a":1}' == serde.encode({"a": 1, "b": "x"}) == serde.encode({"b": "x", "a": 1})


class Sparse(msgspec.Struct, frozen=True, omit_defaults=True):
    city: str
    kind: str = "shop"


class OfSparse(msgspec.Struct, frozen=True):
    where: Sparse


@dataclass(frozen=True)
class Noted:
    city: str
    note: str = field(default="", compare=False)


class Hiding(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    city: str
    secret: str = pydantic.Field(default="", exclude=True)


class FrozenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    city: str


@pytest.mark.parametrize(("cls", "why"), [(FrozenModel, ""), (GoodModel, "GoodModel is not frozen"), (Place, ""), (GoodTuple, "")])
def test_keys_of_programs_are_frozen(cls: Any, why: str) -> None:
    assert why == kind_of(cls, "a key").why_no_key


class Secretive(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    city: str
    _secret: int = pydantic.PrivateAttr(default=0)


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="allow")
    city: str


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (Secretive, "'_secret' is compared but not written"), (Open, "does not declare"),
        (Sparse, "omit_defaults"), (OfSparse, "omit_defaults"), (Noted, "'note' is written but not compared"),
        (Hiding, "'secret' is compared but not written"),
    ],
)  # fmt: skip
def test_equal_objects_that_are_written_differently_are_no_keys(cls: Any, said: str) -> None:
    """msgspec leaves a default out if the value is the very object of the default: an equal text of a record is written."""
    assert said in why_no_key(cls)
    told = Sparse("Rome", "".join(["sh", "op"]))
    assert Sparse("Rome") == told
    assert msgspec.json.encode(Sparse("Rome")) != msgspec.json.encode(told), "if they are the same now, they may be keys"


@pytest.mark.parametrize("odd", [True, 1.0, "1"])
def test_what_is_equal_to_a_field_but_of_another_type_is_no_key(odd: Any) -> None:
    with pytest.raises(SerdeError, match=r"\$\.a"):
        RecordKeySerde("record:m:GoodStruct", GoodStruct).encode(GoodStruct(odd))


def test_key_fields_tell_a_class_from_one_with_other_fields() -> None:
    assert "city str, country str" == key_fields(Place)
    assert "a int, at Place(city str, country str)" == key_fields(GoodTuple)
    assert key_fields(msgspec.defstruct("K", [("a", str), ("b", str)])) != key_fields(msgspec.defstruct("K", [("b", str), ("a", str)]))


def test_only_serdes_of_records_change() -> None:
    serde = RecordSerde("record:m:Place", Place)
    assert isinstance(as_key(serde), RecordKeySerde)
    assert as_key(as_key(serde)).fields == key_fields(Place)
    other = object()
    assert as_key(other) is other


class Counts(StreamTask):
    """Counts by a key of a class."""

    def init(self, context: Any) -> None:
        self.counts = context.get_store("counts")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        self.counts.update_with(Key("k", str(envelope.message % 2)), lambda n: n + 1, 0)  # type: ignore[name-defined]  # noqa: F821 - as a test made it


def counting() -> Harness:
    return Harness(
        Counts, inputs=[{"topic": "in", "value": "json"}], stores={"counts": {"key": f"record:{__name__}:Key", "value": "integer"}}
    )


def the_key_is(patch: pytest.MonkeyPatch, *fields: Any) -> None:
    patch.setattr(sys.modules[__name__], "Key", msgspec.defstruct("Key", fields, frozen=True, module=__name__), raising=False)


def test_a_tasks_store_with_keys_of_many_forms_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    the_key_is(monkeypatch, ("a", str), ("b", frozenset[str]))
    with pytest.raises(ConfigurationError, match=r"store 'counts': objects of record:.*:Key cannot be keys: its field 'b' is frozenset"):
        with counting() as h:
            h.run()


def test_a_task_whose_class_of_keys_has_changed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    the_key_is(monkeypatch, ("a", str), ("b", str))
    with counting() as h:
        h.send("in", 5)
        h.run()
        h.restart()
        the_key_is(monkeypatch, ("b", str), ("a", str))
        with pytest.raises(StateMismatch, match="store 'counts' key fields were 'a str, b str'"):
            h.restart(sets=["commit.interval=2s"])
