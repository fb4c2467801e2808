"""`record:module:Class`: a value is an object of that class, written as JSON and checked against the class's annotations when it is read.

The class is a dataclass, a `msgspec.Struct` (the quickest), a NamedTuple, a TypedDict, or a pydantic model. A record that does not fit the class
is refused when it is read, and the error names the field. A class may have `@classmethod def upgrade(cls, old: dict) -> dict`: it is given the
fields of a record that does not fit, as an earlier version of the class wrote it, and gives those that the class has now. A record that fits
because its fields have defaults may be an old one too: samzapy.serde.old_records.

Keys that a TypedDict does not declare are written, and left out when they are read.

A value that could not be read back is not written. Most values are known to fit by the types of their fields; others are read back first
(samzapy.serde.record_fit).
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import is_typeddict

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.api.serde import holds_records
from samzapy.config import model_names
from samzapy.config.value_layout import layout_of
from samzapy.native import hot_path
from samzapy.serde.basic import MAX_JSON_BYTES, has_not_a_number, shown
from samzapy.serde.model_fit import changed_in
from samzapy.serde.old_records import of_old
from samzapy.serde.record_defaults import filling
from samzapy.serde.record_fit import QuickFields, equal, its_field, lost_in, quick_check, quick_fields

PREFIX = "record:"
UPGRADE_REMEDY = "If an earlier version of the class wrote it, let `upgrade` return the fields that the class has now; if not, the value itself is wrong."
UNREADABLE = (ValueError, RecursionError, TypeError)  # TypeError: a list in a set
_NOTHING: Any = object()
REMEDY = "Name a dataclass, msgspec.Struct, NamedTuple, TypedDict or pydantic model: record:module:Class."


class RecordSerde:
    """Objects of `cls` as JSON. As keys: `record_keys`.

    Args:
        name: as the job file has it.
        cls: the class.

    Attributes:
        layout: what of the class is written by position or by number (config.value_layout); "": nothing.
        comes_back: whether samzapy reads what it writes with this serde: then it has to be what was written. Of an output it need not be.

    Raises:
        ConfigurationError: JSON cannot hold what the class's annotations say.
    """

    key_order = "bytes"
    has_prefixes = False

    def __init__(self, name: str, cls: Any) -> None:
        self.name = name
        self.cls = cls
        self.comes_back = True
        self.layout = layout_of(cls)
        self._type: type = dict if is_typeddict(cls) else cls
        self._dumps: Callable[[Any], bytes]
        self._loads: Callable[[bytes], Any]
        try:
            self._upgrade: Callable[[Any], Any] | None = getattr(cls, "upgrade", None)
            self._made: Callable[[Any], Any] = getattr(cls, "model_validate", None) or filling(lambda fields: msgspec.convert(fields, cls), cls)
            self._is_model = hasattr(cls, "model_validate_json")  # pydantic's
            if self._is_model:
                self._dumps = lambda value: value.model_dump_json(by_alias=True).encode()
                self._loads = cls.model_validate_json
            else:
                self._dumps, self._loads = msgspec.json.Encoder().encode, filling(msgspec.json.Decoder(cls).decode, cls)
            fields = quick_fields(cls)
            self._fits = quick_check(cls, fields)
        except (TypeError, NameError) as error:
            raise ConfigurationError(f"serde {name}: {error}.", REMEDY) from None
        if hot_path is not None and type(self) is RecordSerde:  # a subclass has functions of its own
            self._speed_up(fields)

    def _speed_up(self, fields: QuickFields | None) -> None:
        """The compiled functions call those of this class for all that is not the common case."""
        if fields is not None and not fields.is_dict:
            found = hot_path.Encode(self._dumps, self.encode, MAX_JSON_BYTES, False, self.cls, fields.names, fields.types)
            self.encode = found  # type: ignore[method-assign]
        if self._upgrade is None:
            self.decode = hot_path.Decode(self._loads, self.decode, MAX_JSON_BYTES)  # type: ignore[method-assign]

    def builtins(self, value: Any) -> Any:
        """What JSON has of an object of the class: dicts, lists, text and numbers. Raises as `encode`."""
        with suppress(AttributeError, LookupError):  # as in `encode`, which looks at it in full
            if self._fits(value):
                return msgspec.to_builtins(value)
        return msgspec.json.decode(self.encode(value))

    def encode(self, value: Any) -> bytes:
        try:
            fits = self._fits(value)
        except (AttributeError, LookupError):  # it lacks a field, which may have a default
            fits = False
        if not fits and not isinstance(value, self._type):
            raise SerdeError(
                f"serde {self.name} takes {self._type.__name__}, not {shown(value)} ({type(value).__name__}).", "Make such an object of it first."
            )
        try:
            data = self._dumps(value)
        except (TypeError, ValueError, OverflowError, RecursionError, AttributeError) as error:
            raise SerdeError(f"serde {self.name} cannot write {shown(value)}: {error}.", "See the field's type.") from None
        if data.find(b"null") >= 0 and has_not_a_number(value):
            raise SerdeError(
                f"serde {self.name} cannot write NaN or infinity: JSON has no such numbers.", "Use None, or leave the field out."
            )
        if len(data) > MAX_JSON_BYTES:
            raise SerdeError(f"serde {self.name}: {len(data)} bytes, more than the {MAX_JSON_BYTES} that it reads.", "Split the value.")
        if not fits:
            self._read_back(value, data)
        return data

    def _read_back(self, value: Any, data: bytes) -> None:
        """Refuse a value that cannot be read, or would come back without fields that it has. If only `upgrade` can read it, it has to come back equal."""
        try:
            read = self._loads(data)
            why = (changed_in(value, read) if self.comes_back else "") if self._is_model else lost_in(value, read, self._dumps, self.comes_back)
        except UNREADABLE as error:
            if self._upgrade is not None and self._is_upgraded(value, data):
                return
            why = why_not(error)
        if why:
            said = f"serde {self.name} cannot write this {type(value).__name__}, because it could not be read back: {why}.{its_field(value, why)}"
            raise SerdeError(said, "Give the field a value of its type, or let its annotation say what it may hold.")

    def _is_upgraded(self, value: Any, data: bytes) -> bool:
        try:
            return equal(self.decode(data), value)
        except SerdeError:
            return False

    def decode(self, data: bytes) -> Any:
        if len(data) > MAX_JSON_BYTES:
            raise SerdeError(f"serde {self.name} reads at most {MAX_JSON_BYTES} bytes; this record has {len(data)}.", "Split the value.")
        try:
            read = self._loads(data)
        except UNREADABLE as error:
            said, upgrade = f"serde {self.name} cannot read {shown(data)}: {why_not(error)}", self._upgrade
            fields = _NOTHING if upgrade is None else _fields(data)
            if upgrade is None or fields is _NOTHING:
                raise SerdeError(f"{said}.", "Use the serde that wrote it, or fix the class.") from None
            return upgraded(lambda: upgrade(fields), self._made, said)
        return read if self._upgrade is None else self._upgraded_if_old(data, read, self._upgrade)

    def _upgraded_if_old(self, data: bytes, read: Any, upgrade: Callable[[Any], Any]) -> Any:
        """What `upgrade` makes of a record that fits, if it takes fields that the class does not have."""
        old = of_old(_fields(data), read, _fields(self._dumps(read)), upgrade)
        return read if old is None else upgraded(old, self._made, f"serde {self.name} read {shown(data)}, which has the fields of an old version")

    def check_comes_back(self) -> None:
        """Whether the class reads the names that it writes.

        Raises:
            ConfigurationError: it does not, and its fields would come back as their defaults.
        """
        if why := model_names.other_names(self.cls):
            raise ConfigurationError(f"serde {self.name}: {why}; what it keeps could not be read back.", model_names.REMEDY)

    def of_json(self, data: bytes) -> Any:
        """An object of the class, of JSON that a person wrote. It has to fit the class as that is now: `upgrade` is not asked.

        Raises:
            SerdeError: it does not fit; names the field.
        """
        try:
            return self._loads(data)
        except UNREADABLE as error:
            raise SerdeError(f"{shown(data)} is no {self.cls.__name__} ({self.name}): {why_not(error)}.", "Write the fields of the class.") from None

    def plain(self, value: Any) -> Any:
        """What the JSON of an object of the class says: dicts, lists, text and numbers."""
        return json.loads(self._dumps(value))


def why_not(error: Exception) -> str:
    """What msgspec or pydantic found, on one line; both name the field."""
    found = error.errors(include_url=False) if hasattr(error, "errors") else []  # pydantic's own text has five lines a field
    places = ("".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in one["loc"]) for one in found)
    said = "; ".join(f"{one['msg']}{f' - at `${place}`' if place else ''}" for one, place in zip(found, places, strict=True))
    return said or " ".join(str(error).split()) or type(error).__name__


def _fields(data: bytes) -> Any:
    """What an older class wrote; _NOTHING: it is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return _NOTHING


