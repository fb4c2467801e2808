"""The live overlay's writes: how they are taken back, and when a key may come and go without a trace.

All of it works on the maps of an OverlayStore. `absent` is what stands for "not in this map", since None is a deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from samzapy.store.committed import CommittedOverlay
from samzapy.store.flat import encoded, size_of_entry
from samzapy.store.order import KeyOrder
from samzapy.store.read_cache import ReadCache

Entries = Mapping[bytes, bytes | None]


def take_back(
    writes: Sequence[tuple[bytes, Any]], live: dict[bytes, Any], frozen: Entries, order: KeyOrder, absent: object
) -> int:
    """Undo writes, each with the value before it: newest first, so that a key ends with the value before the first of them. Returns by how many
    bytes the overlay has grown."""
    grown = 0
    for key, old in reversed(writes):
        now: Any = live.get(key, absent)
        if now is not absent:
            grown -= size_of_entry(key, now)
        if old is not absent:
            if now is absent:
                order.add(key)  # it had gone without a trace, so it is not in the frozen overlay
            live[key] = old
            grown += size_of_entry(key, old)
        elif now is not absent:
            del live[key]
            if key not in frozen:
                order.remove(key)
    return grown


def written(
    writes: Sequence[tuple[bytes, Any]], live: Mapping[bytes, Any], below: Callable[[bytes], bytes | None], absent: object, limit: int,
    encode: Callable[[Any], bytes],
) -> list[tuple[bytes, bytes | None, bytes | None]]:  # fmt: skip
    """The first `limit` keys of these writes: key, value before the first of them, value now. `below`: reads what is not in the live overlay."""
    first: dict[bytes, Any] = {}
    for key, old in writes:
        if key not in first:
            if len(first) >= limit:
                break
            first[key] = below(key) if old is absent else old
    before, now = encoded(first, encode), encoded({key: live.get(key) for key in first}, encode)
    return [(key, before[key], now[key]) for key in first]


def is_nothing_below(key: bytes, frozen: Entries, committed: CommittedOverlay, cache: ReadCache, absent: object) -> bool:
    """Whether it is known that a key is in no commit, nor in the one that is under way. A key that was put and is deleted before its first
    commit then needs no tombstone in the changelog."""
    if key in frozen:
        return False
    value = committed.get(key, absent)
    return (cache.get(key, absent) if value is absent else value) is None
