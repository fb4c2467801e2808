"""What was written by one Avro schema, read as values of another one. fastavro resolves the two, but looks only at the writer's logical types: a long that
is a timestamp in the reader's schema would stay a number. So what was written is read with the reader's logical types, where the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.serde.avro_defaults import defined, logical_of

NAMED = ("record", "error", "enum", "fixed")
_WIDER = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"), ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip
_SAME_VALUES = {  # of logical types that are read as the same Python values
    "long-timestamp-millis": "instant", "long-timestamp-micros": "instant", "int-time-millis": "time", "long-time-micros": "time",
    "long-local-timestamp-millis": "local time", "long-local-timestamp-micros": "local time", "bytes-decimal": "decimal", "fixed-decimal": "decimal",
}  # fmt: skip
_LOGICAL = ("logicalType", "precision", "scale")


class Pair:
    """The writer's schema with the logical types of the reader's.

    Attributes:
        types: the named types of the result.
        is_changed: whether the result is another schema than the writer's.

    Args:
        written, wanted: the named types of both, as fastavro parsed them.
    """

    def __init__(self, written: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        self._written, self._wanted = written, wanted
        self.types = dict(written)
        self.is_changed = False
        self._met: dict[str, str] = {}  # by the name of a type that was written: that of the type that reads it
        self._twice: dict[str, str] = {}  # by that name: the two types that read it

    def of(self, written: Any, wanted: Any) -> Any:
        """The writer's schema as it is to be read.

        Raises:
            ValueError: a logical type cannot become the other one; names both.
        """
        found = self._of(written, wanted)
        for name, readers in self._twice.items():
            if self.types[name] != self._written[name]:
                raise ValueError(
                    f"two types of the file, {readers}, read one type of the writer's schema, whose logical types differ from theirs: let only one read it"
                )
        return found

    def _of(self, written: Any, wanted: Any) -> Any:
        if isinstance(written, list):
            return [self._of(branch, wanted) for branch in written]
        wanted = defined(wanted, self._wanted)
        if isinstance(wanted, list):
            branches = [each for each in wanted if self._meets(written, each)]
            branches.sort(key=lambda each: self._distance(written, each))  # the nearest one: a decimal is none of the `string` before it
            return self._of(written, branches[0]) if branches else written
        if not self._meets(written, wanted):
            return written
        if isinstance(written, str) and written in self._written:
            self._named(self._written[written], wanted)
            return written
        kind = _kind(written)
        if kind in NAMED:
            return self._named(written, wanted)
        for inner in ("items", "values"):
            if inner in written and isinstance(written, dict):
                return {**written, inner: self._of(written[inner], wanted[inner])}
        return self._plain(written, wanted)

    def _distance(self, written: Any, wanted: Any) -> tuple[bool, bool]:
        one, other = defined(written, self._written), defined(wanted, self._wanted)
        return _kind(one) != _kind(other), logical_of(one) != logical_of(other)

    def _named(self, written: Any, wanted: Any) -> Any:
        name = written["name"]
        if name in self._met:
            if self._met[name] != wanted["name"]:
                self._twice[name] = f"{self._met[name]} and {wanted['name']}"
            return self.types[name]
        self._met[name] = wanted["name"]
        if "fields" not in written or "fields" not in wanted:
            self.types[name] = self._plain(written, wanted) if written["type"] == "fixed" else written
            return self.types[name]
        found = self.types[name] = dict(written)
        fields = {alias: field for field in wanted["fields"] for alias in field.get("aliases", ())} | {field["name"]: field for field in wanted["fields"]}
        found["fields"] = [
            {**field, "type": self._of(field["type"], fields[field["name"]]["type"])} if field["name"] in fields else field for field in written["fields"]
        ]
        return found

    def _plain(self, written: Any, wanted: Any) -> Any:
        had, has = logical_of(written), logical_of(wanted)
        if had == has or (had and _SAME_VALUES.get(had) == _SAME_VALUES.get(has, "")):
            return written
        if _unlike(written, wanted):
            return written
        if had and has:
            raise ValueError(
                f"the writer's schema says {had.partition('-')[2]}, the schema in the file {has.partition('-')[2]}: let the file say {had.partition('-')[2]}"
            )
        self.is_changed = True
        if _kind(written) == "fixed":
            return {key: each for key, each in written.items() if key not in _LOGICAL} | {key: wanted[key] for key in _LOGICAL if key in wanted and has}
        return {key: wanted[key] for key in ("type", *_LOGICAL) if key in wanted} if has else written["type"]

    def _meets(self, written: Any, wanted: Any) -> bool:
        """Whether fastavro takes the second to read the first."""
        written, wanted = defined(written, self._written), defined(wanted, self._wanted)
        if isinstance(written, list) or isinstance(wanted, list):
            return True
        one, other = _kind(written), _kind(wanted)
        if one in NAMED and other in NAMED:
            name, aliases = written["name"], wanted.get("aliases", ())
            short = name.rpartition(".")[2]
            is_named_so = short == wanted["name"].rpartition(".")[2] or name in aliases or short in aliases
            return is_named_so and written.get("size") == wanted.get("size")
        if one == other and one in ("array", "map"):
            inner = "items" if one == "array" else "values"
            return self._meets(written[inner], wanted[inner])
        return one == other or (one, other) in _WIDER


def _unlike(written: Any, wanted: Any) -> bool:
    """Whether a text is read as bytes, or one of them has a logical type that fastavro does not know: then what was written stays what it is."""
    unknown = any(isinstance(each, dict) and each.get("logicalType") and not logical_of(each) for each in (written, wanted))
    return unknown or {_kind(written), _kind(wanted)} == {"string", "bytes"}


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)
