"""Kinds: the types of keys and values in a program, and the serde that each of them has in topics and stores."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

import msgspec

from samzapy.api.errors import SerdeError
from samzapy.api.serde import holds_records
from samzapy.config.fields import CLASS, SERDES
from samzapy.config.key_class import key_fields, why_no_key
from samzapy.config.model_names import other_names
from samzapy.config.registered import is_registered
from samzapy.config.value_layout import layout_of
from samzapy.serde.basic import JsonSerde, shown
from samzapy.serde.model_fit import changed_in
from samzapy.serde.old_records import of_old
from samzapy.serde.record import RecordSerde, upgraded, why_not
from samzapy.serde.record_defaults import filling
from samzapy.streams.places import refused

JSON, RECORD = "json", "record:"
FIRST_BYTES: dict[type | None, bytes] = {dict: b"{", list: b"[", float: b"-0123456789", bool: b"tf"}  # of the JSON of these
PLAIN: dict[type, str] = {str: "string", int: "integer", bytes: "bytes", dict: JSON, list: JSON, float: JSON, bool: JSON}
NONE = type(None)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a stream's keys or values are.

    Attributes:
        serde: the serde's name, as in the job file.
        cls: the Python type; None if the program named only a serde.
    """

    serde: str
    cls: type | None = None

    def __str__(self) -> str:
        return self.cls.__name__ if self.cls is not None else self.serde

    @property
    def is_checked(self) -> bool:
        """Whether JSON that was read must still be looked at: the serde takes any JSON."""
        return self.serde == JSON and self.cls is not None

    @property
    def accepted(self) -> tuple[type, ...]:
        """What a value may be, if `is_checked`."""
        return (float, int) if self.cls is float else (self.cls,) if self.cls is not None else ()

    @property
    def is_other(self) -> tuple[str, Any]:
        """How generated code sees that a type is not accepted: the comparison, and with what."""
        accepted = self.accepted
        return ("is not", accepted[0]) if len(accepted) == 1 else ("not in", accepted)

    @property
    def is_checked_when_written(self) -> bool:
        """Whether the serde would write any value, also one that is not of this kind."""
        return self.is_checked and self.cls in FIRST_BYTES

    @property
    def is_record(self) -> bool:
        return self.serde.startswith(RECORD)

    @property
    def why_no_key(self) -> str:
        """Why state cannot have keys of this kind; "" if it can: equal keys must be equal bytes."""
        if self.cls is None or self.cls in (str, int, bytes):
            if is_registered(self.serde):
                return "the bytes of a key of the Schema Registry change with its schema"
            return "JSON has many forms of one key" if self.serde == JSON else ""
        if not self.is_record:
            return f"{self.cls.__name__} has more than one form in bytes"
        return why_no_key(self.cls) if _is_frozen(self.cls) else f"{self.cls.__name__} is not frozen"

    @property
    def why_not_kept(self) -> str:
        """Why what is written of this kind would come back as something else; "" if it does not."""
        return other_names(self.cls) if self.is_record and self.cls is not None else ""

    @property
    def layout(self) -> str:
        """Of what is kept: what of the class is written by position or by number (config.value_layout); "": nothing."""
        return layout_of(self.cls) if self.is_record and self.cls is not None else ""

    @property
    def key_fields(self) -> str:
        """Of keys of state: the fields, which may not change while there is state; "" if the serde alone decides the bytes."""
        return key_fields(self.cls) if self.is_record and self.cls is not None else ""


def _is_frozen(cls: type) -> bool:
    """A dataclass, msgspec.Struct or pydantic model whose objects cannot be changed, or a tuple."""
    configs = (getattr(cls, name, None) for name in ("__dataclass_params__", "__struct_config__"))
    return issubclass(cls, tuple) or any(getattr(c, "frozen", False) for c in configs) or bool(getattr(cls, "model_config", {}).get("frozen"))


BYTES, INTEGER, DICT = Kind("bytes", bytes), Kind("integer", int), Kind(JSON, dict)


def refuse_other_json(kind: Kind, value: Any) -> None:
    """Refuse to write a value as JSON that would be read as another kind than is said. None is a deletion.

    Raises:
        SerdeError: it is one, or JSON cannot hold it.
    """
    if value is not None and JsonSerde.encode(value)[:1] not in FIRST_BYTES[kind.cls]:
        raise SerdeError(f"the value is {shown(value)} ({type(value).__name__}), not {kind}.", "Fix the function that gives it, or say what it gives: value=….")


