"""Windows in a program's source. What a window takes is given to its `add`; its panes, and what is too late, are runs of their own."""

from __future__ import annotations

from collections.abc import Mapping

from samzapy.streams.graph import Graph, Node, To
from samzapy.streams.window_nodes import Late, WindowAggregate

MOST = 8  # operators of a run that are surely in its own lines
PLAIN_KEYS = ("string", "bytes", "integer")  # serdes of keys of which equal ones are the same key


def counts_in_place(node: WindowAggregate) -> bool:
    """Whether a record mostly only adds one to what is in memory, which is done without a call."""
    return node.how == "count" and not node.emit.each and node.key.serde in PLAIN_KEYS


# After each record time moves. Where a window is due, the run ends.
MOVES = ["if t > partition.quiet and moved(t): break"], ["moved"]
# The same where time need not be told of each record: only before one is added to a window, and at the end of the run.
PLAIN = ["newest, until = plain_times()"]
NEWEST = ["if newest > partition.quiet: time_is(newest)"]
MOVES_SELDOM = [
    "if t > newest:",
    "    if t < until: newest = t",
    "    else:",
    "        is_due = moved(t)",
    *(f"        {line}" for line in PLAIN),
    "        if is_due: break",
], ["moved", "plain_times", "time_is"]  # fmt: skip


def moves_seldom(source: Node, takers: Mapping[Node, list[Node]]) -> bool:
    """Whether the run of a source needs the time of its partition only where a record is added to a window in the long way: all its windows count in
    place, in the run's own lines."""
    found, left = list[Node](), [source]
    while left:
        node = left.pop()
        found.append(node)
        left += () if isinstance(node, WindowAggregate) else takers[node]
    windows = [node for node in found if isinstance(node, WindowAggregate)]
    return not windows or (all(map(counts_in_place, windows)) and len(found) < MOST and all(len(node.inputs) < 2 for node in found))


def near_line(window: WindowAggregate) -> str:
    """The slice of the last record, which may be another one now. Time that a record moves needs no such look: where it makes the slice late, a window of
    it is due, and the run ends there."""
    n = window.number
    return f"from{n}, until{n}, slots{n} = near{n}()"


def counting_lines(node: WindowAggregate, lines: list[str], is_seldom: bool) -> list[str]:
    """As `lines`, with the short way of a window that counts in place. `is_seldom`: see `moves_seldom`."""
    before, after = (NEWEST, PLAIN) if is_seldom else ([], [])
    n = node.number
    return [
        f"e = slots{n}.get(k) if from{n} <= t < until{n} else None",
        "if e is not None:",
        f"    if not e.is_touched: touch{n}(slots{n}, k, e)",
        "    e.records += 1",
        "    e.sum += 1",
        f"elif not (from{n} <= t < until{n} and fresh{n}(k)):",
        *(f"    {line}" for line in (*before, *lines, near_line(node), *after)),
    ]


def window_lines(node: WindowAggregate, value: str, late: Late, needs_headers: bool, is_written_with_time: bool) -> list[str]:
    """What an operator's record comes to: added; the panes that it gives at once; or too late."""
    n = node.number
    given = f"((k, {value}, t, {'h' if needs_headers else 'None'}),)"
    return [
        f"if k is None: no_key({n})",
        *([f"if t < 0: before_1970({n}, t)"] if is_written_with_time else []),
        f"x = add{n}(k, {value}, t)",
        f"if x is too_late: run_{late.number}({given}, send, counts)",
        f"elif x is not None: run_{n}(x, send, counts)",
    ]


def made_of_panes(graph: Graph) -> set[Node]:
    """The operators that give panes, or what was made of them: the time of that may be still to come."""
    found: set[Node] = set()
    for node in graph:
        before = node.inputs[0].inputs if isinstance(node, Late) else node.inputs  # what is too late is given on as it came
        if isinstance(node, WindowAggregate) or not found.isdisjoint(before):
            found.add(node)
    return found


def written_with_time(graph: Graph) -> set[Node]:
    """The operators whose records, or what is made of them, are written to a topic with their own time."""
    found: set[Node] = set()
    for node in reversed(graph):
        if node in found or (isinstance(node, To) and node.timestamps == "time"):
            found |= {node, *(() if isinstance(node, Late) else node.inputs)}
    return found


def head_of_run(node: Node) -> tuple[str, list[str]]:
    """How a run of a window's panes, or of what was too late for it, begins: the loop, and what is known of each."""
    n = node.number
    if isinstance(node, Late):
        return f"for k, v{n}, t, h in records:", []
    return f"for k, v{n} in records:", [f"t = v{n}.end - 1", "h = None"]
