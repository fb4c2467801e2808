"""What the types say about a document, in our words: what was expected, what was found, one hint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from samzapy.config.kafka_keys import COMMON, OWNED
from samzapy.config.samza_keys import RESERVED, RESERVED_OF_STORES, ours_for
from samzapy.config.scalars import near, shown
from samzapy.config.schema import LISTS, MAPS, SECTIONS, Settings, known_keys, section_at
from samzapy.config.tree import Route, dotted


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a path; where that is in a file is looked up later."""

    path: Route
    message: str
    hint: str = ""
    at_key: bool = False


def check_types(document: dict[str, Any]) -> tuple[Settings | None, list[Finding]]:
    """The settings, or what keeps the document from being settings."""
    try:
        return Settings.model_validate(document), []
    except ValidationError as error:
        mistakes = [details for details in error.errors(include_url=False, include_context=True) if not _follows(details)]
        return None, [_finding(details) for details in mistakes]


def _follows(details: ErrorDetails) -> bool:
    """Whether this only repeats that all entries of a list are wrong."""
    return details["type"] == "too_short" and bool(details["input"])


def _finding(details: ErrorDetails) -> Finding:
    path: Route = tuple(details["loc"])
    kind, value = details["type"], details["input"]
    if kind == "extra_forbidden":
        return _unknown_key(path, value)
    if kind == "missing":
        return Finding(path, f"missing required key {str(path[-1])!r}", example(path))
    if kind == "too_short":
        return Finding(path, "expected at least one entry, found none", example(path))
    samza = _samza_instead(path, value)
    if samza:
        return samza
    if kind == "samzapy":
        context = details.get("ctx", {})
        return Finding(path, str(context["message"]), str(context["hint"]))
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return Finding(path, f"expected a map, found {shown(value)}", example(path))
    if kind in ("list_type", "tuple_type"):
        return Finding(path, f"expected a list, found {shown(value)}", example(path))
    return Finding(path, f"{details['msg'][:1].lower()}{details['msg'][1:]}, found {shown(value)}")


def _samza_instead(path: Route, value: Any) -> Finding | None:
    """`job: {name: x}` and `task: {commit: {ms: 1000}}` are Samza's keys, nested."""
    found = ours_for(path, value) if len(path) == 1 and isinstance(value, dict) else None
    return Finding(path, f"{found[0]!r} is a key of Samza", f"In samzapy it is {found[1]}.", at_key=True) if found else None


def _unknown_key(path: Route, value: Any) -> Finding:
    *parent, last = path
    key = str(last)
    if (not parent and key in RESERVED) or (len(parent) == 2 and parent[0] in MAPS and key in RESERVED_OF_STORES):
        return Finding(path, f"{key!r} is not implemented yet", "Remove it.", at_key=True)
    samza = ours_for(path, value)
    if samza:
        return Finding(path, f"{samza[0]!r} is a key of Samza", f"In samzapy it is {samza[1]}.", at_key=True)
    section = section_at(tuple(parent))
    known = known_keys(section) if section else {}
    return Finding(path, f"unknown key {key!r}", _meant(key, tuple(parent), list(known)), at_key=True)


def _meant(key: str, parent: Route, known: list[str]) -> str:
    nested = _nested(key) if not parent else ""
    if nested:
        return nested
    if not parent and key in (COMMON | OWNED.keys()):
        return f"It is a key of Kafka's client: write kafka: {{{key}: …}}."
    guess = near(key, known)
    if guess:
        return f"did you mean {guess!r}?"
    elsewhere = list(_elsewhere(key, parent))
    if len(elsewhere) == 1:
        return f"did you mean `{elsewhere[0]}`?"
    return f"Known here: {', '.join(known)}."


def _nested(key: str) -> str:
    """`commit.interval: 1s` at the top is meant as `commit: {interval: 1s}`."""
    first, _, rest = key.partition(".")
    if not rest or first not in known_keys(Settings):
        return ""
    if first in LISTS or (first in SECTIONS and first not in MAPS and rest not in known_keys(SECTIONS[first])):
        return ""
    return f"Write it nested: {first}: {{{rest}: …}}; only `--set` takes dotted keys."


def _elsewhere(key: str, parent: Route) -> Iterator[str]:
    if parent and key in known_keys(Settings):
        yield key
    for name, section in SECTIONS.items():
        if parent[:1] != (name,) and key in known_keys(section):
            yield f"{name}[].{key}" if name in LISTS else f"{name}.<store>.{key}" if name in MAPS else f"{name}.{key}"


def example(path: Route) -> str:
    """A line to add."""
    *parent, last = path
    section = section_at(tuple(parent))
    if section is None:
        owner = SECTIONS.get(str(path[0]))
        fields = ", ".join(f"{key}: …" for key in list(known_keys(owner))[:3]) if owner else ""
        return f"Write {{{fields}}}." if fields else ""
    name = known_keys(section).get(str(last))
    examples = section.model_fields[name].examples if name else None
    if examples:
        return f"Add `{last}: {examples[0]}`."
    owner = SECTIONS.get(str(last))
    if owner is None:
        return ""
    fields = ", ".join(f"{key}: …" for key in list(known_keys(owner))[:3])
    shape = f"- {{{fields}}}" if last in LISTS else f"<name>: {{{fields}}}" if last in MAPS else f"{{{fields}}}"
    return f"Write `{dotted(path)}:` and below it `{shape}`." if last in LISTS or last in MAPS else f"Write {last}: {shape}."
