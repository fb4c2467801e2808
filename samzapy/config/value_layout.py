"""How values of a class lie in their bytes, where the bytes do not say it themselves.

By position: a NamedTuple, and a `msgspec.Struct` with `array_like`, is a list in JSON. If a field is put before others, what was written earlier is read
into other fields. By number: a member of an Enum whose values are whole numbers. If its members get other numbers, as `auto()` gives them when one is put
before others, what was written earlier is read as another member. Nothing shows either.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from msgspec import inspect as types

MAX_TEXT = 4000
Numbers = dict[str, int]  # of an Enum's members, aliases too


def layout_of(cls: Any) -> str:
    """What of a class, and of what is in it, is written by position or by number, as JSON: place → names in order, or the numbers of members by name.
    "": there is nothing. Enums that would make the text longer than MAX_TEXT characters are left out, the longest first."""
    try:
        found = dict(_of(types.type_info(cls), "$", ()) if not hasattr(cls, "model_fields") else _of_model(cls, "$", ()))
    except (TypeError, NameError):
        return ""  # then the serde refuses the class
    text = _text({place: names for place, names in found.items() if isinstance(names, list)})
    if len(text) > MAX_TEXT:
        return hashlib.sha256(text.encode()).hexdigest()
    kept = found
    while len(text := _text(kept)) > MAX_TEXT:
        longest = max((place for place, names in kept.items() if not isinstance(names, list)), key=lambda place: len(kept[place]))
        kept = {place: names for place, names in kept.items() if place != longest}
    return text if kept else ""


def _text(layout: dict[str, list[str] | Numbers]) -> str:
    return json.dumps(layout, sort_keys=True)


def _of(kind: Any, place: str, inside: tuple[Any, ...]) -> Iterator[tuple[str, list[str] | Numbers]]:
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
        yield from _of(kind.key_type, f"{place}{{key}}", inside)
        yield from _of(kind.value_type, f"{place}{{}}", inside)
    elif hasattr(kind, "item_type"):
        yield from _of(kind.item_type, f"{place}[]", inside)
    elif isinstance(kind, types.CustomType) and hasattr(kind.cls, "model_fields"):
        yield from _of_model(kind.cls, place, inside)
    elif isinstance(kind, types.EnumType):
        if numbers := {name: int(member.value) for name, member in kind.cls.__members__.items() if isinstance(member.value, int)}:
            yield place, numbers
    elif hasattr(kind, "fields") and kind.cls not in inside:
        if isinstance(kind, types.NamedTupleType) or getattr(kind, "array_like", False):
            yield place, [field.name for field in kind.fields]
        for field in kind.fields:
            yield from _of(field.type, f"{place}.{field.name}", (*inside, kind.cls))


def _of_model(cls: Any, place: str, inside: tuple[Any, ...]) -> Iterator[tuple[str, list[str] | Numbers]]:
    """Pydantic's: a model itself is written by name."""
    if cls not in inside:
        for name, field in cls.model_fields.items():
            with contextlib.suppress(TypeError, NameError):  # a type that only pydantic knows
                yield from _of(types.type_info(field.annotation), f"{place}.{name}", (*inside, cls))
