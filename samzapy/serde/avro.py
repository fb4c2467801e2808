"""The serde `avro:<schema file>`: one Avro value per record, without a header (schemaless).

The bytes are looked at before fastavro decodes them: see avro_walk.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import orjson
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.serde.avro_fit import Checks, refuse_infinite, refuse_misfit
from samzapy.serde.avro_walk import Skips, Walk
from samzapy.serde.basic import shown

_write, _read = fastavro.schemaless_writer, fastavro.schemaless_reader  # bound here: a task may put others in their place
MAX_SCHEMA_BYTES = 1 << 20
MAX_AVRO_BYTES = 16 << 20

ENCODE_ERRORS = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, EOFError, RecursionError)
DECODE_ERRORS = (*ENCODE_ERRORS, SchemaResolutionError)
NO_SCHEMA = (SchemaParseException, ValueError, TypeError, LookupError, RecursionError, AttributeError)
_REMEDY = "Name a file with an Avro schema in JSON: `avro:schemas/user.avsc`."


SHAPING = ("symbols", "size", "logicalType", "precision", "scale")  # beside types, names of fields, items and values


def _shape(schema: Any, names: dict[str, str]) -> Any:
    """What the bytes of a schema's values depend on, and what they mean: without documentation, defaults, aliases and the names of types."""
    if isinstance(schema, str):
        return names.get(schema, schema)
    if isinstance(schema, list):
        return [_shape(each, names) for each in schema]
    found = {key: schema[key] for key in SHAPING if key in schema}
    if "name" in schema:
        names[schema["name"]] = f"#{len(names)}"
    if "fields" in schema:
        return found | {"fields": [[field["name"], _shape(field["type"], names)] for field in schema["fields"]]}
    inner = {key: _shape(schema[key], names) for key in ("items", "values") if key in schema}
    kind = _shape(schema["type"], names)
    return found | inner | {"type": kind} if found or inner else kind


class AvroSchema:
    """One schema: what reads and writes its values.

    Attributes:
        layout: another text means that values are other bytes, or that these mean something else.

    Args:
        document: the schema as JSON's objects.
        named: schemas that it refers to, each before those that need it.

    Raises:
        One of NO_SCHEMA: it is none.
    """

    kind = "AVRO"

    def __init__(self, document: Any, named: Sequence[Any] = ()) -> None:
        skips, checks, types = Skips(), Checks(), dict[str, Any]()
        for each in named:
            parsed = fastavro.parse_schema(each, named_schemas=types, expand=False)
            skips.of(parsed)
            checks.of(parsed)
        self._parsed = fastavro.parse_schema(document, named_schemas=types, expand=False)
        self._skip = skips.of(self._parsed)
        self._fits = checks.of(self._parsed)
        self.layout = f"Avro {hashlib.sha256(orjson.dumps(_shape(self._parsed, {}), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]}"

    def write(self, out: io.BytesIO, value: Any) -> None:
        """Raises one of ENCODE_ERRORS; fields that the schema does not have are refused, absent ones take their default."""
        if self._fits(value):
            _write(out, self._parsed, value, strict_allow_default=True)
            return
        refuse_misfit(value, self._parsed)
        begin = out.tell()
        _write(out, self._parsed, value, strict_allow_default=True)
        out.seek(begin)
        refuse_infinite(value, _read(out, self._parsed, None))

    def read(self, data: bytes, at: int = 0, wanted: AvroSchema | None = None) -> Any:
        """The value of this schema that begins there and ends where the data ends, as a value of the schema `wanted`, if one is. Raises one of DECODE_ERRORS."""
        if len(data) > MAX_AVRO_BYTES:
            raise ValueError(f"{len(data)} bytes, more than {MAX_AVRO_BYTES}")
        end = self._skip(Walk(data), at)
        if end != len(data):
            raise ValueError(f"{len(data) - end} bytes follow the value")
        source = io.BytesIO(data)
        if at:
            source.seek(at)
        if wanted is None:
            return _read(source, self._parsed, None)
        try:
            return _read(source, self._parsed, wanted._parsed)
        except SchemaResolutionError as error:
            written, read = _record_name(self._parsed), _record_name(wanted._parsed)
            if written and read and "is not" in str(error) and written.rpartition(".")[2] != read.rpartition(".")[2]:
                raise ValueError(f"what was written is a record {written}, what is to be read a record {read}: name it so, or add `aliases`") from None
            raise


class AvroSerde:
    """Values of one Avro schema, written and read with fastavro."""

    key_order = "bytes"
    has_prefixes = False

    def __init__(self, name: str, schema: AvroSchema) -> None:
        self.name = name
        self._schema = schema
        self.layout = schema.layout

    def encode(self, value: Any) -> bytes:
        """The value's Avro bytes; fields that the schema does not have are refused, absent ones take their default."""
        out = io.BytesIO()
        try:
            self._schema.write(out, value)
        except ENCODE_ERRORS as error:
            raise unwritable(self.name, value, error) from None
        return out.getvalue()

    def decode(self, data: bytes) -> Any:
        """The value."""
        try:
            return self._schema.read(data)
        except DECODE_ERRORS as error:
            raise SerdeError(f"serde {self.name} cannot read {shown(data)}: {why(error)}.", "Name the schema that wrote it.") from None


def unwritable(name: str, value: Any, error: Exception) -> SerdeError:
    return SerdeError(
        f"serde {name} cannot write {shown(value)}: {type(error).__name__}: {shown(str(error), 200)}.", "Give it a value that fits the schema."
    )


def _record_name(parsed: Any) -> str:
    """Of the record that a schema describes; "" if it describes none."""
    return str(parsed["name"]) if isinstance(parsed, dict) and parsed.get("type") == "record" else ""


def why(error: Exception) -> str:
    """What was wrong with the bytes."""
    return shown(str(error), 200) if str(error) else type(error).__name__


def schema_document(name: str, path: Path) -> Any:
    """What is in the schema file of the serde `name`.

    Raises:
        ConfigurationError: it cannot be read or is not JSON.
    """
    try:
        if path.stat().st_size > MAX_SCHEMA_BYTES:
            raise ConfigurationError(f"serde {name}: {path} is larger than {MAX_SCHEMA_BYTES} bytes.", _REMEDY)
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"serde {name}: {path} cannot be read: {error.strerror}.", _REMEDY) from None
    except ValueError as error:
        raise ConfigurationError(f"serde {name}: {path} is not an Avro schema: {error}.", _REMEDY) from None


def schema_in(name: str, path: Path) -> AvroSchema:
    """The schema in the file of the serde `name`.

    Raises:
        ConfigurationError: the file cannot be read or is not an Avro schema.
    """
    try:
        return AvroSchema(schema_document(name, path))
    except NO_SCHEMA as error:
        raise ConfigurationError(f"serde {name}: {path} is not an Avro schema: {error}.", _REMEDY) from None


def avro_serde(name: str, path: Path) -> AvroSerde:
    """The serde of the schema in the file at `path`. Raises as `schema_in`."""
    return AvroSerde(name, schema_in(name, path))
