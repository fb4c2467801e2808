"""Parts of a job file's document that are well formed by themselves: what is not there, or is something else, counts as empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from samzapy.config.section import Section
from samzapy.config.tree import Route

S = TypeVar("S", bound=Section)


def map_at(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def entries_of(document: Mapping[str, Any], name: str) -> list[tuple[Route, Mapping[str, Any]]]:
    items = document.get(name)
    return [((name, i), item) for i, item in enumerate(items if isinstance(items, list) else []) if isinstance(item, Mapping)]


def stores_of(document: Mapping[str, Any]) -> list[tuple[Route, Mapping[str, Any]]]:
    return [(("stores", name), store) for name, store in map_at(document, "stores").items() if isinstance(store, Mapping)]


def section_of(document: Mapping[str, Any], name: str, model: type[S], *keys: str) -> S | None:
    """These keys of a section, all others left at their defaults; None if they are not well formed."""
    try:
        return model.model_validate({key: value for key, value in map_at(document, name).items() if key in keys})
    except ValidationError:
        return None


def first_given(document: Mapping[str, Any], *paths: tuple[str, str]) -> Route:
    """The first of the paths that the document has."""
    return next((path for path in paths if path[1] in map_at(document, path[0])), paths[0])
