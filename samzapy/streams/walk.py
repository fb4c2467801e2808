"""Ways through the graph of a program: where it begins, what keeps state, what takes what."""

from __future__ import annotations

from collections.abc import Iterator

from samzapy.streams.graph import Branch, Filter, Graph, Keeps, Lookup, Merge, Node, Peek, Reader, Rolling, Source, TableSource, Way


def sources(graph: Graph) -> Iterator[Source | TableSource]:
    """The operators that read topics of the user's."""
    for node in graph:
        if isinstance(node, Source | TableSource):
            yield node


def readers(graph: Graph) -> list[Reader]:
    """The operators that read internal topics."""
    return [node for node in graph if isinstance(node, Reader)]


def roots_of(node: Node) -> set[Node]:
    """The operators that read the topics from which an operator's records come: where its stage begins."""
    if isinstance(node, Reader) or not node.inputs:
        return {node}
    return {root for before in node.inputs for root in roots_of(before)}


def keepers(graph: Graph) -> Iterator[Keeps]:
    """The operators that have stores."""
    for node in graph:
        if isinstance(node, Keeps):
            yield node


def takers(graph: Graph) -> dict[Node, list[Node]]:
    """Of each operator, those that take its records; one that takes them twice is there twice."""
    found: dict[Node, list[Node]] = {node: [] for node in graph}
    for node in graph:
        for before in node.inputs:
            found[before].append(node)
    return found


def makers(node: Node) -> set[Node]:
    """The operators that made an operator's values: those before it, past what lets values through as they are, internal topics among it."""
    inputs = node.writer.inputs if isinstance(node, Reader) else node.inputs
    if isinstance(node, Filter | Peek | Branch | Way | Merge | Reader):
        return {maker for before in inputs for maker in makers(before)}
    return {node}


def tables_read(node: Node) -> tuple[Keeps, ...]:
    """The tables that an operator looks into, besides its own store."""
    if isinstance(node, Lookup):
        return (node.table,)
    return (node.initial,) if isinstance(node, Rolling) and node.initial is not None else ()
