"""The store that a task sees: its uncommitted writes over what is committed, typed by the job file's serdes.

    live overlay       written since the last cut                      get: first of these that knows the key
    frozen overlay     cut, in the commit that is under way
    committed overlay  committed, not yet written to the engine
    read cache         committed entries and known absences, bounded
    engine             committed entries (RocksDB or memory)

Nothing reaches the committed overlay before the broker has decided the commit (`apply`), so the engine is never ahead of the log. None in
an overlay or in the cache is a deletion or a known absence; b"" is a value like any other. The writes of a hook are recorded until it has
returned (`keep`), so that they can be undone together (`undo`).

Keys are bytes in their *sorting form*; changelogs have the *log form* (store/key_form.py). Values are bytes, and in the
live overlay flat dicts (store/flat.py) too, which `freeze` encodes.
"""

from __future__ import annotations

import logging
from _thread import get_ident
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from samzapy import failpoints
from samzapy.api.errors import InDoubt, SamzapyError, SerdeError, check, shortened, unreadable_state
from samzapy.api.serde import Serde
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.stamp import StoreStamp
from samzapy.native import hot_path
from samzapy.ports import Change, Scan, StoreEngine, TaskStore
from samzapy.store import misuse
from samzapy.store.committed import ENTRY_BYTES, CommittedOverlay, size_of
from samzapy.store.flat import CACHE_BYTES_EACH, Flat, encoded, flat, max_flat, size_of_entry
from samzapy.store.iterator import OverlayIterator, merged, prefix_end
from samzapy.store.key_form import key_form
from samzapy.store.live import is_nothing_below, take_back, written
from samzapy.store.order import KeyOrder
from samzapy.store.problems import StoreProblem
from samzapy.store.read_cache import ReadCache

LOG = logging.getLogger("samzapy.store")
_ABSENT: Any = object()


