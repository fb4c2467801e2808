"""Whether an object of a pydantic model comes back as what it was: its class may write less than a field holds, or what it reads as something else."""

from __future__ import annotations

from typing import Any

from samzapy.serde.basic import shown


def changed_in(value: Any, read: Any, place: str = "$") -> str:
    """Where what was read differs from what was written, in a field that the class writes; "": nowhere."""
    cls = type(read)
    if _equal(value, read):
        return ""
    if hasattr(cls, "model_fields") and isinstance(value, cls):
        names = [name for name, field in cls.model_fields.items() if not field.exclude]
        pairs = [(getattr(value, name, None), getattr(read, name), f"{place}.{name}") for name in names]
        pairs += [(each, (read.model_extra or {}).get(name), f"{place}.{name}") for name, each in (value.model_extra or {}).items()]
    elif isinstance(read, dict) and isinstance(value, dict):
        pairs = [(value.get(key), each, f"{place}[{shown(key)}]") for key, each in read.items()]
    elif isinstance(read, list | tuple) and isinstance(value, list | tuple):
        pairs = [(one, other, f"{place}[{index}]") for index, (one, other) in enumerate(zip(value, read, strict=False))]
    else:
        return f"its {place.removeprefix('$.')} would come back as {shown(read)}" if cls is type(value) or _in_json(value) != _in_json(read) else ""
    return next((said for one, other, where in pairs if (said := changed_in(one, other, where))), "")


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other) or (one != one and other != other)  # NaN
    except Exception:  # noqa: BLE001  a method of the user's
        return False


def _in_json(value: Any) -> Any:
    """What JSON has of a value: under `Any`, a tuple comes back as a list and a date as text, which is known."""
    from pydantic_core import to_jsonable_python  # there where a model is

    try:
        return to_jsonable_python(value)
    except ValueError:
        return value
