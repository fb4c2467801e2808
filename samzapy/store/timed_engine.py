"""The engine of a store with a `ttl`: entries, and for each an index entry by time, so that what has expired is found without looking at the rest.

    0x01 + key            the value in its local form (model/timed.py)
    0x00 + time + key     an index entry, without a value

The times of the index are rounded up to a sixteenth of the ttl, so that a key that is put often has at most seventeen index entries. An index entry
is a hint only: the value says when it was put. Hints of a key that was put again or deleted since are removed when their time comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from samzapy.model.stamp import StoreStamp
from samzapy.model.timed import TIME_BYTES, put_ms
from samzapy.ports import Change, Scan, StoreEngine

HINT, ENTRY, ENTRY_END = b"\x00", b"\x01", b"\x02"
STEPS = 16


class TimedScan:
    """The entries of an engine's scan, without the byte before their keys."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        key, value = next(self._scan)
        return key[1:], value

    def close(self) -> None:
        self._scan.close()


class TimedEngine:
    """A StoreEngine over another one, whose values are in the local form."""

    def __init__(self, engine: StoreEngine, ttl_ms: int) -> None:
        self._engine = engine
        self._step_ms = max(1, ttl_ms // STEPS)
        self.stamp, self.flush, self.close = engine.stamp, engine.flush, engine.close

    def get(self, key: bytes) -> bytes | None:
        return self._engine.get(ENTRY + key)

    def scan(self, from_key: bytes | None = None, to_key: bytes | None = None) -> Scan:
        return TimedScan(self._engine.scan(ENTRY + (from_key or b""), ENTRY_END if to_key is None else ENTRY + to_key))

    def write(self, changes: Iterable[Change], stamp: StoreStamp) -> None:
        def with_hints() -> Iterator[Change]:
            for key, value in changes:
                yield ENTRY + key, value
                if value is not None:
                    yield self._hint(key, value), b""

        self._engine.write(with_hints(), stamp)

    def hints(self, after: bytes, until_ms: int) -> Scan:
        """The index entries, by time, after this one ("": from the first) and up to this time; each is a key of the engine below."""
        if until_ms < 0:
            return self._engine.scan(HINT, HINT)
        return self._engine.scan(after + b"\x00" if after else HINT, HINT + (until_ms + 1).to_bytes(TIME_BYTES, "big"))

    def remove(self, hints: Iterable[bytes]) -> None:
        """Remove index entries. The stamp stays: they are of no changelog."""
        stamp = self._engine.stamp()
        if stamp is not None:
            self._engine.write([(hint, None) for hint in hints], stamp)

    def _hint(self, key: bytes, value: bytes) -> bytes:
        rounded = -(-put_ms(value) // self._step_ms) * self._step_ms
        return HINT + rounded.to_bytes(TIME_BYTES, "big") + key


def key_of(hint: bytes) -> bytes:
    """The key that an index entry is of."""
    return hint[1 + TIME_BYTES :]
