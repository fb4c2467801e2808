"""Panes that a table or window of `reduce` keeps, or that went through an internal topic: JSON has them as dicts, and functions get panes again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from samzapy.api.errors import SerdeError, TaskError, shortened, unreadable_state
from samzapy.serde.basic import shown
from samzapy.streams.functions import Function
from samzapy.streams.graph import Keeps, Node, Reader, Rolling
from samzapy.streams.kinds import Kind, unplain
from samzapy.streams.walk import makers
from samzapy.streams.window_nodes import WindowAggregate
from samzapy.streams.window_shapes import PANE, Pane, pane

Get = Callable[..., Any]


def reducing(function: Function, kind: Kind) -> Function:
    """The function of a `reduce` of values of a kind. What it gives of panes is kept as a pane, so it must be one."""
    if kind != PANE:
        return function
    call = function.call

    def reduced(old: Any, new: Any) -> Any:
        found = call(old, new)
        if not isinstance(found, Pane):
            said = f"the function of reduce gave {shown(found)} ({type(found).__name__}), and it reduces panes."
            raise TaskError(said, "Return one of the panes that it is given, or a new Pane; or reduce the results alone: .values(value=…).reduce(…).")
        return found

    return replace(function, call=reduced)


def getting(node: Keeps, store: Any) -> Get:
    """How a program asks a table's store."""
    if node.store_value != PANE:
        get: Get = store.get
        return get
    again = pane_maker(node)

    def get_pane(key: Any) -> Any:
        kept = store.get(key)
        try:
            return again(kept)
        except SerdeError as error:
            raise unreadable_state(store.called, f"key {shortened(key)}", error) from error

    return get_pane


def decoding(window: WindowAggregate, decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """How a window's accumulators come back from its store."""
    if window.kept != PANE:
        return decode
    again = pane_maker(window.inputs[0])
    return lambda data: again(decode(data))


def pane_maker(node: Node) -> Callable[[Any], Any]:
    """What makes panes of their entries; or of panes, whose results may still be as JSON has them. `node`: what gives them on, or keeps them."""
    result_of = _result_maker(node)

    def made(given: Any) -> Any:
        if given is None:
            return None
        if isinstance(given, Pane):
            return given if result_of is None else replace(given, value=result_of(given.value))
        try:
            found = pane(**given)
        except TypeError:
            raise SerdeError(f"{shown(given)} is no pane.", "Give the operator another name, which begins with empty state.") from None
        return found if result_of is None else replace(found, value=result_of(found.value))

    return made


def _result_maker(node: Node) -> Callable[[Any], Any] | None:
    """What makes the results in panes again, where they are of a class or panes themselves; None: they are as JSON has them."""
    windows = {window for maker in makers(node) for window in _windows(maker)}
    kinds = {window.kept if window.how in ("reduce", "fold") else None for window in windows}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind == PANE:
        return pane_maker(next(iter(windows)).inputs[0]) if len(windows) == 1 else None
    return unplain(kind) if kind is not None and kind.is_record else None


def _windows(maker: Node) -> set[WindowAggregate]:
    """The windows whose panes an operator gives on: its own, or those that it reduces."""
    if isinstance(maker, WindowAggregate):
        return {maker}
    return {window for before in maker.inputs for each in makers(before) for window in _windows(each)} if isinstance(maker, Rolling) else set()


def read_panes(node: Reader, decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """What decodes the values that an operator reads from an internal topic: panes with their results in their classes."""
    if node.value != PANE or _result_maker(node) is None:
        return decode
    made = pane_maker(node)
    return lambda data: made(decode(data))