def upgraded(upgrade: Callable[[], Any], make: Callable[[Any], Any], said: str) -> Any:
    """What a class's `upgrade` makes of fields that do not fit it any more. `make`: an object of the fields that it gives; `said`: why they do not fit.

    Raises:
        SerdeError: it failed, or what it gives does not fit either.
    """
    fields: Any = _NOTHING
    try:
        fields = upgrade()
        return make(fields)
    except Exception as error:  # what the user's method raises may be anything
        failed = "its `upgrade` failed: " if fields is _NOTHING else "what its `upgrade` gives does not fit either: "
        why = f"{type(error).__name__}: {error}" if fields is _NOTHING else why_not(error)
        raise SerdeError(f"{said}; and {failed}{why}.", UPGRADE_REMEDY) from error


def record_serde(name: str, folders: Sequence[Path]) -> RecordSerde:
    """The serde of the class that `record:module:Class` names; modules are looked for in `folders`, in this order.

    Raises:
        ConfigurationError: there is no such class, or it is not of a kind that holds records.
    """
    module_name, _, path = name.removeprefix(PREFIX).partition(":")
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:  # what a user's module raises at import may be anything
        raise ConfigurationError(f"serde {name}: {type(error).__name__}: {error}.", REMEDY) from error
    if not inspect.isclass(found) or not holds_records(found):
        raise ConfigurationError(f"serde {name}: {path} is not a class that records can have.", REMEDY)
    return RecordSerde(name, found)
