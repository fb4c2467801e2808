"""Windows in a program's source. What a window takes is given to its `add`; its panes, and what is too late, are runs of their own."""

from __future__ import annotations

from samzapy.streams.graph import Node
from samzapy.streams.windowed import Late, WindowAggregate

Line = tuple[str, Node]


def window_lines(node: WindowAggregate, value: str, late: Late, needs_headers: bool) -> list[str]:
    """What an operator's record comes to: added; the panes that it gives at once; or too late."""
    n = node.number
    given = f"((k, {value}, t, {'h' if needs_headers else 'None'}),)"
    return [
        f"if k is None: no_key({n})",
        f"x = add{n}(k, {value}, t)",
        f"if x is too_late: run_{late.number}({given}, send, counts)",
        f"elif x is not None: run_{n}(x, send, counts)",
    ]


def head_of_run(node: Node) -> tuple[str, list[str]]:
    """How a run of a window's panes, or of what was too late for it, begins: the loop, and what is known of each."""
    n = node.number
    if isinstance(node, Late):
        return f"for k, v{n}, t, h in records:", []
    return f"for k, v{n} in records:", [f"t = v{n}.end - 1", "h = None"]
