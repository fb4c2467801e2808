"""The interface of a store for a task: typed keys and values, encoded by the serdes that the job file names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, overload

from samzapy.api.type_variables import Default, K, K_co, V, V_co


class StoreIterator(Protocol[K_co, V_co]):
    """(key, value) pairs of a store in the order of its keys, as the store was when the iterator was opened: later puts do not change it.

    It closes at its last entry, at the end of a `with`, or when the hook that opened it returns. `next` of an iterator that was closed before its
    last entry raises StoreClosed; `next` raises StateUnreadable at an entry that the serde, or the class, cannot read.
    """

    def __iter__(self) -> Iterator[tuple[K_co, V_co]]: ...
    def __next__(self) -> tuple[K_co, V_co]: ...
    def __enter__(self) -> StoreIterator[K_co, V_co]: ...
    def __exit__(self, *exc: object) -> None: ...
    def close(self) -> None: ...


class KeyValueStore(Protocol[K, V]):
    """A task's own store. The task's reads see a write at once; the next commit makes it durable.

    Entries are ordered by the bytes of their encoded keys; keys of serde `integer` are in numeric order. `get` returns a copy: a change to it
    reaches the store only when it is put again. No value is None: to put None deletes the key.

    `KeyValueStore[str, int]` tells a type checker that keys are str and values int; without parameters both are Any.

    All other methods are made of `get`, `put`, `range`, `prefix` and `all`: a class that defines these five, such as a fake in a test, inherits them.

    A store may be used only in its task's hooks, in the thread that runs them; other use raises TaskError or StoreClosed. The key None raises TaskError.
    """

    __slots__ = ()

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V) -> V: ...
    @overload
    def get(self, key: K, default: Default) -> V | Default: ...
    def get(self, key: K, default: Any = None) -> Any:
        """The value of the key, or `default` if the key is absent.

        Raises:
            StateUnreadable: the serde, or the class, cannot read the stored bytes. No record is at fault: if the hook does not catch it, the job stops.
            SerdeError: the key serde cannot encode the key.
        """
        raise NotImplementedError

    def put(self, key: K, value: V | None) -> None:
        """Set the value of the key; None deletes the key.

        Raises:
            SerdeError: the store's serdes cannot encode the key or the value.
            RecordTooLarge: key and value are larger than the changelog topic allows (`max.message.bytes`).
            StoreClosed: the task is closing: `close` may read, but not write.
        """
        raise NotImplementedError

    def range(self, from_key: K, to_key: K) -> StoreIterator[K, V]:
        """Entries with from_key <= key < to_key, compared as encoded bytes, in order."""
        raise NotImplementedError

    def prefix(self, prefix: K) -> StoreIterator[K, V]:
        """Entries whose encoded key starts with the encoded prefix, in order.

        Raises:
            TaskError: keys of this serde have no prefixes; those of `string` and `bytes` have.
        """
        raise NotImplementedError

    def all(self) -> StoreIterator[K, V]:
        """All entries, in order."""
        raise NotImplementedError

    def delete(self, key: K) -> None:
        """Delete the key; nothing happens if it is absent. Raises as `put`."""
        self.put(key, None)

    @overload
    def update_with(self, key: K, function: Callable[[V], V], default: V) -> V: ...
    @overload
    def update_with(self, key: K, function: Callable[[V | None], V | None]) -> V | None: ...
    def update_with(self, key: K, function: Callable[[Any], Any], default: Any = None) -> Any:
        """Put `function(value)` and return it: `counts.update_with(word, lambda n: n + 1, 0)`.

        The function gets `default` if the key is absent. If it returns None, the key is deleted; for a type checker such a function must take None as
        well, and is given without `default`.
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
        """The keys, in order, as a dict gives them; see `all`."""
        return (key for key, _ in self.all())

    def get_all(self, keys: Iterable[K]) -> dict[K, V | None]:
        """A dict from each of the keys to its value, or to None if the key is absent."""
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
