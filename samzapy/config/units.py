"""Durations (`500ms 10s 5m 2h 7d`) and sizes (`64MiB`)."""

from __future__ import annotations

import re

DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
SIZE = re.compile(r"(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)")
MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def milliseconds(text: object) -> int:
    """Milliseconds of a duration.

    Raises:
        ValueError: not a duration.
    """
    found = DURATION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"expected a duration such as 500ms, 10s, 5m, 2h or 7d, found {_shown(text)}")
    return round(float(found[1]) * MS[found[2]])


def byte_count(text: object) -> int:
    """Bytes of a size.

    Raises:
        ValueError: not a size.
    """
    found = SIZE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"expected a size such as 512KiB, 64MiB or 2GiB, found {_shown(text)}")
    return round(float(found[1]) * BYTES[found[2]])


def _shown(value: object) -> str:
    return repr(value) if not isinstance(value, int | float) or isinstance(value, bool) else f"{value} (a number without a unit)"
