"""Keys of stores that are in the order of time: byte order is the order of times."""

from __future__ import annotations

TIME_BYTES = 8
_SHIFT = 1 << 63


def time_bytes(time: int) -> bytes:
    """Eight bytes in whose order times are, those before 1970 too.

    Raises:
        OverflowError: beyond NEVER to END.
    """
    return (time + _SHIFT).to_bytes(TIME_BYTES, "big")


def time_of(data: bytes) -> int:
    """What `time_bytes` was given; of the first eight bytes."""
    return int.from_bytes(data[:TIME_BYTES], "big") - _SHIFT
