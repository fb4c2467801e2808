"""The operators that keep state, as values of the graph: what is refused when they are defined is refused here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from samzapy.api.errors import TaskError
from samzapy.streams.agg import Aggregate
from samzapy.streams.functions import Function, function
from samzapy.streams.graph import Keeps, Rolling
from samzapy.streams.kept_panes import reducing
from samzapy.streams.kinds import DICT, INTEGER, Kind, kind_of
from samzapy.streams.lookup_join import refuse_other_keys
from samzapy.streams.partition_choice import refuse_scattered
from samzapy.streams.places import place, refused
from samzapy.streams.window_nodes import refuse_corrected

if TYPE_CHECKING:
    from samzapy.streams.stream import Stream
    from samzapy.streams.table import Table

RESERVED = ("start", "end", "index", "pane", "value")  # of the panes that windows give
AnyStream = Any


def count(stream: Stream[Any, Any], name: str) -> Table[Any, int]:
    refuse_corrected(stream.node, f"count({name!r})", place())
    return _rolling(stream, name, "count", INTEGER, INTEGER)


def reduce(stream: Stream[Any, Any], name: str, fn: Any, value: Any) -> Table[Any, Any]:
    where = place()
    kind = stream.node.value if value is None else kind_of(value, f"reduce({name!r}, value=…)")
    if kind is None:
        raise refused(f"reduce({name!r}): the kind of its values is not known", "Give the kind: value=….", where)
    return _rolling(stream, name, "reduce", kind, kind, add=reducing(function(fn, "reduce", where, names=(), values=2), kind))


def fold(stream: Stream[Any, Any], name: str, zero: Any, add: Any, value: Any, initial: Table[Any, Any] | None) -> Table[Any, Any]:
    where, kind = place(), kind_of(value, f"fold({name!r}, value=…)")
    beginning: Keeps | None = None
    if initial is not None:
        beginning = stream.app.keeper(initial, f"fold({name!r})")
        refuse_other_keys(stream, beginning, f"fold({name!r}, initial=…)", where)
        if isinstance(beginning, Rolling) and beginning.result is not None:
            raise refused(f"fold({name!r}): a table of aggregates cannot be its initial table", "Begin with a table of a topic, or of a fold.", where)
        if beginning.value != kind:
            raise refused(f"fold({name!r}): it keeps {kind}, and its initial table has {beginning.value}", "Give both one kind: value=….", where)
    if not callable(zero):
        raise refused(f"fold({name!r}): its initial value must come from a function, not {zero!r}", f"Write lambda: {zero!r}.", where)
    found = function(add, "fold", where, names=("time",), values=2)
    return _rolling(stream, name, "fold", kind, kind, zero=zero, add=found, initial=beginning)


def aggregate(stream: Stream[Any, Any], name: str, aggregates: Mapping[str, Aggregate[Any, Any, Any]]) -> Table[Any, dict[str, Any]]:
    where = place()
    parts = checked_aggregates(f"aggregate({name!r})", aggregates, stream.node.value, where)
    for part, each in parts.items():
        if each.counts_each:
            refuse_corrected(stream.node, f"{part} of aggregate({name!r})", where)
    zero, add, result = added_up(parts, where)
    described = tuple((part, each.what) for part, each in parts.items())
    return _rolling(stream, name, "aggregate", DICT, DICT, zero=zero, add=add, result=result, parts=described, keeps=kept_by(parts))


def added_up(
    parts: Mapping[str, Aggregate[Any, Any, Any]], where: str
) -> tuple[Callable[[], dict[str, Any]], Function, Callable[[Mapping[str, Any]], dict[str, Any]]]:
    """Several aggregates as one: zero, add and result."""
    adds = {part: (each, function(each.add, f"aggregate {part}", where, names=("time",), values=2)) for part, each in parts.items()}

    def zero() -> dict[str, Any]:
        return {part: each.zero() for part, each in parts.items()}

    def result(state: Mapping[str, Any]) -> dict[str, Any]:
        said, part = {}, ""
        try:
            for part, each in parts.items():
                said[part] = each.result(state[part])
        except TaskError as error:
            raise _of_part(part, error) from error
        return said

    if any(add.asks for _, add in adds.values()):
        timed = {part: (add.call, bool(add.asks)) for part, (_, add) in adds.items()}

        def add_all(state: dict[str, Any], value: Any, time: int) -> dict[str, Any]:
            added, part = {}, ""
            try:
                for part, (add, asks) in timed.items():
                    added[part] = add(state[part], value, time=time) if asks else add(state[part], value)
            except TaskError as error:
                raise _of_part(part, error) from error
            return added

        add = Function(add_all, ("time",), where)
    else:
        calls = {part: add.call for part, (_, add) in adds.items()}

        def add_each(state: dict[str, Any], value: Any) -> dict[str, Any]:
            added, part = {}, ""
            try:
                for part, add in calls.items():
                    added[part] = add(state[part], value)
            except TaskError as error:
                raise _of_part(part, error) from error
            return added

        add = Function(add_each, (), where)
    return zero, add, result


def kept_by(parts: Mapping[str, Aggregate[Any, Any, Any]]) -> Kind | None:
    """The kind of the values that accumulators of these aggregates keep: all are of the stream's one kind."""
    return next((each.keeps for each in parts.values() if each.keeps is not None), None)


def _of_part(part: str, error: TaskError) -> TaskError:
    """The error with the name of the aggregate that it is of."""
    return type(error)(f"{part}: {error.message}", error.remedy)


def checked_aggregates(
    what: str, aggregates: Mapping[str, Aggregate[Any, Any, Any]], kind: Kind | None, where: str
) -> dict[str, Aggregate[Any, Any, Any]]:
    """The aggregates, for values of a kind.

    Raises:
        ConfigurationError: there is none, one is no aggregate, or has a name that panes of windows have already.
    """
    if not aggregates:
        raise refused(f"{what} needs at least one aggregate", "For example: edits=agg.count().", where)
    for part, each in aggregates.items():
        if not isinstance(each, Aggregate):
            raise refused(f"{what}: {part} is {type(each).__name__}, not an aggregate", "Use agg.count(), agg.sum(…) or Aggregate(…).", where)
        if part in RESERVED:
            raise refused(f"{what}: no aggregate can be called {part!r}", f"These names are reserved: {', '.join(RESERVED)}.", where)
    return {part: each.of(kind) for part, each in aggregates.items()}


def _rolling(stream: AnyStream, name: str, how: str, value: Kind, kept: Kind, **rest: Any) -> Table[Any, Any]:
    where, app, key = place(), stream.app, stream.node.key
    app.refuse_key(key, f"{how}({name!r})", where)
    refuse_scattered(stream.node, f"{how}({name!r})", where)
    app.store_name(name, how, where)
    node = app.add(Rolling, inputs=(stream.node,), key=key, value=value, store_value=kept, name=name, how=how, **rest)
    return app.table_of(node)  # type: ignore[no-any-return]
