"""JSON from topics and directories that others may have written to: bounded before it is read, and never anything but a ValueError.

Python's decoder raises RecursionError on deep nesting and OverflowError where infinity is made an integer; neither is a ValueError, and
a reader of another application's record must be able to name that record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from samzapy.api.errors import check

SHOWN = 120
NOT_UNDERSTOOD = (ValueError, KeyError, TypeError, AttributeError, OverflowError)  # what is raised where an object has not the fields that it should
_loads = json.loads  # bound here: a task may put another function in its place
_as_told, _sorted = (json.JSONEncoder(separators=(",", ":"), sort_keys=is_sorted).encode for is_sorted in (False, True))


def read_object(data: bytes | None, max_bytes: int) -> dict[str, Any]:
    """The JSON object that `data` holds.

    Raises:
        ValueError: none, too large, nested too deep, no JSON, or no object.
    """
    if data is None:
        raise ValueError("it is empty")
    if len(data) > max_bytes:
        raise ValueError(f"{len(data)} bytes, more than samzapy ever writes ({max_bytes})")
    try:
        raw = _loads(data)
    except RecursionError:
        raise ValueError("nested deeper than samzapy ever writes") from None
    if not isinstance(raw, dict):
        raise ValueError(f"{type(raw).__name__} where an object was expected")
    return raw


def to_bytes(value: Mapping[str, Any], sort_keys: bool = False) -> bytes:
    """JSON that `read_object` can read; this is checked before it is returned.

    Raises:
        InternalError: what was written is not what is read: something has changed how this process writes JSON.
    """
    text: Any = (_sorted if sort_keys else _as_told)(value)
    try:
        data: bytes = text.encode()
        back = _loads(data)
    except (ValueError, AttributeError, TypeError):
        data, back = b"", None
    check(back == _plain(value), "written JSON is read back unchanged (does a module that the task imports change `json`?)")
    return data


def _plain(value: Any) -> Any:
    """As JSON gives it back: keys are texts, tuples are lists."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def brief(value: object) -> str:
    """`value` as one short line for a message, whatever others wrote."""
    text = value if isinstance(value, str) else repr(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
