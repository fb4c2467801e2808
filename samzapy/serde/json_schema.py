"""One JSON Schema: JSON that it allows is written, and read."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urljoin

import jsonschema
import orjson
import referencing
import referencing.jsonschema

from samzapy.api.errors import SerdeError
from samzapy.serde.basic import MAX_JSON_BYTES, JsonSerde


def _unique_items(checker: Any, is_wanted: Any, items: Any, schema: Any) -> Iterator[Any]:
    """The keyword `uniqueItems`. The package compares each object with each: 50 KB took 42 s."""
    if is_wanted and checker.is_type(items, "array"):
        seen = {_form(item) for item in items}
        if len(seen) < len(items):
            yield jsonschema.ValidationError("an item is there twice, and items must be unique")


def _form(value: Any) -> Any:
    """What is the same for equal values of JSON, and can be in a set: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, dict):
        return dict, frozenset((key, _form(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return list, tuple(map(_form, value))
    return (bool, value) if isinstance(value, bool) else value


def _named_so(named: Mapping[str, Any], base: str) -> Iterator[tuple[str, Any]]:
    """By their names, and by what these are relative to where the schema that refers to them says that it is."""
    for name, each in named.items():
        yield from ((uri, each) for uri in {name, urljoin(base, name)})


def _resource(document: Any, dialect: Any) -> referencing.Resource[Any]:
    draft7 = referencing.jsonschema.DRAFT7
    which = document.get("$schema", "") if isinstance(document, dict) else ""
    specification = referencing.jsonschema.specification_with(which, default=draft7) if isinstance(which, str) and which else draft7
    return specification.create_resource(_without(document, dialect))


def _without(document: Any, dialect: Any) -> Any:
    """A schema without the name of its dialect, if it is this one: by it the package would look up its own checks again, with the slow `uniqueItems`."""
    if not isinstance(document, dict) or document.get("$schema") != dialect:
        return document
    return {key: each for key, each in document.items() if key != "$schema"}


class JsonSchema:
    """One schema, by the package `jsonschema`, which fetches nothing: what a schema refers to must be in it, or given.

    Args:
        document: the schema as JSON's objects.
        named: schemas that it refers to, by what its `$ref` calls each.

    Raises:
        jsonschema.SchemaError: it is none.
    """

    kind = "JSON"

    def __init__(self, document: Any, named: Mapping[str, Any] = MappingProxyType({})) -> None:
        checker = jsonschema.validators.validator_for(document, default=jsonschema.Draft7Validator)
        checker.check_schema(document)
        base = str(document.get("$id", "")) if isinstance(document, dict) else ""
        quick = jsonschema.validators.extend(checker, {"uniqueItems": _unique_items})
        dialect = document.get("$schema") if isinstance(document, dict) else None
        own = _without(document, dialect)
        resources = ((name, _resource(each, dialect)) for name, each in _named_so(named, base))
        self._checker = quick(own, registry=referencing.Registry().with_resources(resources))

    def check(self, value: Any) -> None:
        """Raises ValueError: the schema does not allow it; the message names the field."""
        try:
            wrong = jsonschema.exceptions.best_match(self._checker.iter_errors(value))
        except referencing.exceptions.Unresolvable as error:
            raise ValueError(f"the schema refers to {error.ref}, which is not in it, and not among the references that it was registered with") from None
        if wrong is not None:
            raise ValueError(f"{wrong.json_path}: {wrong.message}")

    def write(self, out: io.BytesIO, value: Any) -> None:
        self.check(value)
        try:
            out.write(JsonSerde.encode(value))
        except SerdeError as error:
            raise ValueError(error.message) from None

    def read(self, data: bytes, at: int = 0, wanted: JsonSchema | None = None) -> Any:
        """The value, if the schema `wanted` allows it; without one whatever it is."""
        if len(data) > MAX_JSON_BYTES:
            raise ValueError(f"{len(data)} bytes, more than {MAX_JSON_BYTES}")
        value = orjson.loads(data[at:])
        if wanted is not None:
            wanted.check(value)
        return value
