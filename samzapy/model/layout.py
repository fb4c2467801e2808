"""Keys of stores that are in the order of time: byte order is the order of times, and no key is a prefix of another's."""

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


def sized(key: bytes) -> bytes:
    """A key after its length, so that what follows it cannot be taken for a part of it: seven bits of the length a byte, the lowest first."""
    length, prefix = len(key), bytearray()
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + key


def split_sized(data: bytes) -> tuple[bytes, bytes]:
    """The key that `sized` was given, and what follows it.

    Raises:
        ValueError: it is not what `sized` gives.
    """
    length = shift = 0
    for index, byte in enumerate(data):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            end = index + 1 + length
            if end > len(data):
                break
            return data[index + 1 : end], data[end:]
    raise ValueError(f"{data[:20]!r} is not a key after its length")


