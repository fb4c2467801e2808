"""Keys of records that go through an internal topic: any but the one under which samzapy writes marks there."""

from __future__ import annotations

from typing import Any

from samzapy.api.errors import TaskError
from samzapy.api.serde import Serde
from samzapy.model.marks import MARKS_KEY


class UnreservedKeys:
    """Another serde, without that key."""

    def __init__(self, serde: Serde) -> None:
        self._encode = getattr(serde, "quick_encode", serde.encode)
        self._careful = serde.encode
        self.decode = serde.decode

    def quick_encode(self, key: Any) -> bytes:
        data: bytes = self._encode(key)
        if data == MARKS_KEY:
            raise _reserved()
        return data

    def encode(self, key: Any) -> bytes:
        data: bytes = self._careful(key)
        if data == MARKS_KEY:
            raise _reserved()
        return data


def _reserved() -> TaskError:
    return TaskError(f"the key {MARKS_KEY!r} is samzapy's own in internal topics.", "Drop such records earlier: .filter(…).")
