"""The serde json for the keys of a store. An entry is found by the bytes of its key, so a key is refused if an equal one has other bytes.

The bytes of all other keys are those that the serde json writes, and whatever is in a store is read: an earlier version of samzapy refused no key.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from samzapy.api.errors import SerdeError
from samzapy.native import hot_path
from samzapy.serde.basic import MAX_JSON_BYTES, Encoder, JsonSerde, _dumps, encode_json, shown

_ONE_FORM = frozenset({str, int, bool, type(None)})
INTEGERS = 1 << 64  # orjson writes none beyond


def _encode_key(value: Any) -> bytes:
    data = encode_json(value)
    if type(value) not in _ONE_FORM:
        _refuse_other_forms(value, value)
    return data


encode_key: Encoder = _encode_key
for cls in (int, str) if hot_path is not None else ():  # the compiled one takes texts, then whole numbers, and leaves the rest
    encode_key = hot_path.Encode(_dumps, encode_key, MAX_JSON_BYTES, True, cls, (), ())


class JsonKeySerde(JsonSerde):
    """As `JsonSerde`, without keys that are equal to others and have other bytes: dicts whose names are not in order, whole numbers as floats (1.0, -0.0),
    and times with an offset from UTC. True and 1 are two keys, as in JSON."""

    encode = staticmethod(encode_key)


def as_stored_key(serde: Any) -> Any:
    """The serde for a store's keys, given the one that the job file names."""
    return JsonKeySerde() if type(serde) is JsonSerde else serde


def _refuse_other_forms(part: Any, key: Any) -> None:
    """Raises: SerdeError: an equal key has other bytes. `part`: of the key; JSON has been able to hold it, so its depth is bounded."""
    inside: Iterable[Any] = ()
    if isinstance(part, dict):
        names = list(part)
        if names != sorted(names):
            raise _refused(key, f"the names of a dict in it are not in order ({', '.join(map(shown, names[:3]))})", "Sort them: dict(sorted(key.items())).")
        inside = part.values()
    elif isinstance(part, list | tuple):
        inside = part
    elif isinstance(part, float):
        if part.is_integer() and abs(part) < INTEGERS:
            raise _refused(key, f"{part!r} in it is equal to {int(part)}", "Give whole numbers as int.")
    elif isinstance(part, datetime.datetime):
        if part.utcoffset():
            raise _refused(key, f"{part} in it is equal to the same time in UTC", "Give it in UTC: .astimezone(UTC).")
    elif hasattr(part, "__dataclass_fields__"):
        inside = [getattr(part, name, None) for name in part.__dataclass_fields__]
    for each in inside:
        if type(each) not in _ONE_FORM:
            _refuse_other_forms(each, key)


def _refused(key: Any, why: str, remedy: str) -> SerdeError:
    return SerdeError(f"serde json cannot write the key {shown(key)}: {why}, and a store finds its entries by the bytes of their keys.", remedy)
