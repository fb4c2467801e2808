"""A window's rows for people: what slices.py keeps, read back as keys, spans of time and accumulators."""

from __future__ import annotations

from dataclasses import dataclass

from samzapy.model.layout import time_of
from samzapy.streams.operators.held import COUNT_BYTES
from samzapy.streams.operators.slices import KEY_AT, SLICE


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
