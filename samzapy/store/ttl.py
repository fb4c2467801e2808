"""A store whose entries expire: `stores.X.ttl`, in processing time since the last put.

What has expired is not seen any more from that moment on, wherever it lies: each value carries when it was put, so nothing comes back after a
restart. `expire` deletes it, in the container's thread and between two records: a tombstone in the changelog, as of any deletion, which takes
effect with the next commit. How long that takes depends on how much has expired, and not on how much is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from samzapy.api.serde import Serde
from samzapy.model.timed import is_expired, plain, timed
from samzapy.ports import Change, Scan, StoreEngine
from samzapy.store.overlay import OverlayStore
from samzapy.store.timed_engine import TimedEngine, key_of

_EXPIRED: Any = object()
_NOTHING: Any = object()


class _TimedSerde:
    """A serde of values whose bytes are in the local form. What has expired decodes to `_EXPIRED`."""

    def __init__(self, serde: Serde, ttl_ms: int, now_ms: Callable[[], int], put_ms: Callable[[], int]) -> None:
        self._serde, self._ttl_ms, self._now_ms, self._put_ms = serde, ttl_ms, now_ms, put_ms

    def encode(self, value: Any) -> bytes:
        return timed(self._serde.encode(value), self._put_ms())

    def decode(self, data: bytes) -> Any:
        return _EXPIRED if is_expired(data, self._ttl_ms, self._now_ms()) else self._serde.decode(plain(data))


class ExpiringStore(OverlayStore):
    """An OverlayStore with a `ttl`. `now_ms`: the time by which entries expire, `put_ms`: when what is put now counts as put, both in milliseconds since
    1970; the other arguments are those of OverlayStore."""

    __slots__ = ("_after", "_now_ms", "_timed_engine", "_ttl_ms")

    def __init__(
        self,
        name: str,
        engine: StoreEngine | None,
        key_serde: Serde,
        value_serde: Serde,
        *sizes: Any,
        ttl_ms: int,
        now_ms: Callable[[], int],
        put_ms: Callable[[], int],
        **more_sizes: Any,
    ) -> None:
        self._ttl_ms, self._now_ms = ttl_ms, now_ms
        self._after = b""  # the index entry that the last `expire` came to
        super().__init__(name, engine, key_serde, _TimedSerde(value_serde, ttl_ms, now_ms, put_ms), *sizes, **more_sizes)

    def get(self, key: Any, default: Any = None) -> Any:
        value = super().get(key, _NOTHING)
        return default if value is _NOTHING or value is _EXPIRED else value

    def written(self, limit: int) -> list[tuple[Any, Any, Any]]:
        return [(key, None if old is _EXPIRED else old, new) for key, old, new in super().written(limit)]

    def attach(self, engine: StoreEngine) -> None:
        self._timed_engine = TimedEngine(engine, self._ttl_ms)
        self._after = b""
        super().attach(self._timed_engine)

    def expire(self, max_entries: int) -> bool:
        """Delete what has expired, looking at `max_entries` index entries at most; True: that was all, and the next call begins anew."""
        self._opened()
        now_ms = self._now_ms()
        scan = self._timed_engine.hints(self._after, now_ms - self._ttl_ms)
        try:
            hints = [hint for hint, _ in islice(scan, max_entries)]
        finally:
            scan.close()
        needless = [hint for hint in hints if not self._delete_expired(key_of(hint), now_ms)]
        if needless:
            self._timed_engine.remove(needless)
        is_done = len(hints) < max_entries
        self._after = b"" if is_done else hints[-1]
        return is_done

    def _delete_expired(self, key: bytes, now_ms: int) -> bool:
        """Delete the key if what is committed of it has expired. Whether its index entry is still needed: until the deletion is committed."""
        value = self._committed.get(key, _NOTHING)
        if value is _NOTHING:
            value = self._opened().get(key)
        if value is None or not is_expired(value, self._ttl_ms, now_ms):
            return False  # deleted, or put again since: that has an index entry of its own, or gets one when it is written
        if key not in self._live and key not in self._frozen:  # one that was written since is left
            self._live[key] = None
            self._bytes += len(key)
            if self._order.is_sorted:
                self._order.add(key)
        return True

    def _merged(self, changes: Sequence[Change], scan: Scan) -> Iterator[tuple[Any, Any]]:
        return ((key, value) for key, value in super()._merged(changes, scan) if value is not _EXPIRED)
