"""The two forms of a key. Changelogs have the *log form*: the serialised key itself. Overlays and engines have the *sorting form*, whose
byte order is the order of the keys: the same bytes, but for serdes of order 'signed', whose sign bit is inverted (two's complement,
big-endian, then sorts as the numbers do)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from samzapy.api.serde import Serde
from samzapy.native import hot_path

_SIGN_INVERTED = tuple(bytes([byte ^ 0x80]) for byte in range(256))


def to_signed(log_key: bytes) -> bytes:
    """Log form to sorting form, of order 'signed'."""
    return _SIGN_INVERTED[log_key[0]] + log_key[1:] if log_key else log_key


from_signed = to_signed  # its own inverse


class KeyForm(NamedTuple):
    """How a store's keys become bytes in their sorting form, and back.

    Attributes:
        encode, decode: between a task's key and the sorting form.
        quick_encode: as `encode`; but where it raises TypeError or ValueError, `encode` is asked.
        to_sorting, from_sorting: between log form and sorting form; None: they are the same.
    """

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    quick_encode: Callable[[Any], bytes]
    to_sorting: Callable[[bytes], bytes] | None
    from_sorting: Callable[[bytes], bytes] | None


def key_form(serde: Serde) -> KeyForm:
    """The key form of a store whose keys have this serde."""
    encode, decode = serde.encode, serde.decode
    if getattr(serde, "key_order", "bytes") != "signed":
        return KeyForm(encode, decode, getattr(serde, "quick_encode", encode), None, None)

    def encode_signed(key: Any) -> bytes:
        return to_signed(encode(key))

    def decode_signed(data: bytes) -> Any:
        return decode(from_signed(data))

    if hot_path is None or not isinstance(encode, hot_path.EncodeInteger):
        return KeyForm(encode_signed, decode_signed, encode_signed, to_signed, from_signed)
    quick_encode, quick_decode = hot_path.EncodeInteger(encode_signed, True), hot_path.DecodeInteger(decode_signed, True)
    return KeyForm(encode_signed, quick_decode, quick_encode, to_signed, from_signed)
