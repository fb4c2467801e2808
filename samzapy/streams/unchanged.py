"""A check of the harness: functions do not change what they are given, because others are given the same value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from samzapy.api.errors import TaskError
from samzapy.streams.graph import Node, Rolling


def unchanged(call: Callable[..., Any], node: Node) -> Callable[..., Any]:
    """The function, with a look at its value before and after. What `reduce`, `fold` and aggregates are given first is theirs to change."""
    own = isinstance(node, Rolling)

    def checked(*values: Any, **named: Any) -> Any:
        given = values[1:] if own else values
        before = [_bytes(value) for value in given]
        result = call(*values, **named)
        if before != [_bytes(value) for value in given]:
            raise TaskError(
                f"{node.title} ({node.where}): its function changes the value that it gets, and other operators get the same value.",
                "Make a new value: {**value, …}, dataclasses.replace(value, …), or copy.deepcopy(value).",
            )
        return result

    return checked


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
