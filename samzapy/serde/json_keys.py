"""The serde json for the keys of a store. An entry is found by the bytes of its key, and equal dicts whose names come in another order have other bytes.

A task may give them in any order, as long as it is always the same one: so the first order of some names in a place of a key counts, and another one
is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from samzapy.api.errors import SerdeError
from samzapy.native import hot_path
from samzapy.serde.basic import MAX_JSON_BYTES, Encoder, JsonSerde, _dumps, encode_json, shown

_PLAIN = frozenset({str, int, bool, float, type(None)})
MAX_ORDERS = 1000  # of so many sets of names, each in its place of a key, the order is known
Path = tuple[Any, ...]
REMEDY = "Give the names in one order wherever the task makes such a key."


class JsonKeySerde(JsonSerde):
    """As `JsonSerde`, for one store; the bytes of keys are the same. 1, 1.0 and True are three keys, as they are three texts in JSON."""

    def __init__(self) -> None:
        self._orders: dict[tuple[Path, frozenset[str]], tuple[str, ...]] = {}
        encode: Encoder = self._encode
        for cls in (int, str) if hot_path is not None else ():  # the compiled one takes texts, then whole numbers, and leaves the rest
            encode = hot_path.Encode(_dumps, encode, MAX_JSON_BYTES, True, cls, (), ())
        self.encode = encode

    def _encode(self, value: Any) -> bytes:
        data = encode_json(value)
        if type(value) not in _PLAIN:
            self._refuse_another_order(value, value, ())
        return data

    def _refuse_another_order(self, part: Any, key: Any, path: Path) -> None:
        """Raises: SerdeError: a dict's names came in another order before, in this place. `part`: of the key; JSON was able to hold it, so its depth is
        bounded."""
        inside: Iterable[tuple[Any, Any]] = ()
        if isinstance(part, dict):
            if len(part) > 1:
                self._refuse(tuple(part), key, path)
            inside = part.items()
        elif isinstance(part, list | tuple):
            inside = enumerate(part)
        elif hasattr(part, "__dataclass_fields__"):
            inside = [(name, getattr(part, name, None)) for name in part.__dataclass_fields__]
        for name, each in inside:
            if type(each) not in _PLAIN:
                self._refuse_another_order(each, key, (*path, name))

    def _refuse(self, names: tuple[str, ...], key: Any, path: Path) -> None:
        which = path, frozenset(names)
        first = self._orders.get(which)
        if first is None:
            if len(self._orders) < MAX_ORDERS:
                self._orders[which] = names
        elif first != names:
            raise SerdeError(
                f"serde json cannot write the key {shown(key)}: its names came in another order before ({', '.join(map(shown, first[:3]))}), "
                "and a store finds its entries by the bytes of their keys.",
                REMEDY,
            )


def as_stored_key(serde: Any) -> Any:
    """The serde for a store's keys, given the one that the job file names."""
    return JsonKeySerde() if type(serde) is JsonSerde else serde
