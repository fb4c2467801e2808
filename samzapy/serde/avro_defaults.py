"""The defaults of an Avro schema's fields as Python values. In the schema they are JSON: text for bytes, a number for a date, a record without what has
a default itself. fastavro puts them into values as they are, and the same list or dict into each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fastavro.read import LOGICAL_READERS

from samzapy.serde.avro_walk import MAX_DECIMAL_BYTES, MAX_DECIMAL_DIGITS

_TYPES: Mapping[str, tuple[type, ...]] = {"null": (type(None),), "boolean": (bool,), "int": (int,), "long": (int,), "string": (str,), "enum": (str,)}
NO_VALUE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)


def logical_of(schema: Any) -> str:
    """`long-timestamp-millis`: the logical type that fastavro reads a schema's values as; "": none."""
    name = f"{schema['type']}-{schema.get('logicalType')}" if isinstance(schema, dict) else ""
    return name if name in LOGICAL_READERS and (schema["logicalType"] != "decimal" or "precision" in schema) else ""


def defined(schema: Any, types: Mapping[str, Any]) -> Any:
    """A schema, or what it names."""
    return types.get(schema, schema) if isinstance(schema, str) else schema


def put_defaults(schema: Any, types: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Change the fields' defaults to Python values, in place. `schema`, `types`: as fastavro parsed them. A default that is none of its type stays as it is:
    the schemas of others are read with, too.

    Returns:
        The fields whose default is a list or a dict, of which each value needs its own (`copied`): as in `fields_of`.
    """
    fields = [field for record in records(schema, types) for field in record["fields"] if "default" in field]
    raw = {id(field): field["default"] for field in fields}
    for field in fields:
        try:
            field["default"] = _value(field["type"], raw[id(field)], types, raw)
        except (*NO_VALUE, RecursionError):  # RecursionError: it contains itself
            continue  # it is refused where it is written
    return fields_of(schema, types, lambda field: isinstance(field.get("default"), dict | list))


def fields_of(schema: Any, types: Mapping[str, Any], which: Callable[[Any], bool] = lambda field: True) -> set[tuple[str, str]]:
    """Fields of the schema's records, each as the record's short name and its own."""
    return {(record["name"].rpartition(".")[2], field["name"]) for record in records(schema, types) for field in record["fields"] if which(field)}


def copied(value: Any) -> Any:
    """A value with lists and dicts of its own."""
    if type(value) is dict:
        return {key: copied(each) if type(each) in (dict, list) else each for key, each in value.items()}
    return [copied(each) for each in value] if type(value) is list else value


def records(schema: Any, types: Mapping[str, Any]) -> Iterator[Any]:
    """The record schemas, each once."""
    seen = set[str]()
    waiting = [schema, *types.values()]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting += found
        elif isinstance(found, dict):
            if "fields" in found:
                if found["name"] in seen:
                    continue
                seen.add(found["name"])
                yield found
                waiting += [field["type"] for field in found["fields"]]
            waiting += [found[key] for key in ("items", "values", "type") if isinstance(found.get(key), dict | list)]


def _value(schema: Any, default: Any, types: Mapping[str, Any], raw: Mapping[int, Any]) -> Any:
    """What a default stands for. Raises one of NO_VALUE: it is none of the type."""
    if isinstance(schema, list):
        return _first(schema, default, lambda branch: _value(branch, default, types, raw))
    schema = defined(schema, types)
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = logical_of(schema)
    found = _plain(kind, schema, default, types, raw)
    if logical.endswith("-decimal"):
        most = 10 ** min(schema["precision"], MAX_DECIMAL_DIGITS)
        if len(found) > MAX_DECIMAL_BYTES or abs(int.from_bytes(found, "big", signed=True)) >= most:
            raise ValueError("a decimal with more than the digits of its precision")
    return LOGICAL_READERS[logical](found, schema, None) if logical else found


def _first(branches: list[Any], default: Any, value: Callable[[Any], Any]) -> Any:
    """By the first branch whose type the default is of: Avro says the first one of all, and fastavro takes any."""
    for branch in branches[:-1]:
        try:
            found = value(branch)
        except NO_VALUE:
            continue
        if not (isinstance(found, float) and isinstance(default, str)):  # text may be one of a later branch
            return found
    return value(branches[-1])


def _plain(kind: Any, schema: Any, default: Any, types: Mapping[str, Any], raw: Mapping[int, Any]) -> Any:
    if kind in ("float", "double"):
        if isinstance(default, bool):
            raise TypeError("a boolean for a number")
        return float(default)
    if kind in ("bytes", "fixed"):
        return default.encode("latin-1")
    if kind == "array" and isinstance(default, list):
        return [_value(schema["items"], each, types, raw) for each in default]
    if kind == "map" and isinstance(default, dict):
        return {key: _value(schema["values"], each, types, raw) for key, each in default.items()}
    if kind in ("record", "error") and isinstance(default, dict):
        return {
            field["name"]: _value(field["type"], default[field["name"]] if field["name"] in default else raw[id(field)], types, raw)
            for field in schema["fields"]
        }
    if type(default) not in _TYPES.get(kind, ()):
        raise TypeError(f"{kind} has no such value")
    return default
