"""The serdes string, integer, json and bytes.

`encode` takes only its own type and `decode` only what it would write, so a wrong `key:` or `value:` line of the job file shows at the
first record and not as odd values later. Bytes are not trusted: nothing here allocates more than a small multiple of what came in.

`encode` and `decode` are plain functions (static methods): what runs per record looks nothing up. `quick_encode`, where there is one, is a
function of Python's own: it gives the same bytes, or raises TypeError or ValueError; then `encode` says what is wrong, or takes the value all the same.
So does `quick_decode` with what `decode` gives; JSON's takes more bytes than `decode` does, so its callers look at that.
"""

from __future__ import annotations

import datetime
import math
import struct
import sys
import uuid
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import orjson

from samzapy.api.errors import SerdeError
from samzapy.native import hot_path

MAX_JSON_BYTES = 16 << 20
MAX_WRITTEN_DEPTH, MAX_READ_DEPTH = 254, 1024  # orjson's
MAX_SHOWN_BITS = 4096  # Python takes quadratic time for its digits, and refuses more than 4300 of them
_dumps, _loads = orjson.dumps, orjson.loads  # bound here: a task may put other functions in their place
Encoder = Callable[[Any], bytes]
Decoder = Callable[[bytes], Any]
_INT64 = struct.Struct(">q")
_pack, _unpack = _INT64.pack, _INT64.unpack


_SHOWN_AS_TEXT = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def shown(value: object, limit: int = 80) -> str:
    """`value` as an error message shows it: its repr, shortened. Large values are not rendered in full for it."""
    if isinstance(value, str | bytes | bytearray) and len(value) > limit:
        return f"{value[:limit]!r}… ({len(value)} {'characters' if isinstance(value, str) else 'bytes'})"
    if isinstance(value, int) and value.bit_length() > MAX_SHOWN_BITS:
        return f"a whole number of {value.bit_length()} bits"
    if type(value) in _SHOWN_AS_TEXT:
        return str(value)
    text = repr(value) if isinstance(value, str | bytes | int | float | None) else f"a {type(value).__name__}"
    return text if len(text) <= limit + 16 else text[:limit] + "…"


# -- string ------------------------------------------------------------------------------------------------------------------------


def _encode_string(value: Any) -> bytes:
    try:
        return str.encode(value)
    except TypeError:
        raise SerdeError(
            f"serde string takes text (str), not {shown(value)} ({type(value).__name__}).", "Convert it, or name another serde."
        ) from None
    except UnicodeEncodeError as error:
        raise SerdeError(
            f"serde string: {shown(value)} is not valid text: {error.reason} at character {error.start}, counted from 0.", "Remove lone surrogates."
        ) from None


def _decode_string(data: bytes) -> str:
    try:
        return bytes.decode(data)
    except UnicodeDecodeError as error:
        raise SerdeError(
            f"serde string: {shown(data)} is not UTF-8: {error.reason} at byte {error.start}.", "Name the serde that wrote it, or `bytes`."
        ) from None


decode_string: Decoder = _decode_string if hot_path is None else hot_path.Decode(bytes.decode, _decode_string, sys.maxsize)


class StringSerde:
    """Text as UTF-8."""

    name = "string"
    key_order = "bytes"
    has_prefixes = True
    quick_encode = staticmethod(str.encode)
    quick_decode = staticmethod(bytes.decode)
    encode = staticmethod(_encode_string)
    decode = staticmethod(decode_string)


# -- integer -----------------------------------------------------------------------------------------------------------------------


def _encode_integer(value: Any) -> bytes:
    if type(value) is int or (isinstance(value, int) and not isinstance(value, bool)):
        try:
            return _pack(value)
        except struct.error:
            raise SerdeError(
                f"serde integer holds 64 bits; {shown(value)} does not fit.", "Name the serde `string` or `json` for it."
            ) from None
    raise SerdeError(f"serde integer takes int, not {shown(value)} ({type(value).__name__}).", "Convert it, or name another serde.")


def _decode_integer(data: bytes) -> int:
    try:
        return _unpack(data)[0]  # type: ignore[no-any-return]
    except struct.error:
        raise SerdeError(f"serde integer reads 8 bytes; {shown(data)} has {len(data)}.", "Name the serde that wrote it.") from None


encode_integer: Encoder = _encode_integer if hot_path is None else hot_path.EncodeInteger(_encode_integer, False)
decode_integer: Decoder = _decode_integer if hot_path is None else hot_path.DecodeInteger(_decode_integer, False)


