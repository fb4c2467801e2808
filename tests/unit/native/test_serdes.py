"""Encoders and decoders beside the functions in Python."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy import native
from samzapy.memory import resident_bytes
from samzapy.serde import basic
from samzapy.serde.record import RecordSerde
from samzapy.store.key_form import key_form
from tests.unit.native.pairs import in_python, needs_native, outcome

pytestmark = needs_native

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@given(ANY)
def test_json(value: Any) -> None:
    said = outcome(lambda: basic.JsonSerde.encode(value))
    assert said == outcome(lambda: in_python(basic.JsonSerde.encode)(value))
    if said[0] is bytes:
        data = basic.JsonSerde.encode(value)
        assert outcome(lambda: basic.JsonSerde.decode(data)) == outcome(lambda: in_python(basic.JsonSerde.decode)(data))


@given(st.binary() | st.text().map(str.encode))
def test_bytes_that_may_be_no_json_no_text_and_no_number(data: bytes) -> None:
    for serde in (basic.JsonSerde, basic.StringSerde, basic.IntegerSerde):
        assert outcome(lambda: serde.decode(data)) == outcome(lambda: in_python(serde.decode)(data))  # noqa: B023  called at once


@pytest.mark.parametrize("value", ["null", ["null", None], {"n": math.nan}, {"n": None}, "nul", "nnull", "x" * 5000, "nullnull" * 900, [2**63], [-(2**63)]])
def test_json_that_is_looked_at_more_closely(value: Any) -> None:
    assert outcome(lambda: basic.JsonSerde.encode(value)) == outcome(lambda: in_python(basic.JsonSerde.encode)(value))


def test_json_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b'"' + b"x" * basic.MAX_JSON_BYTES + b'"', b"[" * 2000):
        assert outcome(lambda: basic.JsonSerde.decode(data)) == outcome(lambda: in_python(basic.JsonSerde.decode)(data))  # noqa: B023
    long = "x" * basic.MAX_JSON_BYTES
    assert outcome(lambda: basic.JsonSerde.encode(long)) == outcome(lambda: in_python(basic.JsonSerde.encode)(long))


def test_what_is_kept_takes_its_own_size() -> None:
    """orjson's own results keep their whole buffer, of 4 KiB: 80 MB here."""
    before = resident_bytes() or 0
    kept = [basic.JsonSerde.encode({"c": n}) for n in range(20_000)]
    assert (resident_bytes() or 0) - before < 20 << 20
    assert len(kept) == 20_000


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64, 2**80, -(2**63), -(2**63) - 1, -(2**90)])
def test_integers_at_the_end_of_64_bits(value: int) -> None:
    form = key_form(basic.IntegerSerde())
    for function in (basic.IntegerSerde.encode, form.quick_encode):
        assert outcome(lambda: function(value)) == outcome(lambda: in_python(function)(value))  # noqa: B023  called at once


@given(st.integers() | st.booleans() | st.floats())
def test_integers(value: Any) -> None:
    assert outcome(lambda: basic.IntegerSerde.encode(value)) == outcome(lambda: in_python(basic.IntegerSerde.encode)(value))
    form = key_form(basic.IntegerSerde())
    assert outcome(lambda: form.quick_encode(value)) == outcome(lambda: in_python(form.quick_encode)(value))
    if type(value) is int and -(2**63) <= value < 2**63:
        assert form.decode(form.encode(value)) == in_python(form.decode)(form.encode(value)) == value
        assert basic.IntegerSerde.decode(basic.IntegerSerde.encode(value)) == value


class Struct(msgspec.Struct):
    a: int
    b: str | None = None
    c: float = 0.0


class Renamed(msgspec.Struct, rename="camel"):
    the_number: int


@dataclasses.dataclass
class Data:
    a: int
    b: str | None = None


@dataclasses.dataclass
class Checked:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("below 0")


class Pair(NamedTuple):
    a: int
    b: bool


class Fields(TypedDict):
    a: int


class Sub(Struct):
    d: int = 4


class Old(msgspec.Struct):
    a: int

    @classmethod
    def upgrade(cls, old: Any) -> Any:
        return {"a": old["b"]}


def unset() -> Data:
    """A dataclass whose field was deleted."""
    found = Data(1)
    del found.a
    return found


OBJECTS = [
    Struct(1), Struct(1, "x", 2.5), Struct(1, "null"), Struct(1, None, math.nan), Struct(True), Struct("1"), Struct(2**80), Struct(1, "\ud800"), Sub(1),  # type: ignore[arg-type]
    Renamed(5), Data(1), Data(1, "x"), Data("x"), unset(), Checked(1), Pair(1, True), Pair(1, 0), Fields(a=1), Fields(a="x"), {"a": 1}, None, 7, Old(1),  # type: ignore[arg-type, typeddict-item]
]  # fmt: skip
CLASSES = [Struct, Renamed, Data, Checked, Pair, Fields, Old]


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_records(cls: Any, value: Any) -> None:
    serde, plain = RecordSerde("record:x:X", cls), RecordSerde("record:x:X", cls)
    said = outcome(lambda: serde.encode(value))
    assert said == outcome(lambda: RecordSerde.encode(plain, value))
    if said[0] is bytes:
        data = serde.encode(value)
        assert outcome(lambda: serde.decode(data)) == outcome(lambda: RecordSerde.decode(plain, data))


@pytest.mark.parametrize("data", [b'{"a":1}', b'{"a":"x"}', b"{", b"", b"null", b'{"b":3}', b"\xff", b'{"a":1,"z":2}'])
@pytest.mark.parametrize("cls", CLASSES)
def test_bytes_of_records(cls: Any, data: bytes) -> None:
    serde = RecordSerde("record:x:X", cls)
    assert outcome(lambda: serde.decode(data)) == outcome(lambda: RecordSerde.decode(serde, data))


def test_the_native_functions_are_in_use() -> None:
    assert type(RecordSerde("record:x:X", Struct).encode) is native.hot_path.Encode
    assert type(basic.JsonSerde.decode) is native.hot_path.Decode


def test_what_is_no_error_of_the_value_is_raised_as_it_is() -> None:
    """KeyboardInterrupt while a value is encoded: it is not asked for again."""
    asked = []

    def interrupted(value: Any) -> Any:
        asked.append(value)
        raise KeyboardInterrupt

    for call in (native.hot_path.Encode(interrupted, interrupted, 100, True), native.hot_path.Decode(interrupted, interrupted, 100)):
        with pytest.raises(KeyboardInterrupt):
            call(b"x")
    assert asked == [b"x", b"x"]
