"""Whether an object of a pydantic model comes back as what it was: its class may write less than a field holds, or what it reads as something else."""

from __future__ import annotations

from typing import Any

from samzapy.serde.basic import shown
from samzapy.serde.record_fit import equal, items_of, lost_key, same


def changed_in(value: Any, read: Any, place: str = "$") -> str:
    """Where what was read differs from what was written, in a field that the class writes; "": nowhere."""
    cls = type(read)
    if equal(value, read):
        return ""
    if said := lost_key(value, read, place):
        return said
    pairs = items_of(value, read, place)
    if hasattr(cls, "model_fields") and isinstance(value, cls):
        if more := [name for name in type(value).model_fields if name not in cls.model_fields]:
            return f"it is a `{type(value).__name__}`, whose `{more[0]}` would not come back, because it is read as `{cls.__name__}` - at `{place}`"
        names = [name for name, field in cls.model_fields.items() if not field.exclude]
        pairs = [(getattr(value, name, None), getattr(read, name), f"{place}.{name}") for name in names]
        pairs += [(each, (read.model_extra or {}).get(name), f"{place}.{name}") for name, each in (value.model_extra or {}).items()]
    elif pairs is None:
        if same(value, read) or (not equal(value, value) and not equal(read, read)):  # NaN
            return ""
        return f"its {place.removeprefix('$.')} would come back as {shown(read)}" if cls is type(value) or _in_json(value) != _in_json(read) else ""
    return next((said for one, other, where in pairs if (said := changed_in(one, other, where))), "")


def _in_json(value: Any) -> Any:
    """What JSON has of a value: under `Any`, a tuple comes back as a list and a date as text, which is known."""
    from pydantic_core import to_jsonable_python  # there where a model is

    try:
        return to_jsonable_python(value)
    except ValueError:
        return value
