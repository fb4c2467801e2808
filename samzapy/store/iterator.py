"""Iterators over a task's store: the overlay's changes merged with a scan of the engine, both as they were when the iterator was opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from samzapy.api.errors import SerdeError, unreadable_state
from samzapy.ports import Change, Scan
from samzapy.store import misuse

Entry = tuple[Any, Any]


class OverlayIterator:
    """(key, value) pairs in order (api.store.StoreIterator). While open it is in `among`, so that the store can close it; `store` names that in errors."""

    __slots__ = ("_among", "_entries", "_scan", "_state", "_store")

    def __init__(self, entries: Iterator[Entry], scan: Scan, among: list[OverlayIterator], store: str) -> None:
        self._entries = entries
        self._scan = scan
        self._among = among
        self._store = store
        self._state = "open"

    def __iter__(self) -> OverlayIterator:
        return self

    def __next__(self) -> Entry:
        if self._state == "closed":
            raise misuse.closed(self._store, "this iterator is closed")
        try:
            for entry in self._entries:
                return entry
        except SerdeError as error:
            raise unreadable_state(self._store, "one of its entries", error) from error
        self._end("ended")
        raise StopIteration

    def __enter__(self) -> OverlayIterator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the view."""
        self._end("closed")

    def _end(self, state: str) -> None:
        if self._state == "open":
            self._state = state
            self._among.remove(self)
            self._entries = iter(())
            self._scan.close()


def merged(
    changes: Sequence[Change], scan: Iterable[tuple[bytes, bytes]], decode_key: Callable[[bytes], Any], decode_value: Callable[[bytes], Any]
) -> Iterator[Entry]:
    """The scan's entries merged with the changes, which win (both in key order; a change to None hides the key), decoded."""
    if not changes:
        for key, value in scan:
            yield decode_key(key), decode_value(value)
        return
    at, count = 0, len(changes)
    next_key = changes[0][0]
    for key, value in scan:
        hidden = False
        while at < count and next_key <= key:
            changed = changes[at][1]
            if changed is not None:
                yield decode_key(next_key), decode_value(changed)
            hidden = next_key == key
            at += 1
            if at < count:
                next_key = changes[at][0]
        if not hidden:
            yield decode_key(key), decode_value(value)
    for change_key, changed in changes[at:]:
        if changed is not None:
            yield decode_key(change_key), decode_value(changed)


def prefix_end(prefix: bytes) -> bytes | None:
    """The smallest key after all keys that start with `prefix`; None: there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
