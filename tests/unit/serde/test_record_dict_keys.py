"""A dict in a record whose keys are not text: JSON would give them back as other keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

import msgspec
import pytest

from samzapy.api.errors import SerdeError
from samzapy.serde.record import RecordSerde


@dataclass
class Loose:
    per_status: dict = field(default_factory=dict)  # type: ignore[type-arg]


@dataclass
class Named:
    per_status: dict[str, Any] = field(default_factory=dict)


class Struct(msgspec.Struct):
    per_status: dict[Any, int]


class Listed(NamedTuple):
    per_status: dict[str, int]


@dataclass
class Whole:
    per_status: dict[int, int] = field(default_factory=dict)


@pytest.mark.parametrize("cls", [Loose, Named, Struct, Listed])
@pytest.mark.parametrize("key", [200, 1.5, date(2026, 11, 25), b"ada"])
@pytest.mark.parametrize("others", [{}, {"200": 7}])
def test_a_key_that_would_come_back_as_text_is_refused_with_its_place(cls: Any, key: Any, others: dict[str, int]) -> None:
    for comes_back in (True, False):
        serde = RecordSerde("record:hits:Stats", cls)
        serde.comes_back = comes_back
        with pytest.raises(SerdeError, match=rf"Expected a key that is `str`, got `{type(key).__name__}` .* - at `\$(\.per_status|\[0\])`"):
            serde.encode(cls({**others, key: 1}))


def test_what_the_annotation_reads_back_is_written() -> None:
    serde = RecordSerde("record:hits:Stats", Whole)
    assert Whole({200: 1}) == serde.decode(serde.encode(Whole({200: 1})))
    loose = RecordSerde("record:hits:Stats", Loose)
    assert Loose({"200": 1}) == loose.decode(loose.encode(Loose({"200": 1})))


def test_pydantic_too() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", per_status=(dict[Any, Any], ...))
    with pytest.raises(SerdeError, match="Expected a key that is `str`"):
        RecordSerde("record:hits:Model", model).encode(model(per_status={200: 1, "200": 1}))
