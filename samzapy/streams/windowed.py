"""`Windowed`, a stream with windows, and `Panes`, their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from samzapy.streams.agg import Aggregate, collect
from samzapy.streams.emit_option import FINAL, Emit
from samzapy.streams.functions import function
from samzapy.streams.graph import Map, Node
from samzapy.streams.kept_panes import reducing
from samzapy.streams.kinds import BYTES, DICT, INTEGER, JSON, Kind, kind_of, plain
from samzapy.streams.partition_choice import refuse_scattered
from samzapy.streams.places import place, refused
from samzapy.streams.stateful import added_up, checked_aggregates, kept_by
from samzapy.streams.stream import Kinds, Stream
from samzapy.streams.window_nodes import Late, WindowAggregate, refuse_corrected, refuse_timeless
from samzapy.streams.window_shapes import PANE, Duration, Pane, Window, milliseconds

if TYPE_CHECKING:
    from samzapy.streams.app import App

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class Windowed(Generic[K, V]):
    """A stream that is divided into windows, by key and event time. Each method gives the results of the windows as `Panes`.

    `name` is the name of the store that keeps the windows' state. Each method raises ConfigurationError, with file and line, if the name is taken, a store
    cannot find keys of this kind again, or nothing says how late records may be (`watermark_delay`).
    """

    def __init__(self, stream: Stream[K, V], window: Window, lateness_ms: int, emit: Emit) -> None:
        self._stream, self._window, self._lateness_ms, self._emit = stream, window, lateness_ms, emit

    def count(self, name: str, /) -> Panes[K, V, int]:
        """The number of records of each key in each window."""
        return self._panes(name, "count", INTEGER, merge=lambda a, b: a + b)

    def reduce(self, name: str, fn: Callable[[V, V], V], /) -> Panes[K, V, V]:
        """For each key and window: the first value, then `fn(result so far, next value)` for each further one.

        If windows overlap, `fn` is also called with the results of two parts of a window, the earlier part first.
        """
        kind = self._stream.node.value
        if kind is None:
            raise refused(f"window reduce({name!r}): the kind of its values is not known", "Give the kind in the step before: .map(…, value=…).", place())
        add = reducing(function(fn, "reduce", place(), names=(), values=2), kind)
        return self._panes(name, "reduce", kind, add=add, merge=add.call)

    def fold(
        self, name: str, zero: Callable[[], A], add: Callable[[A, V], A], /, *, merge: Callable[[A, A], A] | None = None, value: Any = dict
    ) -> Panes[K, V, A]:
        """For each key and window: `zero()`, then `add(result so far, value)` for each record. If `add` has a parameter `time`, that is the record's time.

        Args:
            merge: makes one result of two of different records; needed if windows overlap.
            value: the type of what is kept, or the name of its serde.
        """
        where = place()
        if not callable(zero):
            raise refused(f"fold({name!r}): its initial value must come from a function, not {zero!r}", f"Write lambda: {zero!r}.", where)
        if merge is None and self._window.size_ms != self._window.every_ms:
            raise refused(f"fold({name!r}): windows that overlap are merged from slices, which needs `merge`", "Give it: merge=….", where)
        kind = kind_of(value, f"fold({name!r}, value=…)")
        return self._panes(name, "fold", kind, zero=zero, add=function(add, "fold", where, names=("time",), values=2), merge=merge)

    def aggregate(self, name: str, /, **aggregates: Aggregate[V, Any, Any]) -> Panes[K, V, dict[str, Any]]:
        """For each key and window a dict with the result of each aggregate (`samzapy.streams.agg`) under its name: `edits=agg.count()`."""
        where = place()
        parts = checked_aggregates(f"aggregate({name!r})", aggregates, self._stream.node.value, where)
        merges = {part: each.merge for part, each in parts.items()}
        lost = sorted(part for part, merge in merges.items() if merge is None)
        if lost and self._window.size_ms != self._window.every_ms:
            raise refused(f"aggregate({name!r}): windows that overlap are merged from slices, and {', '.join(lost)} has no `merge`", "Give it one.", where)
        zero, add, result = added_up(parts, where)

        def merge(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
            return {part: cast(Any, one)(a[part], b[part]) for part, one in merges.items()}

        of_parts = {part: each.merge_parts or each.merge for part, each in parts.items()}

        def merge_parts(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
            return {part: cast(Any, one)(a[part], b[part]) for part, one in of_parts.items()}

        described = tuple((part, each.what) for part, each in parts.items())
        return self._panes(
            name, "aggregate", DICT, zero=zero, add=add, merge=merge, merge_parts=merge_parts, result=result, parts=described, keeps=kept_by(parts),
        )  # fmt: skip

    def collect(self, name: str, /, *, limit: int = 10_000) -> Panes[K, V, list[V]]:
        """For each key and window a list of all values, in the order in which they came; if windows overlap, values of an earlier `every` come first.

        A record beyond `limit` values (at most 10,000; if windows overlap, the values of one `every` count) is an error of that record: `on_error` applies.
        """
        where = place()
        found: Aggregate[Any, Any, Any] = collect(limit=limit).of(self._stream.node.value)
        add = function(found.add, "collect", where, names=(), values=2)
        kept = Kind(JSON, list)
        return self._panes(name, "collect", kept, zero=found.zero, add=add, merge=found.merge, result=found.result, keeps=found.keeps)

    def _panes(self, name: str, how: str, kept: Kind, **rest: Any) -> Panes[K, V, Any]:
        where, stream = place(), self._stream
        app, node = stream.app, stream.node
        app.refuse_key(node.key, f"window {how}({name!r})", where)
        refuse_scattered(node, f"window {how}({name!r})", where)
        refuse_timeless(node, f"window {how}({name!r})", where)
        refuse_corrected(node, f"window {how}({name!r})", where)
        app.store_name(name, f"window {how}", where)
        made = app.add(
            WindowAggregate, inputs=(node,), key=node.key, value=PANE, store_value=BYTES, name=name, how=how, window=self._window,
            lateness_ms=self._lateness_ms, emit=self._emit, kept=kept, **rest,
        )  # fmt: skip
        late = app.add(Late, inputs=(made,), key=node.key, value=node.value)
        return Panes(app, made, late)


class Panes(Stream[K, Pane[A]], Generic[K, V, A]):
    """The results of windows: a stream with a `Pane` for each window and key.

    In a topic a pane is JSON with start, end, pane (its kind), index and value; in place of value, the results of `aggregate` under their names. Its time is
    the last millisecond of its window; `to` writes it with the time of sending if that is earlier.

    Attributes:
        late: a stream of the records that came too late for all of their windows, unchanged.
    """

    def __init__(self, app: App, node: Node, late: Node) -> None:
        super().__init__(app, node)
        self.late: Stream[K, V] = Stream(app, late)

    def values(self, *, value: Kinds[A] = None) -> Stream[K, A]:
        """A stream of the panes' values only. `value`: their kind; unless it is given, results of `reduce` and `fold` that are of a class stay of that class,
        and all others are written as JSON."""
        node = cast(WindowAggregate, self.node)
        keeps_class = value is None and node.how in ("reduce", "fold") and node.kept.is_record
        return self._made(Map, lambda pane: pane.value, node.kept if keeps_class else value, "", None)


def windowed(stream: Stream[K, V], window: Window, allowed_lateness: Duration, emit: Emit = FINAL) -> Windowed[K, V]:
    """What `Stream.window` returns. Raises ConfigurationError: no window, no emit, or no duration."""
    if not isinstance(window, Window):
        raise refused(f"window takes tumbling(…) or hopping(…), not {window!r}", "", place())
    if not isinstance(emit, Emit):
        raise refused(f"window(emit=…) takes FINAL or updates(), not {emit!r}", "", place())
    return Windowed(stream, window, milliseconds(allowed_lateness, "window(allowed_lateness=…)", least=0), emit)


def pane_json(pane: Pane[Any], entries_beside: bool) -> dict[str, Any]:
    """A pane as JSON. `entries_beside`: its value is a dict of an aggregate's results."""
    value = plain(pane.value)
    head = {"start": pane.start, "end": pane.end, "pane": pane.kind, "index": pane.index}
    return {**head, **value} if entries_beside else {**head, "value": value}
