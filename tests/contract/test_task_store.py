"""The task's store (ports.TaskStore) against a model, step by step, both engines: overlays, undo, commit, abort, restore, iteration."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.ports import StoreEngine, TaskStore
from samzapy.serde.registry import serde_named
from samzapy.store.flat import CACHE_BYTES_EACH
from samzapy.store.memory import MemoryEngine
from samzapy.store.overlay import OverlayStore
from samzapy.store.rocks import RocksEngine, SharedMemory
from tests.simulation.disk import DiskEngine, Generation

STAMP = StoreStamp(StoreIdentity("job", "1", "Partition 0", "counts", "k", "v"), "topic-id", 0, 0, 0)
MEMORY = SharedMemory(8 << 20)
VALUES = st.none() | st.binary(max_size=4)
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "bytes": st.sampled_from([b"", b"\x00", b"\x00\x00", b"a", b"a\x00", b"ab", b"b", b"\xfe", b"\xff", b"\xff\xff"]),
    "integer": st.sampled_from([-(2**63), -300, -2, -1, 0, 1, 2, 255, 256, 2**63 - 1]),
}


class Documents:
    """A store of JSON seen as one of bytes: half of the values are flat dicts, which the store keeps as they are for a time."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, key: Any, value: bytes | None) -> None:
        given = document(value)
        self._store.put(key, given)
        if isinstance(given, dict):
            given["v"] = "what the task does to its own dict is no change of the store"

    def get(self, key: Any) -> bytes | None:
        found = self._store.get(key)
        value = plain(found)
        if isinstance(found, dict):
            found.clear()
        return value

    def all(self) -> Iterator[tuple[Any, bytes | None]]:
        return ((key, plain(value)) for key, value in self._store.all())

    def range(self, low: Any, high: Any) -> Iterator[tuple[Any, bytes | None]]:
        return ((key, plain(value)) for key, value in self._store.range(low, high))

    def freeze(self) -> list[tuple[bytes, bytes | None]]:
        return [(key, None if value is None else plain(orjson.loads(value))) for key, value in self._store.freeze()]

    def load(self, records: Sequence[tuple[bytes, bytes | None]], stamp: StoreStamp) -> None:
        self._store.load([(key, None if value is None else orjson.dumps(document(value))) for key, value in records], stamp)


def document(value: bytes | None) -> Any:
    if value is None:
        return None
    text = value.hex()
    return {"v": text, "n": len(value), "half": len(value) / 2, "is": True, "no": None} if len(value) % 2 else [text]


def plain(found: Any) -> bytes | None:
    if found is None:
        return None
    value = bytes.fromhex(found["v"] if isinstance(found, dict) else found[0])
    assert (found, list(found)) == (document(value), list(document(value)))
    return value


