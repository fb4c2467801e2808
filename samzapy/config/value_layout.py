"""How values of a class lie in their bytes, where it is by position: a NamedTuple, and a `msgspec.Struct` with `array_like`, is a list in JSON. If a field
is put before others, what was written earlier is read into other fields, and nothing shows it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from msgspec import inspect as types

MAX_TEXT = 4000


def positions(cls: Any) -> str:
    """The fields of a class and of what is in them that are written by position, as JSON: place → names in order. "": there are none."""
    try:
        found = dict(_of(types.type_info(cls), "$", ()) if not hasattr(cls, "model_fields") else _of_model(cls, "$", ()))
    except (TypeError, NameError):
        return ""  # then the serde refuses the class
    text = json.dumps(found, sort_keys=True)
    return "" if not found else text if len(text) <= MAX_TEXT else hashlib.sha256(text.encode()).hexdigest()


def _of(kind: Any, place: str, inside: tuple[Any, ...]) -> Iterator[tuple[str, list[str]]]:
    """`inside`: the classes that this one is a part of; one that is a part of itself is looked at once."""
    if isinstance(kind, types.UnionType):
        classes: list[Any] = [each for each in kind.types if hasattr(each, "fields")]
        each: Any
        for each in kind.types:
            is_one_of_several = len(classes) > 1 and each in classes  # a list of each is known by its tag
            yield from _of(each, f"{place}<{each.cls.__name__}>" if is_one_of_several else place, inside)
    elif isinstance(kind, types.TupleType):
        for number, each in enumerate(kind.item_types):
            yield from _of(each, f"{place}[{number}]", inside)
    elif isinstance(kind, types.DictType):
        yield from _of(kind.value_type, f"{place}{{}}", inside)
    elif hasattr(kind, "item_type"):
        yield from _of(kind.item_type, f"{place}[]", inside)
    elif isinstance(kind, types.CustomType) and hasattr(kind.cls, "model_fields"):
        yield from _of_model(kind.cls, place, inside)
    elif hasattr(kind, "fields") and kind.cls not in inside:
        if isinstance(kind, types.NamedTupleType) or getattr(kind, "array_like", False):
            yield place, [field.name for field in kind.fields]
        for field in kind.fields:
            yield from _of(field.type, f"{place}.{field.name}", (*inside, kind.cls))


def _of_model(cls: Any, place: str, inside: tuple[Any, ...]) -> Iterator[tuple[str, list[str]]]:
    """Pydantic's: a model itself is written by name."""
    if cls not in inside:
        for name, field in cls.model_fields.items():
            yield from _of(types.type_info(field.annotation), f"{place}.{name}", (*inside, cls))
