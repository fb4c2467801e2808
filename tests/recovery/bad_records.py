"""Bad records, and what a task may wrongly do with a good one: fed to a container on the in-memory log, or to a serde alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.container.spec import ContainerSpec
from samzapy.serde.registry import serde_named
from samzapy.store.overlay import OverlayStore
from tests.unit.container.bench import JOB, Bench

TREE = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}
Act = Callable[[Path], object]
MAX_BYTES = 1_000_000


class Doing(StreamTask):
    """Does one thing with every record."""

    what: Callable[[Doing], None] = staticmethod(lambda task: None)

    def init(self, context):
        self.store = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        self.collector = collector
        type(self).what(self)

    def send(self, topic: str, value: Any) -> None:
        self.collector.send(OutgoingMessageEnvelope(SystemStream("kafka", topic), value, "k", partition=0))


def fed(serde: str, key: bytes, value: bytes, folders: tuple[Path, ...] = (), task: type[Doing] = Doing) -> Act:
    """One record for an input with keys of text and values of this serde; nothing of it may remain."""

    def act(folder: Path) -> object:
        bench = Bench(folder / "state", task)
        bench.adjust = lambda spec: _with_serdes(spec, serde, (folder, *folders))
        bench.log.plain_producer("feed").send("in", value, key, 0)
        container = bench.start()
        try:
            bench.drain(container)
        finally:
            container.close()
            assert {} == bench.changelog()
            assert [] == bench.read("out")
        return "it was taken"

    return act


def handled(what: Callable[[Doing], None]) -> Act:
    """The task does this with a good record."""
    return fed("string", b"k", b"v", task=type("Doing", (Doing,), {"what": staticmethod(what)}))


def avro(schema: Any, data: bytes) -> Act:
    def act(folder: Path) -> object:
        (folder / "value.avsc").write_text(json.dumps(schema))
        return fed("avro:value.avsc", b"k", data)(folder)

    return act


def decoded(serde: str, data: bytes) -> Act:
    """Bytes that no topic of this size limit would take: the serde alone must refuse them."""
    return lambda folder: serde_named(serde, [folder]).decode(data)


def avro_decoded(schema: Any, data: bytes) -> Act:
    def act(folder: Path) -> object:
        (folder / "value.avsc").write_text(json.dumps(schema))
        return decoded("avro:value.avsc", data)(folder)

    return act


def _with_serdes(spec: ContainerSpec, serde: str, folders: tuple[Path, ...]) -> ContainerSpec:
    """The input with this serde; store and output hold text, of at most a megabyte."""
    text = serde_named("string", [])
    store = spec.stores["s"]
    return replace(
        spec,
        inputs={"in": replace(spec.inputs["in"], value_serde=serde_named(serde, list(folders)))},
        outputs={"out": replace(spec.outputs["out"], value_serde=text, max_record_bytes=MAX_BYTES)},
        stores={
            "s": replace(
                store,
                value_serde="string",
                make=lambda task, engine: OverlayStore("s", engine, text, text, 1 << 20, MAX_BYTES, f"{task}, {JOB.changelog_topic('s')}"),
            )
        },
    )
