"""A program as a picture: a tree as text, Mermaid, Graphviz' dot, or JSON; and its code, with what the numbers in it stand for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from samzapy.config.units import format_duration
from samzapy.printable import printable
from samzapy.streams.combining import combined_windows
from samzapy.streams.compile import compiled
from samzapy.streams.graph import Graph, Keeps, Node, Reader, Repartition, Source, TableSource, To
from samzapy.streams.partition_choice import BROADCAST
from samzapy.streams.walk import sources, tables_read, takers
from samzapy.streams.window_nodes import Late, WindowAggregate

Topics = Mapping[str, str]


def text(graph: Graph, topics: Topics) -> str:
    """A tree below each topic that is read. An operator that takes several streams stands below the first; the others point to it."""
    below, shown, lines, combined = takers(graph), set[Node](), list[str](), combined_windows(graph)
    below = {node: [taker for taker in found if not _is_unused(taker, below)] for node, found in below.items()}

    def tree(node: Node, before: str, own: str) -> None:
        again = node in shown
        shown.add(node)
        lines.append(f"{own}{described(node, topics, node in combined)}{' (above)' if again else f'  {node.where}'}")
        following = [] if again else list(dict.fromkeys(below[node]))
        for index, taker in enumerate(following):
            is_last = index == len(following) - 1
            tree(taker, f"{before}{'   ' if is_last else '│  '}", f"{before}{'└─ ' if is_last else '├─ '}")

    for source in sources(graph):
        tree(source, "", "")
    return "\n".join(lines) + "\n"


def mermaid(graph: Graph, topics: Topics) -> str:
    """A Mermaid flowchart, as pages of GitHub and GitLab show it."""
    lines, combined = ["flowchart LR"], combined_windows(graph)
    for node in _shown(graph):
        label = described(node, topics, node in combined).replace('"', "#quot;")
        lines.append(f'    n{node.number}[("{label}")]' if isinstance(node, Keeps) else f'    n{node.number}["{label}"]')
    lines += [f"    n{a.number} {'-.->' if is_read else '-->'} n{b.number}" for a, b, is_read in _edges(graph)]
    return "\n".join(lines) + "\n"


def dot(graph: Graph, topics: Topics) -> str:
    """A graph for Graphviz."""
    lines, combined = ["digraph program {", "    rankdir=LR; node [shape=box];"], combined_windows(graph)
    for node in _shown(graph):
        shape = " shape=cylinder" if isinstance(node, Keeps) else ""
        lines.append(f"    n{node.number} [label={_quoted(described(node, topics, node in combined))}{shape}];")
    lines += [f"    n{a.number} -> n{b.number}{' [style=dashed]' if is_read else ''};" for a, b, is_read in _edges(graph)]
    return "\n".join([*lines, "}"]) + "\n"


def as_json(graph: Graph, topics: Topics) -> str:
    """All that is known of each operator."""
    combined = combined_windows(graph)
    return json.dumps({"operators": [_entry(node, topics, node in combined) for node in graph]}, ensure_ascii=False) + "\n"


def drawn(graph: Graph, topics: Topics) -> list[dict[str, Any]]:
    """The operators as the page draws them: `id` is the operator's name in metrics; `inputs` those before it, `reads` the tables that it looks into."""
    address = {node.number: node.address for node in graph}
    kept = _shown(graph)
    return [
        {
            "id": node.address, "kind": node.word, "name": _name(node, topics), "where": node.where, "stage": stage_of(node),
            "keeps": isinstance(node, Keeps), "inputs": list(dict.fromkeys(address[before.number] for before in _before(node))),
            "reads": [address[table.number] for table in tables_read(node)],
        }
        for node in kept
    ]  # fmt: skip


def _before(node: Node) -> Sequence[Node]:
    """What an operator takes its records of; the reader of an internal topic, of what writes it."""
    return (node.writer,) if isinstance(node, Reader) else node.inputs


def _name(node: Node, topics: Topics) -> str:
    """What tells an operator from others of its kind."""
    if isinstance(node, Source | TableSource | To):
        return printable(topics.get(node.topic, node.topic))
    if isinstance(node, Keeps | Repartition | Reader):
        return printable(node.name)
    return printable(node.label or ", ".join(table.name for table in tables_read(node)))


FORMS: Mapping[str, Callable[[Graph, Topics], str]] = {"text": text, "mermaid": mermaid, "dot": dot, "json": as_json}


def code(graph: Graph) -> str:
    """The code that runs, below a list of what its names stand for."""
    made = compiled(graph)
    names = [f"# {node.number:<4}{printable(described(node, {}))}  {printable(node.where)}" for node in graph]
    return "\n".join(["# operator, in the program at", *names, "", made.source])


def described(node: Node, topics: Topics, is_combined: bool = False) -> str:
    """An operator in a few words, on one line. `is_combined`: what it sends is summed up first."""
    words = node.title
    if isinstance(node, Source | TableSource | To):
        real = topics.get(node.topic, node.topic)
        words += f" (topic {real})" if real != node.topic else ""
    if isinstance(node, Source | TableSource):
        words += f": {node.key} → {node.value}"
    if isinstance(node, Reader):
        words = f"══ stage {stage_of(node)}: {words}: {node.key} → {node.value}"
    if isinstance(node, Repartition):
        words += f" ({_partitions(node)}{', summed up before it' if is_combined else ''})"
    if isinstance(node, WindowAggregate):
        late = f", allowed lateness {format_duration(node.lateness_ms)}" if node.lateness_ms else ""
        words += f": {node.window}{late}, {node.emit}"
    if isinstance(node, Keeps):
        words += f", store {node.name}"
    return printable(" ".join(words.split()))


def _partitions(node: Repartition) -> str:
    if node.how == BROADCAST:
        return "a partition for each task"
    return "as many partitions as the topics that it is used with, else as the largest input" if node.partitions is None else f"{node.partitions} partitions"


def stage_of(node: Node) -> int:
    """How many internal topics lie before an operator, on the longest way, and one more."""
    if isinstance(node, Reader):
        return stage_of(node.writer) + 1
    return max((stage_of(before) for before in node.inputs), default=1)


def _is_unused(node: Node, below: Mapping[Node, Sequence[Node]]) -> bool:
    """Whether it is what came too late for a window, which nobody takes."""
    return isinstance(node, Late) and not below[node]


def _shown(graph: Graph) -> list[Node]:
    below = takers(graph)
    return [node for node in graph if not _is_unused(node, below)]


def _edges(graph: Graph) -> Iterator[tuple[Node, Node, bool]]:
    for node in _shown(graph):
        for before in dict.fromkeys(node.inputs):
            yield before, node, False
        for table in tables_read(node):
            yield table, node, True


def _entry(node: Node, topics: Topics, is_combined: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "number": node.number, "operator": node.word, "label": node.label, "where": node.where,
        "inputs": [before.number for before in node.inputs], "reads": [table.name for table in tables_read(node)],
        "key": str(node.key), "value": None if node.value is None else str(node.value),
    }  # fmt: skip
    found["stage"] = stage_of(node)
    if isinstance(node, Repartition):
        found |= {"internal_topic": node.name, "partitions": node.partitions, "combined": is_combined}
    if isinstance(node, Source | TableSource | To):
        found["topic"] = topics.get(node.topic, node.topic)
    if isinstance(node, Keeps):
        found |= {"store": node.name, "identity": node.identity}
    return found


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