class Steps(RuleBasedStateMachine):
    """The model: what is committed, what the cut took, what is kept, what the running hook has done."""

    key_serde = "bytes"
    value_serde = "bytes"
    cache_bytes = 600  # a handful of entries: generations turn
    committed_bytes = 0  # each commit is written to the engine

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.generations = itertools.count()
        self.positions = itertools.count(1)
        self.store = self.store_over(self.engine())
        self.store.load([], self.stamp())  # as a restore ends
        self.commits: list[tuple[int, dict[Any, bytes | None]]] = []  # what the changelog has, before compaction
        self.log: dict[Any, bytes] = {}  # the changelog, compacted
        self.frozen: dict[Any, bytes | None] | None = None
        self.kept: dict[Any, bytes | None] = {}
        self.hook: dict[Any, bytes | None] = {}

    def engine(self) -> StoreEngine:
        raise NotImplementedError

    def store_over(self, engine: StoreEngine) -> Any:
        store = OverlayStore(
            "counts", engine, serde_named(self.key_serde, []), serde_named(self.value_serde, []), self.cache_bytes, 1 << 20, "Partition 0",
            self.committed_bytes,
        )  # fmt: skip
        return store if self.value_serde == "bytes" else Documents(store)

    def stamp(self) -> StoreStamp:
        return replace(STAMP, position=next(self.positions))

    def seen(self) -> dict[Any, bytes]:
        layered: dict[Any, bytes | None] = {**self.log, **(self.frozen or {}), **self.kept, **self.hook}
        return {k: v for k, v in layered.items() if v is not None}

    @rule(data=st.data(), value=VALUES)
    def put(self, data: st.DataObject, value: bytes | None) -> None:
        key = data.draw(KEYS[self.key_serde])
        self.store.put(key, value)
        self.hook[key] = value

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        key = data.draw(KEYS[self.key_serde])
        self.store.delete(key)
        self.hook[key] = None

    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        key = data.draw(KEYS[self.key_serde])
        assert self.seen().get(key) == self.store.get(key)

    @rule()
    def keep(self) -> None:
        self.store.keep()
        self.kept.update(self.hook)
        self.hook.clear()

    @rule()
    def undo(self) -> None:
        self.store.undo()
        self.hook.clear()

    @rule(data=st.data())
    def iterate(self, data: st.DataObject) -> None:
        low, high = data.draw(KEYS[self.key_serde]), data.draw(KEYS[self.key_serde])
        expected = sorted(self.seen().items())
        whole, part = self.store.all(), self.store.range(low, high)
        assert [(k, v) for k, v in expected if low <= k < high] == list(part)
        assert expected == list(whole)

    @rule(data=st.data(), value=VALUES)
    def write_while_iterating(self, data: st.DataObject, value: bytes | None) -> None:
        expected = sorted(self.seen().items())
        iterator = self.store.all()
        found = list(itertools.islice(iterator, 1))
        key = data.draw(KEYS[self.key_serde])
        self.store.put(key, value)
        self.hook[key] = value
        assert expected == found + list(iterator)

    @precondition(lambda self: self.frozen is None)
    @rule()
    def freeze(self) -> None:
        self.keep()
        serde = serde_named(self.key_serde, [])
        size = self.store.uncommitted_bytes
        changes = self.store.freeze()
        told = {serde.decode(k): v for k, v in changes}
        assert self.value_serde == "json" or size == sum(len(k) + len(v or b"") for k, v in changes)
        assert len(changes) == len(told)
        gone = self.kept.keys() - told.keys()  # put and deleted since the last commit, by which it was not there
        assert all(self.kept[key] is None and key not in self.log for key in gone)
        assert {k: v for k, v in self.kept.items() if k not in gone} == told
        self.frozen, self.kept = told, {}

    @precondition(lambda self: self.frozen is not None)
    @rule()
    def apply(self) -> None:
        stamp = self.stamp()
        self.store.apply(stamp)
        assert stamp == self.store.stamp
        self.commits.append((stamp.position, dict(self.frozen or {})))
        for key, value in (self.frozen or {}).items():
            if value is None:
                self.log.pop(key, None)
            else:
                self.log[key] = value
        self.frozen = None
        if self.store.must_write_out:
            self.store.write_out()
            assert not self.store.must_write_out

    @rule(entries=st.integers(1, 3))
    def write_out_a_part(self, entries: int) -> None:
        before = self.store.unwritten
        done = self.store.write_out(entries)
        assert before - entries <= self.store.unwritten <= before
        assert done or self.store.unwritten > 0

    @rule()
    def write_out_and_flush(self) -> None:
        self.store.flush()
        assert 0 == self.store.unwritten

    @rule()
    def discard(self) -> None:
        self.store.discard()
        self.frozen, self.kept, self.hook = None, {}, {}

    @rule(old=st.booleans())
    def restart_and_restore(self, old: bool) -> None:
        """Everything local is lost; the changelog is read in two batches, the second of which says some of the first again."""
        self.store.close()
        self.frozen, self.kept, self.hook = None, {}, {}
        self.store.attach(self.engine())
        encode = serde_named(self.key_serde, []).encode
        records: list[tuple[bytes, bytes | None]] = [(encode(k), v) for k, v in self.log.items()]
        gone: list[tuple[bytes, bytes | None]] = [(k, b"old") for k, _ in records] if old else []
        self.store.load([*gone, *records[:2]], STAMP)  # it does not have any commit whole yet; a crash may end the restore here
        self.store.load([*gone, *records], self.stamp())

    @invariant()
    def counts_its_bytes(self) -> None:
        encode = serde_named(self.key_serde, []).encode
        live = {**self.kept, **self.hook}
        below = {**self.log, **(self.frozen or {})}
        sizes = {k: len(encode(k)) + len(v or b"") for k, v in live.items()}
        needed = {k for k, v in live.items() if v is not None or k in below}  # of the others the store may forget the deletion
        if self.value_serde == "bytes":
            assert sum(sizes[k] for k in needed) <= self.store.uncommitted_bytes <= sum(sizes.values())
        else:
            documents = {k: len(encode(k)) + (0 if live[k] is None else len(orjson.dumps(document(live[k])))) for k in live}
            assert sum(documents[k] for k in needed) <= self.store.uncommitted_bytes
            assert live or self.store.uncommitted_bytes == 0
        assert bool(needed) <= self.store.changed <= bool(live)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