class OverlayStore(TaskStore):
    """One store of one task; its methods are documented in api.store and ports. `where` names the task and the changelog in errors."""

    __slots__ = (
        "__weakref__", "_barrier", "_bytes", "_cache", "_closed_because", "_committed", "_decode_key", "_decode_value", "_encode_key",
        "_encode_value", "_engine", "_from_sorting", "_frozen", "_frozen_bytes", "_has_prefixes", "_key_serde", "_limit", "_live",
        "_max_flat", "_max_record_bytes", "_order", "_quick_key", "_thread", "_to_sorting", "called", "name", "scans", "stamp", "writes",
    )  # fmt: skip

    def __init__(
        self, name: str, engine: StoreEngine | None, key_serde: Serde, value_serde: Serde, cache_bytes: int, max_record_bytes: int, where: str,
        committed_bytes: int = 0,
    ) -> None:  # fmt: skip
        self.name = name
        self.stamp: StoreStamp | None = None
        self.called = f"store {name!r} of {where}"
        self._key_serde: str = getattr(key_serde, "name", type(key_serde).__name__)
        self._has_prefixes: bool = getattr(key_serde, "has_prefixes", True)
        self._encode_key, self._decode_key, self._quick_key, self._to_sorting, self._from_sorting = key_form(key_serde)
        self._encode_value: Callable[[Any], bytes] = value_serde.encode
        self._decode_value: Callable[[bytes], Any] = value_serde.decode
        self._max_flat = max_flat(value_serde, cache_bytes)  # `put` keeps a flat dict while the live overlay has fewer entries
        self._barrier = BARRIER_KEY if self._to_sorting is None else self._to_sorting(BARRIER_KEY)
        self._max_record_bytes = max_record_bytes
        self._thread = get_ident()
        self._limit, self._closed_because = -1, "it is not open yet"  # the limit: of key and value together; −1: writes are refused
        self._live: dict[bytes, Any] = {}  # bytes, None or a Flat
        self._frozen: dict[bytes, bytes | None] = {}
        self._bytes = self._frozen_bytes = 0
        self.writes: list[tuple[bytes, Any]] = []  # each with the value before it
        self._cache, self._committed = ReadCache(cache_bytes), CommittedOverlay(committed_bytes)
        self._order = KeyOrder(lambda: self._live.keys() | self._frozen.keys())
        self.scans: list[Any] = []
        self._engine: StoreEngine | None = None
        if engine is not None:
            self.attach(engine)

    # -- what a task calls -----------------------------------------------------------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        if key is None:
            raise misuse.no_key(self.called)
        try:
            data = self._quick_key(key)
        except (TypeError, ValueError):  # the careful one says what is wrong, or takes it all the same
            data = self._encode_key(key)
        value = self._live.get(data, _ABSENT)
        # Between commits, which is nearly always, the newest committed changes come next; looking there first saves a call per read.
        # During a commit the frozen overlay is newer, so `_below` looks there first.
        if value is _ABSENT:
            value = self._committed.newer.get(data, _ABSENT)
            if value is _ABSENT or self._frozen:
                value = self._below(data)
        elif type(value) is Flat:
            return value.dict()
        try:
            return default if value is None else self._decode_value(value)
        except SerdeError as error:
            raise unreadable_state(self.called, f"key {shortened(key)}", error) from error

    def put(self, key: Any, value: Any) -> None:
        if get_ident() != self._thread:
            raise misuse.other_thread(self.called, "put")
        if key is None:
            raise misuse.no_key(self.called)
        try:
            data = self._quick_key(key)
        except (TypeError, ValueError):
            data = self._encode_key(key)
        new: Any = None
        if value is not None:
            may_be_flat = type(value) is dict and len(self._live) < self._max_flat
            new = flat(value, self._limit - len(data)) if may_be_flat else None
            if new is None:
                new = self._encode_value(value)
        if (size := size_of_entry(data, new)) > self._limit:
            self._refuse(key, size)
        # The old value is recorded before anything changes, so that `undo` can restore it whatever raises after this.
        live = self._live
        old = live.get(data, _ABSENT)
        if old is _ABSENT:
            if data == self._barrier:
                raise misuse.reserved(self.called)
            self.writes.append((data, old))
            if self._order.is_sorted and data not in self._frozen:
                self._order.add(data)
            self._bytes += size
        else:
            self.writes.append((data, old))
            self._bytes += size - size_of_entry(data, old)
        live[data] = new
        if new is None and old is not _ABSENT and is_nothing_below(data, self._frozen, self._committed, self._cache, _ABSENT):
            del live[data]
            self._bytes -= len(data)
            self._order.remove(data)

    def range(self, from_key: Any, to_key: Any) -> OverlayIterator:
        if from_key is None or to_key is None:
            raise misuse.no_key(self.called)
        return self._iterate(self._encode_key(from_key), self._encode_key(to_key))

    def prefix(self, prefix: Any) -> OverlayIterator:
        if prefix is None:
            raise misuse.no_key(self.called)
        if not self._has_prefixes:
            raise misuse.no_prefixes(self.called, self._key_serde)
        return self._iterate(data := self._encode_key(prefix), prefix_end(data))

    def all(self) -> OverlayIterator:
        return self._iterate(None, None)

    # -- around a hook ---------------------------------------------------------------------------------------------------------------

    def keep(self) -> None:
        if self.writes:
            self.writes.clear()
        if self.scans:
            self._close_iterators()

    def undo(self) -> None:
        self._close_iterators()
        self._bytes += take_back(self.writes, self._live, self._frozen, self._order, _ABSENT)
        self.writes.clear()

    def written(self, limit: int) -> list[tuple[Any, Any, Any]]:
        def below(key: bytes) -> bytes | None:
            value = self._committed.newer.get(key, _ABSENT)
            return self._below(key) if value is _ABSENT or self._frozen else value

        found = written(self.writes, self._live, below, _ABSENT, limit, self._encode_value)
        return [(self._decode_key(key), *(None if v is None else self._decode_value(v) for v in pair)) for key, *pair in found]

    # -- around a commit -------------------------------------------------------------------------------------------------------------

    @property
    def uncommitted_bytes(self) -> int:
        return self._bytes

    @property
    def changed(self) -> bool:
        return bool(self._live)

    def freeze(self) -> Sequence[Change]:
        check(not self._frozen, f"{self.called} is frozen for a commit only after its last commit has ended")
        check(not self.writes, f"{self.called} is frozen for a commit only between two records")
        self._frozen, self._live = encoded(self._live, self._encode_value) if self._max_flat else self._live, {}
        self._frozen_bytes, self._bytes = self._bytes, 0
        log_form = self._from_sorting
        return list(self._frozen.items()) if log_form is None else [(log_form(key), value) for key, value in self._frozen.items()]

    def apply(self, stamp: StoreStamp) -> None:
        # The overlay is emptied only after it has arrived: an error in between leaves the container in doubt with nothing lost.
        if self._committed.max_bytes:
            self._opened()
            self._committed.take(self._frozen, self._frozen_bytes)
        else:
            self._opened().write(self._frozen.items(), stamp)
            self._cache.take_in(self._frozen, self._frozen_bytes)
        failpoints.hit("store.apply.done")
        self.stamp = stamp
        self._frozen, self._frozen_bytes = {}, 0
        self._order.forget()

    @property
    def unwritten(self) -> int:
        return len(self._committed)

    @property
    def must_write_out(self) -> bool:
        return self._committed.is_full

    def write_out(self, max_entries: int | None = None) -> bool:
        while self._committed.older or self._committed.newer:
            if self.stamp is None:
                raise AssertionError(f"{self.called} has committed changes, so it has a stamp")
            entries = self._committed.write_part(self._opened(), self.stamp, max_entries)
            failpoints.hit("store.write_out.part")
            if entries is not None:
                self._cache.adopt(entries, size_of(entries))
            if max_entries is not None:
                return entries is not None
        return True

    def discard(self) -> None:
        self._close_iterators()
        self.writes.clear()
        self._live, self._frozen = {}, {}
        self._bytes = self._frozen_bytes = 0
        self._order.forget()
        self._cache.clear()

    def limit_memory(self, max_bytes: int) -> None:
        committed = max(1, max_bytes // 4) if self._committed.max_bytes else 0
        self._committed.max_bytes = committed
        self._cache.limit(max_bytes - 2 * committed)
        self._max_flat = max(1, max_bytes // CACHE_BYTES_EACH) if self._max_flat else 0

    # -- restore, start, end -----------------------------------------------------------------------------------------------------------

    def load(self, records: Sequence[Change], stamp: StoreStamp) -> None:
        check(not self._live and not self._frozen and not self._committed, f"{self.called} is restored only while it has no changes of its own")
        if (form := self._to_sorting) is not None or BARRIER_KEY in [key for key, _ in records]:
            records = [(key if form is None else form(key), value) for key, value in records if key != BARRIER_KEY]
        self._opened().write(records, stamp)
        self.stamp = stamp
        self._cache.clear()

    def attach(self, engine: StoreEngine) -> None:
        self.discard()
        self._committed.clear()
        self._engine = engine
        self._thread = get_ident()
        self.stamp = engine.stamp()
        self._limit = self._max_record_bytes - misuse.RECORD_OVERHEAD_BYTES

    def refuse_writes(self) -> None:
        self._limit, self._closed_because = -1, "its task is closing: the last commit has been made"

    def flush(self) -> None:
        self.write_out()
        self._opened().flush()

    def start_flush(self) -> None:
        self._opened().flush(wait=False)

    def close(self) -> None:
        self.discard()
        self._limit, self._closed_because = -1, "it is closed"
        if self._engine is None:
            return
        try:
            self.write_out()
        except SamzapyError as error:  # the engine keeps its older stamp, which is correct: the rest is restored from the changelog
            LOG.warning("%s is closed without its last changes: %s", self.called, error.message)
        finally:
            engine, self._engine = self._engine, None
            self._committed.clear()
            engine.close()

    # -- inside ------------------------------------------------------------------------------------------------------------------------

    def _below(self, key: bytes) -> bytes | None:
        """The value of a key that is not in the live overlay nor, unless a commit is under way, among the newest committed changes."""
        if self._frozen:
            value = self._frozen.get(key, _ABSENT)
            if value is _ABSENT:
                value = self._committed.newer.get(key, _ABSENT)
            if value is not _ABSENT:
                return value  # type: ignore[no-any-return]
        if self._committed.older:
            value = self._committed.older.get(key, _ABSENT)
            if value is not _ABSENT:
                return value  # type: ignore[no-any-return]
        value = self._cache.get(key, _ABSENT)
        return self._from_engine(key) if value is _ABSENT else value

    def _from_engine(self, key: bytes) -> bytes | None:
        if get_ident() != self._thread:
            raise misuse.other_thread(self.called, "get")
        if key == self._barrier:
            raise misuse.reserved(self.called)
        value = self._opened().get(key)
        self._cache.add(key, value)
        return value

    def _iterate(self, from_key: bytes | None, to_key: bytes | None) -> OverlayIterator:
        if get_ident() != self._thread:
            raise misuse.other_thread(self.called, "range, prefix or all")
        live, frozen = self._live, self._frozen
        try:
            self.write_out()  # then the scan has to merge uncommitted changes only
        except StoreProblem as error:  # not the fault of the record whose hook scans
            raise InDoubt(error.message, error.remedy) from error
        scan = self._opened().scan(from_key, to_key)
        found = {k: live[k] if k in live else frozen[k] for k in self._order.between(from_key, to_key)} if live or frozen else {}
        changes = list((encoded(found, self._encode_value) if self._max_flat else found).items())
        iterator = OverlayIterator(self._merged(changes, scan), scan, self.scans, self.called)
        self.scans.append(iterator)
        return iterator

    def _merged(self, changes: Sequence[Change], scan: Scan) -> Iterator[tuple[Any, Any]]:
        return merged(changes, scan, self._decode_key, self._decode_value)

    def _close_iterators(self) -> None:
        for iterator in list(self.scans):
            iterator.close()

    def _opened(self) -> StoreEngine:
        if self._engine is not None:
            return self._engine
        raise misuse.closed(self.called, f"it cannot be used: {self._closed_because}")

    def _refuse(self, key: Any, size: int) -> None:
        if self._limit < 0:
            raise misuse.closed(self.called, f"it cannot be written: {self._closed_because}")
        raise misuse.too_large(self.called, key, size, self._max_record_bytes)


if hot_path is not None:
    OverlayStore.get = hot_path.StoreGet(OverlayStore, CommittedOverlay, ReadCache, OverlayStore.get, SerdeError, ENTRY_BYTES)  # type: ignore[method-assign]
    OverlayStore.put = hot_path.StorePut(OverlayStore, KeyOrder, OverlayStore.put, _ABSENT)  # type: ignore[method-assign]
