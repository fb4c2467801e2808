"""The memory engine: the committed bytes of one store in a dict. It keeps what RocksDB keeps of its promises, except across a restart.

A scan has a fixed view, which costs nothing while no one writes: the first write after it was opened makes it copy its remaining entries.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator

from samzapy.api.errors import check
from samzapy.model.stamp import StoreStamp
from samzapy.ports import Change, Scan
from samzapy.store.order import KeyOrder


class MemoryScan:
    """Entries of a MemoryEngine in key order, as they were when the scan was opened."""

    def __init__(self, keys: list[bytes], entries: dict[bytes, bytes]) -> None:
        self._keys: Iterator[bytes] = iter(keys)
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        for key in self._keys:
            return key, self._entries[key]
        raise StopIteration

    def take_along(self) -> None:
        """Become independent of the engine's dict, which is about to change."""
        keys = list(self._keys)
        self._entries = {key: self._entries[key] for key in keys}
        self._keys = iter(keys)

    def close(self) -> None:
        self._keys = iter(())
        self._entries = {}


class MemoryEngine:
    """A StoreEngine that keeps everything in memory and forgets it when it is closed."""

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}
        self._order = KeyOrder(lambda: self._entries)
        self._stamp: StoreStamp | None = None
        self._scans: weakref.WeakSet[MemoryScan] = weakref.WeakSet()
        self._open = True
        self.get: Callable[[bytes], bytes | None] = self._entries.get  # a dict's own: nothing stands between

    def scan(self, from_key: bytes | None = None, to_key: bytes | None = None) -> Scan:
        check(self._open, "a memory store is used only while it is open")
        scan = MemoryScan(self._order.between(from_key, to_key), self._entries)
        self._scans.add(scan)
        return scan

    def write(self, changes: Iterable[Change], stamp: StoreStamp) -> None:
        check(self._open, "a memory store is written only while it is open")
        for scan in self._scans:
            scan.take_along()
        self._scans.clear()
        entries, order = self._entries, self._order
        for key, value in changes:
            if value is None:
                if entries.pop(key, None) is not None:
                    order.remove(key)
            else:
                if key not in entries:
                    order.add(key)
                entries[key] = value
        self._stamp = stamp

    def stamp(self) -> StoreStamp | None:
        return self._stamp

    def flush(self, wait: bool = True) -> None:
        """There is nothing that a crash would leave."""

    def close(self) -> None:
        for scan in self._scans:
            scan.close()
        self._open = False
        self.get = _refuse
        self._entries.clear()
        self._order.forget()
        self._stamp = None


def _refuse(key: bytes) -> None:
    check(False, "a memory store is read only while it is open")
