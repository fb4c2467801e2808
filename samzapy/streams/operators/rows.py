"""The rows of a window's store, which window_firing.py keeps and describes; and for people, read back as keys, spans of time and accumulators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from samzapy.model.event_time import NEVER
from samzapy.model.layout import TIME_BYTES, time_of
from samzapy.streams.operators.held import COUNT_BYTES

CURSOR, SLICE, SLICES_END = b"\x00", b"\x10", b"\x11"
KEY_AT = len(SLICE) + TIME_BYTES


class Cursor(msgspec.Struct, array_like=True):
    """How far firing is: windows that end before or at `at` have fired, `to` is the aim; under way is `what` at `end`, up to `key`. Windows that
    end before or at `closed` take no records any more: what they had is deleted, or a bounded run closed them."""

    at: int
    to: int
    what: str
    end: int
    key: bytes
    closed: int = NEVER


@dataclass(frozen=True, slots=True)
class SliceRow:
    """What a slice has of one key.

    Attributes:
        start, end: the span of time of the slice, in milliseconds since 1970; the end is not in it.
        key, sum_: as bytes, of the record's key and of the accumulator.
        records: how many make up the accumulator.
    """

    start: int
    end: int
    key: bytes
    records: int
    sum_: bytes


def slice_row(key: bytes, value: bytes, every_ms: int) -> SliceRow | None:
    """An entry of the store of a window of slices of this length; None: it says how far firing is, and is no slice."""
    if not key.startswith(SLICE):
        return None
    end = time_of(key[len(SLICE) :])
    return SliceRow(end - every_ms, end, key[KEY_AT:], int.from_bytes(value[:COUNT_BYTES], "big"), value[COUNT_BYTES:])


def key_in_row(key: bytes) -> bytes | None:
    """The record's key in the key of an entry of a window's store; None: it says how far firing is, or is in the order of ends."""
    return key[KEY_AT:] if key.startswith(SLICE) else None


def different(keys: Iterable[bytes]) -> Iterator[bytes]:
    """Each key once, of keys in order."""
    before: bytes | None = None
    for key in keys:
        if key != before:
            yield key
        before = key


def first_key(rows: Iterator[tuple[bytes, bytes]]) -> bytes | None:
    """The key of the first row of a scan, which ends here; None: there is none."""
    try:
        return next((key for key, _ in rows), None)
    finally:
        rows.close()  # type: ignore[attr-defined]  # a scan of a store
