"""What `agg.distinct` counts as different: a text for each value, which equal values have in common, in whatever order or form they came.

Numbers are equal by their value (1, 1.0 and True; 0.0 and -0.0), dicts and records by their entries without their order, records with the defaults
of fields that were left out, sets by what they hold, lists and tuples by their items in order, times with a time
zone by their instant. What JSON has no form for (Decimal, bytes, date, UUID, enumeration) is equal by its text.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from samzapy.api.errors import SerdeError
from samzapy.streams.kinds import Kind, plain, unplain

FORM, MARK = 3, ""  # texts of values are never empty, so the mark of the form is none of them
Seen = dict[str, Any]


def text_of(value: Any) -> str:
    """The text of a value."""
    if type(value) is str:
        return '"' + value
    return str(value) if type(value) is int else json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def in_form(kind: Kind | None) -> Callable[[Seen], Seen]:
    """What gives the texts that are kept the form that they have now: those of an older samzapy, or of the class as it was, are written anew once.
    A text that the class does not take any more stays: it is none of what comes now."""
    mark: Any = FORM
    if kind is not None and kind.is_record and kind.cls is not None:
        mark = f"{FORM} {hashlib.blake2b(repr(_fields(kind.cls)).encode(), digest_size=8).hexdigest()}"
    made = unplain(kind)

    def renewed(text: str) -> str:
        if text[0] == '"':
            return _of_time(text)
        value = json.loads(text)
        try:
            return text_of(made(value))
        except SerdeError:
            return text_of(value)

    def formed(seen: Seen) -> Seen:
        if seen.get(MARK) == mark:
            return seen
        return {MARK: mark, **{renewed(text): 1 for text in seen if text != MARK}}

    return formed


def _of_time(text: str) -> str:
    """Of a text, which before form 3 may have been that of a time in any zone."""
    try:
        return text_of(datetime.fromisoformat(text[1:-1])) if text[-1] == '"' and text[1:2].isdigit() else text
    except ValueError:
        return text


def _fields(cls: type) -> list[tuple[str, str]]:
    """A class's fields, in the order of their names."""
    return sorted({name: str(of) for base in reversed(cls.__mro__) for name, of in inspect.get_annotations(base).items()}.items())


def _canonical(value: Any) -> Any:
    """A value as JSON has it, in one form for all that are equal."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) or value.is_integer() else value
    if isinstance(value, Decimal):
        return str(value.normalize())
    if isinstance(value, datetime) and value.tzinfo is not None:
        return plain(value.astimezone(UTC))
    if isinstance(value, dict):
        return {key if type(key) is str else text_of(key).strip('"'): _canonical(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_canonical(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    if isinstance(value, msgspec.Struct):
        return _of_struct(value)
    if dataclasses.is_dataclass(value):
        return {each.name: _canonical(getattr(value, each.name)) for each in dataclasses.fields(value) if each.compare}
    built = plain(value)
    return built if type(built) is type(value) else _canonical(built)


def _of_struct(value: msgspec.Struct) -> Any:
    config, names = value.__struct_config__, zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    found = {name: _canonical(getattr(value, field)) for name, field in names}
    if config.array_like:
        return [*([] if config.tag is None else [config.tag]), *found.values()]
    return found if config.tag is None or config.tag_field is None else {config.tag_field: config.tag, **found}
