"""The walk over Avro's bytes before they are decoded.

fastavro reads whatever a count in the bytes tells it to (five bytes became twenty million items), recurses as deep as they say, and ignores
what follows the value. So a small reader made from the schema walks the bytes first, allocates nothing, and refuses counts and lengths
beyond what is left, deep nesting, unknown indexes, and trailing bytes. Only what has passed is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MAX_DECIMAL_BYTES = 4096  # of one decimal: making it takes time that grows with the square of its length, under the interpreter's lock
MAX_DECIMAL_DIGITS = 10_000  # what so many bytes can hold
MAX_DEPTH = 64
MAX_EMPTY_ITEMS = 65536  # items that take no bytes (null, empty records) in one value

_FIXED_SIZES = {"null": 0, "float": 4, "double": 8}


class Walk:
    """What one pass over one value has used up."""

    __slots__ = ("data", "depth", "empty_items", "end")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = len(data)
        self.depth = 0
        self.empty_items = 0


Skip = Callable[[Walk, int], int]


def _long(walk: Walk, at: int) -> tuple[int, int]:
    """A zigzag number and where it ends; at most ten bytes."""
    data, end = walk.data, walk.end
    shift = number = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise ValueError("a number that does not end")


def _skip_long(walk: Walk, at: int) -> int:
    return _long(walk, at)[1]


def _skip_boolean(walk: Walk, at: int) -> int:
    if at >= walk.end or walk.data[at] > 1:
        raise ValueError("a boolean that is neither 0 nor 1")
    return at + 1


def _skip_bytes(walk: Walk, at: int) -> int:
    size, at = _long(walk, at)
    if size < 0 or size > walk.end - at:
        raise ValueError(f"a length of {size} where {walk.end - at} bytes are left")
    return at + size


def _skip_fixed(size: int) -> Skip:
    def skip(walk: Walk, at: int) -> int:
        if size > walk.end - at:
            raise ValueError(f"{size} bytes expected where {walk.end - at} are left")
        return at + size

    return skip


def _skip_bytes_at(walk: Walk, at: int) -> tuple[int, int]:
    end = _skip_bytes(walk, at)
    return _long(walk, at)[1], end


def _fixed_at(size: int) -> Callable[[Walk, int], tuple[int, int]]:
    skip = _skip_fixed(size)
    return lambda walk, at: (at, skip(walk, at))


def _skip_decimal(bounds: Callable[[Walk, int], tuple[int, int]], precision: int) -> Skip:
    """A decimal whose digits the schema's precision holds: more would be rounded silently."""
    limit = 10 ** min(precision, MAX_DECIMAL_DIGITS)

    def skip(walk: Walk, at: int) -> int:
        begin, end = bounds(walk, at)
        if end - begin > MAX_DECIMAL_BYTES:
            raise ValueError(f"a decimal of {end - begin} bytes, more than {MAX_DECIMAL_BYTES}")
        if abs(int.from_bytes(walk.data[begin:end], "big", signed=True)) >= limit:
            raise ValueError(f"a decimal with more than the {precision} digits of its precision")
        return end

    return skip


def _skip_enum(symbols: int) -> Skip:
    def skip(walk: Walk, at: int) -> int:
        index, at = _long(walk, at)
        if not 0 <= index < symbols:
            raise ValueError(f"symbol {index} of an enum of {symbols}")
        return at

    return skip


def _skip_union(branches: list[Skip]) -> Skip:
    def skip(walk: Walk, at: int) -> int:
        index, at = _long(walk, at)
        if not 0 <= index < len(branches):
            raise ValueError(f"branch {index} of a union of {len(branches)}")
        return branches[index](walk, at)

    return skip


def _skip_record(fields: list[Skip]) -> Skip:
    def skip(walk: Walk, at: int) -> int:
        walk.depth += 1
        if walk.depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH}")
        for field in fields:
            at = field(walk, at)
        walk.depth -= 1
        return at

    return skip


def _skip_blocks(item: Skip) -> Skip:
    """Arrays and maps: blocks of items, each with its count (negative: followed by its size in bytes), up to a count of 0."""

    def skip(walk: Walk, at: int) -> int:
        walk.depth += 1
        if walk.depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH}")
        while True:
            count, at = _long(walk, at)
            if count == 0:
                walk.depth -= 1
                return at
            if count < 0:
                count = -count
                at = _skip_long(walk, at)
            at = _skip_items(item, count, walk, at)

    return skip


def _skip_items(item: Skip, count: int, walk: Walk, at: int) -> int:
    if count > walk.end - at + MAX_EMPTY_ITEMS:
        raise ValueError(f"{count} items where {walk.end - at} bytes are left")
    for _ in range(count):
        after = item(walk, at)
        if after == at:
            walk.empty_items += 1
            if walk.empty_items > MAX_EMPTY_ITEMS:
                raise ValueError(f"more than {MAX_EMPTY_ITEMS} items that take no bytes")
        at = after
    return at


class Skips:
    """Makes the reader of a parsed schema. A named type is known from its definition on, so a recursive schema is a loop of readers.

    Args:
        types: the types that it may name, as fastavro parsed them.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types
        self._named: dict[str, Skip] = {}

    def of(self, schema: Any) -> Skip:
        if isinstance(schema, list):
            return _skip_union([self.of(branch) for branch in schema])
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.of(kind)
        if kind in _FIXED_SIZES:
            return _skip_fixed(_FIXED_SIZES[kind])
        if kind in ("int", "long"):
            return _skip_long
        if kind == "bytes" and isinstance(schema, dict) and schema.get("logicalType") == "decimal":
            return _skip_decimal(_skip_bytes_at, int(schema["precision"]))
        if kind in ("bytes", "string"):
            return _skip_bytes
        if kind == "boolean":
            return _skip_boolean
        if kind == "array":
            return _skip_blocks(self.of(schema["items"]))
        if kind == "map":
            return _skip_blocks(_pair(self.of(schema["values"])))
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(kind, schema)
        return self._reference(str(kind))

    def _define(self, kind: str, schema: Any) -> Skip:
        if kind == "enum":
            skip = _skip_enum(len(schema["symbols"]))
        elif kind == "fixed":
            skip = _skip_fixed(int(schema["size"]))
            if schema.get("logicalType") == "decimal":
                skip = _skip_decimal(_fixed_at(int(schema["size"])), int(schema["precision"]))
        else:
            fields: list[Skip] = []
            skip = self._named[schema["name"]] = _skip_record(fields)
            fields.extend(self.of(field["type"]) for field in schema["fields"])
        self._named[schema["name"]] = skip
        return skip

    def _reference(self, name: str) -> Skip:
        if name in self._named:
            return self._named[name]
        if name not in self._types:
            raise ValueError(f"unknown type {name!r}")
        return self.of(self._types[name])


def _pair(value: Skip) -> Skip:
    return lambda walk, at: value(walk, _skip_bytes(walk, at))