class DiskSteps(Steps):
    """Over an engine that crashes: what it finds then is a prefix of the batches, and the rest is read from the changelog."""

    def engine(self) -> StoreEngine:
        self.generation = Generation(str(next(self.generations)))
        return DiskEngine(self.generation)

    @rule(kept=st.integers(0, 5))
    def crash_and_catch_up(self, kept: int) -> None:
        assert isinstance(self.generation.engine, DiskEngine)
        self.generation.engine.let_go(min(kept, len(self.generation.unflushed)))
        serde, engine = serde_named(self.key_serde, []), DiskEngine(self.generation)
        self.store = self.store_over(engine)
        self.frozen, self.kept, self.hook = None, {}, {}
        known = engine.stamp()
        missed = [changes for position, changes in self.commits if known is None or position > known.position]
        self.store.load([(serde.encode(k), v) for changes in missed for k, v in changes.items()], self.stamp())
        assert self.log == dict(self.store.all())


def test_a_restore_that_a_crash_ends_between_its_batches_is_caught_up_from_the_changelog() -> None:
    """Found by the machine."""
    steps = machine(DiskSteps, "bytes", "bytes", 600, 0)()
    for key in (b"", b"\x00", b"\x00\x00"):
        steps.store.put(key, b"")
        steps.hook[key] = b""
    steps.freeze()
    steps.apply()
    steps.restart_and_restore(old=False)
    steps.crash_and_catch_up(kept=1)  # type: ignore[attr-defined]
    steps.teardown()


class MemorySteps(Steps):
    def engine(self) -> StoreEngine:
        return MemoryEngine()


class RocksSteps(Steps):
    def engine(self) -> StoreEngine:
        return RocksEngine(self.folder / str(next(self.generations)), MEMORY)


def machine(engine: type[Steps], key_serde: str, value_serde: str, cache_bytes: int, committed_bytes: int) -> Callable[[], Steps]:
    parts = {"key_serde": key_serde, "value_serde": value_serde, "cache_bytes": cache_bytes, "committed_bytes": committed_bytes}
    return type(f"{engine.__name__}_{key_serde}_{value_serde}_{cache_bytes}_{committed_bytes}", (engine,), parts)


@pytest.mark.parametrize(
    ("value_serde", "cache_bytes", "committed_bytes"),
    [
        *(("bytes", *sizes) for sizes in [(0, 0), (600, 0), (0, 400), (600, 1000), (1 << 20, 1 << 20)]),
        *(("json", *sizes) for sizes in [(3 * CACHE_BYTES_EACH, 0), (3 * CACHE_BYTES_EACH, 1000), (1 << 20, 1 << 20)]),  # three flat dicts; 512
    ],
)
@pytest.mark.parametrize("key_serde", ["bytes", "integer"])
@pytest.mark.parametrize(
    ("engine", "examples"),
    [(MemorySteps, 10), (DiskSteps, 10), (RocksSteps, 3), *(pytest.param(kind, 60, marks=pytest.mark.prove) for kind in (DiskSteps, RocksSteps))],
)
def test_does_what_the_model_does(
    engine: type[Steps], examples: int, key_serde: str, value_serde: str, cache_bytes: int, committed_bytes: int
) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine(engine, key_serde, value_serde, cache_bytes, committed_bytes),
        settings=settings(max_examples=examples, stateful_step_count=40, deadline=None),
    )
