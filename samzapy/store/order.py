"""A lazily sorted key index: free until the first range scan, cheap after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sortedcontainers import SortedList


class KeyOrder:
    """The keys of a dict in byte order.

    Attributes:
        is_sorted: whether `between` was called, so that `add` and `remove` have something to do.
    """

    __slots__ = ("_keys", "_sorted", "is_sorted")

    def __init__(self, keys: Callable[[], Iterable[bytes]]) -> None:
        self._keys = keys
        self.is_sorted = False
        self._sorted: SortedList | None = None

    def add(self, key: bytes) -> None:
        """A key that was not there before."""
        if self._sorted is not None:
            self._sorted.add(key)

    def remove(self, key: bytes) -> None:
        """A key that was there."""
        if self._sorted is not None:
            self._sorted.remove(key)

    def forget(self) -> None:
        """Many keys have changed: they are sorted again at the next range scan."""
        self._sorted = None
        self.is_sorted = False

    def between(self, from_key: bytes | None, to_key: bytes | None) -> list[bytes]:
        """The keys with from_key <= key < to_key (None: open), in order."""
        if self._sorted is None:
            self._sorted = SortedList(self._keys())
            self.is_sorted = True
        return list(self._sorted.irange(from_key, to_key, inclusive=(True, False)))
