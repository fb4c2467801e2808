"""Avro schemas whose values are keys of state. State is found by the bytes of its key, so equal keys must be equal bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

AVRO = "avro:"
REMEDY = "Use a schema without maps for keys: instead of a map, a record, or an array of records in a fixed order."
_MANY_FORMS = {"map": "a map, which is written in the order in which its entries were put into it"}


def why_no_key(schema: Any, at: str = "") -> str:
    """Why values of an Avro schema, as JSON's objects, cannot be keys of state; "" if they can, or if it is no schema. `at`: the field that it is of."""
    if isinstance(schema, str):
        found = _MANY_FORMS.get(schema, "")
        return found and f"{f'its field {at!r}' if at else 'its schema'} is {found}"
    if isinstance(schema, list):
        return next((why for each in schema if (why := why_no_key(each, at))), "")
    if not isinstance(schema, dict):
        return ""
    fields = schema.get("fields")
    if isinstance(fields, list):
        named = ((each.get("type"), f"{at}.{each.get('name')}".lstrip(".")) for each in fields if isinstance(each, dict))
        return next((why for kind, name in named if (why := why_no_key(kind, name))), "")
    return why_no_key(schema["items"], at) if schema.get("type") == "array" and "items" in schema else why_no_key(schema.get("type"), at)


def why_no_key_file(name: str, folders: Sequence[Path]) -> str:
    """As `why_no_key`, of the schema file of the serde `avro:FILE`, which is looked for in the folders; "" for another serde, and for a file that cannot be
    read: that is told elsewhere."""
    file = name.removeprefix(AVRO) if name.startswith(AVRO) else ""
    try:
        place = next((folder / file for folder in folders if file and (folder / file).is_file()), None)
        return "" if place is None else why_no_key(json.loads(place.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return ""
