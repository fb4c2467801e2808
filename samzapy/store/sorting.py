"""The sorting form of signed keys: two's complement, big-endian, with the sign bit turned over, sorts as the numbers do."""

from __future__ import annotations

_TURNED = tuple(bytes([byte ^ 0x80]) for byte in range(256))


def to_signed(log_key: bytes) -> bytes:
    """Log form to sorting form."""
    return _TURNED[log_key[0]] + log_key[1:] if log_key else log_key


from_signed = to_signed  # its own inverse
