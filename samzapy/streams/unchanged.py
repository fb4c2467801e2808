"""A check of the harness: functions do not change what they are given, because others are given the same value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from samzapy.api.errors import TaskError
from samzapy.streams.graph import FlatMap, Node, Rolling
from samzapy.streams.window_nodes import WindowAggregate

END: Any = object()


def unchanged(call: Callable[..., Any], node: Node) -> Callable[..., Any]:
    """The function, with a look at its value before and after. What `reduce`, `fold` and aggregates are given first is theirs to change."""
    own = isinstance(node, Rolling | WindowAggregate)

    def checked(*values: Any, **named: Any) -> Any:
        given = values[1:] if own else values
        before = [_bytes(value) for value in given]
        result = call(*values, **named)
        if before != [_bytes(value) for value in given]:
            raise _changes("gets")
        return _to_its_end(result, given, before) if isinstance(node, FlatMap) and isinstance(result, Iterator) else result

    return checked


def _to_its_end(results: Iterator[Any], given: tuple[Any, ...], before: list[bytes | None]) -> Iterator[Any]:
    """What a generator gives. It may change its value, or one that it gave, at any time until its end."""
    gave, as_given = None, None
    while True:
        result = next(results, END)
        if before != [_bytes(value) for value in given]:
            raise _changes("gets")
        if gave is not None and as_given != _bytes(gave):
            raise _changes("gave")
        if result is END:
            return
        gave, as_given = result, _bytes(result)
        yield result


def _changes(how: str) -> TaskError:
    return TaskError(
        f"its function changes the value that it {how}, and other operators get the same value.",
        "Make a new value: {**value, …}, dataclasses.replace(value, …), or copy.deepcopy(value).",
    )


def _bytes(value: Any) -> bytes | None:
    """A value's contents; None for what cannot be looked into."""
    try:
        return msgspec.json.encode(value, enc_hook=_contents)
    except (TypeError, ValueError, RecursionError, OverflowError, NotImplementedError):
        return None


def _contents(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    raise NotImplementedError
