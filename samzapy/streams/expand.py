"""A program as sections of a job file: inputs, outputs and stores, and what the checkpoint remembers of its operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.config.key_errors import Finding
from samzapy.config.scalars import near
from samzapy.plan.forgetting import (
    OF_CLOCK,
    OF_RECORD,
    OF_VALUE,
    RECORDS,
    key_fields_subject,
    kind_subject,
    layout_subject,
    operator_subject,
    table_subject,
    time_subject,
    topic_layout_subject,
    topic_subject,
)
from samzapy.streams.combining import sums_through
from samzapy.streams.graph import Graph, Keeps, Node, Source, TableSource, To, Way
from samzapy.streams.internal import operators, stages
from samzapy.streams.kinds import Kind
from samzapy.streams.places import refused
from samzapy.streams.walk import keepers, readers, sources, tables_read, takers
from samzapy.streams.window_nodes import WindowAggregate

OF_PROGRAM = "program"  # where a record's time is: the program finds it
OF_STREAMS = ("topic", "start", "on_out_of_range")


@dataclass(frozen=True, slots=True)
class Sections:
    """What a program says in place of a job file.

    Attributes:
        inputs, outputs, stores: as the job file has them.
        operators: what must not change while there is state: subject → how it is now.
        topics: where streams really are, by the program's names for them.
        tables: by topic that is a table, its store.
    """

    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    stores: dict[str, dict[str, Any]]
    operators: dict[str, str]
    topics: dict[str, str]
    stages: dict[str, Any]
    tables: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """The sections of the job file."""
        return {"inputs": self.inputs, "outputs": self.outputs, "stores": self.stores, "stages": self.stages}


def sections(graph: Graph, streams: Mapping[str, Mapping[str, Any]], stores: Mapping[str, Mapping[str, Any]], job: str = "test-1") -> Sections:
    """What a program says. `streams`, `stores`: the job file's own sections, where it runs; `job`: its name and id.

    Raises:
        ConfigurationError: the program has no use: nothing is read, or something goes nowhere.
    """
    check_uses(graph)
    topics = {name: str(given["topic"]) for name, given in streams.items() if given.get("topic")}
    return Sections(
        inputs=[_input(source, streams.get(source.topic, {}), topics) for source in sources(graph)],
        outputs=list(_outputs(graph, topics).values()),
        stores={node.name: {**_store(node), **stores.get(node.name, {})} for node in keepers(graph)},
        operators={
            **{operator_subject(node.name): node.identity for node in keepers(graph) if not is_scratch(node)},
            **{table_subject(n.name): topics.get(n.topic, n.topic) for n in keepers(graph) if isinstance(n, TableSource) and not is_scratch(n)},
            **{key_fields_subject(node.name): node.key.key_fields for node in keepers(graph) if node.key.key_fields and not is_scratch(node)},
            **{topic_subject(name): identity for name, identity in operators(graph).items()},
            **_layouts(graph),
            **_kinds(graph),
            **{time_subject(topics.get(s.topic, s.topic)): _time_of(s) for s in sources(graph) if isinstance(s, Source) and s.timing is not None},
        },
        topics={**topics, **{node.name: f"{job}-{node.name}" for node in readers(graph)}},
        stages=stages(graph, topics, job, sums_through(graph)),
        tables={topics.get(node.topic, node.topic): node.name for node in graph if isinstance(node, TableSource)},
    )


def check_names(graph: Graph, streams: Mapping[str, Any], stores: Mapping[str, Any]) -> Iterator[Finding]:
    """Sections of the job file that name what the program does not have, or say what is the program's to say."""
    read = {source.topic for source in sources(graph)}
    known = {*read, *(node.topic for node in graph if isinstance(node, To))}
    for name, given in streams.items():
        if name not in known:
            yield Finding(("streams", name), f"the program has no stream {name!r}", _meant(name, known), at_key=True)
        elif name not in read and isinstance(given, Mapping):
            for key in ("start", "on_out_of_range"):
                if key in given:
                    yield Finding(("streams", name, key), f"the program does not read {name!r}", "Remove it.", at_key=True)
    names = {node.name for node in keepers(graph)}
    for name, given in stores.items():
        if name not in names:
            yield Finding(("stores", name), f"the program has no store {name!r}", _meant(name, names), at_key=True)
        elif isinstance(given, Mapping):
            for key in given:
                if key != "engine":
                    yield Finding(("stores", name, key), f"`{key}` of a program's store cannot be set in the job file", "Only `engine` can be.", at_key=True)


