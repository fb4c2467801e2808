"""The serdes `registry` and `registry:<schema file>`: values as Confluent's serializers write them, their schemas in a Schema Registry.

A value is a byte 0, the number of the schema that wrote it in four bytes, and the value in that schema. So each value is read by the schema that
wrote it: `registry` gives it as that, `registry:FILE` as a value of the schema in the file, whose fields may be more, fewer or wider (Avro's rules).
A schema is asked for once for each process, not for each record.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.ports import MAX_SCHEMA_NUMBER, RegisteredSchema, SchemaRegistry
from samzapy.serde.avro import DECODE_ERRORS, ENCODE_ERRORS, AvroSchema, schema_document, unwritable, why
from samzapy.serde.basic import shown

MAGIC, HEADER_BYTES = 0, 5
MAX_FORMS = 1000
UNKNOWN_S = 5.0  # how long a schema that the registry does not have, or that cannot be used, is not asked for again
JSON = "JSON"


class Form(Protocol):
    """What reads and writes the values of one schema, without the header."""

    kind: str

    def write(self, out: io.BytesIO, value: Any) -> None: ...

    def read(self, data: bytes, at: int, wanted: Any) -> Any: ...


class Schemas:
    """The registry's schemas as this process has read them; for all serdes of a job."""

    def __init__(self, registry: SchemaRegistry, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.registry = registry
        self._monotonic = monotonic
        self._forms: dict[int, Form] = {}
        self._unknown: dict[int, tuple[float, SerdeError | None]] = {}  # until when, and why it cannot be used

    def form(self, number: int) -> Form | None:
        """What reads values of that schema; None: the registry has none of that number.

        Raises:
            SerdeError: it cannot be used. RegistryUnreachable, NotAuthenticated: the registry was not to be asked.
        """
        form = self._forms.get(number)
        return form if form is not None else self._fetched(number)

    def _fetched(self, number: int) -> Form | None:
        now = self._monotonic()
        if not 0 < number <= MAX_SCHEMA_NUMBER:
            return None
        until, why_not = self._unknown.pop(number, (0.0, None))
        form = None
        if until <= now:
            until, found = now + UNKNOWN_S, self.registry.by_id(number)
            try:
                form, why_not = None if found is None else form_of(found), None
            except SerdeError as error:
                why_not = error
        if form is not None:
            _room_in(self._forms)
            self._forms[number] = form
            return form
        _room_in(self._unknown)
        self._unknown[number] = (until, why_not)
        if why_not is not None:
            raise SerdeError(why_not.message, why_not.remedy)  # a new one: `where` is set on what is raised
        return None


class RegistrySerde:
    """Values of one topic, or keys.

    Args:
        name: as the job file has it.
        schemas: the registry's.
        subject: under which the registry has the schema that writes.
        document: the schema in the file; None: values are read as they were written, and written by the subject's newest schema.
    """

    key_order = "bytes"
    has_prefixes = False

    def __init__(self, name: str, schemas: Schemas, subject: str, kind: str = "", document: Any = None) -> None:
        self.name = name
        self._schemas = schemas
        self._subject = subject
        self._wanted = None if document is None else _form(kind, document)
        self._text = "" if document is None else orjson.dumps(document).decode()
        self._header = b""
        self._writes: Form | None = None

    def decode(self, data: bytes) -> Any:
        """The value."""
        if len(data) < HEADER_BYTES or data[0] != MAGIC:
            raise self._unreadable(data, _without_header(data), "Name the serde that wrote it: without the registry, avro:<schema file> or json for example.")
        number = int.from_bytes(data[1:HEADER_BYTES], "big")
        form = self._schemas.form(number)
        if form is None:
            raise self._unreadable(data, f"the Schema Registry has no schema {number}", "Check that `schema_registry.url` is the registry of whoever wrote it.")
        if self._wanted is not None and form.kind != self._wanted.kind:
            raise self._unreadable(data, f"schema {number} is of kind {form.kind}, not {self._wanted.kind}", "Name a schema file of that kind, or only `registry`.")
        try:
            return form.read(data, HEADER_BYTES, self._wanted)
        except DECODE_ERRORS as error:
            raise self._unreadable(
                data, f"by schema {number}: {why(error)}", "Name a schema that can read what that one wrote: fields that it adds need a default."
            ) from None

    def encode(self, value: Any) -> bytes:
        """The value's bytes, with the header."""
        if self._writes is None:
            self.ready()
        out = io.BytesIO()
        out.write(self._header)
        try:
            self._writes.write(out, value)  # type: ignore[union-attr]  # `ready` sets it
        except ENCODE_ERRORS as error:
            raise unwritable(self.name, value, error) from None
        return out.getvalue()

    def ready(self, register: bool = False) -> None:
        """Find the schema that writes in the registry; `register`: make it a version of its subject, if it is not yet.

        Raises:
            ConfigurationError: it is not there, or is refused. RegistryUnreachable, NotAuthenticated.
        """
        if not self._subject:
            raise ConfigurationError(
                f"serde {self.name}: the values of a window have no topic of their own, and so no subject.",
                "Convert them to a class of your own before the window: `.map_values(…)`.",
            )
        registry = self._schemas.registry
        if self._wanted is None:
            newest = registry.newest(self._subject)
            if newest is None:
                raise ConfigurationError(
                    f"serde {self.name}: the Schema Registry has no subject {self._subject}, so there is no schema to write with.",
                    "Name the schema's file: `registry:schemas/value.avsc`.",
                )
            self._begin_with(newest.id, form_of(newest))
            return
        kind = self._wanted.kind
        number = registry.id_of(self._subject, kind, self._text)
        if number is None:
            if not register:
                raise self._unregistered()
            number = registry.register(self._subject, kind, self._text)
        self._begin_with(number, self._wanted)

    def refuse_unfit(self, may_register: bool) -> None:
        """As `ready`, and registers nothing: `may_register` says whether a run would."""
        if self._wanted is None:
            self.ready()
        elif self._schemas.registry.id_of(self._subject, self._wanted.kind, self._text) is None:
            if not may_register:
                raise self._unregistered()
            if not self._schemas.registry.is_compatible(self._subject, self._wanted.kind, self._text):
                raise ConfigurationError(
                    f"serde {self.name}: the schema in the file is not compatible with the newest version of subject {self._subject}.",
                    "Change the schema, or change the subject's compatibility rule in the registry.",
                )

    def _unregistered(self) -> ConfigurationError:
        return ConfigurationError(
            f"serde {self.name}: the schema in the file is not registered: no version of subject {self._subject} is the same.",
            "Register it, or let samzapy do so where it writes: `schema_registry: {register: true}`.",
        )

    def _begin_with(self, number: int, form: Form) -> None:
        self._header = bytes([MAGIC]) + number.to_bytes(HEADER_BYTES - 1, "big")
        self._writes = form

    def _unreadable(self, data: bytes, what: str, remedy: str) -> SerdeError:
        return SerdeError(f"serde {self.name} cannot read {shown(data)}: {what}.", remedy)


def registry_serde(name: str, file: Path | None, schemas: Schemas, subject_of: Callable[[str], str]) -> RegistrySerde:
    """The serde of that name. `file`: its schema; `subject_of`: the subject, given the name of the record that the schema is of.

    Raises:
        ConfigurationError: the file cannot be read, or is no schema.
    """
    if file is None:
        return RegistrySerde(name, schemas, subject_of(""))
    kind = JSON if file.suffix == ".json" else AvroSchema.kind
    document = schema_document(name, file)
    try:
        return RegistrySerde(name, schemas, subject_of(record_name(document)), kind, document)
    except Exception as error:  # of a schema that is none there are many kinds
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"serde {name}: {file} is not a schema: {error}.", "Name a file with an Avro schema (.avsc) or a JSON Schema (.json).") from None


