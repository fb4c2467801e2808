"""The serde `avro:<schema file>`: one Avro value per record, without a header (schemaless).

fastavro reads whatever a count in the bytes tells it to (five bytes became twenty million items), recurses as deep as they say, and ignores
what follows the value. So a small reader made from the schema walks the bytes first, allocates nothing, and refuses counts and lengths
beyond what is left, deep nesting, unknown indexes, and trailing bytes. Only what has passed is decoded.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import orjson
from fastavro.schema import SchemaParseException

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.serde.basic import shown

_write, _read = fastavro.schemaless_writer, fastavro.schemaless_reader  # bound here: a task may put others in their place
MAX_SCHEMA_BYTES = 1 << 20
MAX_DECIMAL_BYTES = 4096  # of one decimal: making it takes time that grows with the square of its length, under the interpreter's lock
MAX_DECIMAL_DIGITS = 10_000  # what so many bytes can hold
MAX_AVRO_BYTES = 16 << 20
MAX_DEPTH = 64
MAX_EMPTY_ITEMS = 65536  # items that take no bytes (null, empty records) in one value

_ENCODE_ERRORS = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, EOFError, RecursionError)
_FIXED_SIZES = {"null": 0, "float": 4, "double": 8}


class _Walk:
    """What one pass over one value has used up."""

    __slots__ = ("data", "depth", "empty_items", "end")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.end = len(data)
        self.depth = 0
        self.empty_items = 0


Skip = Callable[[_Walk, int], int]


class AvroSerde:
    """Values of one Avro schema, written and read with fastavro."""

    key_order = "bytes"
    has_prefixes = False

    def __init__(self, name: str, schema: Any) -> None:
        self.name = name
        self._schema = schema
        self._skip = _Skips().of(schema)

    def encode(self, value: Any) -> bytes:
        """The value's Avro bytes; fields that the schema does not have are refused, absent ones take their default."""
        out = io.BytesIO()
        try:
            _write(out, self._schema, value, strict_allow_default=True)
        except _ENCODE_ERRORS as error:
            raise SerdeError(
                f"serde {self.name} cannot write {shown(value)}: {type(error).__name__}: {shown(str(error), 200)}.",
                "Give it a value that fits the schema.",
            ) from None
        return out.getvalue()

    def decode(self, data: bytes) -> Any:
        """The value."""
        try:
            self._check(data)
            return _read(io.BytesIO(data), self._schema, None)
        except _ENCODE_ERRORS as error:
            why = shown(str(error), 200) if str(error) else type(error).__name__
            raise SerdeError(f"serde {self.name} cannot read {shown(data)}: {why}.", "Name the schema that wrote it.") from None

    def _check(self, data: bytes) -> None:
        if len(data) > MAX_AVRO_BYTES:
            raise ValueError(f"{len(data)} bytes, more than {MAX_AVRO_BYTES}")
        end = self._skip(_Walk(data), 0)
        if end != len(data):
            raise ValueError(f"{len(data) - end} bytes follow the value")


def avro_serde(name: str, path: Path) -> AvroSerde:
    """The serde of the schema in the file at `path`.

    Raises:
        ConfigurationError: the file cannot be read or is not an Avro schema.
    """
    remedy = "Name a file with an Avro schema in JSON: `avro:schemas/user.avsc`."
    try:
        if path.stat().st_size > MAX_SCHEMA_BYTES:
            raise ConfigurationError(f"serde {name}: {path} is larger than {MAX_SCHEMA_BYTES} bytes.", remedy)
        schema = fastavro.parse_schema(orjson.loads(path.read_bytes()), named_schemas={}, expand=False)
        return AvroSerde(name, schema)
    except OSError as error:
        raise ConfigurationError(f"serde {name}: {path} cannot be read: {error.strerror}.", remedy) from None
    except (SchemaParseException, ValueError, TypeError, LookupError, RecursionError, AttributeError) as error:
        raise ConfigurationError(f"serde {name}: {path} is not an Avro schema: {error}.", remedy) from None


# -- the walk ----------------------------------------------------------------------------------------------------------------------


def _long(walk: _Walk, at: int) -> tuple[int, int]:
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


def _skip_long(walk: _Walk, at: int) -> int:
    return _long(walk, at)[1]


def _skip_boolean(walk: _Walk, at: int) -> int:
    if at >= walk.end or walk.data[at] > 1:
        raise ValueError("a boolean that is neither 0 nor 1")
    return at + 1


def _skip_bytes(walk: _Walk, at: int) -> int:
    size, at = _long(walk, at)
    if size < 0 or size > walk.end - at:
        raise ValueError(f"a length of {size} where {walk.end - at} bytes are left")
    return at + size


def _skip_fixed(size: int) -> Skip:
    def skip(walk: _Walk, at: int) -> int:
        if size > walk.end - at:
            raise ValueError(f"{size} bytes expected where {walk.end - at} are left")
        return at + size

    return skip


def _skip_bytes_at(walk: _Walk, at: int) -> tuple[int, int]:
    end = _skip_bytes(walk, at)
    return _long(walk, at)[1], end


def _fixed_at(size: int) -> Callable[[_Walk, int], tuple[int, int]]:
    skip = _skip_fixed(size)
    return lambda walk, at: (at, skip(walk, at))


def _skip_decimal(bounds: Callable[[_Walk, int], tuple[int, int]], precision: int) -> Skip:
    """A decimal whose digits the schema's precision holds: more would be rounded silently."""
    limit = 10 ** min(precision, MAX_DECIMAL_DIGITS)

    def skip(walk: _Walk, at: int) -> int:
        begin, end = bounds(walk, at)
        if end - begin > MAX_DECIMAL_BYTES:
            raise ValueError(f"a decimal of {end - begin} bytes, more than {MAX_DECIMAL_BYTES}")
        if abs(int.from_bytes(walk.data[begin:end], "big", signed=True)) >= limit:
            raise ValueError(f"a decimal with more than the {precision} digits of its precision")
        return end

    return skip


def _skip_enum(symbols: int) -> Skip:
    def skip(walk: _Walk, at: int) -> int:
        index, at = _long(walk, at)
        if not 0 <= index < symbols:
            raise ValueError(f"symbol {index} of an enum of {symbols}")
        return at

    return skip


def _skip_union(branches: list[Skip]) -> Skip:
    def skip(walk: _Walk, at: int) -> int:
        index, at = _long(walk, at)
        if not 0 <= index < len(branches):
            raise ValueError(f"branch {index} of a union of {len(branches)}")
        return branches[index](walk, at)

    return skip


def _skip_record(fields: list[Skip]) -> Skip:
    def skip(walk: _Walk, at: int) -> int:
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

    def skip(walk: _Walk, at: int) -> int:
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


def _skip_items(item: Skip, count: int, walk: _Walk, at: int) -> int:
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


class _Skips:
    """Makes the reader of a parsed schema. Named types are known from their definition on, so a recursive schema is a loop of readers."""

    def __init__(self) -> None:
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
        if name not in self._named:
            raise ValueError(f"unknown type {name!r}")
        return self._named[name]


def _pair(value: Skip) -> Skip:
    return lambda walk, at: value(walk, _skip_bytes(walk, at))
