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
from samzapy.config.key_schema import why_no_key
from samzapy.serde.avro_bounds import Bounds
from samzapy.serde.avro_defaults import copied, defined, fields_of, put_defaults
from samzapy.serde.avro_fit import Checks, refuse_changed, refuse_misfit
from samzapy.serde.avro_pair import Pair
from samzapy.serde.avro_walk import Skip, Skips, Walk
from samzapy.serde.basic import shown

_write, _read = fastavro.schemaless_writer, fastavro.schemaless_reader  # bound here: a task may put others in their place
MAX_SCHEMA_BYTES = 1 << 20
MAX_AVRO_BYTES = 16 << 20

ENCODE_ERRORS = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, EOFError, RecursionError)
DECODE_ERRORS = (*ENCODE_ERRORS, SchemaResolutionError)
NO_SCHEMA = (SchemaParseException, ValueError, TypeError, LookupError, RecursionError, AttributeError)
Reading = tuple[Skip, Any, Any, bool]  # what walks the bytes; by which schema they were written; as which they are read; whether lists are filled in
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
        why_no_key: why values cannot be keys of state; "" if they can.

    Args:
        document: the schema as JSON's objects.
        named: schemas that it refers to, each before those that need it.

    Raises:
        One of NO_SCHEMA: it is none.
    """

    kind = "AVRO"

    def __init__(self, document: Any, named: Sequence[Any] = ()) -> None:
        types = dict[str, Any]()
        for each in named:
            fastavro.parse_schema(each, named_schemas=types, expand=False)
        parsed = fastavro.parse_schema(document, named_schemas=types, expand=False)
        self.layout = f"Avro {hashlib.sha256(orjson.dumps(_shape(parsed, {}), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]}"
        self.why_no_key = why_no_key(document)
        self._types = types
        self._mutable_defaults = put_defaults(parsed, types)
        self._fields = fields_of(parsed, types)
        self._parsed = _marked(parsed, types)
        self._skip = Skips(types).of(parsed)
        self._fits = Checks(types).of(parsed)
        self._is_walked = Bounds(types).can_be_beyond(parsed)
        self._by: dict[AvroSchema, Reading] = {}

    def write(self, out: io.BytesIO, value: Any) -> None:
        """Write a value at the end of `out`; fields that the schema does not have are refused, absent ones take their default.

        Raises:
            One of ENCODE_ERRORS: the value is none of the schema's, would be read as another one, or could not be read.
        """
        begin = out.tell()
        if self._fits(value):
            _write(out, self._parsed, value, strict_allow_default=True)
            if self._is_walked or out.tell() > MAX_AVRO_BYTES:
                self._refuse_unreadable(out, begin)
            return
        refuse_misfit(value, self._parsed)
        _write(out, self._parsed, value, strict_allow_default=True)
        self._refuse_unreadable(out, begin)
        end = out.tell()
        out.seek(begin)
        refuse_changed(value, _read(out, self._parsed, None))
        out.seek(end)

    def _refuse_unreadable(self, out: io.BytesIO, begin: int) -> None:
        """Raises ValueError: `read` would not take what was written from `begin` on."""
        data = out.getvalue()
        try:
            _refuse_large(data)
            self._skip(Walk(data), begin)
        except ValueError as error:
            raise ValueError(f"it could not be read back: {error}") from None

    def read(self, data: bytes, at: int = 0, wanted: AvroSchema | None = None) -> Any:
        """The value of this schema that begins there and ends where the data ends, as a value of the schema `wanted`, if one is. Raises one of DECODE_ERRORS."""
        if len(data) > MAX_AVRO_BYTES:
            _refuse_large(data)
        skip, written, by, is_filled = (self._skip, self._parsed, None, False) if wanted is None else self._by.get(wanted) or self._reading(wanted)
        end = skip(Walk(data), at)
        if end != len(data):
            raise ValueError(f"{len(data) - end} bytes follow the value")
        source = io.BytesIO(data)
        if at:
            source.seek(at)
        try:
            found = _read(source, written, by)
        except SchemaResolutionError as error:
            had, has = _record_name(written), _record_name(by)
            if had and has and "is not" in str(error) and had.rpartition(".")[2] != has.rpartition(".")[2]:
                raise ValueError(f"the writer's schema has a record {had}, the file's has {has}: use the writer's name, or add it to `aliases`") from None
            raise
        return copied(found) if is_filled else found

    def _reading(self, wanted: AvroSchema) -> Reading:
        """How values of this schema are read as values of that one; worked out once. Raises ValueError: a logical type cannot become another one."""
        if self._parsed == wanted._parsed:
            found: Reading = self._skip, self._parsed, None, False
        else:
            pair = Pair(self._types, wanted._types)
            written = pair.of(self._parsed, wanted._parsed)
            is_filled = not wanted._mutable_defaults <= self._fields
            if pair.is_changed:
                found = Skips(pair.types).of(written), _marked(written, pair.types), wanted._parsed, is_filled
            else:
                found = self._skip, self._parsed, wanted._parsed, is_filled
        self._by[wanted] = found
        return found


def _marked(parsed: Any, types: dict[str, Any]) -> Any:
    """A schema as fastavro takes it without parsing it again for each value, and with the types that it names: at the top these are their definitions."""
    if isinstance(parsed, list):
        return [_marked(branch, types) for branch in parsed]
    found = defined(parsed, types)
    return {**found, "__fastavro_parsed": True, "__named_schemas": types} if isinstance(found, dict) else found


def _refuse_large(data: bytes) -> None:
    if len(data) > MAX_AVRO_BYTES:
        raise ValueError(f"{len(data)} bytes, more than {MAX_AVRO_BYTES}")


class AvroSerde:
    """Values of one Avro schema, written and read with fastavro.

    Attributes:
        why_no_key: why its values cannot be keys of state; "" if they can.
    """

    key_order = "bytes"
    has_prefixes = False

    def __init__(self, name: str, schema: AvroSchema) -> None:
        self.name = name
        self._schema = schema
        self.layout, self.why_no_key = schema.layout, schema.why_no_key

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
