"""Durations (`500ms 10s 5m 2h 7d`) and sizes (`64MiB`): whole numbers of a unit, exactly, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping

DURATION_PATTERN = "[0-9]{1,15}(ms|s|m|h|d)"
SIZE_PATTERN = "[0-9]{1,15}(B|KiB|MiB|GiB|TiB)"
MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
MAX_DURATION_MS = 3650 * MS["d"]
MAX_SIZE_BYTES = 1 << 50

_DURATION = re.compile("([0-9]{1,15})(ms|s|m|h|d)")
_SIZE = re.compile("([0-9]{1,15})(B|KiB|MiB|GiB|TiB)")
_LOOSE = re.compile(r"\s*([0-9]{1,15})\s*([A-Za-z]*)\s*")
_LOOSE_MS = {
    spelling: unit
    for unit, spellings in (
        ("ms", ("", "ms", "msec", "millis", "milliseconds")),
        ("s", ("s", "sec", "secs", "second", "seconds")),
        ("m", ("m", "min", "mins", "minute", "minutes")),
        ("h", ("h", "hour", "hours")),
        ("d", ("d", "day", "days")),
    )
    for spelling in spellings
}
_LOOSE_BYTES = {
    spelling: unit
    for unit, spellings in (
        ("B", ("", "b", "byte", "bytes")),
        ("KiB", ("k", "kb", "kib")),
        ("MiB", ("m", "mb", "mib")),
        ("GiB", ("g", "gb", "gib")),
        ("TiB", ("t", "tb", "tib")),
    )
    for spelling in spellings
}


def parse_duration(text: str) -> int | None:
    """Milliseconds, or None if this is no duration."""
    return _parse(_DURATION.fullmatch(text), MS)


def parse_size(text: str) -> int | None:
    """Bytes, or None if this is no size."""
    return _parse(_SIZE.fullmatch(text), BYTES)


def format_duration(ms: int) -> str:
    """The shortest duration that means `ms`."""
    return _format(ms, MS)


def format_size(count: int) -> str:
    """The shortest size that means `count` bytes."""
    return _format(count, BYTES)


def nearest_duration(text: str) -> str:
    """What somebody who wrote `10 sec` meant, or ""."""
    return _nearest(text, _LOOSE_MS)


def nearest_size(text: str) -> str:
    """What somebody who wrote `64 MB` meant, or ""."""
    return _nearest(text, _LOOSE_BYTES)


def _parse(found: re.Match[str] | None, units: Mapping[str, int]) -> int | None:
    return int(found[1]) * units[found[2]] if found else None


def _format(value: int, units: Mapping[str, int]) -> str:
    for name, factor in sorted(units.items(), key=lambda unit: -unit[1]):
        if value >= factor and value % factor == 0:
            return f"{value // factor}{name}"
    return f"{value}{next(iter(units))}"


def _nearest(text: str, units: Mapping[str, str]) -> str:
    found = _LOOSE.fullmatch(text)
    unit = units.get(found[2].lower()) if found else None
    return f"{int(found[1])}{unit}" if found and unit else ""
