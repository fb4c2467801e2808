"""The local form of a value in a store with a `ttl`: when it was put, then the value as the changelog has it.

The changelog's record holds the plain value, and its timestamp is that time: any Kafka tool reads it, and a restore makes the local form of it again.
The time is kept, not the end of it, so that a longer or shorter `ttl` applies to what is there already.
"""

from __future__ import annotations

TIME_BYTES = 8
MARK = ", timed"  # follows the serde's name in the identity of a local store that has this form


def timed(value: bytes, put_ms: int) -> bytes:
    """The local form. `put_ms`: milliseconds since 1970."""
    return max(put_ms, 0).to_bytes(TIME_BYTES, "big") + value


def put_ms(data: bytes) -> int:
    """When the value of a local form was put, in milliseconds since 1970."""
    return int.from_bytes(data[:TIME_BYTES], "big")


def plain(data: bytes) -> bytes:
    """The value of a local form."""
    return data[TIME_BYTES:]


def is_expired(data: bytes, ttl_ms: int, now_ms: int) -> bool:
    """Whether the time of a local form is over."""
    return put_ms(data) + ttl_ms <= now_ms
