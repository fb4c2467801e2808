"""The interface of serdes. A user's own serde is a class with these two methods, named `module:Class` in the job file."""

from __future__ import annotations

from typing import Any, Protocol

from typing_extensions import is_typeddict  # of either module's; Python's own knows only its own


class Serde(Protocol):
    """Turns values into bytes and back. `encode` and `decode` are never called with None, which stands for an absent key or a tombstone."""

    def encode(self, value: Any) -> bytes:
        """The value as bytes, for Kafka and for stores.

        Raises:
            SerdeError: `value` is not of this serde's type.
        """

    def decode(self, data: bytes) -> Any:
        """The value of these bytes. `data` may come from anybody: it must be checked, never executed.

        Raises:
            SerdeError: `data` is not in this serde's form.
        """


def holds_records(cls: type) -> bool:
    """Whether `record:module:Class` may name a class: it declares its fields, as a dataclass, msgspec.Struct, NamedTuple, TypedDict or
    pydantic model does."""
    marks = ("__dataclass_fields__", "__struct_fields__", "_field_defaults", "model_validate_json")
    return is_typeddict(cls) or any(hasattr(cls, mark) for mark in marks)
