"""What a serde is. A user's own serde is a class with these two methods, named `module:Class` in the job file."""

from __future__ import annotations

from typing import Any, Protocol


class Serde(Protocol):
    """Turns values into bytes and back. `encode` and `decode` are never called with None: that is the absent key or the tombstone."""

    def encode(self, value: Any) -> bytes:
        """Bytes for Kafka and for stores.

        Raises:
            SerdeError: `value` is not of this serde's type.
        """

    def decode(self, data: bytes) -> Any:
        """The value; `data` is not trusted.

        Raises:
            SerdeError: `data` is not what this serde writes.
        """
