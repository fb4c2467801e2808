"""What a store has of a dict, and `update_with`: made of get, put and all, so on uncommitted, committed and deleted entries alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator
from samzapy.api.errors import TaskError
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.ports import TaskStore
from samzapy.serde.registry import serde_named
from samzapy.store.memory import MemoryEngine
from samzapy.store.overlay import OverlayStore
from samzapy.testing import Harness

STAMP = StoreStamp(StoreIdentity("job", "1", "Partition 3", "counts", "string", "json"), "topic-id", 7, 0, 0)


@pytest.fixture(params=["uncommitted", "committed", "written"])
def store(request: pytest.FixtureRequest) -> TaskStore:
    """`zero`, `empty` and `ada` are there; `gone` was deleted, `none` never put."""
    serdes = serde_named("string", []), serde_named("json", [])
    store = OverlayStore("counts", MemoryEngine(), *serdes, 1 << 16, 1000, "Partition 3", committed_bytes=1 << 16)
    store.put_all({"zero": 0, "empty": "", "ada": {"n": 1}, "gone": 1})
    store.delete("gone")
    if request.param != "uncommitted":
        store.keep()
        store.freeze()
        store.apply(replace(STAMP, position=8))
    if request.param == "written":
        store.flush()
    return store


def test_get_gives_the_default_only_where_there_is_no_value(store: TaskStore) -> None:
    assert [0, "", {"n": 1}] == [store.get(key, "default") for key in ("zero", "empty", "ada")]
    assert ["default"] * 2 == [store.get(key, "default") for key in ("gone", "none")]
    assert [None] * 2 == [store.get(key) for key in ("gone", "none")]


def test_an_item_is_read_set_and_deleted(store: TaskStore) -> None:
    assert 0 == store["zero"]
    store["zero"] = 1
    assert 1 == store.get("zero")
    del store["zero"]
    store["ada"] = None
    assert [None, None] == [store.get("zero"), store.get("ada")]


def test_an_absent_item_is_a_key_error_and_changes_nothing(store: TaskStore) -> None:
    before = store.uncommitted_bytes
    for key in ("gone", "none"):
        with pytest.raises(KeyError, match=key):
            store[key]
        with pytest.raises(KeyError, match=key):
            del store[key]
    assert before == store.uncommitted_bytes


def test_what_it_contains(store: TaskStore) -> None:
    assert [True, True, True, False, False] == [key in store for key in ("zero", "empty", "ada", "gone", "none")]
    assert ["ada", "empty", "zero"] == list(store)


def test_update_with_puts_and_returns_what_the_function_makes(store: TaskStore) -> None:
    assert 1 == store.update_with("zero", lambda n: n + 1, 10)
    assert 11 == store.update_with("gone", lambda n: n + 1, 10)
    assert {"n": 1, "m": 2} == store.update_with("ada", lambda user: {**user, "m": 2})
    assert [1, 11, {"n": 1, "m": 2}] == [store[key] for key in ("zero", "gone", "ada")]


def test_update_with_deletes_where_the_function_returns_none(store: TaskStore) -> None:
    given: list[Any] = []
    for key in ("ada", "none"):
        assert store.update_with(key, given.append) is None
        assert key not in store
    assert [{"n": 1}, None] == given


def test_where_the_function_raises_nothing_changes(store: TaskStore) -> None:
    with pytest.raises(ZeroDivisionError):
        store.update_with("zero", lambda n: 1 // n)
    assert 0 == store["zero"]


def test_none_is_no_key_here_either(store: TaskStore) -> None:
    for use in (lambda: store[None], lambda: None in store, lambda: store.get(None, 0), lambda: store.update_with(None, str)):
        with pytest.raises(TaskError, match="None is not a key"):
            use()


def test_a_store_of_ones_own_has_to_define_get_and_put_only() -> None:
    class Fake(KeyValueStore[str, int]):
        def __init__(self) -> None:
            self.entries: dict[str, int | None] = {}

        def get(self, key: str, default: Any = None) -> Any:
            value = self.entries.get(key)
            return default if value is None else value

        def put(self, key: str, value: int | None) -> None:
            self.entries[key] = value

    store = Fake()
    assert 1 == store.update_with("ada", lambda n: n + 1, 0)
    store["bob"] = 2
    del store["ada"]
    assert {"ada": None, "bob": 2} == store.get_all(["ada", "bob"])


class Counting(StreamTask[str, str]):
    def init(self, context: TaskContext) -> None:
        self.counts: KeyValueStore[str, int] = context.get_store("counts")

    def process(self, envelope: IncomingMessageEnvelope[str, str], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        if envelope.message == "forget":
            del self.counts[envelope.key]
        else:
            self.counts.update_with(envelope.key, lambda n: n + 1, 0)
        collector.send("counts", self.counts.get(envelope.key), key=envelope.key)


def test_a_task_uses_it_and_what_it_did_goes_with_a_crash() -> None:
    string = {"key": "string", "value": "string"}
    integer = {"key": "string", "value": "integer"}
    inputs, outputs = [{"topic": "events", **string}], [{"topic": "counts", **integer}]
    with Harness(Counting, inputs=inputs, outputs=outputs, stores={"counts": integer}) as h:
        h.send("events", "x", key="ada")
        h.run()
        h.crash()
        h.send("events", "y", key="ada")
        h.send("events", "forget", key="ada")
        h.send("events", "z", key="ada")
        h.run()
        assert [("ada", 1), ("ada", 2), ("ada", None), ("ada", 1)] == h.output("counts")
        assert {"ada": 1} == h.store("counts")
