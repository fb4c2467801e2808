"""Values that a store keeps as they are until the next commit: small flat dicts, where encoding and decoding would give the same dict.

A job whose state is JSON reads and writes a small dict per record. Between two commits such a dict is kept in a compact form (native/flat.c), which
takes a third of the time that its JSON takes, and is encoded once, when the commit begins. It must come back as it would come back from JSON, so only
what JSON gives back unchanged is taken: text in ASCII, whole numbers of 64 bits, finite floats, bool, None.

How many bytes the JSON takes at most is known without encoding: 32 for each entry (quotes, colon, comma and a number of at most 24 characters), and 6 for
each character of names and texts (a control character takes as many). A dict for which that is more than 512 is not small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from samzapy.native import hot_path

CACHE_BYTES_EACH = 2048  # a flat dict takes some 100 bytes in memory, at most 1,200: all of them, under two thirds of what the read cache may take


class _None:
    """There is no native part, so there is no flat dict."""


Flat: Any = _None if hot_path is None else hot_path.Flat  # has `dict()`, a new dict each time, and `bytes`, which its JSON takes at most


def max_flat(serde: Any, cache_bytes: int) -> int:
    """How many entries the live overlay may have while flat dicts are added to it; 0: the serde may give back something else, or there is no native
    part: in Python, to look whether a dict is flat takes longer than to encode it.

    Args:
        serde: of the values.
        cache_bytes: what the store's read cache may take.
    """
    is_same = hot_path is not None and getattr(serde, "same_flat", None) == (serde.encode, serde.decode)
    return cache_bytes // CACHE_BYTES_EACH if is_same else 0


def flat(value: dict[Any, Any], most: int) -> Any:
    """A `Flat` of the dict; None: its JSON may take more than `most` bytes, or would not give it back unchanged. There is a native part."""
    return hot_path.flat(value, most)


def size_of_entry(key: bytes, value: Any) -> int:
    """Bytes of a key and its value in the live overlay; at most, where that is a flat dict."""
    if value is None:
        return len(key)
    return len(key) + (value.bytes if type(value) is Flat else len(value))


def encoded(entries: Mapping[bytes, Any], encode: Callable[[Any], bytes]) -> dict[bytes, bytes | None]:
    """Entries of the live overlay with the values as all other maps hold them."""
    return {key: encode(value.dict()) if type(value) is Flat else value for key, value in entries.items()}
