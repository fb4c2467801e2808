"""The stages of a program: which topics of its own it has between them, which topics must have equally many partitions, and over which a time goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.streams.graph import Graph, Keeps, Lookup, Node, Reader, Repartition, Source, TableSource
from samzapy.streams.partition_choice import BROADCAST
from samzapy.streams.walk import keepers, readers, roots_of, tables_read
from samzapy.streams.window_nodes import WindowAggregate, sources_of


def stages(graph: Graph, topics: Mapping[str, str], prefix: str, sums: Mapping[str, str]) -> dict[str, Any]:
    """The section `stages` of a job file. `topics`: where streams really are; `prefix`: of the internal topics: job and id; `sums`: which partial sums may
    be in them, by name."""
    named = topics_of(graph, {**topics, **{reader.name: f"{prefix}-{reader.name}" for reader in readers(graph)}})
    return {
        "internal": {reader.name: {**_internal(reader, named), "sums": sums.get(reader.name, "")} for reader in readers(graph)},
        "together": [sorted(named[root] for root in group) for group in _together(graph)],
        "keeps": {node.name: sorted(named[root] for root in _met_by(node)) for node in keepers(graph) if not _is_everywhere(node)},
        "timed": [list(topics) for topics in _timed(graph, named)],
    }


def topics_of(graph: Graph, topics: Mapping[str, str]) -> dict[Node, str]:
    """The topic that each operator reads at which a stage begins."""
    found: dict[Node, str] = {}
    for node in graph:
        if isinstance(node, Source | TableSource):
            found[node] = topics.get(node.topic, node.topic)
        elif isinstance(node, Reader):
            found[node] = topics[node.name]
    return found


def is_timed(node: Node) -> bool:
    """Whether the records of an operator have an event time."""
    return all(isinstance(source, Source) and source.timing is not None for source in sources_of(node))


def operators(graph: Graph) -> dict[str, str]:
    """Of each internal topic what must not change while records wait in it, by its name."""
    return {reader.name: f"{reader.writer.how}, keys {reader.key.serde}, values {reader.writer.value}" for reader in readers(graph)}


def _internal(reader: Reader, named: Mapping[Node, str]) -> dict[str, Any]:
    writer = reader.writer
    found: dict[str, Any] = {
        "topic": named[reader],
        "key": writer.key.serde,
        "value": "json" if writer.value is None else writer.value.serde,
        "timed": is_timed(writer),
        "sources": sorted(named[root] for root in roots_of(writer)),
    }
    if writer.how == BROADCAST:
        found["everywhere"] = True
    return found if writer.partitions is None else {**found, "partitions": writer.partitions}


def _timed(graph: Graph, named: Mapping[Node, str]) -> list[tuple[str, ...]]:
    found = {tuple(sorted(named[root] for root in roots_of(node))) for node in graph if _has_time(node)}
    alone = {(named[node],) for node in graph if isinstance(node, Source) and node.timing is not None}
    return sorted(found | {one for one in alone if not any(one[0] in topics for topics in found)})


def _has_time(node: Node) -> bool:
    return isinstance(node, WindowAggregate) or (isinstance(node, Repartition) and is_timed(node))


def _together(graph: Graph) -> list[set[Node]]:
    """Where stages begin whose records meet by key, with those that meet the same ones."""
    found: list[set[Node]] = []
    for node in graph:
        meets_by_key = isinstance(node, Keeps) or (isinstance(node, Lookup) and node.on is None)
        if not meets_by_key:
            continue
        group = _met_by(node)
        touched = [other for other in found if other & group]
        found = [other for other in found if not other & group]
        if group:
            found.append(group.union(*touched))
    return found


def _met_by(node: Node) -> set[Node]:
    """Where the stages of an operator, and of the tables that it reads, begin; without what every task has all of."""
    group = roots_of(node) | {root for table in tables_read(node) for root in roots_of(table)}
    return {root for root in group if not _is_everywhere(root)}


def _is_everywhere(root: Node) -> bool:
    """Whether every task has all of it."""
    return root.broadcast if isinstance(root, TableSource) else isinstance(root, Reader) and root.writer.how == BROADCAST
