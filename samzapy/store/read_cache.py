"""A read cache in two generations, bounded by bytes: cheap to ask, cheap to bound, and it forgets what was not asked for lately.

Entries enter the young generation. When it holds half the bound it becomes the old one, and the old one goes; an entry found in the old one
enters the young one again. The young one is asked first, so an older value of a key is never seen. A value of None is a known absence. The
bound may be exceeded by one entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.store.committed import ENTRY_BYTES

_ABSENT: Any = object()


class ReadCache:
    """Committed entries by key. A bound of 0: nothing is kept."""

    __slots__ = ("_half", "_old", "_room", "_young")

    def __init__(self, max_bytes: int) -> None:
        self._half = max_bytes // 2
        self._room = self._half
        self._young: dict[bytes, bytes | None] = {}
        self._old: dict[bytes, bytes | None] = {}

    def get(self, key: bytes, default: Any = None) -> Any:
        """The value, None for a known absence, `default` where nothing is known."""
        value = self._young.get(key, _ABSENT)
        if value is not _ABSENT:
            return value
        value = self._old.get(key, _ABSENT)
        if value is _ABSENT:
            return default
        self.add(key, value)
        return value

    def add(self, key: bytes, value: bytes | None) -> None:
        """What the engine said, or a commit wrote. An entry that is overwritten counts once."""
        before = self._young.get(key, _ABSENT)
        if before is _ABSENT:
            self._room -= ENTRY_BYTES + len(key)
        elif before is not None:
            self._room += len(before)
        self._young[key] = value
        self._room -= 0 if value is None else len(value)
        if self._room < 0:
            self._turn()

    def take_in(self, entries: Mapping[bytes, bytes | None], size: int) -> None:
        """The entries of a commit; `size`: bytes of their keys and values. Entries that are overwritten count twice, until the generation turns."""
        room = self._room - size - ENTRY_BYTES * len(entries)
        if room >= 0:
            self._young.update(entries)
            self._room = room
        else:
            for key, value in entries.items():
                self.add(key, value)

    def adopt(self, entries: dict[bytes, bytes | None], size: int) -> None:
        """Entries that the engine has just taken become the young generation as they are; `size`: all the bytes that they take.

        They are newer than whatever is here. The caller does not change them any more.
        """
        if size > 2 * self._half:
            self.clear()
            return
        self._old, self._young = self._young, entries
        self._room = self._half - size
        if self._room < 0:
            self._turn()

    def limit(self, max_bytes: int) -> None:
        """Another bound from now on. What is here goes if it may take more than a smaller one."""
        half = max_bytes // 2
        self._room += half - self._half
        if half < self._half:
            self._old = {}  # it may have the old half
        self._half = half
        if self._room < 0:
            self.clear()

    def clear(self) -> None:
        self._young, self._old = {}, {}
        self._room = self._half

    def _turn(self) -> None:
        self._old = self._young if self._half else {}
        self._young = {}
        self._room = self._half
