"""Entries of a store with a `ttl` expire: by the time since their last put, wherever they lie, for good, and at a cost that depends on them only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from samzapy import IncomingMessageEnvelope, MessageCollector, StreamTask, TaskContext, TaskCoordinator
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.model.timed import put_ms, timed
from samzapy.ports import Change, Scan, StoreEngine
from samzapy.serde.registry import serde_named
from samzapy.store.memory import MemoryEngine
from samzapy.store.rocks import RocksEngine
from samzapy.store.ttl import ExpiringStore
from samzapy.testing import Harness

STAMP = StoreStamp(StoreIdentity("job", "1", "Partition 3", "seen", "string", "integer, timed"), "topic-id", 7, 0, 0)
STRING, INTEGER = serde_named("string", []), serde_named("integer", [])
TTL_MS = 1600


class Time:
    """A clock that stands."""

    def __init__(self) -> None:
        self.ms = 10_000

    def __call__(self) -> int:
        return self.ms


class CountedEngine(MemoryEngine):
    """Counts the entries that scans give."""

    def __init__(self) -> None:
        super().__init__()
        self.given = 0

    def scan(self, from_key: bytes | None = None, to_key: bytes | None = None) -> Scan:
        class Counted:
            def __init__(self, engine: CountedEngine, scan: Scan) -> None:
                self._engine, self._scan = engine, scan

            def __iter__(self) -> Counted:
                return self

            def __next__(self) -> tuple[bytes, bytes]:
                entry = next(self._scan)
                self._engine.given += 1
                return entry

            def close(self) -> None:
                self._scan.close()

        return Counted(self, super().scan(from_key, to_key))


def store_of(engine: StoreEngine, time: Time, ttl_ms: int = TTL_MS, key: Any = STRING) -> ExpiringStore:
    return ExpiringStore("seen", engine, key, INTEGER, 1 << 16, 1000, "Partition 3", 1 << 16, ttl_ms=ttl_ms, now_ms=time, put_ms=time)


def commit(store: ExpiringStore) -> list[Change]:
    store.keep()
    changes = list(store.freeze())
    store.apply(replace(STAMP, position=(store.stamp or STAMP).position + 1))
    return changes


@pytest.mark.parametrize("where", ["live", "committed", "written", "reopened"])
def test_an_entry_is_gone_when_its_time_is_over_wherever_it_lies(where: str, tmp_path: Path) -> None:
    time, engine = Time(), RocksEngine(tmp_path)
    store = store_of(engine, time)
    store.put_all({"a": 1, "b": 2})
    time.ms += TTL_MS - 1
    store.put("b", 3)
    if where != "live":
        commit(store)
    if where in ("written", "reopened"):
        store.flush()
    if where == "reopened":
        store.close()
        store = store_of(RocksEngine(tmp_path), time)
    assert [("a", 1), ("b", 3)] == list(store.all())
    store.keep()
    time.ms += 1
    assert (None, 0, 3) == (store.get("a"), store.get("a", 0), store["b"])
    assert "a" not in store
    with pytest.raises(KeyError):
        store["a"]
    assert [("b", 3)] == list(store.range("a", "c")) == list(store.all())
    assert 5 == store.update_with("a", lambda n: n + 5, 0)
    store.keep()
    store.close()


def test_what_has_expired_is_deleted_and_its_index_with_it() -> None:
    time, engine = Time(), MemoryEngine()
    store = store_of(engine, time)
    store.put_all({"a": 1, "b": 2, "c": 3})
    commit(store)
    time.ms += 1000
    store.put("b", 4)
    commit(store)
    store.flush()
    time.ms += 600
    assert store.expire(100)
    assert [(b"a", None), (b"c", None)] == sorted(commit(store))
    store.flush()
    assert store.expire(100)
    assert [] == commit(store)
    assert {b"\x00" + timed(b"b", put_ms(b"\x00" * 6 + (11_000).to_bytes(2))), b"\x01b"} == {key for key, _ in engine.scan()}
    time.ms += 1000
    assert store.expire(100)
    assert [(b"b", None)] == commit(store)
    store.flush()
    assert store.expire(100)
    assert [] == list(engine.scan())


def test_a_deletion_that_was_aborted_is_done_again() -> None:
    time = Time()
    store = store_of(MemoryEngine(), time)
    store.put("a", 1)
    commit(store)
    store.flush()
    time.ms += TTL_MS
    assert store.expire(100)
    store.discard()
    assert store.expire(100)
    assert [(b"a", None)] == commit(store)


def test_a_put_that_was_aborted_does_not_keep_an_entry_for_ever() -> None:
    time = Time()
    store = store_of(MemoryEngine(), time)
    store.put("a", 1)
    commit(store)
    store.flush()
    time.ms += TTL_MS
    store.put("a", 2)
    store.keep()
    assert store.expire(100)
    assert 2 == store.get("a")
    store.discard()
    assert store.expire(100)
    assert [(b"a", None)] == commit(store)


def test_expiry_looks_at_what_has_expired_only() -> None:
    time, engine = Time(), CountedEngine()
    store = store_of(engine, time)
    store.put_all({f"old-{n}": n for n in range(3)})
    commit(store)
    time.ms += TTL_MS - 100
    store.put_all({f"key-{n}": n for n in range(1000)})
    commit(store)
    store.flush()
    time.ms += 100
    engine.given = 0
    assert store.expire(100)
    assert 3 == engine.given
    assert 3 == len(commit(store))


def test_expiry_is_taken_in_parts() -> None:
    time = Time()
    store = store_of(MemoryEngine(), time)
    store.put_all({f"key-{n}": n for n in range(25)})
    commit(store)
    store.flush()
    time.ms += TTL_MS
    assert [False, False, True] == [store.expire(10) for _ in range(3)]
    assert 25 == len(commit(store))


def test_a_key_that_is_put_often_has_few_index_entries() -> None:
    time, engine = Time(), MemoryEngine()
    store = store_of(engine, time)
    for _ in range(200):
        time.ms += TTL_MS // 200
        store.put("a", 1)
        commit(store)
        store.flush()
    assert len(list(engine.scan(b"\x00", b"\x01"))) <= 17


def test_whole_numbers_as_keys_keep_their_order() -> None:
    store = store_of(MemoryEngine(), Time(), key=serde_named("integer", []))
    store.put_all({5: 5, -3: -3, 0: 0})
    commit(store)
    store.put(-9, -9)
    assert [-9, -3, 0, 5] == list(store)
    assert [-3, 0] == [key for key, _ in store.range(-3, 1)]


# -- in a job --------------------------------------------------------------------------------------------------------------------------


class Distinct(StreamTask[None, str]):
    """Sends what it has not seen within the ttl."""

    def init(self, context: TaskContext) -> None:
        self.seen = context.get_store("seen")

    def process(self, envelope: IncomingMessageEnvelope[None, str], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        if envelope.message not in self.seen:
            collector.send("out", envelope.message)
        self.seen.put(envelope.message, 1)


def job(**store: Any) -> dict[str, Any]:
    return {
        "inputs": [{"topic": "in", "value": "string"}],
        "outputs": [{"topic": "out", "value": "string"}],
        "stores": {"seen": {"key": "string", "value": "integer", **store}},
    }


def sent(h: Harness, *values: str) -> list[str]:
    before = len(h.output("out"))
    for value in values:
        h.send("in", value)
    h.run()
    return [value for _, value in h.output("out")][before:]


@pytest.mark.parametrize("keep_state", [True, False])
@pytest.mark.parametrize("engine", ["rocksdb", "memory"])
def test_nothing_comes_back_after_a_crash(keep_state: bool, engine: str) -> None:
    with Harness(Distinct, **job(ttl="1h", engine=engine)) as h:
        assert ["a", "b"] == sent(h, "a", "b", "a")
        h.advance(1800)
        assert [] == sent(h, "a")
        h.crash(keep_state)
        h.advance(1800)
        assert {"a": 1} == h.store("seen")
        assert ["b"] == sent(h, "a", "b")
        h.crash(keep_state)
        h.advance(3601)
        h.crash(keep_state)
        assert ["a", "b"] == sent(h, "a", "b")


def test_the_changelog_has_plain_values_and_tombstones_of_what_expired() -> None:
    with Harness(Distinct, **job(ttl="1h")) as h:
        sent(h, "a")
        put_at = h.clock.now_ms()
        h.advance(60)  # it is written out
        h.advance("2h")  # it expires
        h.run()
        found = [(m.key(), m.value(), m.timestamp()[1]) for m in h.records("test-1-seen-changelog") if m.key() == b"a"]
    assert [(b"a", (1).to_bytes(8)), (b"a", None)] == [(key, value) for key, value, _ in found]
    assert put_at == found[0][2]


def test_a_ttl_that_is_set_longer_shorter_or_removed_applies_to_what_is_there() -> None:
    with Harness(Distinct, **job()) as h:
        sent(h, "a")
        h.advance(7200)
        for store, expected in (({"ttl": "3h"}, []), ({}, []), ({"ttl": "8h"}, []), ({"ttl": "1s"}, ["a"])):
            h.restart(stores=job(**store)["stores"])
            h.advance(7200 if not store else 2)
            assert expected == sent(h, "a"), store


def test_a_clock_that_is_set_ahead_for_a_moment_expires_nothing() -> None:
    with Harness(Distinct, **job(ttl="1h")) as h:
        assert ["a"] == sent(h, "a")
        h.advance(60)  # it is written out
        h.clock._start_ms += 3 * 3_600_000
        h.advance(15)
        assert [] == sent(h, "a"), "it is still there"
        h.advance(15)
        h.clock._start_ms -= 3 * 3_600_000
        h.advance(60)
        assert [] == sent(h, "a")

        h.clock._start_ms += 3 * 3_600_000
        for _ in range(8):
            h.advance(10)  # the clock stays so
        assert ["a"] == sent(h, "a")


def test_what_is_put_after_the_clock_was_put_right_lives_as_long_as_its_ttl() -> None:
    with Harness(Distinct, **job(ttl="2m")) as h:
        h.advance(60)
        h.clock._start_ms += 240_000
        h.advance(15)
        assert ["a"] == sent(h, "a")
        for _ in range(8):
            h.advance(10)  # the clock stays so, and is followed
        assert [] == sent(h, "a"), "it was put less than two minutes ago"
        h.advance(121)
        assert ["a"] == sent(h, "a"), "its ttl is over"


def test_what_is_put_while_the_clock_is_ahead_for_a_moment_expires_late_and_never_early() -> None:
    with Harness(Distinct, **job(ttl="2m")) as h:
        h.advance(60)
        h.clock._start_ms += 240_000
        h.advance(15)
        assert ["a"] == sent(h, "a")
        h.clock._start_ms -= 240_000
        h.advance(330)
        assert [] == sent(h, "a")
        h.advance(121)
        assert ["a"] == sent(h, "a")
