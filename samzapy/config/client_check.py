"""What librdkafka itself says of the job file's Kafka keys: it is asked by constructing clients, no connection is opened.

Its complaint names the property; that one is told and taken out, and it is asked again until it is content: so every wrong key is found,
and keys that need one another (`sasl.mechanism`, `sasl.username`) are never judged alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from samzapy.config.kafka_keys import CLIENT, COMMON, GROUPS, refusal
from samzapy.config.key_errors import Finding
from samzapy.config.scalars import near
from samzapy.config.secrets import HIDDEN, is_secret
from samzapy.config.tree import Route
from samzapy.config.units import nearest_duration, nearest_size, parse_duration, parse_size

ClientCheck = Callable[[str, dict[str, object]], str | None]
"""(`kafka.producer` or `kafka.consumer`; properties) → what the client has against them."""

LIST = "The names are in librdkafka's CONFIGURATION.md; they differ from Java's."
FAR = ("9" * 20, "-99")  # numbers that are outside of a property's range, if it has one
_BEGINS_AS_NUMBER = re.compile(r"\s*[+-]?[0-9]+")
_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]+)?\s*")
Askable = dict[str, tuple[Route, Any]]


def check_client_keys(document: Mapping[str, Any], ask: ClientCheck) -> list[Finding]:
    """One finding for each property that the client refuses; refused keys and servers are not shown to it."""
    kafka = document.get(CLIENT)
    if not isinstance(kafka, dict):
        return []
    found: dict[Route, Finding] = {}
    for group in GROUPS:
        side = kafka.get(group)
        asked = _askable(kafka, (CLIENT,)) | (_askable(side, (CLIENT, group)) if isinstance(side, dict) else {})
        asked = {key: (path, value) for key, (path, value) in asked.items() if path not in found}
        misread = {key: path for key, (path, value) in asked.items() if _is_misread(path, key, value, ask, f"{CLIENT}.{group}")}
        found |= {path: _misread(path, key, str(asked.pop(key)[1])) for key, path in misread.items()}
        while said := ask(f"{CLIENT}.{group}", {key: value for key, (_, value) in asked.items()}):
            said = _without_secrets(said, asked).strip()
            culprit = _culprit(said, asked) or _same_alone(said, asked, ask, f"{CLIENT}.{group}")
            if culprit is None:
                found[CLIENT,] = Finding((CLIENT,), f"Kafka's client refuses these properties: {said}", LIST, at_key=True)
                break
            path, _ = asked.pop(culprit)
            found[path] = _finding(path, culprit, said)
    return list(found.values())


def _askable(properties: Mapping[str, Any], path: Route) -> Askable:
    usable = {k: v for k, v in properties.items() if isinstance(v, str | int | float) and k != "bootstrap.servers" and refusal(k) is None}
    return {key: ((*path, key), value) for key, value in usable.items()}


def _is_misread(path: Route, key: str, value: Any, ask: ClientCheck, group: str) -> bool:
    """Whether a text begins with a number and goes on, for a property that is a number: the client takes `60s` for 60. That it is one shows by a range."""
    if not isinstance(value, str) or not _BEGINS_AS_NUMBER.match(value) or _NUMBER.fullmatch(value) or is_secret(path):
        return False
    return any("allowed range" in (ask(group, {key: far}) or "") for far in FAR)


def _misread(path: Route, key: str, value: str) -> Finding:
    plain = value.replace("_", "").strip()
    duration, size = parse_duration(nearest_duration(plain) or plain), parse_size(nearest_size(plain) or plain)
    meant: int | None = None
    if key.endswith(".ms"):
        unit, meant = " of milliseconds", duration
    elif key.endswith("kbytes"):
        unit, meant = " of KiB", None if size is None else size >> 10
    elif "bytes" in key or key.endswith(".size"):
        unit, meant = " of bytes", size
    else:
        unit, meant = "", int(plain) if plain.isdigit() else None
    begin = _BEGINS_AS_NUMBER.match(value)
    read = begin[0].strip() if begin else ""
    hint = f"Write the number{unit}{f': {meant}' if meant is not None else ''}. Units are for samzapy's own keys."
    return Finding(path, f"expected a number, found {value!r}, which Kafka's client would read as {read}", hint)


def _culprit(said: str, asked: Askable) -> str | None:
    """The property that the complaint names: in quotes, or as a word."""
    for pattern in (r"[\"'`]{}[\"'`]", r"(?<![\w.]){}(?!\.?\w)"):
        for key in sorted(asked, key=len, reverse=True):
            if re.search(pattern.format(re.escape(key)), said):
                return key
    return None


def _same_alone(said: str, asked: Askable, ask: ClientCheck, group: str) -> str | None:
    """The property about which the same is said when it is alone: complaints may use another of its names (`linger.ms` has two)."""
    return next((key for key, (_, value) in asked.items() if _without_secrets(ask(group, {key: value}) or "", asked).strip() == said), None)


def _finding(path: Route, key: str, said: str) -> Finding:
    if "No such configuration property" in said:
        meant = near(key, COMMON)
        return Finding(path, f"unknown Kafka property {key!r}", f"did you mean {meant!r}?" if meant else LIST, at_key=True)
    return Finding(path, f"Kafka's client refuses it: {said}", "librdkafka's CONFIGURATION.md lists the valid values.")


def _without_secrets(said: str, asked: Askable) -> str:
    for path, value in asked.values():
        if is_secret(path) and isinstance(value, str) and value:
            said = said.replace(value, HIDDEN)
    return said