def record_name(document: Any) -> str:
    """What a schema calls its values: an Avro type's full name, a JSON Schema's title; "" if it has none."""
    if not isinstance(document, dict):
        return ""
    name, space = str(document.get("name") or document.get("title") or ""), document.get("namespace")
    return f"{space}.{name}" if space and name and "." not in name else name


def form_of(schema: RegisteredSchema) -> Form:
    """What reads and writes a registered schema's values.

    Raises:
        SerdeError: it is of a kind that is not read here, is no schema, or refers to one that is missing.
    """
    if schema.missing:
        raise SerdeError(
            f"schema {schema.id} refers to {schema.missing}, which the Schema Registry does not have.",
            "Register that schema there, or bring the deleted version back.",
        )
    if schema.kind not in (AvroSchema.kind, JSON):
        raise SerdeError(f"schema {schema.id} is of kind {schema.kind}: the serde registry reads Avro and JSON.", "Name a serde of your own, module:Class.")
    try:
        return _form(schema.kind, orjson.loads(schema.text), [orjson.loads(text) for text in schema.named], schema.names)
    except Exception as error:  # whatever a schema of somebody else's is
        if isinstance(error, SerdeError | ConfigurationError):
            raise
        raise SerdeError(f"schema {schema.id} of the Schema Registry cannot be used: {shown(str(error), 200)}.", "See the schema in the registry.") from None


def _form(kind: str, document: Any, named: Sequence[Any] = (), names: Sequence[str] = ()) -> Form:
    if kind == AvroSchema.kind:
        return AvroSchema(document, named)
    from samzapy.serde.json_schema import JsonSchema

    return JsonSchema(document, dict(zip(names, named, strict=False)))


def _without_header(data: bytes) -> str:
    if len(data) < HEADER_BYTES:
        return f"it has {len(data)} bytes, and the header alone has {HEADER_BYTES}"
    return f"its first byte is {data[0]}, and what the registry's serializers write begins with {MAGIC}"


def _room_in(kept: dict[int, Any]) -> None:
    """Make room for one more: the oldest goes."""
    if len(kept) >= MAX_FORMS:
        del kept[next(iter(kept))]