def check_uses(graph: Graph) -> None:
    """That something is read, and that whatever is made goes somewhere.

    Raises:
        ConfigurationError: it does not.
    """
    if not any(isinstance(source, Source) or takers_of_table(graph, source) for source in sources(graph)):
        raise ConfigurationError("the program reads no stream.", "Begin with app.stream(topic, …).")
    below, reached = takers(graph), set[Node]()
    for node in reversed(graph):
        looked_into = {keeper for reader in graph for keeper in tables_read(reader)}
        if node.is_end or node in looked_into or any(taker in reached for taker in below[node]):
            reached.add(node)
    for node in graph:
        lost = node not in reached and not (isinstance(node, Way) and node.inputs[0] in reached)
        if lost and not any(taker not in reached for taker in below[node]):
            raise refused(f"{node.title} goes nowhere", "End each stream with .to(topic), .sink(function), or a table such as .count(name).", node.where)


def takers_of_table(graph: Graph, table: Node) -> bool:
    return bool(takers(graph)[table])


def is_scratch(node: Keeps) -> bool:
    """Whether its store is filled anew at each start, from the topic, and so needs no changelog."""
    return isinstance(node, TableSource) and node.broadcast


def _input(source: Source | TableSource, given: Mapping[str, Any], topics: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"topic": topics.get(source.topic, source.topic), "key": source.key.serde, "value": _serde(source.value)}
    if isinstance(source, Source) and source.timing is not None:
        found["time"] = {"from": "processing" if source.by_clock else OF_PROGRAM, **asdict(source.timing)}
    if isinstance(source, TableSource):
        found |= {key: True for key, wanted in (("bootstrap", source.ready), ("broadcast", source.broadcast)) if wanted}
    return found | {key: given[key] for key in OF_STREAMS[1:] if given.get(key)}


def _time_of(source: Source) -> str:
    return OF_CLOCK if source.by_clock else OF_RECORD if source.time is None else OF_VALUE


def _outputs(graph: Graph, topics: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for node in graph:
        if isinstance(node, To):
            entry = found.setdefault(node.topic, {"topic": topics.get(node.topic, node.topic), "key": node.key.serde, "value": _serde(node.value)})
            if node.partitions is not None:
                entry["partitions"] = node.partitions
    return found


def _layouts(graph: Graph) -> dict[str, str]:
    """How values lie in their bytes where the job file's sections do not show it: what windows keep, and records on their way between stages."""
    kept = {layout_subject(node.name, "value"): node.kept.layout for node in keepers(graph) if isinstance(node, WindowAggregate)}
    parts = [(reader.name, part, kind) for reader in readers(graph) for part, kind in (("key", reader.writer.key), ("value", reader.writer.value))]
    sent = {topic_layout_subject(name, part): kind.layout for name, part, kind in parts if kind is not None}
    held = {layout_subject(node.name, RECORDS): node.keeps.layout for node in keepers(graph) if node.keeps is not None and not is_scratch(node)}
    return {subject: layout for subject, layout in {**kept, **held, **sent}.items() if layout}


def _kinds(graph: Graph) -> dict[str, str]:
    """What values are that a store's serde does not tell apart: JSON is a dict or a list, and accumulators are JSON whatever they keep."""
    found = {}
    for node in (node for node in keepers(graph) if not is_scratch(node)):
        value = node.kept if isinstance(node, WindowAggregate) else node.store_value
        if value.is_checked and getattr(node, "result", None) is None:  # else it is the accumulator's, which the identity says
            found[kind_subject(node.name, "values")] = str(value)
        if node.keeps is not None:
            found[kind_subject(node.name, RECORDS)] = "record" if node.keeps.is_record else str(node.keeps)
    return found


def _store(node: Keeps) -> dict[str, Any]:
    return {"key": node.store_key.serde, "value": node.store_value.serde, **({"changelog": False} if is_scratch(node) else {})}


def _serde(kind: Kind | None) -> str:
    return "json" if kind is None else kind.serde


def _meant(name: str, known: set[str]) -> str:
    guess = near(name, known)
    return f"did you mean {guess!r}?" if guess else f"It has: {', '.join(sorted(known)) or 'none'}."
