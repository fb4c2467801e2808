"""Whether an object can be read back as its class: told before it is written, and quickly where each field has the very type of its annotation."""

from __future__ import annotations

import dataclasses
import functools
import json
import keyword
import re
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from types import NoneType
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect as kinds

from samzapy.serde.basic import shown

MAX_READ_DIGITS = 4300  # of a whole number: msgspec's
_WITH_PARTS = (dict, list, tuple)
_PLAIN: dict[Any, type] = {kinds.IntType: int, kinds.FloatType: float, kinds.StrType: str, kinds.BoolType: bool, kinds.NoneType: NoneType}


class QuickFields(NamedTuple):
    """The fields of a class whose annotations name nothing but plain types: whatever has just these types can be read back.

    Attributes:
        names: of the fields, in order.
        types: the plain types that each may have.
        is_dict: whether it is a TypedDict.
    """

    names: tuple[str, ...]
    types: tuple[tuple[type, ...], ...]
    is_dict: bool


def quick_fields(cls: Any) -> QuickFields | None:
    """None: its annotations say more than that.

    Raises:
        TypeError, NameError: records cannot have the class's annotations.
    """
    if hasattr(cls, "model_validate_json") or hasattr(cls, "__post_init__"):  # what these refuse is in no annotation
        return None
    info: Any = kinds.type_info(cls)
    fields = getattr(info, "fields", None)
    is_dict = isinstance(info, kinds.TypedDictType)
    types = []
    for field in fields or ():
        plain = _plain_types(field.type)
        can_be_asked = field.required if is_dict else field.name.isidentifier() and not keyword.iskeyword(field.name)
        if not plain or not can_be_asked:
            return None
        types.append(plain)
    return None if fields is None else QuickFields(tuple(field.name for field in fields), tuple(types), is_dict)


def quick_check(cls: Any, fields: QuickFields | None) -> Callable[[Any], bool]:
    """A function that says True of an object that can be read back for sure. Of others nothing is known, and it may raise AttributeError or LookupError."""
    if fields is None:
        return _never
    tests = [f"type(value) is {'dict' if fields.is_dict else 'cls'}"]
    for name, types in zip(fields.names, fields.types, strict=True):
        found = f"type(value[{name!r}])" if fields.is_dict else f"type(value.{name})"
        tests.append(f"({' or '.join(f'{found} is {each.__name__}' for each in types)})")
    made: Callable[[Any], bool] = eval(f"lambda value: {' and '.join(tests)}", {"cls": cls, "NoneType": NoneType})  # names are identifiers or quoted
    return made


def _never(value: Any) -> bool:
    return False


def _plain_types(kind: Any) -> tuple[type, ...]:
    """The Python types of a field whose annotation names only these; (): it says more than that."""
    found = []
    for each in kind.types if isinstance(kind, kinds.UnionType) else (kind,):
        if type(each) not in _PLAIN or each != type(each)():
            return ()
        if type(each) is kinds.IntType and not 0 < sys.get_int_max_str_digits() <= MAX_READ_DIGITS:  # Python may write what is not read
            return ()
        found.append(_PLAIN[type(each)])
    return tuple(found)


def lost_in(value: Any, read: Any, dumps: Callable[[Any], bytes], comes_back: bool) -> str:
    """Where an object of one class was read back as one of another that has no such fields, or a value as another, and what was lost; "": nowhere.

    What was read back as its annotation says (text as a UUID, a UUID as text) is not lost, nor is what `Any` leaves to JSON.
    `comes_back`: samzapy reads it again, so an object of a subclass must not lose what its class has more; whoever reads an output may know the subclass.
    """
    try:
        return "" if equal(read, value) else _lost(value, read, "$", dumps, comes_back)
    except RecursionError:
        return ""


def equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001  a method of the user's
        return False


def _lost(value: Any, read: Any, place: str, dumps: Callable[[Any], bytes], comes_back: bool) -> str:
    if isinstance(read, str) and isinstance(value, bytes | bytearray | memoryview):  # JSON has them as base64, which nobody meant
        return f"Expected `str`, got `{type(value).__name__}`, which JSON holds in base64 - at `{place}`"
    if said := lost_key(value, read, place) or _changed(value, read, place):
        return said
    cls, pairs = type(read), items_of(value, read, place) or []
    names = _field_names(cls)
    if names is not None:
        is_its = isinstance(value, cls)
        may_lose = not is_its or (comes_back and type(value) is not cls)
        if may_lose and (missing := _not_read(json.loads(dumps(value)), cls)):
            return f"Expected `{cls.__name__}`, got `{type(value).__name__}`, which also has {missing} - at `{place}`"
        pairs = [(getattr(value, name), getattr(read, name), f"{place}.{name}") for name in names] if is_its else []
    return next((said for one, other, where in pairs if (said := _lost(one, other, where, dumps, comes_back))), "")


