"""Committed changes that the engine does not have yet.

The engine has no write-ahead log: a crash loses what was not flushed, and the changelog has it. So nothing is gained by writing each commit
to the engine before it is flushed. The changes of decided commits are kept here, where a key that changes often is overwritten in memory,
and are written out before a flush, before a scan, when they take too much memory, and when the store is closed.

A write-out may be taken in parts, so that it does not stop the run loop for long. A part carries the stamp that the engine has already; only
the last one carries the new stamp. That is safe: every key of a part has a record in the changelog after the old stamp's position, so a
restore from there writes it again. The new stamp is always that of the last decided commit whose changes are all in the engine then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from samzapy.api.errors import check
from samzapy.model.stamp import StoreStamp
from samzapy.ports import StoreEngine

ENTRY_BYTES = 130  # what Python adds to an entry: two bytes objects and a dict's slot
Entries = dict[bytes, bytes | None]


def size_of(entries: Mapping[bytes, bytes | None]) -> int:
    """The bytes that entries take in memory, Python's own included."""
    return ENTRY_BYTES * len(entries) + sum(map(len, entries)) + sum(len(value) for value in entries.values() if value is not None)


class CommittedOverlay:
    """The changes of decided commits, until they are written to the engine. A value of None is a deletion.

    Args:
        max_bytes: `is_full` beyond this; 0: nothing is kept here, the store writes each commit to its engine.

    Attributes:
        newer: what was committed since the write-out under way began; asked before `older`.
        older: what the write-out under way writes; empty while there is none.
    """

    __slots__ = ("_bytes", "_left", "_rest", "_stamp", "max_bytes", "newer", "older")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.newer: Entries = {}
        self.older: Entries = {}
        self._bytes = 0  # of `newer`, at most: what was overwritten is counted too, until `is_full` counts again
        self._rest: Iterator[tuple[bytes, bytes | None]] = iter(())
        self._left = 0  # entries of `older` that are not written yet
        self._stamp: StoreStamp | None = None

    def __len__(self) -> int:
        return len(self.newer) + self._left

    def take(self, changes: Entries, size: int) -> None:
        """The changes of a decided commit; `size`: bytes of their keys and values."""
        self.newer.update(changes)
        self._bytes += size + ENTRY_BYTES * len(changes)

    def get(self, key: bytes, default: Any) -> Any:
        """The newest value of a key, None if that is a deletion; `default` if there is neither."""
        value = self.newer.get(key, default)
        return self.older.get(key, default) if value is default else value

    @property
    def is_full(self) -> bool:
        """Whether the changes take more than half of their memory. The other half is room for the commits until they are written out."""
        if self._bytes > self.max_bytes:
            self._bytes = size_of(self.newer)
        return self._bytes > self.max_bytes // 2

    def write_part(self, engine: StoreEngine, stamp: StoreStamp, max_entries: int | None) -> Entries | None:
        """Write at most so many entries (None: all) of the write-out under way, or of a new one.

        Args:
            stamp: of the last decided commit; where a new write-out leads to.

        Returns:
            The entries of the write-out when the engine has all of them; None before.
        """
        if not self.older:
            self.older, self.newer = self.newer, {}
            self._bytes, self._stamp = 0, stamp
            self._begin()
        carried = engine.stamp()
        if carried is None:  # a new engine has no stamp that a part could carry
            self._begin()
            max_entries = None
        try:
            part = list(islice(self._rest, max_entries))
            is_last = len(part) == self._left
            if is_last:
                carried = self._stamp
            check(carried is not None, "a write-out has the stamp of the commit that it leads to")
            engine.write(part, cast(StoreStamp, carried))
        except BaseException:
            self._begin()  # whatever was written is written again: never a stamp over a part that is missing
            raise
        self._left -= len(part)
        if not is_last:
            return None
        written, self.older = self.older, {}
        return written

    def clear(self) -> None:
        """Another engine takes the place of the one that these belong to."""
        self.newer, self.older = {}, {}
        self._bytes = 0

    def _begin(self) -> None:
        self._rest, self._left = iter(self.older.items()), len(self.older)
