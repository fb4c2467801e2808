"""Keys that are objects of a class. State is found by the bytes of its key, so equal keys must be equal bytes, in every process and every run.

Which classes can be keys of state: config.key_class. What is written of a key is read back
first: a field that the annotations do not allow is refused, and one that was left out of a record on the wire is written with its default.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from samzapy.api.errors import SerdeError
from samzapy.config.key_class import key_fields, why_no_key
from samzapy.serde.record import RecordSerde, why_not


class RecordKeySerde(RecordSerde):
    """As `RecordSerde`, with one form in bytes for equal keys.

    Attributes:
        fields: the names and types of the class's fields, in order, as text: another text means that keys are other bytes.
    """

    def __init__(self, name: str, cls: Any) -> None:
        super().__init__(name, cls)
        self.fields = key_fields(cls)
        self.why_no_key = why_no_key(cls)

    def encode(self, value: Any) -> bytes:
        data = super().encode(value)
        try:
            found = _whole(self._loads(data))
            return self._dumps({field: found[field] for field in self.cls.__annotations__ if field in found} if self._type is dict else found)
        except (ValueError, RecursionError) as error:
            raise SerdeError(f"serde {self.name} cannot write the key {value!r:.100}: {why_not(error)}.", "Give its fields values of their types.") from None


def as_key(serde: Any) -> Any:
    """The serde for keys of what is read or written with this one."""
    return RecordKeySerde(serde.name, serde.cls) if type(serde) is RecordSerde else serde


def _whole(value: Any) -> Any:
    """A value that was read, with its fields in the order of its class: msgspec writes those of a dataclass in the order in which the record had them."""
    if dataclasses.is_dataclass(value):
        found = {field.name: _whole(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if hasattr(value, "__dict__"):
            object.__setattr__(value, "__dict__", found)
    elif isinstance(value, tuple):
        for each in value:
            _whole(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _whole(getattr(value, name))
    return value
