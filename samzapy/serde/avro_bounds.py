"""Whether a schema has values that could be written and not be read: beyond what the walk over the bytes takes (avro_walk). Most schemas have none, and
what is written by those need not be walked over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.serde.avro_walk import MAX_DECIMAL_BYTES, MAX_DEPTH

SAFE_DIGITS = 9_800  # of a decimal, which fit into MAX_DECIMAL_BYTES


class Bounds:
    """Looks through one schema. `types`: its named types, as fastavro parsed them."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types
        self._known: dict[str, tuple[int, bool]] = {}
        self._is_beyond = False

    def can_be_beyond(self, schema: Any) -> bool:
        """Whether its values may nest too deep (it contains itself), have too many items without bytes, or decimals that are too long."""
        depth, _ = self._of(schema)
        return self._is_beyond or depth > MAX_DEPTH

    def _of(self, schema: Any) -> tuple[int, bool]:
        """How deep its values nest, and whether they may take no bytes."""
        if isinstance(schema, list):
            return max((self._of(branch)[0] for branch in schema), default=0), False
        if isinstance(schema, str):
            return self._named(self._types[schema]) if schema in self._types else (0, schema == "null")
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self._of(kind)
        if kind in ("array", "map"):
            depth, is_empty = self._of(schema["items" if kind == "array" else "values"])
            self._is_beyond |= is_empty and kind == "array"
            return depth + 1, False
        if schema.get("logicalType") == "decimal":
            self._is_beyond |= int(schema.get("precision", 0)) > SAFE_DIGITS or int(schema.get("size", 0)) > MAX_DECIMAL_BYTES
        return self._named(schema) if "fields" in schema else (0, kind == "null" or schema.get("size") == 0)

    def _named(self, schema: Any) -> tuple[int, bool]:
        if "fields" not in schema:
            return self._of(schema)
        name = schema["name"]
        if name not in self._known:
            self._known[name] = (MAX_DEPTH + 1, False)  # met again inside itself: it has no depth of its own
            inside = [self._of(field["type"]) for field in schema["fields"]]
            self._known[name] = max((depth for depth, _ in inside), default=0) + 1, all(is_empty for _, is_empty in inside)
        return self._known[name]
