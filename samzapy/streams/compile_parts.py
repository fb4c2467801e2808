"""Which parts of a record each operator of a program needs, and which functions of the user's it calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from samzapy.serde.basic import MAX_JSON_BYTES
from samzapy.streams.functions import Function
from samzapy.streams.graph import (
    Branch,
    Filter,
    FilterMap,
    FlatMap,
    Graph,
    Lookup,
    Map,
    Merge,
    Node,
    Peek,
    Reader,
    Repartition,
    Rolling,
    Sink,
    Source,
    To,
    Way,
)
from samzapy.streams.kinds import Kind
from samzapy.streams.walk import takers
from samzapy.streams.window_nodes import Late, WindowAggregate
from samzapy.streams.window_shapes import PANE

NAMES = {"key": "k", "time": "t", "headers": "h"}
PARTS = "vkth"
PASSES = (Filter, Peek, Branch, Way, Merge, Late)  # what they give on is what they took
QUICK = {"string": 0, "json": MAX_JSON_BYTES}  # serdes with `quick_decode`, and the bytes that are given to it at most; 0: any
Parts = frozenset[str]


@dataclass(slots=True)
class Scope:
    """A function that is being written."""

    depth: int = 0
    straight: int = 0
    counters: set[str] = field(default_factory=set)
    lines: list[tuple[str, Node]] = field(default_factory=list)


def decoding(to: str, part: str, serde: str, number: int) -> tuple[list[str], list[str]]:
    """The lines that decode a record's key or value (`part`), and the names that they need. What a serde's `quick_decode` does not take is for the
    serde itself, which says what is wrong with it."""
    whole = f"{part}{number}"
    read = f"x = r.{part}()"
    if serde not in QUICK:
        return [read, f"{to} = None if x is None else {whole}(x)"], [whole]
    quick = f"quick_{whole}"
    bounded = f"{quick}(x)" + (f" if len(x) <= {QUICK[serde]} else {whole}(x)" if QUICK[serde] else "")
    return [read, f"try: {to} = None if x is None else {bounded}", f"except ValueError: {to} = {whole}(x)"], [whole, quick]


def parts_needed(graph: Graph) -> dict[Node, Parts]:
    """Of each operator, what it and those below it need of the records that it takes."""
    below = takers(graph)
    found: dict[Node, Parts] = {}
    for node in reversed(graph):
        passed = frozenset(part for taker in below[node] for part in found[taker])
        if isinstance(node, WindowAggregate):
            late = next(taker for taker in below[node] if isinstance(taker, Late))
            found[node] = frozenset("vkt") | (found[late] & {"h"})
        elif isinstance(node, Repartition):
            found[node] = frozenset("vt") | (passed & {"h"}) | _own_parts(node, True) | (frozenset() if node.how == "key_by" else frozenset("k"))
        elif isinstance(node, Reader):
            found[node] = passed
        else:
            found[node] = _own_parts(node, bool(below[node])) | (passed if isinstance(node, PASSES) else passed - {"v"})
    return found


def _own_parts(node: Node, has_takers: bool) -> Parts:
    functions = [f for f in functions_of(node).values() if f is not None]
    found = {NAMES[name] for f in functions for name in f.asks} | ({"v"} if functions else set())
    if isinstance(node, To):
        found |= {"v", "k", "h", *("t" if node.timestamps == "time" else "")}
    if isinstance(node, Rolling):
        found |= {"k"} if node.how == "count" else {"v", "k"}
    if isinstance(node, Lookup):
        found |= {*("v" if has_takers else ""), *("k" if node.on is None else "")}
    return frozenset(found)


def other_kind_lines(node: Node, value: str) -> tuple[list[str], list[str]]:
    """What refuses a value that is written as JSON and is of another kind than was said, and the names that it needs; nothing where no function can have
    given such a value."""
    kind = checked_kind(node)
    if kind is None:
        return [], []
    n = node.number
    return [f"if type({value}) {kind.is_other[0]} kinds{n}: other_json{n}({value})"], [f"kinds{n}", f"other_json{n}"]


def checked_kind(node: Node) -> Kind | None:
    """The kind of what an operator writes to a topic or a store, if that is to be looked at; None: it is not, or nothing is written."""
    kind = None
    if isinstance(node, Rolling):
        kind = None if node.how == "aggregate" else node.store_value
    elif isinstance(node, To | Repartition) and node.inputs[0].value != PANE and not all(_is_as_read(each) for each in node.inputs):
        kind = node.value
    return kind if kind is not None and kind.is_checked_when_written else None


def _is_as_read(node: Node) -> bool:
    """Whether an operator gives on values as they were read: those are of their kind."""
    return isinstance(node, Source | Reader) or (isinstance(node, PASSES) and all(_is_as_read(each) for each in node.inputs))


def result_lines(n: int, of_this_value: str | None) -> tuple[list[str], list[str]]:
    """An accumulator's result; None: it is the result. Where it cannot be made, it is the record's fault if that of its own value alone cannot
    be made either. Returns the lines and the names that they need."""
    if of_this_value is None:
        return [f"v{n} = a"], []
    lines = [f"try: v{n} = result{n}(a)", "except cannot_read as x:", f"    result{n}({of_this_value})", f"    unreadable({n}, k, x)"]
    return lines, [f"result{n}", "cannot_read", "unreadable"]


def functions_of(node: Node) -> dict[str, Function | None]:
    """An operator's functions by their names in the source, without what the source of the topic calls."""
    number = node.number
    if isinstance(node, Branch):
        return {f"f{number}_{index}": test for index, test in enumerate(node.tests)}
    if isinstance(node, Rolling):
        return {f"f{number}": node.add}
    if isinstance(node, Lookup):
        return {f"f{number}": node.on}
    if isinstance(node, To):
        return {f"f{number}": node.partition}
    if isinstance(node, Repartition):
        return {f"f{number}": node.function}
    if isinstance(node, Map | Peek | Filter | FilterMap | FlatMap | Sink):
        return {f"f{number}": node.function}
    return {}
