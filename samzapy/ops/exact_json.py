"""Keys and values as JSON that loses nothing: what `--json` prints of stores and records.

The rule, for a field such as `value`. The name of the field tells which of both it is, so nothing in a value can be mistaken for the other:

- `value`: what the serde reads, where JSON can hold exactly that; bytes as the text that they are in UTF-8; an object of a class (`record:`) as its JSON.
- `value_base64` instead: the bytes as Kafka has them, in base64, where JSON cannot (bytes that are no text, dates, decimals, NaN, objects).
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any

SUFFIX = "_base64"


def exact(name: str, data: bytes | None, value: Any) -> dict[str, Any]:
    """The field of a document. `data`: as Kafka has it; `value`: what its serde read from it."""
    if data is None:
        return {name: None}
    if _is_json(value):
        return {name: value}
    if value == data and (text := _text(data)) is not None:
        return {name: text}
    return {name + SUFFIX: to_base64(data)}


def header(data: bytes | None) -> Any:
    """A header's value, which is always bytes: its text in UTF-8, or {"base64": …}."""
    if data is None:
        return None
    text = _text(data)
    return {"base64": to_base64(data)} if text is None else text


def header_of(value: Any) -> bytes | None:
    """What `header` shows, read again.

    Raises:
        ValueError: it is nothing that `header` shows.
    """
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    if isinstance(value, dict) and list(value) == ["base64"] and isinstance(value["base64"], str):
        return from_base64(value["base64"])
    raise ValueError(f"a header's value is text, null or {{\"base64\": …}}, not {value!r:.80}")


def bytes_in(document: Mapping[str, Any], name: str, encode: Callable[[Any], bytes]) -> bytes | None:
    """The bytes that a field of `exact` stands for. `encode`: makes them of what the serde reads.

    Raises:
        ValueError: both fields are there, or the bytes are no base64. And what `encode` raises.
    """
    packed, value = document.get(name + SUFFIX), document.get(name)
    if packed is None:
        return None if value is None else encode(value)
    if value is not None or not isinstance(packed, str):
        raise ValueError(f"{name} and {name + SUFFIX} cannot both be given" if value is not None else f"{name + SUFFIX} must be text")
    return from_base64(packed)


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def from_base64(text: str) -> bytes:
    """
    Raises:
        ValueError: it is no base64.
    """
    try:
        return base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"it is no base64: {error}") from None


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


MAX_DEPTH = 200  # json.dumps and the readers of scripts go at least so deep


def _is_json(value: Any, depth: int = 0) -> bool:
    """Whether JSON can hold this, and nothing else would be written in the same way."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return math.isfinite(value)
    if depth >= MAX_DEPTH:
        return False
    if kind is list:
        return all(_is_json(item, depth + 1) for item in value)
    return kind is dict and all(type(key) is str and _is_json(item, depth + 1) for key, item in value.items())
