"""Plain values of settings: each reads what YAML gave, or says what it expected, what it found, and how to write it.

Text, numbers and true/false do not turn into one another (`1.10` is not the topic "1.1"), with two exceptions: a whole number where text is
wanted, which has only one spelling, and text that came out of a `${…}`, which is read as YAML would.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from typing import Any

from pydantic_core import PydanticCustomError

from samzapy.config.plain_scalars import read_scalar
from samzapy.config.references import Interpolated
from samzapy.config.units import (
    MAX_DURATION_MS,
    MAX_SIZE_BYTES,
    format_duration,
    format_size,
    nearest_duration,
    nearest_size,
    parse_duration,
    parse_size,
)


def wrong(message: str, hint: str = "") -> PydanticCustomError:
    """A refusal with our own words."""
    return PydanticCustomError("samzapy", "{message}", {"message": message, "hint": hint})


def shown(value: object) -> str:
    """A value in a message, short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value)
    return repr(text if len(text) <= 60 else text[:57] + "...") if isinstance(value, str) else text


def near(word: str, words: Collection[str]) -> str:
    """The known word that was probably meant, or "" if none is near."""
    by_lower = {known.lower(): known for known in words}
    found = difflib.get_close_matches(word.lower(), by_lower, 1, 0.6)
    return by_lower[found[0]] if found else ""


def text(value: Any, expected: str = "text") -> str:
    """A non-empty string."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        hint = "Put it in quotes, as it is written." if isinstance(value, bool | float) else ""
        raise wrong(f"expected {expected}, found {shown(value)}", hint)
    if not value.strip():
        raise wrong(f"expected {expected}, found an empty value")
    return str(value)


def whole(low: int, high: int) -> Callable[[Any], int]:
    """A whole number within bounds."""

    def read(value: Any) -> int:
        number = read_scalar(value) if isinstance(value, Interpolated) else value
        if isinstance(number, bool) or not isinstance(number, int):
            hint = "Write it without quotes." if isinstance(value, str) and _is_whole(value) else f"For example {max(low, 1)}."
            raise wrong(f"expected a whole number, found {shown(value)}", hint)
        if not low <= number <= high:
            raise wrong(f"expected {low} to {high}, found {number}", f"Write a number from {low} to {high}.")
        return number

    return read


def flag(value: Any) -> bool:
    """true or false."""
    found = read_scalar(value) if isinstance(value, Interpolated) else value
    if not isinstance(found, bool):
        raise wrong(f"expected true or false, found {shown(value)}", "Write true or false, without quotes.")
    return found


def choice(*words: str) -> Callable[[Any], str]:
    """One of some words."""

    def read(value: Any) -> str:
        if isinstance(value, str) and value in words:
            return str(value)
        meant = near(str(value), words)
        raise wrong(f"expected {_either(words)}, found {shown(value)}", f"did you mean {meant!r}?" if meant else f"Write {_either(words)}.")

    return read


def duration(low_ms: int) -> Callable[[Any], int]:
    """A duration in milliseconds."""

    def read(value: Any) -> int:
        found = parse_duration(value) if isinstance(value, str) else None
        if found is None:
            meant = nearest_duration(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
            bare = isinstance(value, int) and not isinstance(value, bool)
            hint = f"Write {meant}." if meant else "A whole number and one of ms, s, m, h, d: 500ms, 10s, 5m, 2h, 7d."
            hint = f"Write {value}ms, {value}s or {value}m, whichever you mean." if bare and value >= 0 else hint
            raise wrong(f"expected a duration, found {shown(value)}{' without a unit' if bare else ''}", hint)
        if not low_ms <= found <= MAX_DURATION_MS:
            raise wrong(
                f"expected {format_duration(low_ms)} to {format_duration(MAX_DURATION_MS)}, found {value}", "Choose another duration."
            )
        return found

    return read


def size(low: int) -> Callable[[Any], int]:
    """A size in bytes."""

    def read(value: Any) -> int:
        found = parse_size(value) if isinstance(value, str) else None
        if found is None:
            meant = nearest_size(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else ""
            bare = isinstance(value, int) and not isinstance(value, bool)
            hint = f"Write {meant}." if meant else "A whole number and one of B, KiB, MiB, GiB, TiB: 64MiB."
            hint = f"Write {value}MiB, {value}KiB or {value}B, whichever you mean." if bare and value >= 0 else hint
            raise wrong(f"expected a size, found {shown(value)}{' without a unit' if bare else ''}", hint)
        if not low <= found <= MAX_SIZE_BYTES:
            raise wrong(f"expected {format_size(low)} to {format_size(MAX_SIZE_BYTES)}, found {value}", "Choose another size.")
        return found

    return read


def _either(words: Collection[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _is_whole(value: str) -> bool:
    return bool(re.fullmatch(r"[0-9]{1,18}", value, re.ASCII))
