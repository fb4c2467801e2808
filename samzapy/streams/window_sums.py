"""How the values of a window's records become its result, as its operators need it: the program's functions and serdes together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samzapy.api.serde import Serde
from samzapy.serde.registry import OwnSerde
from samzapy.streams.kept_panes import decoding
from samzapy.streams.kinds import refuse_other_json
from samzapy.streams.operators.held import ROOM, Sums, is_dict_of_plain, is_never_plain, is_plain, is_plain_int
from samzapy.streams.unchanged import unchanged
from samzapy.streams.window_nodes import WindowAggregate

OF_NUMBERS = {"count", "sum", "mean", "min", "max"}  # aggregates that make a new accumulator with each value, of numbers


def sums_of(node: WindowAggregate, serde: Callable[[str], Serde], check: bool) -> Sums:
    """How a window's values become its result. `check`: whether its function is checked for changing what it is given."""
    kept = serde(node.kept.serde)
    held: dict[str, Any] = {"may_hold": {"json": is_plain, "integer": is_plain_int}.get(node.kept.serde, is_never_plain)}
    if isinstance(serde(node.key.serde), OwnSerde):
        held = {"may_hold": is_never_plain}  # keys that are not equal may be the same in bytes, and so the same row
    elif node.parts and {what for _, what in node.parts} <= OF_NUMBERS:
        held = {"may_hold": is_dict_of_plain, "room": sum(2 * ROOM + 6 * len(name) for name, _ in node.parts)}
    merge = node.merge or _no_merge
    return Sums(_adding(node, check), merge, node.merge_parts or merge, node.result or _same, kept.encode, decoding(node, kept.decode), **held)


def _adding(node: WindowAggregate, check: bool) -> Callable[[Any, Any, int], Any]:
    adding, kind = _any_adding(node, check), node.kept
    if node.how not in ("reduce", "fold") or not kind.is_checked_when_written:
        return adding
    accepted = kind.accepted

    def checked(sum_: Any, value: Any, time: int) -> Any:
        found = adding(sum_, value, time)
        if type(found) not in accepted:
            refuse_other_json(kind, found)
        return found

    return checked


def _any_adding(node: WindowAggregate, check: bool) -> Callable[[Any, Any, int], Any]:
    if node.add is None:
        return lambda sum_, value, time: 1 if sum_ is None else sum_ + 1
    add, zero = unchanged(node.add.call, node) if check else node.add.call, node.zero
    if zero is None:
        return lambda sum_, value, time: value if sum_ is None else add(sum_, value)
    if node.add.asks:
        return lambda sum_, value, time: add(zero() if sum_ is None else sum_, value, time=time)
    return lambda sum_, value, time: add(zero() if sum_ is None else sum_, value)


def _no_merge(a: Any, b: Any) -> Any:
    raise AssertionError("a window of one slice merges nothing")


def _same(value: Any) -> Any:
    return value
