"""Fields that a record left out, in objects of dataclasses.

msgspec leaves the default of such a field to the class: the object that it makes does not have the field itself, and it writes what the object has. So
the default of the day would not be stored: another default in a later version of the class would change values that were stored before. Measured
(tests/unit/serde/test_record_defaults.py: test_msgspec_leaves_a_default_to_the_class).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import getattr_static, ismemberdescriptor
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect as kinds


class _Class(NamedTuple):
    """A class of records. `defaults`: of fields that its objects may lack; `parts`: names of fields that may hold objects which lack some."""

    defaults: tuple[tuple[str, Any], ...]
    parts: tuple[str, ...]


def filling(loads: Callable[[Any], Any], cls: Any) -> Callable[[Any], Any]:
    """What reads objects of a class as `loads` does, each with all fields of its class.

    Raises:
        TypeError, NameError: records cannot have the class's annotations.
    """
    known = _lacking(kinds.type_info(cls))
    if not known:
        return loads

    def load(data: Any) -> Any:
        value = loads(data)
        _fill(value, known)
        return value

    return load


def _fill(value: Any, known: dict[type, _Class]) -> None:
    its = known.get(type(value))
    if its is not None:
        if its.defaults:
            has = value.__dict__
            for name, default in its.defaults:
                if name not in has:
                    has[name] = default
        for name in its.parts:
            _fill(getattr(value, name), known)
    elif isinstance(value, dict):
        for key, each in value.items():
            _fill(key, known)
            _fill(each, known)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            _fill(each, known)


def _lacking(kind: kinds.Type) -> dict[type, _Class]:
    """The classes of which, or in which, fields may be missing."""
    all_kinds = dict[int, kinds.Type]()
    _reach(kind, all_kinds)
    # A kind reaches such a class directly or by another one; a class may hold objects of its own.
    lacks = {number for number, each in all_kinds.items() if _defaults(each)}
    while more := {number for number, each in all_kinds.items() if number not in lacks and any(id(part) in lacks for _, part in _parts(each))}:
        lacks |= more
    found = dict[type, _Class]()
    for number, each in all_kinds.items():
        cls = getattr(each, "cls", None)
        if number in lacks and cls is not None and not isinstance(each, kinds.TypedDictType):
            found[cls] = _Class(_defaults(each), tuple(name for name, part in _parts(each) if id(part) in lacks))
    return found if lacks else {}


def _reach(kind: kinds.Type, found: dict[int, kinds.Type]) -> None:
    if id(kind) not in found:
        found[id(kind)] = kind
        for _, part in _parts(kind):
            _reach(part, found)


def _parts(kind: Any) -> Iterator[tuple[str, kinds.Type]]:
    """The kinds that are in one, with the names of fields."""
    for field in getattr(kind, "fields", ()):
        yield field.name, field.type
    for name in ("item_type", "key_type", "value_type"):
        if hasattr(kind, name):
            yield "", getattr(kind, name)
    for name in ("item_types", "types"):
        for part in getattr(kind, name, ()):
            yield "", part


def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    """The fields of a dataclass whose default is an attribute of the class. Fields with a factory, and those of a class with slots, have no such attribute."""
    if not isinstance(kind, kinds.DataclassType):
        return ()
    simple = [field for field in kind.fields if field.default is not msgspec.NODEFAULT]
    return tuple((field.name, field.default) for field in simple if not ismemberdescriptor(getattr_static(kind.cls, field.name, None)))
