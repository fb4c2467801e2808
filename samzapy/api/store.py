"""The interface of a store for a task: typed keys and values, encoded by the serdes that the job file names."""

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

    Entries are ordered by the bytes of the serialised key; integers are in numeric order. `get` returns a copy:
    changing it does not change the store until it is put.
    """

    def get(self, key: Any) -> Any:
        """The value, or None."""

    def put(self, key: Any, value: Any) -> None:
        """Set; None deletes.

        Raises:
            SerdeError: the key or value does not encode. RecordTooLarge: larger than the changelog topic's limit. StoreClosed: the task is closing.
        """

    def delete(self, key: Any) -> None:
        """Remove the key, if it exists."""

    def get_all(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """A dict with a value for each of the keys; None for a key that is absent."""

    def put_all(self, entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        """`put` for each entry."""

    def delete_all(self, keys: Iterable[Any]) -> None:
        """`delete` for each key."""

    def range(self, from_key: Any, to_key: Any) -> StoreIterator:
        """Entries with from_key <= key < to_key, in order."""

    def prefix(self, prefix: Any) -> StoreIterator:
        """Entries whose serialised key starts with the serialised prefix (string and bytes keys)."""

    def all(self) -> StoreIterator:
        """All entries, in order."""
