"""Records of an earlier version of a class that fit the class as it is now: a field that was renamed has a default, so nothing seems to be missing.

Such a record has a field that the class does not have. So may a record of somebody else's that is not old: it is told by what `upgrade` does. If it takes
a field that the record has and the class does not, or copies all and leaves that one out, the record is an old one, and what `upgrade` gives counts.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from typing import Any

import msgspec


class _Taken:
    """What `upgrade` did with the fields that the class does not have. `is_taken`: it asked for one by its name; `copied`: those of what it went through."""

    def __init__(self) -> None:
        self.is_taken = False
        self.copied: set[str] = set()


class _Asked(dict[str, Any]):
    """The fields of a record, or of a part of one, which note what is done with them.

    Args:
        fields: of the record.
        unknown: those that the class does not have.
        taken: gets to know.
    """

    def __init__(self, fields: dict[str, Any], unknown: set[str], taken: _Taken) -> None:
        super().__init__(fields)
        self._unknown, self._taken = unknown, taken
        self._passed = set[str]()  # names that were given out in turn: whoever takes their values next goes through all

    def _note(self, name: Any) -> None:
        if name in self._passed:
            self._passed.discard(name)
        elif name in self._unknown:
            self._taken.is_taken = True

    def __iter__(self) -> Iterator[str]:  # also where Python copies a dict
        self._taken.copied |= self._unknown
        for name in super().__iter__():
            self._passed.add(name)
            yield name

    def keys(self) -> Any:
        return KeysView(self)

    def items(self) -> Any:
        return ItemsView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __getitem__(self, name: str) -> Any:
        self._note(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._note(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._note(name)
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        self._note(name)
        return super().pop(name, *default)


def of_old(fields: Any, read: Any, written: Any, upgrade: Callable[[Any], Any]) -> Callable[[], Any] | None:
    """What gives the new fields of an old record, or raises what `upgrade` raised; None: it is none.

    Args:
        fields: the record as JSON says it.
        read: what was read of it.
        written: what JSON says of that, written again.
        upgrade: of the class.
    """
    taken = _Taken()
    _add_defaults(read, written)
    asked, has_unknown = _asked(fields, written, taken)
    if not has_unknown:
        return None
    try:
        found = upgrade(asked)
    except Exception as error:  # noqa: BLE001  the user's method may raise anything, also because the record is none of its
        return _raising(error) if taken.is_taken else None
    is_taken, names = taken.is_taken, set[str]()  # the rest asks for names too
    found = _plain(found, names)
    return (lambda: found) if is_taken or taken.copied - names else None


def _add_defaults(read: Any, written: Any) -> None:
    """A class with `omit_defaults` does not write what a record may have: its fields are known all the same."""
    if isinstance(written, dict) and isinstance(read, msgspec.Struct):
        for name, its in zip(read.__struct_fields__, read.__struct_encode_fields__, strict=True):
            written.setdefault(its, None)
            _add_defaults(getattr(read, name), written[its])
    elif isinstance(written, dict) and is_dataclass(read):
        for field in fields_of(read):
            _add_defaults(getattr(read, field.name, None), written.get(field.name))
    elif isinstance(written, dict) and isinstance(read, dict):
        for one, other in zip(read.values(), written.values(), strict=False):
            _add_defaults(one, other)
    elif isinstance(written, list) and isinstance(read, list | tuple):
        for one, other in zip(read, written, strict=False):
            _add_defaults(one, other)


def _raising(error: Exception) -> Callable[[], Any]:
    def raised() -> Any:
        raise error

    return raised


def _asked(fields: Any, written: Any, taken: _Taken) -> tuple[Any, bool]:
    """The fields as `upgrade` gets them; whether there is one at any depth that was not written again."""
    if isinstance(fields, dict) and isinstance(written, dict):
        unknown, found, has_unknown = fields.keys() - written.keys(), dict(fields), False
        for name in fields.keys() & written.keys():
            found[name], is_in_it = _asked(fields[name], written[name], taken)
            has_unknown |= is_in_it
        return _Asked(found, unknown, taken), has_unknown or bool(unknown)
    if isinstance(fields, list) and isinstance(written, list) and len(fields) == len(written):
        each = [_asked(one, other, taken) for one, other in zip(fields, written, strict=True)]
        return [part for part, _ in each], any(is_in_it for _, is_in_it in each)
    return fields, False


def _plain(found: Any, names: set[str]) -> Any:
    """What `upgrade` gave, of ordinary dicts; `names` gets their keys."""
    if isinstance(found, dict):
        names |= set(dict.keys(found))
        return {name: _plain(value, names) for name, value in dict.items(found)}
    return [_plain(value, names) for value in found] if isinstance(found, list) else found