class IntegerSerde:
    """A whole number as Kafka's LongSerializer writes it: 8 bytes, big-endian, two's complement.

    `key_order` is 'signed': as keys, the order of the bytes is that of the numbers once the sign bit is turned over; stores do that.
    """

    name = "integer"
    key_order = "signed"
    has_prefixes = False
    encode = staticmethod(encode_integer)
    decode = staticmethod(decode_integer)


# -- bytes -------------------------------------------------------------------------------------------------------------------------


def _encode_bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise SerdeError(f"serde bytes takes bytes, not {shown(value)} ({type(value).__name__}).", "Encode it, or name another serde.")


class BytesSerde:
    """Bytes as they are."""

    name = "bytes"
    key_order = "bytes"
    has_prefixes = True
    quick_encode = staticmethod(bytes.__bytes__)
    encode = staticmethod(_encode_bytes)
    decode = staticmethod(bytes.__bytes__)


# -- json --------------------------------------------------------------------------------------------------------------------------


def _encode_json(value: Any) -> bytes:
    try:
        data = _dumps(value)
    except TypeError as error:  # orjson.JSONEncodeError is one: a type, a key, a depth or an integer that JSON has no place for
        if "ecursion limit" in str(error):
            raise SerdeError(
                f"serde json writes lists and dicts nested up to {MAX_WRITTEN_DEPTH} deep (it reads {MAX_READ_DEPTH}); {shown(value)} is deeper.",
                "Nest it less, or name the serde `bytes` and write it yourself.",
            ) from None
        raise SerdeError(
            f"serde json cannot write {shown(value)}: {error}.",
            "Give it such a number as text, str(…), or as a float." if "64-bit" in str(error) else "Give it dicts with str keys, lists, str, numbers, bool, None.",
        ) from None
    if data.replace(b"null", b"null") is not data and has_not_a_number(value):  # the quickest way to look for a word: without it, `data` comes back
        raise SerdeError("serde json cannot write NaN or infinity: JSON has no such numbers.", "Use None, or leave the field out.")
    if len(data) > MAX_JSON_BYTES:
        raise SerdeError(f"serde json: {len(data)} bytes, more than the {MAX_JSON_BYTES} that it reads.", "Split the value.")
    return b"%b" % data  # a copy of its own size: orjson's keeps the whole buffer, of 4 KiB and more, for as long as a store keeps the value


_NO_FLOAT_IN_IT = frozenset({str, int, bool, type(None)})


def has_not_a_number(value: Any) -> bool:
    """Whether a float somewhere in `value` is NaN or infinite (orjson writes null for it). Depth is bounded: orjson has been through it."""
    if isinstance(value, float):
        return not math.isfinite(value)
    inside: Iterable[Any]
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    elif hasattr(value, "__dataclass_fields__"):
        inside = [getattr(value, name, None) for name in value.__dataclass_fields__]
    elif hasattr(value, "__struct_fields__"):
        inside = [getattr(value, name) for name in value.__struct_fields__]
    elif hasattr(value, "model_dump"):
        inside = vars(value).values()
    else:
        return False
    for item in inside:  # a loop: this runs for every value with a null in it  # noqa: SIM110
        if type(item) not in _NO_FLOAT_IN_IT and has_not_a_number(item):
            return True
    return False


def _decode_json(data: bytes) -> Any:
    if len(data) > MAX_JSON_BYTES:
        _refuse_json(data, f"{len(data)} bytes, more than {MAX_JSON_BYTES}")
    try:
        return _loads(data)  # it bounds the nesting (MAX_READ_DEPTH) and knows no NaN
    except ValueError as error:
        _refuse_json(data, str(error))


def _refuse_json(data: bytes, why: str) -> NoReturn:
    raise SerdeError(f"serde json cannot read {shown(data)}: {why}.", "Name the serde that wrote it.")


encode_json: Encoder = _encode_json if hot_path is None else hot_path.Encode(_dumps, _encode_json, MAX_JSON_BYTES, True)
decode_json: Decoder = _decode_json if hot_path is None else hot_path.Decode(_loads, _decode_json, MAX_JSON_BYTES)


class JsonSerde:
    """JSON in UTF-8, compact. Integers beyond 64 bits are refused when written and, as in JavaScript, read as floats: rounded.

    `same_flat`: the functions through which a flat dict (store/flat.py) comes back as it was; a class that inherits from this one may have others.
    """

    name = "json"
    key_order = "bytes"
    has_prefixes = False
    quick_decode = staticmethod(_loads)
    encode = staticmethod(encode_json)
    decode = staticmethod(decode_json)
    same_flat = (encode_json, decode_json)
