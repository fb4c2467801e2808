"""The operators of windows in a program's graph, and what is asked of a graph about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from samzapy.config.units import format_duration
from samzapy.streams.emit_option import Emit
from samzapy.streams.functions import Function
from samzapy.streams.graph import Graph, Keeps, Node, Source
from samzapy.streams.kinds import BYTES, Kind
from samzapy.streams.places import refused
from samzapy.streams.window_shapes import Window

LAYOUT = "slices 1"  # of the store; part of what must not change while there is state


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class WindowAggregate(Keeps):
    """Windows of a stream by key.

    Attributes:
        how: count, reduce, fold, aggregate or collect.
        zero: what an accumulator begins as; None: as the first value.
        add: accumulator and value to accumulator; None: the records are counted.
        merge: two accumulators to one; None only where a window is one slice. `merge_parts`: of two that are in a store already; None: `merge`.
        result: accumulator to result; None: it is the result.
        kept: the kind of the accumulator.
        parts: of an aggregate, its names with what they are.
    """

    how: str
    window: Window
    lateness_ms: int
    emit: Emit
    kept: Kind
    zero: Callable[[], Any] | None = None
    add: Function | None = None
    merge: Callable[[Any, Any], Any] | None = None
    merge_parts: Callable[[Any, Any], Any] | None = None
    result: Callable[[Any], Any] | None = None
    parts: tuple[tuple[str, str], ...] = ()

    @property
    def word(self) -> str:
        return f"window {self.how}"

    @property
    def title(self) -> str:
        late = f", lateness {format_duration(self.lateness_ms)}" if self.lateness_ms else ""
        return f"{self.word} {self.name} ({self.window}{late}, {self.emit})"

    @property
    def drops(self) -> bool:
        return True

    @property
    def store_key(self) -> Kind:
        """Rows are in the order of time, so their keys are bytes."""
        return BYTES

    @property
    def identity(self) -> str:
        parts = ", ".join(f"{name}={what}" for name, what in self.parts)
        return f"{self.how}({parts}) of {self.window}, keys {self.key.serde}, values {self.kept.serde}, {LAYOUT}"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Late(Node):
    """What is too late for all of its windows, as it came."""

    @property
    def drops(self) -> bool:
        return True

    @property
    def is_end(self) -> bool:
        return True


def refuse_timeless(node: Node, what: str, where: str) -> None:
    """Raise ConfigurationError if nothing says how late the records of a stream may be."""
    for source in sources_of(node):
        if not isinstance(source, Source):
            raise refused(f"{what}: the changes of a table have no event time", "Read the topic as a stream: app.stream(…).", where)
        if source.timing is None:
            hint = f"Set app.stream({source.topic!r}, …, watermark_delay=\"5s\"): how much older than its partition's newest record a record may be."
            raise refused(f"{what}: nothing says how late records of {source.topic!r} may be", hint, where)


def refuse_corrected(node: Node, what: str, where: str) -> None:
    """Raise ConfigurationError for what would count each of the panes that come again for the same window and key."""
    if isinstance(node, WindowAggregate) and (node.emit.each or node.lateness_ms):
        why = "updates()" if node.emit.each else "allowed_lateness"
        hint = f"Give {node.name!r} FINAL panes and no allowed_lateness, or take its `.late` or the stream before it."
        raise refused(f"{what}: with {why} the window {node.name!r} gives several panes for one key, which would all be counted", hint, where)
    for before in () if isinstance(node, Late) else node.inputs:
        refuse_corrected(before, what, where)


def sources_of(node: Node) -> set[Node]:
    """The operators without inputs from which an operator's records come."""
    if not node.inputs:
        return {node}
    return {source for before in node.inputs for source in sources_of(before)}


def late_of(graph: Graph, node: Node) -> Late:
    """The operator that gets the records that are too late for a window."""
    return next(each for each in graph if isinstance(each, Late) and each.inputs[0] is node)


def windows_of(graph: Graph) -> list[WindowAggregate]:
    """The windows of a program, in the order of its graph: a window that gives panes comes before a window that takes them."""
    return [node for node in graph if isinstance(node, WindowAggregate)]
