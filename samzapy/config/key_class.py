"""Classes whose objects are keys of state. State is found by the bytes of its key, so equal keys must be equal bytes: each field has one form."""

from __future__ import annotations

from typing import Any

from msgspec import inspect as types

ONE_FORM = (types.IntType, types.StrType, types.BytesType, types.BoolType, types.NoneType, types.EnumType, types.LiteralType, types.UUIDType, types.DateType)
NUMBERS = (types.IntType, types.BoolType)
REMEDY = (
    "Let each field of a key be str, int, bool, bytes, date, UUID, an enum, or a tuple or frozen record of these; let every field be compared and written; "
    "write a time as milliseconds."
)


def why_no_key(cls: Any) -> str:
    """Why objects of a class cannot be keys of state; "" if they can."""
    try:
        if why := _not_as_compared(cls):
            return why
        return next((f"its field {name!r} is {what}" for name, kind in _fields(cls) if (what := _many_forms(kind))), "")
    except (TypeError, NameError) as error:
        return f"its fields cannot be looked at: {error}"


def _not_as_compared(cls: Any) -> str:
    """Why equal objects of a class may be written differently, or different ones alike, whatever their fields are; "" if that cannot be."""
    config = getattr(cls, "__struct_config__", None)
    if config is not None and config.omit_defaults:
        return "it has omit_defaults=True, so equal objects may be written with or without a field"
    ignored = [field.name for field in getattr(cls, "__dataclass_fields__", {}).values() if not field.compare]
    if ignored:
        return f"its field {ignored[0]!r} is written but not compared"
    if getattr(cls, "model_config", {}).get("extra") == "allow":
        return "it has fields that it does not declare (`extra` is allow)"
    hidden = [name for name, field in getattr(cls, "model_fields", {}).items() if field.exclude] or list(getattr(cls, "__private_attributes__", ()))
    return f"its field {hidden[0]!r} is compared but not written" if hidden else ""


def key_fields(cls: Any) -> str:
    """The fields of a class, in order: `user str, day date`."""
    try:
        return ", ".join(f"{name} {_shown(kind)}" for name, kind in _fields(cls))
    except (TypeError, NameError):
        return ""


def _fields(cls: Any) -> list[tuple[str, types.Type]]:
    if hasattr(cls, "model_fields"):
        return [(name, types.type_info(field.annotation)) for name, field in cls.model_fields.items()]
    info = types.type_info(cls)
    return [(field.encode_name, field.type) for field in getattr(info, "fields", ())]


def _many_forms(kind: types.Type) -> str:
    """What of a type has several forms in bytes that are equal, or may change in a key's life; "" if nothing has."""
    if isinstance(kind, ONE_FORM):
        return ""
    if isinstance(kind, types.UnionType):
        if sum(isinstance(each, NUMBERS) for each in kind.types) > 1:
            return "int or bool, of which 1 and True are equal"
        return next((what for each in kind.types if (what := _many_forms(each))), "")
    if isinstance(kind, types.VarTupleType):
        return _many_forms(kind.item_type)
    if isinstance(kind, types.TupleType):
        return next((what for each in kind.item_types if (what := _many_forms(each))), "")
    if isinstance(kind, types.DataclassType | types.StructType | types.NamedTupleType):
        inside = why_no_key(kind.cls)
        return f"{kind.cls.__name__}, and {inside}" if inside else ""
    return f"{_shown(kind)}, which has several forms in bytes"


def _shown(kind: types.Type) -> str:
    """A type in a word: `int`, `str or None`, `tuple of str`."""
    if isinstance(kind, types.UnionType):
        return " or ".join(map(_shown, kind.types))
    if isinstance(kind, types.VarTupleType):
        return f"tuple of {_shown(kind.item_type)}"
    if isinstance(kind, types.TupleType):
        return f"tuple of {', '.join(map(_shown, kind.item_types))}"
    cls = getattr(kind, "cls", None)
    if cls is not None and not isinstance(kind, types.EnumType):
        return f"{cls.__name__}({key_fields(cls)})"
    return cls.__name__ if cls is not None else type(kind).__name__.removesuffix("Type").lower()