def kind_of(given: Any, what: str) -> Kind:
    """The kind of a type or of a serde's name. `what`: the argument, for the message.

    Raises:
        ConfigurationError: it is neither, or a class that a container cannot import.
    """
    if isinstance(given, Kind):
        return given
    if isinstance(given, str):
        if given in SERDES or given.startswith("avro:") or is_registered(given) or CLASS.fullmatch(given.removeprefix(RECORD)):
            return Kind(given)
        raise refused(f"{what}: there is no serde {given!r}", "Name a type, or a serde as in a job file: avro:<schema file>, module:Class.")
    found = kind_of_type(given)
    if found is None:
        raise refused(f"{what}: {_name(given)} is no kind of value", f"Kinds are {', '.join(t.__name__ for t in PLAIN)}, a dataclass, msgspec.Struct, "
                      "NamedTuple, TypedDict or pydantic model, or a serde's name.")  # fmt: skip
    if found.is_record and found.cls is not None:
        _refuse_not_importable(found.cls, what)
    return found


def kind_of_type(given: Any) -> Kind | None:
    """The kind of a type, or None if it has none."""
    origin = get_origin(given) or given
    if origin in PLAIN:
        return Kind(PLAIN[origin], origin)
    if inspect.isclass(origin) and holds_records(origin):
        return Kind(f"{RECORD}{origin.__module__}:{origin.__qualname__}", origin)
    return None


def returned_kind(function: Callable[..., Any], *, items: bool = False, optional: bool = False) -> Kind | None:
    """The kind that a function's annotation says it returns, or None if it does not say. `items`: the kind of what it returns several of;
    `optional`: None, which it may return as well, is left out."""
    if inspect.isclass(function):
        return None if items else kind_of_type(function)
    try:
        found = typing.get_type_hints(function).get("return")
    except Exception:  # noqa: BLE001 - annotations may name anything; what cannot be read says nothing
        return None
    if optional and get_origin(found) in (Union, types.UnionType):
        rest = [each for each in get_args(found) if each is not NONE]
        found = rest[0] if len(rest) == 1 else None
    if items:
        of = get_args(found)
        origin = get_origin(found)
        found = of[0] if of and inspect.isclass(origin) and issubclass(origin, Iterable) and not issubclass(origin, dict) else None
    kind = None if found is None else kind_of_type(found)
    return kind if kind is None or not kind.is_record or _is_importable(kind.cls) else None


def plain(value: Any) -> Any:
    """A value as JSON can hold it, so that it can be part of an accumulator.

    Raises:
        SerdeError: it would come back as another one.
    """
    found = _builtins(value)
    if hasattr(value, "model_dump"):
        try:
            why = changed_in(value, type(value).model_validate(found))
        except ValueError as error:
            why = why_not(error)
        if why:
            raise SerdeError(f"cannot keep {shown(value)}, because it could not be read back: {why}.", "Let the class read what it writes.")
    return found


def keeping(kind: Kind) -> Callable[[Any], Any]:
    """A function that returns a value of a kind of record as JSON can hold it, for an accumulator: what JSON has of it, if the value could be read back.

    The function raises SerdeError where a store of the kind would.
    """
    serde = RecordSerde(kind.serde, kind.cls)
    return lambda value: None if value is None else serde.builtins(value)


def _builtins(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True) if hasattr(value, "model_dump") else msgspec.to_builtins(value)


def unplain(kind: Kind | None) -> Callable[[Any], Any]:
    """A function that makes a value of a kind from what `plain` returned for it, also if an earlier version of the class wrote it (`upgrade`). It
    raises SerdeError if that is not possible."""
    cls = kind.cls if kind is not None and kind.is_record else None
    if cls is None:
        return lambda value: value
    make: Callable[[Any], Any] = getattr(cls, "model_validate", None) or filling(lambda value: msgspec.convert(value, cls, str_keys=True), cls)
    upgrade = getattr(cls, "upgrade", None)

    def made(value: Any) -> Any:
        if value is None:
            return None
        try:
            read = make(value)
        except (ValueError, RecursionError) as error:
            return _upgraded(cls, value, why_not(error), make)
        old = None if upgrade is None else of_old(deepcopy(value), read, _builtins(read), upgrade)
        return read if old is None else upgraded(old, make, f"{shown(value)} has the fields of an old {cls.__name__}")

    return made


def _upgraded(cls: Any, value: Any, why: str, make: Callable[[Any], Any]) -> Any:
    """The value that `upgrade` of the class makes of an earlier version's fields."""
    said = f"{shown(value)} is no {cls.__name__}: {why}"
    upgrade = getattr(cls, "upgrade", None)
    if upgrade is None:
        raise SerdeError(f"{said}.", "Give the class an `upgrade`.")
    return upgraded(lambda: upgrade(deepcopy(value)), make, said)


def _refuse_not_importable(cls: type, what: str) -> None:
    if not _is_importable(cls):
        raise refused(
            f"{what}: {cls.__qualname__} of {cls.__module__} cannot be imported by its name in a container",
            "Define the class at the top of a module that is not run as a script.",
        )


def _is_importable(cls: type | None) -> bool:
    return cls is not None and cls.__module__ != "__main__" and "<locals>" not in cls.__qualname__


def _name(given: Any) -> str:
    return getattr(given, "__name__", None) or repr(given)
