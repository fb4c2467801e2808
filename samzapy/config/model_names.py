"""Pydantic models that read other names than they write: what is kept of such a field would come back as its default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

REMEDY = "Give the field one name for both, `Field(alias=…)`, or let the class read its own names too: model_config = ConfigDict(populate_by_name=True)."


def other_names(cls: Any) -> str:
    """Of a class, and of models in its fields, the first field that is written under a name by which it is not read; "": there is none."""
    for model in _models(cls, []):
        config = model.model_config
        by_name = config.get("populate_by_name") or config.get("validate_by_name")
        for name, field in model.model_fields.items():
            written, read = field.serialization_alias or field.alias or name, field.validation_alias or field.alias
            names = {name} if read is None or by_name else set()
            names |= {each for each in getattr(read, "choices", [read]) if isinstance(each, str)}
            names |= {each.path[0] for each in getattr(read, "choices", [read]) if getattr(each, "path", None) and len(each.path) == 1}
            if not field.exclude and written not in names:
                return f"{model.__name__} writes its field {name} as {written!r}, but reads it from {name if read is None else read!r}"
    return ""


def _models(kind: Any, seen: list[Any]) -> Iterator[Any]:
    if kind in seen:
        return
    seen.append(kind)
    if isinstance(kind, type) and hasattr(kind, "model_fields") and hasattr(kind, "model_config"):
        yield kind
        for field in kind.model_fields.values():
            yield from _models(field.annotation, seen)
    for each in get_args(kind):
        yield from _models(each, seen)
