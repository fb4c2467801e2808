"""The interface of a store for a task: typed keys and values, encoded by the serdes that the job file names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, overload

from samzapy.api.type_variables import Default, K, K_co, V, V_co


class StoreIterator(Protocol[K_co, V_co]):
    """(key, value) pairs in order over a fixed view.

    It closes by itself at its end, at the end of a `with`, or when the hook that opened it returns; after that, `next` raises StoreClosed.
    """

    def __iter__(self) -> Iterator[tuple[K_co, V_co]]: ...
    def __next__(self) -> tuple[K_co, V_co]: ...
    def __enter__(self) -> StoreIterator[K_co, V_co]: ...
    def __exit__(self, *exc: object) -> None: ...
    def close(self) -> None: ...


class KeyValueStore(Protocol[K, V]):
    """A task's own local store. Writes are seen by its own reads at once and become durable with the next commit.

    Entries are ordered by the bytes of the serialised key; integers are in numeric order. `get` returns a copy: changing it does not change
    the store until it is put. No key has the value None: to put None is to delete, so a key without a value is absent.

    `KeyValueStore[str, int]` tells a type checker of keys and values; without parameters both are Any.

    What is made of `get`, `put` and `all` is written here once: another store (a fake in a test) gets it by inheriting from this class.
    """

    __slots__ = ()

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V) -> V: ...
    @overload
    def get(self, key: K, default: Default) -> V | Default: ...
    def get(self, key: K, default: Any = None) -> Any:
        """The value, or `default`.

        Raises:
            StateUnreadable: the serde, or the class, does not read what was stored. If the hook does not catch it, the job stops: no record is at fault.
        """
        raise NotImplementedError

    def put(self, key: K, value: V | None) -> None:
        """Set; None deletes.

        Raises:
            SerdeError: the key or value does not encode. RecordTooLarge: larger than the changelog topic's limit. StoreClosed: the task is closing.
        """
        raise NotImplementedError

    def range(self, from_key: K, to_key: K) -> StoreIterator[K, V]:
        """Entries with from_key <= key < to_key, in order."""
        raise NotImplementedError

    def prefix(self, prefix: K) -> StoreIterator[K, V]:
        """Entries whose serialised key starts with the serialised prefix (string and bytes keys)."""
        raise NotImplementedError

    def all(self) -> StoreIterator[K, V]:
        """All entries, in order."""
        raise NotImplementedError

    def delete(self, key: K) -> None:
        """Remove the key, if it exists."""
        self.put(key, None)

    @overload
    def update_with(self, key: K, function: Callable[[V], V], default: V) -> V: ...
    @overload
    def update_with(self, key: K, function: Callable[[V | None], V | None]) -> V | None: ...
    def update_with(self, key: K, function: Callable[[Any], Any], default: Any = None) -> Any:
        """Put `function(value)` and return it: `counts.update_with(word, lambda n: n + 1, 0)`.

        The function gets `default` if the key is absent; if it returns None, the key is deleted. (A type checker wants a function that may
        return None to take None, too, and no default.)
        """
        value = function(self.get(key, default))
        self.put(key, value)
        return value

    def __getitem__(self, key: K) -> V:
        """The value.

        Raises:
            KeyError: the key is absent.
        """
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: K, value: V | None) -> None:
        """`put`: None deletes."""
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        """Remove the key.

        Raises:
            KeyError: the key is absent; `delete` raises nothing then.
        """
        self[key]
        self.put(key, None)

    def __contains__(self, key: K) -> bool:
        """Whether the key has a value."""
        return self.get(key) is not None

    def __iter__(self) -> Iterator[K]:
        """The keys, in order, as of a dict; see `all`."""
        return (key for key, _ in self.all())

    def get_all(self, keys: Iterable[K]) -> dict[K, V | None]:
        """A dict with a value for each of the keys; None for a key that is absent."""
        get = self.get
        return {key: get(key) for key in keys}

    def put_all(self, entries: Mapping[K, V | None] | Iterable[tuple[K, V | None]]) -> None:
        """`put` for each entry."""
        put = self.put
        for key, value in entries.items() if isinstance(entries, Mapping) else entries:
            put(key, value)

    def delete_all(self, keys: Iterable[K]) -> None:
        """`delete` for each key."""
        for key in keys:
            self.put(key, None)
