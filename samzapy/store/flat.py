"""Values that a store keeps as they are until the next commit: copies of small flat dicts, where encoding and decoding would give the same dict.

A job whose state is JSON reads and writes a small dict per record. Between two commits such a dict is copied, which takes a third of the time that
its JSON takes, and is encoded once, when the commit begins. It must come back as it would come back from JSON, so only what JSON gives back
unchanged is taken: text in ASCII, whole numbers of 64 bits, finite floats, bool, None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from samzapy.native import hot_path

MAX_FLAT_BYTES = 512
ENTRY_ROOM = 32  # quotes, colon, comma and a number of at most 24 characters
CHARACTER_ROOM = 6  # a control character: \u0000
NOT_FLAT = -1
CACHE_BYTES_EACH = 2048  # a flat dict takes some 250 bytes in memory: all of them, an eighth of what the read cache may take
_INT64 = 1 << 63


def max_flat(serde: Any, cache_bytes: int) -> int:
    """How many entries the live overlay may have while flat dicts are added to it; 0: the serde may give back something else, or there is no native
    part: in Python, to look whether a dict is flat takes longer than to encode it.

    Args:
        serde: of the values.
        cache_bytes: what the store's read cache may take.
    """
    is_same = hot_path is not None and getattr(serde, "same_flat", None) == (serde.encode, serde.decode)
    return cache_bytes // CACHE_BYTES_EACH if is_same else 0


def flat_size(value: dict[Any, Any]) -> int:
    """The bytes that the JSON of a flat dict takes at most; NOT_FLAT: it is none, or may take more than MAX_FLAT_BYTES."""
    size = 2
    for name, item in value.items():
        if type(name) is not str or not name.isascii():
            return NOT_FLAT
        size += ENTRY_ROOM + CHARACTER_ROOM * len(name)
        kind = type(item)
        if kind is str:
            if not item.isascii():
                return NOT_FLAT
            size += CHARACTER_ROOM * len(item)
        elif kind is int:
            if not -_INT64 <= item < _INT64:
                return NOT_FLAT
        elif kind is float:
            if not math.isfinite(item):
                return NOT_FLAT
        elif kind is not bool and item is not None:
            return NOT_FLAT
        if size > MAX_FLAT_BYTES:
            return NOT_FLAT
    return size


def size_of_entry(key: bytes, value: bytes | dict[str, Any] | None) -> int:
    """Bytes of a key and its value; at most, where that is a flat dict."""
    if value is None:
        return len(key)
    return len(key) + (flat_size(value) if type(value) is dict else len(value))


def is_flat(value: dict[Any, Any], limit: int) -> bool:
    """Whether it is a flat dict whose JSON takes at most `limit` bytes."""
    return NOT_FLAT != flat_size(value) <= limit


def encoded(entries: Mapping[bytes, Any], encode: Callable[[Any], bytes]) -> dict[bytes, bytes | None]:
    """Entries of the live overlay with the values as all other maps hold them."""
    return {key: encode(value) if type(value) is dict else value for key, value in entries.items()}