def _changed(value: Any, read: Any, place: str) -> str:
    """A value without parts, or in a set, that was read back as another one; "": it is none."""
    if isinstance(read, set | frozenset) and isinstance(value, set | frozenset):
        came, lost = _missing(read, value), _missing(value, read)
        found = next(((one, other) for other in came for one in lost if _is_changed(one, other)), None)
    else:
        has_parts = isinstance(read, _WITH_PARTS) or _field_names(type(read)) is not None
        found = None if has_parts or same(value, read) or not _is_changed(value, read) else (value, read)
    return "" if found is None else f"{shown(found[0])} would come back as {shown(found[1])} - at `{place}`"


def _missing(some: Any, others: Any) -> list[Any]:
    """Those of a set that are the same as none of another."""
    try:
        found = some - others
    except Exception:  # noqa: BLE001  a method of the user's
        return []
    times = [each for each in others if isinstance(each, datetime)]
    return [each for each in found if not (isinstance(each, datetime) and any(same(each, time) for time in times))]


def _is_changed(value: Any, read: Any) -> bool:
    """Of two different values: whether the one that was read cannot stand for the other. What was read as its annotation says (text as a UUID, a date as
    text) can, and under `Any` JSON's types do. Text is no base64, and a float is no other whole number."""
    return type(read) is type(value) or isinstance(read, bytes | bytearray | memoryview) or (isinstance(read, float) and isinstance(value, int))


def same(one: Any, other: Any) -> bool:
    """Equal; or the same instant: in the hour that is repeated when summer time ends, Python holds times of different zones for unequal."""
    if equal(one, other):
        return True
    return isinstance(one, datetime) and isinstance(other, datetime) and one.tzinfo is not None is not other.tzinfo and _utc(one) == _utc(other)


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=None) - (time.utcoffset() or timedelta())


def lost_key(value: Any, read: Any, place: str) -> str:
    """A key of a dict that is no text and was read back as another: JSON has only text for keys, so 200 would be "200"; "": there is none."""
    if isinstance(read, dict) and isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) and key not in read:
                return f"Expected a key that is `str`, got `{type(key).__name__}` {shown(key)}, which would come back as another key - at `{place}`"
    return ""


def items_of(value: Any, read: Any, place: str) -> list[tuple[Any, Any, str]] | None:
    """Of two dicts or two lists, what is in both, with its place; None: they are neither."""
    if isinstance(read, dict) and isinstance(value, dict):
        return [(value[key], each, f"{place}[{shown(key)}]") for key, each in read.items() if key in value]
    if isinstance(read, list | tuple) and isinstance(value, list | tuple):
        return [(one, other, f"{place}[{index}]") for index, (one, other) in enumerate(zip(value, read, strict=False))]
    return None


def _field_names(cls: type) -> tuple[str, ...] | None:
    """The fields of a class of records that msgspec reads; None: it is none."""
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_fields__
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", None) if issubclass(cls, tuple) else None


def _not_read(written: Any, cls: type) -> str:
    """What of JSON that was read as an object of the class is in none of its fields."""
    names, most = _known(cls)
    if isinstance(written, dict):
        return ", ".join(f"`{name}`" for name in written if name not in names)
    return f"item {most + 1}" if isinstance(written, list) and len(written) > most else ""


@functools.lru_cache(128)
def _known(cls: type) -> tuple[frozenset[str], int]:
    info: Any = kinds.type_info(cls)
    tag = getattr(info, "tag_field", None)
    names = [field.encode_name for field in info.fields] + ([tag] if tag else [])
    return frozenset(names), len(names)


def its_field(value: Any, why: str) -> str:
    """The field at which an error of msgspec's points, as the object has it; "": it points at none, or at a part of one."""
    place = re.search(r"at `\$(?:\.(\w+)|\[(\d+)\])`", why)
    if place is None:
        return ""
    name, index = place.groups()
    try:
        found = value[int(index)] if index else value[name] if isinstance(value, dict) else getattr(value, name)
    except (AttributeError, LookupError, TypeError):  # it has another name in JSON
        return ""
    return f" Its {name or f'item {index}'} is {shown(found)} ({type(found).__name__})."
