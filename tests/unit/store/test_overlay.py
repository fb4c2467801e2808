"""The task's store, promise by promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from samzapy.api.errors import InternalError, RecordTooLarge, SerdeError, StoreClosed, TaskError
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.ports import Change, TaskStore
from samzapy.serde.registry import serde_named
from samzapy.store import overlay
from samzapy.store.memory import MemoryEngine
from samzapy.store.misuse import RECORD_OVERHEAD_BYTES
from samzapy.store.overlay import OverlayStore

STAMP = StoreStamp(StoreIdentity("job", "1", "Partition 3", "counts", "string", "integer"), "topic-id", 7, 0, 0)
LIMIT = 1000


def store_of(key: str = "string", value: str = "integer", cache_bytes: int = 1 << 20, engine: MemoryEngine | None = None) -> TaskStore:
    where = "Partition 3, changelog job-1-counts-changelog"
    return OverlayStore(
        "counts", engine if engine is not None else MemoryEngine(), serde_named(key, []), serde_named(value, []), cache_bytes, LIMIT, where
    )


@pytest.fixture
def store() -> TaskStore:
    return store_of()


def commit(store: TaskStore, position: int = 8) -> list[Change]:
    store.keep()
    changes = list(store.freeze())
    store.apply(replace(STAMP, position=position))
    return changes


# -- reading and writing -----------------------------------------------------------------------------------------------------------


def test_reads_what_it_wrote_through_every_layer(store: TaskStore) -> None:
    store.put("a", 1)
    assert store.get("a") == 1
    store.keep()
    store.freeze()
    assert store.get("a") == 1
    store.put("a", 2)
    assert store.get("a") == 2
    store.keep()
    store.apply(STAMP)
    assert store.get("a") == 2
    commit(store)
    assert store.get("a") == 2
    assert store.get("b") is None


def test_none_deletes_and_an_empty_value_does_not() -> None:
    store = store_of(value="bytes")
    store.put_all({"gone": b"x", "empty": b"x"})
    commit(store)
    store.put("gone", None)
    store.put("empty", b"")
    assert (store.get("gone"), store.get("empty")) == (None, b"")
    assert commit(store) == [(b"gone", None), (b"empty", b"")]
    assert (store.get("gone"), store.get("empty")) == (None, b"")
    assert list(store.all()) == [("empty", b"")]


def test_several_at_once(store: TaskStore) -> None:
    store.put_all({"a": 1, "b": 2})
    store.put_all([("c", 3), ("a", None)])
    assert store.get_all(["a", "b", "c", "d"]) == {"a": None, "b": 2, "c": 3, "d": None}
    store.delete_all(["b", "d"])
    assert list(store.all()) == [("c", 3)]


def test_a_value_is_the_callers_own_copy() -> None:
    store = store_of(value="json")
    value = {"list": [1]}
    store.put("a", value)
    value["list"].append(2)
    store.get("a")["list"].append(3)
    assert store.get("a") == {"list": [1]}


def test_absence_is_remembered() -> None:
    engine = MemoryEngine()
    store = store_of(engine=engine)
    assert store.get("a") is None
    engine.write([(b"a", b"\x00" * 8)], STAMP)  # not through the store: it does not look again
    assert store.get("a") is None


def test_without_a_cache_the_engine_is_asked() -> None:
    engine = MemoryEngine()
    store = store_of(engine=engine, cache_bytes=0)
    assert store.get("a") is None
    engine.write([(b"a", b"\x00" * 8)], STAMP)
    assert store.get("a") == 0


# -- what is refused ---------------------------------------------------------------------------------------------------------------

ON_A_KEY: list[Callable[[TaskStore, Any], object]] = [
    lambda s, k: s.get(k),
    lambda s, k: s.put(k, 1),
    lambda s, k: s.put(k, None),
    lambda s, k: s.delete(k),
]


@pytest.mark.parametrize("call", [*ON_A_KEY, lambda s, k: s.range(k, "b"), lambda s, k: s.range("a", k), lambda s, k: s.prefix(k)])
def test_none_is_no_key(store: TaskStore, call: Callable[[TaskStore, Any], object]) -> None:
    with pytest.raises(TaskError, match=r"store 'counts' of Partition 3.*None is not a key"):
        call(store, None)
    assert not store.changed


@pytest.mark.parametrize("call", ON_A_KEY)
@pytest.mark.parametrize("key", ["string", "bytes"])
def test_the_barriers_key_is_reserved(key: str, call: Callable[[TaskStore, Any], object]) -> None:
    store = store_of(key)
    with pytest.raises(TaskError, match="samzapy's own"):
        call(store, BARRIER_KEY.decode() if key == "string" else BARRIER_KEY)
    store.undo()
    assert (store.changed, store.uncommitted_bytes, list(store.all())) == (False, 0, [])


def test_a_key_or_value_of_another_kind_changes_nothing(store: TaskStore) -> None:
    for key, value in ((1, 1), ("a", "text"), ("a", True)):
        with pytest.raises(SerdeError):
            store.put(key, value)
    assert (store.changed, store.uncommitted_bytes) == (False, 0)


def test_a_record_beyond_its_topics_limit_is_named() -> None:
    store = store_of(value="bytes")
    room = LIMIT - RECORD_OVERHEAD_BYTES
    store.put("k", b"x" * (room - 1))
    with pytest.raises(RecordTooLarge) as caught:
        store.put("k" * 300, b"x" * room)
    message = str(caught.value)
    for part in (
        "'counts'",
        "Partition 3",
        "job-1-counts-changelog",
        "'kkkk",
        str(room + 300 + RECORD_OVERHEAD_BYTES),
        str(LIMIT),
        "max.message.bytes",
    ):
        assert part in message
    assert "k" * 100 not in message
    with pytest.raises(RecordTooLarge):
        store.delete("k" * LIMIT)
    assert store.get("k") == b"x" * (room - 1)


def test_writes_are_refused_while_closing_and_reads_are_not(store: TaskStore) -> None:
    store.put("a", 1)
    commit(store)
    store.refuse_writes()
    for write in (lambda: store.put("a", 2), lambda: store.put("b", None), lambda: store.delete("a")):
        with pytest.raises(StoreClosed, match="closing"):
            write()
    assert store.get("a") == 1
    assert list(store.all()) == [("a", 1)]


def test_a_closed_store_refuses_all_until_it_has_an_engine_again(store: TaskStore) -> None:
    store.put("a", 1)
    commit(store)
    store.close()
    store.close()
    for use in (lambda: store.get("a"), lambda: store.put("a", 1), store.all, store.flush):
        with pytest.raises(StoreClosed):
            use()
    store.attach(MemoryEngine())
    assert store.get("a") is None
    store.put("a", 2)
    assert commit(store) == [(b"a", b"\x00" * 7 + b"\x02")]


def test_before_it_is_restored_it_cannot_be_used() -> None:
    store = OverlayStore("counts", None, serde_named("string", []), serde_named("string", []), 0, LIMIT, "Partition 3")
    with pytest.raises(StoreClosed, match="not open yet"):
        store.get("a")
    with pytest.raises(StoreClosed, match="not open yet"):
        store.put("a", "b")


# -- around a hook -----------------------------------------------------------------------------------------------------------------


def test_undo_takes_back_what_the_hook_did_and_nothing_else(store: TaskStore) -> None:
    store.put_all({"kept": 1, "changed": 1, "deleted": 1})
    store.keep()
    before = store.uncommitted_bytes
    store.put("changed", 2)
    store.put("changed", 3)
    store.delete("deleted")
    store.put("deleted", 4)
    store.delete("deleted")
    store.put("new", 5)
    store.delete("never")
    store.undo()
    assert list(store.all()) == [("changed", 1), ("deleted", 1), ("kept", 1)]
    assert (store.get("new"), store.uncommitted_bytes) == (None, before)
    assert sorted(k for k, _ in commit(store)) == [b"changed", b"deleted", b"kept"]


def test_an_undone_first_write_shows_what_the_commit_under_way_holds(store: TaskStore) -> None:
    store.put("a", 1)
    store.keep()
    store.freeze()
    store.put("a", 2)
    assert list(store.all()) == [("a", 2)]
    store.undo()
    assert (store.get("a"), list(store.all()), store.changed) == (1, [("a", 1)], False)


# -- around a commit ---------------------------------------------------------------------------------------------------------------


def test_a_commit_holds_each_changed_key_once_and_only_those(store: TaskStore) -> None:
    store.put("a", 1)
    store.put("a", 2)
    store.get("b")
    assert commit(store) == [(b"a", b"\x00" * 7 + b"\x02")]
    assert (store.changed, store.uncommitted_bytes) == (False, 0)
    assert store.freeze() == []


def test_integer_keys_are_kafkas_in_the_changelog_and_in_numeric_order_in_the_store() -> None:
    engine = MemoryEngine()
    store = store_of("integer", engine=engine)
    numbers = [-(2**63), -256, -1, 0, 1, 255, 2**63 - 1]
    store.put_all((n, n) for n in reversed(numbers))
    assert [k for k, _ in store.all()] == numbers
    changes = commit(store)
    assert sorted(n.to_bytes(8, "big", signed=True) for n in numbers) == sorted(k for k, _ in changes)
    assert [k for k, _ in store.all()] == numbers
    assert [k for k, _ in store.range(-256, 1)] == [-256, -1, 0]
    other = store_of("integer")
    other.load(changes, STAMP)
    assert [k for k, _ in other.all()] == numbers
    assert other.get(-1) == -1
    with pytest.raises(TaskError, match="have no prefixes"):
        store.prefix(1)


def test_an_abort_shows_what_is_committed(store: TaskStore) -> None:
    store.put_all({"a": 1, "b": 1})
    commit(store)
    store.put("a", 2)
    store.keep()
    store.freeze()
    store.delete("b")
    store.put("c", 3)
    store.discard()
    assert list(store.all()) == [("a", 1), ("b", 1)]
    assert store.get_all("abc") == {"a": 1, "b": 1, "c": None}
    assert (store.changed, store.uncommitted_bytes, store.stamp) == (False, 0, replace(STAMP, position=8))


def test_it_is_cut_only_between_records_and_one_commit_at_a_time(store: TaskStore) -> None:
    store.put("a", 1)
    with pytest.raises(InternalError, match="between two records"):
        store.freeze()
    store.keep()
    store.freeze()
    with pytest.raises(InternalError, match="last commit"):
        store.freeze()


def test_a_restore_applies_in_order_skips_the_barrier_and_stamps(store: TaskStore) -> None:
    one = b"\x00" * 7 + b"\x01"
    assert store.get("a") is None  # an absence that the restore makes untrue
    store.load([(b"a", b"old"), (BARRIER_KEY, b"{}"), (b"\x00", one), (b"a", one), (b"gone", one), (b"gone", None)], STAMP)
    assert list(store.all()) == [("\x00", 1), ("a", 1)]
    assert (store.get("a"), store.get("gone"), store.stamp) == (1, None, STAMP)


def test_the_stamp_is_that_of_the_engine() -> None:
    engine = MemoryEngine()
    engine.write([], STAMP)
    assert store_of(engine=engine).stamp == STAMP


# -- iterating ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def layered() -> TaskStore:
    """Keys in the engine, in the frozen and in the live overlay, some of them hidden."""
    store = store_of()
    store.put_all({"a": 1, "ab": 1, "b": 1, "b\x00": 1, "c": 1})
    commit(store)
    store.put_all({"ab": 2, "b": None, "d": 2})
    store.keep()
    store.freeze()
    store.put_all({"a\x00": 3, "b": 3, "d": None, "e": 3})
    store.keep()
    return store


ALL = [("a", 1), ("a\x00", 3), ("ab", 2), ("b", 3), ("b\x00", 1), ("c", 1), ("e", 3)]


def test_iterates_over_all_layers_in_order(layered: TaskStore) -> None:
    assert list(layered.all()) == ALL
    assert list(layered.range("a\x00", "b\x00")) == ALL[1:4]
    assert list(layered.range("b", "a")) == []
    assert list(layered.prefix("a")) == ALL[:3]
    assert list(layered.prefix("b")) == ALL[3:5]
    assert list(layered.prefix("")) == ALL
    assert list(layered.prefix("z")) == []


def test_a_prefix_of_the_highest_bytes() -> None:
    store = store_of("bytes")
    store.put_all({b"\xfe": 1, b"\xff": 2, b"\xff\xff": 3, b"\xff\xffa": 4})
    assert [k for k, _ in store.prefix(b"\xff")] == [b"\xff", b"\xff\xff", b"\xff\xffa"]
    assert [k for k, _ in store.prefix(b"\xff\xff")] == [b"\xff\xff", b"\xff\xffa"]


def test_an_iterator_keeps_its_view(layered: TaskStore) -> None:
    iterator = layered.all()
    first = next(iterator)
    layered.put_all({"a": 9, "ab": None, "bb": 9, "f": 9})
    assert ALL == [first, *iterator]


def test_deleting_while_iterating(layered: TaskStore) -> None:
    for key, _ in layered.all():
        layered.delete(key)
    assert list(layered.all()) == []


@pytest.mark.parametrize("end", ["keep", "undo", "discard", "close", "with"])
def test_an_iterator_ends_with_its_hook(layered: TaskStore, end: str) -> None:
    iterator = layered.all()
    next(iterator)
    if end == "with":
        with iterator:
            pass
    else:
        getattr(layered, end)()
    for _ in range(2):
        with pytest.raises(StoreClosed, match="iterator is closed"):
            next(iterator)


def test_an_iterator_that_has_ended_stays_ended(layered: TaskStore) -> None:
    iterator = layered.all()
    assert len(list(iterator)) == len(ALL)
    layered.keep()
    assert list(iterator) == []
    iterator.close()


def test_keeping_up_the_order_once_it_is_used(store: TaskStore) -> None:
    assert list(store.all()) == []
    for round_ in range(3):
        store.put_all({f"{round_}-{n}": n for n in (3, 1, 2)})
        assert [k for k, _ in store.prefix(str(round_))] == [f"{round_}-{n}" for n in (1, 2, 3)]
        commit(store)
    assert len(list(store.all())) == 9


# -- born and gone -----------------------------------------------------------------------------------------------------------------


def test_what_is_put_and_deleted_between_two_commits_leaves_no_tombstone(store: TaskStore) -> None:
    assert store.get("a") is None  # so the store knows that it is not there
    store.put("a", 1)
    store.keep()
    store.delete("a")
    assert (store.get("a"), store.changed, store.uncommitted_bytes) == (None, False, 0)
    assert commit(store) == []
    assert commit(store) == []


@pytest.mark.parametrize("writes_out", [False, True])
def test_what_a_commit_has_seen_gets_its_tombstone(writes_out: bool) -> None:
    store = OverlayStore("counts", MemoryEngine(), serde_named("string", []), serde_named("integer", []), 1 << 20, LIMIT, "P", 1 << 20)
    store.get("a")
    store.put("a", 1)
    store.keep()
    store.freeze()  # in the commit that is under way
    store.put("a", 2)
    store.delete("a")
    store.keep()
    store.apply(STAMP)
    if writes_out:
        store.write_out()
    assert commit(store) == [(b"a", None)]
    store.put("a", 3)
    store.delete("a")
    assert commit(store) == []  # its deletion is committed


def test_what_nobody_asked_for_may_be_in_the_engine_and_gets_its_tombstone() -> None:
    engine = MemoryEngine()
    engine.write([(b"a", b"\0" * 8)], STAMP)
    store = store_of(engine=engine)
    store.put("a", 1)
    store.delete("a")
    assert commit(store) == [(b"a", None)]
    assert store.get("a") is None


def test_undo_brings_back_what_had_gone_without_a_trace(store: TaskStore) -> None:
    store.get("a")
    store.put("a", 1)
    store.put("b", 2)
    store.keep()
    assert list(store.all()) == [("a", 1), ("b", 2)]
    store.delete("a")
    store.put("a", 5)
    store.delete("a")
    assert list(store.all()) == [("b", 2)]
    store.undo()
    assert list(store.all()) == [("a", 1), ("b", 2)]
    store.delete("a")
    store.keep()
    assert [key for key, _ in commit(store)] == [b"b"]


def test_a_store_that_forgets_deletions_that_are_needed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "is_nothing_below", lambda *maps: True)
    with pytest.raises(AssertionError):
        test_what_nobody_asked_for_may_be_in_the_engine_and_gets_its_tombstone()


def test_its_memory_can_be_limited_anew_and_nothing_is_lost() -> None:
    engine = MemoryEngine()
    serdes = serde_named("string", []), serde_named("json", [])
    store = OverlayStore("counts", engine, *serdes, 1 << 20, LIMIT, "Partition 3", 1 << 20)
    store.stamp = STAMP
    for round_, limit in enumerate((1 << 20, 0, 3, 4096, 1 << 20)):
        store.limit_memory(limit)
        assert store._committed.max_bytes + 2 * store._cache._half <= max(limit, 3)
        for n in range(50):
            store.put(f"k{n}", {"round": round_, "n": n})
        store.keep()
        store.freeze()
        store.apply(STAMP)
        if store.must_write_out:
            store.write_out()
        assert [{"round": round_, "n": n} for n in range(50)] == [store.get(f"k{n}") for n in range(50)]
    assert 50 == len(list(store.all()))
