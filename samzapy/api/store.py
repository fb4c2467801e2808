"""The store as a task sees it: typed keys and values, by the serdes that the job file names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol


class StoreIterator(Protocol):
    """(key, value) pairs in order over a fixed view.

    It closes by itself at its end, at the end of a `with`, or when the hook that opened it returns; after that, `next` raises StoreClosed.
    """

    def __iter__(self) -> Iterator[tuple[Any, Any]]: ...
    def __next__(self) -> tuple[Any, Any]: ...
    def __enter__(self) -> StoreIterator: ...
    def __exit__(self, *exc: object) -> None: ...
    def close(self) -> None: ...


class KeyValueStore(Protocol):
    """A task's own local store. Writes are seen by its own reads at once and become durable with the next commit.

    Order is that of the serialised key's bytes; integers are in numeric order. Values got from the store are the caller's own copies:
    changing one changes nothing in the store until it is put.
    """

    def get(self, key: Any) -> Any:
        """The value, or None."""

    def put(self, key: Any, value: Any) -> None:
        """Set; None deletes.

        Raises:
            SerdeError: the key or value does not encode. RecordTooLarge: beyond what the changelog topic takes. StoreClosed: too late.
        """

    def delete(self, key: Any) -> None:
        """Remove, if there."""

    def get_all(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """A dict with every asked key, None where absent."""

    def put_all(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        """Each as by `put`."""

    def delete_all(self, keys: Iterable[Any]) -> None:
        """Each as by `delete`."""

    def range(self, from_key: Any, to_key: Any) -> StoreIterator:
        """Entries with from_key <= key < to_key, in order."""

    def prefix(self, prefix: Any) -> StoreIterator:
        """Entries whose serialised key starts with the serialised prefix (string and bytes keys)."""

    def all(self) -> StoreIterator:
        """All entries, in order."""
