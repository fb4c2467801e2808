"""Whether a value is of its schema's types, before fastavro writes it: that takes 1998.9 for a long and writes 1998, and any text for a boolean and writes
true. A quick check, made from the schema, knows the very types; what it does not know, fastavro's own check decides, which takes several times as long.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from fastavro.validation import ValidationError, validate

from samzapy.serde.basic import shown

Fits = Callable[[Any], bool]
INT, LONG, EXACT = 1 << 31, 1 << 63, 1 << 53
_ABSENT: Any = object()
_LOGICAL: Mapping[str, tuple[type, ...]] = {
    "date": (datetime.date,), "timestamp-millis": (datetime.datetime,), "timestamp-micros": (datetime.datetime,), "local-timestamp-millis": (datetime.datetime,),
    "local-timestamp-micros": (datetime.datetime,), "time-millis": (datetime.time,), "time-micros": (datetime.time,), "decimal": (decimal.Decimal,),
    "uuid": (uuid.UUID,),
}  # fmt: skip
_INSTANTS = ("timestamp-millis", "timestamp-micros")
MOST_FLOAT = 3.4028234663852886e38  # of 32 bits
_PRIMITIVE: Mapping[str, Fits] = {
    "null": lambda value: value is None,
    "boolean": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int and -INT <= value < INT,
    "long": lambda value: type(value) is int and -LONG <= value < LONG,
    "float": lambda value: type(value) is float and not MOST_FLOAT < abs(value) < math.inf,
    "double": lambda value: type(value) is float or (type(value) is int and -EXACT <= value <= EXACT),
    "string": lambda value: type(value) is str,
    "bytes": lambda value: type(value) is bytes,
}


class Checks:
    """Makes the quick checks of schemas that may name each other."""

    def __init__(self) -> None:
        self._named: dict[str, Fits] = {}

    def of(self, schema: Any) -> Fits:
        """A function that says True of a value that is of the schema's types for sure. `schema`: as fastavro parsed it."""
        if isinstance(schema, str):
            return _PRIMITIVE.get(schema) or (lambda value: self._named[schema](value))
        if isinstance(schema, list):
            branches = [self.of(each) for each in schema]
            return lambda value: any(fits(value) for fits in branches)
        kind = schema["type"]
        logical = schema.get("logicalType", "")
        types = _LOGICAL.get(logical)
        if logical in _INSTANTS:
            return _is_instant
        if types is not None:
            return lambda value: type(value) in types
        found = self._of(kind, schema)
        if "name" in schema:
            self._named[schema["name"]] = found
        return found

    def _of(self, kind: Any, schema: Mapping[str, Any]) -> Fits:
        if kind in ("record", "error"):
            return self._of_record(schema)
        if kind == "array":
            item = self.of(schema["items"])
            return lambda value: type(value) is list and all(map(item, value))
        if kind == "map":
            entry = self.of(schema["values"])
            return lambda value: type(value) is dict and all(type(key) is str for key in value) and all(map(entry, value.values()))
        if kind == "enum":
            symbols = frozenset(schema["symbols"])
            return lambda value: type(value) is str and value in symbols
        if kind == "fixed":
            size = schema["size"]
            return lambda value: type(value) is bytes and len(value) == size
        return self.of(kind)

    def _of_record(self, schema: Mapping[str, Any]) -> Fits:
        fields: list[tuple[str, bool, Fits]] = []  # a record may have itself in a field: the list is filled when its check has a name

        def fits(value: Any) -> bool:
            if type(value) is not dict:
                return False
            for name, has_default, check in fields:
                found = value.get(name, _ABSENT)
                if not (has_default if found is _ABSENT else check(found)):
                    return False
            return True

        self._named[schema["name"]] = fits
        fields += [(field["name"], "default" in field, self.of(field["type"])) for field in schema["fields"]]
        return fits


def _is_instant(value: Any) -> bool:
    """Raises: ValueError: a datetime without a zone; fastavro would take that of the process, so containers on two hosts might write two times."""
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone: give it one (tzinfo=UTC), or let the schema say local-timestamp")
    return type(value) is datetime.datetime


def refuse_infinite(value: Any, read: Any) -> None:
    """Of a value and what it was read back as.

    Raises:
        ValueError: a number is beyond the range of a float of 32 bits.
    """
    if isinstance(read, float):
        if math.isinf(read) and not math.isinf(value):
            raise ValueError(f"{value!r} is beyond the range of float (32 bits): let the schema say double")
    elif isinstance(read, dict) and isinstance(value, dict):
        for key, each in read.items():
            if key in value:
                refuse_infinite(value[key], each)
    elif isinstance(read, list) and isinstance(value, list | tuple):
        for one, other in zip(value, read, strict=False):
            refuse_infinite(one, other)


def refuse_misfit(value: Any, schema: Any) -> None:
    """What the quick check does not know.

    Raises:
        ValueError: a part of the value is of another type; names it.
    """
    try:
        validate(value, schema, raise_errors=True)
    except ValidationError as error:
        found = [str(each) for each in getattr(error, "errors", None) or [error]]
        raise ValueError("; ".join(shown_line(each) for each in found[:2])) from None


def shown_line(text: str) -> str:
    """One of fastavro's sentences, `R.cents is <1.5> of type <class 'float'> expected long`, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 200 else shown(line, 200)
