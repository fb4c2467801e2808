"""Whether a value is of its schema's types, before fastavro writes it: that takes 1998.9 for a long and writes 1998, and any text for a boolean and writes
true. A quick check, made from the schema, knows the very types; what it does not know, fastavro's own check decides, which takes several times as long.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fastavro.validation import ValidationError, validate

from samzapy.serde.avro_defaults import logical_of
from samzapy.serde.basic import shown

Fits = Callable[[Any], bool]
INT, LONG = 1 << 31, 1 << 63
EXACT, EXACT_FLOAT = 1 << 53, 1 << 24  # up to these a double, and a float of 32 bits, hold all whole numbers
_OF_DICTS = ("record", "error", "map")
_ABSENT: Any = object()
_LOGICAL: Mapping[str, type] = {
    "int-date": datetime.date, "long-local-timestamp-millis": datetime.datetime, "long-local-timestamp-micros": datetime.datetime,
    "int-time-millis": datetime.time, "long-time-micros": datetime.time, "bytes-decimal": decimal.Decimal, "fixed-decimal": decimal.Decimal,
    "string-uuid": uuid.UUID,
}  # fmt: skip
_INSTANTS = ("long-timestamp-millis", "long-timestamp-micros")
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
    """Makes the quick checks of a schema. `types`: the types that it may name, as fastavro parsed them."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types
        self._named: dict[str, Fits] = {}

    def of(self, schema: Any) -> Fits:
        """A function that says True of a value that is of the schema's types for sure. `schema`: as fastavro parsed it."""
        if isinstance(schema, str):
            if schema in self._types and schema not in self._named:
                return self.of(self._types[schema])
            return _PRIMITIVE.get(schema) or (lambda value: self._named[schema](value))
        if isinstance(schema, list):
            branches = self._branches(schema)
            return lambda value: any(fits(value) for fits in branches)
        logical = logical_of(schema)
        cls = _LOGICAL.get(logical)
        if logical in _INSTANTS:
            return _is_instant
        found = self._of(schema["type"], schema) if cls is None else lambda value: type(value) is cls
        if "name" in schema:
            self._named[schema["name"]] = found
        return found

    def _branches(self, union: list[Any]) -> list[Fits]:
        """The checks of a union's branches. fastavro writes a whole number in the first branch that takes any, so that one behind a float or double knows
        only numbers that these hold. Of records, maps and arrays it writes one that takes the value: what one with floats might take is not known."""
        defined = [self._types[each] if isinstance(each, str) and each in self._types else each for each in union]
        kinds = [each["type"] if isinstance(each, dict) else each for each in defined]
        return [self._branch(at, union[at], defined, kinds) for at in range(len(union))]

    def _branch(self, at: int, branch: Any, union: list[Any], kinds: list[Any]) -> Fits:
        fits, kind = self.of(branch), kinds[at]
        if kind in ("int", "long"):
            if logical_of(branch) or {"float", "double"}.isdisjoint(kinds[:at]):
                return fits
            most = min(EXACT if "double" in kinds else EXACT_FLOAT, INT - 1 if kind == "int" else EXACT)
            return lambda value: type(value) is int and -most <= value <= most
        alike = _OF_DICTS if kind in _OF_DICTS else ("array",) if kind == "array" else ()
        others = [each for i, each in enumerate(union) if i != at and kinds[i] in alike and self._rounds(union[at], each)]
        if not others:
            return fits
        names = {field["name"] for field in union[at].get("fields", ())}
        if all(_needed(each) - names for each in others):
            return lambda value: fits(value) and value.keys() <= names
        return lambda value: False

    def _has(self, schema: Any, wanted: Collection[str]) -> bool:
        """Whether values of these primitive types may be somewhere in a value."""
        seen, waiting = set[str](), [schema]
        while waiting:
            found = waiting.pop()
            if isinstance(found, list):
                waiting += found
            elif isinstance(found, str):
                if found in wanted:
                    return True
                if found in self._types and found not in seen:
                    seen.add(found)
                    waiting.append(self._types[found])
            elif "fields" in found:
                waiting += [field["type"] for field in found["fields"]]
            else:
                waiting.append(found.get("items") or found.get("values") or str(found["type"]))
        return False

    def _rounds(self, branch: Any, other: Any) -> bool:
        """Whether a number of the branch may be another one when it is written as the other."""
        return (self._has(branch, ("int", "long")) and self._has(other, ("float", "double"))) or (self._has(branch, ("double",)) and self._has(other, ("float",)))

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
        fields: list[tuple[str, bool, Fits, Any]] = []  # a record may have itself in a field: the list is filled when its check has a name

        def fits(value: Any) -> bool:
            if type(value) is not dict:
                return False
            for name, has_default, check, default in fields:
                found = value.get(name, _ABSENT)
                if not ((has_default and check(default)) if found is _ABSENT else check(found)):
                    return False
            return True

        self._named[schema["name"]] = fits
        fields += [(field["name"], "default" in field, self.of(field["type"]), field.get("default")) for field in schema["fields"]]
        return fits


def _needed(schema: Any) -> set[str]:
    """The fields without which fastavro's check takes no value for this record."""
    return {field["name"] for field in schema.get("fields", ()) if "default" not in field and "null" not in _branches_of(field["type"])}


def _branches_of(schema: Any) -> list[Any]:
    return [each["type"] if isinstance(each, dict) else each for each in (schema if isinstance(schema, list) else [schema])]


def _is_instant(value: Any) -> bool:
    """Years at either end of the calendar are not known: in UTC the time may be in another one."""
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        raise _no_zone(value)
    return type(value) is datetime.datetime and datetime.MINYEAR < value.year < datetime.MAXYEAR


def _no_zone(value: Any) -> ValueError:
    """fastavro would take the zone of the process, so containers on two hosts might write two times."""
    return ValueError(f"{value!r} has no time zone: give it one (tzinfo=UTC), or let the schema say local-timestamp")


def refuse_changed(value: Any, read: Any) -> None:
    """Of a value and what it was read back as.

    Raises:
        ValueError: a whole number is another one, a number is beyond the range of a float of 32 bits, or a datetime has no zone.
    """
    if type(value) is tuple and len(value) == 2 and not isinstance(read, list):
        value = value[1]  # ("long", 7): the branch of a union, and the value
    if isinstance(read, float):
        if isinstance(value, float):
            if math.isinf(read) and not math.isinf(value):
                raise ValueError(f"{value!r} is beyond the range of float (32 bits): let the schema say double")
        elif isinstance(value, int) and value != read:
            raise ValueError(f"{shown(value)} would be written as {read!r}: give a number that the type holds; in a union that has long, write it as ('long', …)")
    elif isinstance(read, datetime.datetime):
        if read.tzinfo is not None and isinstance(value, datetime.datetime) and value.tzinfo is None:
            raise _no_zone(value)
    elif isinstance(read, dict) and isinstance(value, Mapping):
        for key, each in read.items():
            if key in value:
                refuse_changed(value[key], each)
    elif isinstance(read, list):
        for one, other in zip(value, read, strict=False):
            refuse_changed(one, other)


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
