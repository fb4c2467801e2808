"""How values of a class lie in their bytes, where the bytes do not say it themselves.

By position: a NamedTuple, and a `msgspec.Struct` with `array_like`, is a list in JSON. If a field is put before others, what was written earlier is read
into other fields. By number: a member of an Enum whose values are whole numbers. If its members get other numbers, as `auto()` gives them when one is put
before others, what was written earlier is read as another member. By its absence: a `msgspec.Struct` with `omit_defaults` does not write a field that has
its default; with another default, what was written earlier is read as that. Nothing shows any of these. Classes with defaults that write all fields are
noted as well: such a class may have been one with `omit_defaults`.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import inspect
import json
import types as python_types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as types

MAX_TEXT = 4000
DEFAULTS, WHOLE = "defaults", "whole"  # after the place of a class that does not write its defaults, or that writes them
Said = list[str] | dict[str, float] | dict[str, str]  # fields in order; numbers of an Enum's members, aliases too; defaults


def layout_of(cls: Any) -> str:
    """What of a class, and of what is in it, is written by position, by number or by its absence, as JSON: place → names in order, or the numbers of members
    by name, or the defaults of fields by name. "": there is nothing. Enums and defaults that would make the text longer than MAX_TEXT characters are left out,
    the longest first."""
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


def _text(layout: dict[str, Said]) -> str:
    return json.dumps(layout, sort_keys=True)


def _of(kind: Any, place: str, inside: tuple[Any, ...]) -> Iterator[tuple[str, Said]]:
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
        yield from _of_enum(kind.cls, place)
    elif hasattr(kind, "fields") and kind.cls not in inside:
        is_list = isinstance(kind, types.NamedTupleType) or getattr(kind, "array_like", False)
        if is_list:
            yield place, [field.name for field in kind.fields]
        config = getattr(kind.cls, "__struct_config__", None)
        defaults = {field.name: said for field in kind.fields if (said := _default_of(field))}
        if config is not None and config.omit_defaults:
            yield f"{place} {DEFAULTS}", defaults
        elif defaults and not is_list:
            yield f"{place} {WHOLE}", {}
        for field in kind.fields:
            yield from _of(field.type, f"{place}.{field.name}", (*inside, kind.cls))


def _of_enum(cls: Any, place: str) -> Iterator[tuple[str, Said]]:
    if numbers := {name: member.value for name, member in cls.__members__.items() if isinstance(member.value, int | float)}:
        yield place, numbers


def _default_of(field: types.Field) -> str:
    """What is meant where the field is not written; "": it always is."""
    made = field.default_factory() if field.default_factory in (list, dict, set) else field.default
    try:
        return "" if made is msgspec.NODEFAULT else repr(msgspec.to_builtins(made))
    except (TypeError, ValueError):  # it has no form in JSON
        return ""


def _of_model(cls: Any, place: str, inside: tuple[Any, ...]) -> Iterator[tuple[str, Said]]:
    """Pydantic's: a model itself is written by name."""
    if cls not in inside:
        for name, field in cls.model_fields.items():
            yield from _of_annotation(field.annotation, f"{place}.{name}", (*inside, cls))


def _of_annotation(annotation: Any, place: str, inside: tuple[Any, ...]) -> Iterator[tuple[str, Said]]:
    """Of a type that may be one that only pydantic knows, such as a union of models: then what it is made of."""
    kind: Any = None
    with contextlib.suppress(TypeError, NameError):
        kind = types.type_info(annotation)
    if kind is None or (isinstance(kind, types.CustomType) and not hasattr(kind.cls, "model_fields")):
        parts = typing.get_args(annotation)
        if typing.get_origin(annotation) is typing.Annotated:
            yield from _of_annotation(parts[0], place, inside)
        elif _is_union(annotation):
            for part in parts:
                yield from _of_annotation(part, f"{place}<{part.__name__}>" if hasattr(part, "model_fields") else place, inside)
        elif parts:
            for part in parts:
                yield from _of_annotation(part, f"{place}[]", inside)
        elif inspect.isclass(annotation) and issubclass(annotation, enum.Enum):
            yield from _of_enum(annotation, place)
    else:
        yield from _of(kind, place, inside)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, python_types.UnionType)
