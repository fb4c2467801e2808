"""The join of a stream with a table, `lookup`: what is refused when it is defined, and what is done for each record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samzapy.streams.functions import function
from samzapy.streams.graph import Keeps, Lookup, Rolling, TableSource
from samzapy.streams.partition_choice import refuse_scattered
from samzapy.streams.places import place, refused

if TYPE_CHECKING:
    from samzapy.streams.stream import Stream
    from samzapy.streams.table import Table

FOUND = "if x is not None:"  # an inner join gives on only records for which this is so


def lookup(stream: Stream[Any, Any], table: Table[Any, Any], on: Any, how: str) -> Lookup:
    where = place()
    keeper = stream.app.keeper(table, "lookup")
    if how not in ("left", "inner"):
        raise refused(f"lookup: how={how!r}", "Write 'left' or 'inner'.", where)
    found = None if on is None else function(on, "lookup(on=…)", where)
    is_whole = isinstance(keeper, TableSource) and keeper.broadcast
    if found is not None and not is_whole:
        raise refused(
            f"lookup: a task has only the part of {keeper.name!r} that belongs to its own partition, and on=… may ask for any key",
            "Give the table broadcast=True, or look up the record's own key.",
            where,
        )
    if found is None:
        refuse_other_keys(stream, keeper, f"lookup of {keeper.name!r}", where)
        if not is_whole:
            refuse_scattered(stream.node, f"lookup of {keeper.name!r}", where)
    node = stream.node
    return stream.app.add(Lookup, inputs=(node,), key=node.key, value=None, table=keeper, on=found, inner=how == "inner")


def refuse_other_keys(stream: Stream[Any, Any], keeper: Keeps, what: str, where: str) -> None:
    if keeper.key != stream.node.key:
        remedy = "Read both topics with keys of one kind." if keeper.key.cls is not stream.node.key.cls else ""
        raise refused(f"{what}: the stream's keys are {stream.node.key}, the table's are {keeper.key}", remedy, where)


def lookup_lines(node: Lookup, value: str, called: str | None) -> tuple[list[str], list[str]]:
    """The lines that find the record's row and put it beside the value, and the names in them. `called`: the call of `on`, if there is one."""
    n, key = node.number, "k" if called is None else "x"
    has_result = isinstance(node.table, Rolling) and node.table.result is not None
    row = f"found({n}, {key}, get{n}({key}))" if has_result else f"get{n}({key})"
    lines = [f"if k is None: no_key({n})", f"x = {row}"] if called is None else [f"x = {called}", f"if x is not None: x = {row}"]
    names = [*(["no_key"] if called is None else []), *(["found"] if has_result else [])]
    return [*lines, f"v{n} = {value}, x"], names
