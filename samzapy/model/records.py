"""Records of a compacted topic by name, some of which nobody can read."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Records(MutableMapping[K, V]):
    """What the newest record of each name says.

    Who asks for one that cannot be read gets the error that says so; going over all of them passes over it.

    Attributes:
        unreadable: by name, what is raised for it.
    """

    def __init__(self) -> None:
        self._read: dict[K, V] = {}
        self.unreadable: dict[K, Exception] = {}

    def __getitem__(self, name: K) -> V:
        if name in self.unreadable:
            raise self.unreadable[name]
        return self._read[name]

    def __setitem__(self, name: K, value: V) -> None:
        self.unreadable.pop(name, None)
        self._read[name] = value

    def __delitem__(self, name: K) -> None:
        self.unreadable.pop(name, None)
        self._read.pop(name, None)

    def __iter__(self) -> Iterator[K]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)

    def __repr__(self) -> str:
        return repr(self._read)
