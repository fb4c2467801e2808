"""JSON from topics and directories that others may have written to: bounded before it is read, and never anything but a ValueError.

Python's decoder raises RecursionError on deep nesting and OverflowError where infinity is made an integer; neither is a ValueError, and
whoever reads a record that is not ours must get to say which record that was.
"""

from __future__ import annotations

import json
from typing import Any

SHOWN = 120


def read_object(data: bytes | None, max_bytes: int) -> dict[str, Any]:
    """The JSON object that `data` holds.

    Raises:
        ValueError: none, too large, nested too deep, no JSON, or no object.
    """
    if data is None:
        raise ValueError("there is nothing in it")
    if len(data) > max_bytes:
        raise ValueError(f"{len(data)} bytes, more than samzapy ever writes ({max_bytes})")
    try:
        raw = json.loads(data)
    except RecursionError:
        raise ValueError("nested deeper than samzapy ever writes") from None
    if not isinstance(raw, dict):
        raise ValueError(f"{type(raw).__name__} where an object was expected")
    return raw


def brief(value: object) -> str:
    """`value` in a message: whatever a stranger wrote, one short line of it."""
    text = value if isinstance(value, str) else repr(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
