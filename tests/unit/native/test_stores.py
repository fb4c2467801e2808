"""get and put of stores: two stores with one history, one through the native functions, one through those in Python."""

from __future__ import annotations

import random
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from typing import Any

import msgspec
import orjson
import pytest

from samzapy import native
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.serde.basic import JsonSerde
from samzapy.serde.registry import serde_named
from samzapy.store.flat import CACHE_BYTES_EACH, Flat, flat
from samzapy.store.memory import MemoryEngine
from samzapy.store.overlay import OverlayStore
from tests.unit.native.pairs import in_python, needs_native, outcome

pytestmark = needs_native


class Text(str):
    pass


class Number(IntEnum):
    ONE = 1


STAMP = StoreStamp(StoreIdentity("job", "1", "Partition 3", "counts", "k", "v"), "topic-id", 0, 0, 0)
LIMIT = 400
KEYS: dict[str, list[Any]] = {
    "string": ["a", "b", "ä", "", "a" * 50, None, 7, b"a", "\ud800"],
    "integer": [0, 1, -1, 2**63 - 1, -(2**63), 2**63, True, 1.0, None, "a"],
    "bytes": [b"", b"a", b"b", BARRIER_KEY, None, "a", bytearray(b"a")],
    "json": [{"a": 1}, [1, 2], "a", 1.5, None, float("nan"), {1: 2}],
}
FLAT: list[dict[str, Any]] = [
    {}, {"c": -(2**63), "s": -0.0}, {"c": 2**63 - 1, "s": 5e-324}, {"s": -1.7976931348623157e308}, {"b": True, "n": False, "": None},
    {"t": '"\\\0\x1f\x7f', "\0\"": "/"}, {"t": "x" * 78}, {str(n): n for n in range(12)},
]  # fmt: skip
NOT_FLAT: list[Any] = [
    {"c": 2**63}, {"c": -(2**63) - 1}, {"s": float("nan")}, {"s": float("-inf")}, {"ä": 1}, {"t": "ä"}, {"t": "\ud800"}, {"t": "x" * 79},
    {str(n): n for n in range(13)}, {"l": []}, {"d": {}}, {1: 2}, {"b": b""}, {"t": Text("a")}, {"c": Number.ONE}, {Text("k"): 1}, OrderedDict(a=1),
    defaultdict(int, a=1), {"t": "x" * 10_000}, {"x" * 10_000: 1},
]  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "json": [1, "x", {"c": 1, "s": 0.5}, {"n": None}, [], float("inf"), {"a": {1}}, 2**70, "x" * 400, "null", None, *FLAT, *NOT_FLAT],
    "integer": [0, -5, 2**62, 2**64, "1", True, None],
    "bytes": [b"", b"v", b"v" * 390, b"v" * 500, "v", None],
    "record:tests.unit.native.test_stores:Totals": [],
}


class Totals(msgspec.Struct):
    c: int
    s: float = 0.0


VALUES["record:tests.unit.native.test_stores:Totals"] = [Totals(1), Totals(2, 0.25), Totals("x"), Totals(1, float("nan")), {"c": 1}, None]  # type: ignore[arg-type]


class Pair:
    """Two stores. `do` does the same to both, and compares what came of it and what they hold."""

    def __init__(self, key: str, value: str, cache_bytes: int, committed_bytes: int, limit: int = LIMIT) -> None:
        self.stores = [
            OverlayStore("counts", MemoryEngine(), serde_named(key, []), serde_named(value, []), cache_bytes, limit, "Partition 3", committed_bytes)
            for _ in range(2)
        ]
        for store in self.stores:
            store.load([], STAMP)

    def do(self, *calls: Callable[[OverlayStore], Any]) -> None:
        """One call for both, or one each."""
        said = [outcome(lambda call=call, store=store: call(store)) for call, store in zip((calls * 2)[:2], self.stores, strict=True)]  # type: ignore[misc]
        assert said[0] == said[1]
        assert self.held(0) == self.held(1)

    def held(self, number: int) -> tuple[Any, ...]:
        store = self.stores[number]
        writes = [(key, "absent" if type(old) is object else shown(old)) for key, old in store.writes]
        live = {key: shown(value) for key, value in store._live.items()}
        cache = (store._cache._young, store._cache._old, store._cache._room)
        return live, store._frozen, store._bytes, writes, store._committed.newer, store._committed.older, cache, store.stamp

    def get(self, *args: Any) -> None:
        self.do(lambda store: store.get(*args), lambda store: in_python(OverlayStore.get)(store, *args))

    def put(self, *args: Any) -> None:
        self.do(lambda store: store.put(*args), lambda store: in_python(OverlayStore.put)(store, *args))


def shown(value: Any) -> Any:
    """Of the live overlay: a flat dict by what it says, the order of its names and the types of its values."""
    return (value.bytes, repr(value.dict())) if type(value) is Flat else value


def commit(store: OverlayStore, position: int) -> list[Any]:
    store.keep()
    changes = list(store.freeze())
    store.apply(replace(STAMP, position=position))
    return changes


def scan(store: OverlayStore) -> list[Any]:
    """Some of it, and left open until the hook ends."""
    found = store.all()
    return [next(found, None), next(found, None)]


@pytest.mark.parametrize(("key", "value"), [(k, v) for k in KEYS for v in VALUES])
@pytest.mark.parametrize(("cache_bytes", "committed_bytes"), [(1 << 20, 1 << 20), (1000, 0), (2 * CACHE_BYTES_EACH, 0), (1 << 20, 0)])
def test_a_random_history_leads_to_the_same(key: str, value: str, cache_bytes: int, committed_bytes: int) -> None:
    for seed in range(6):
        draw = random.Random(f"{seed} {key} {value}")
        pair, is_frozen = Pair(key, value, cache_bytes, committed_bytes), False
        for position in range(1, 150):
            what = draw.random()
            if what < 0.35:
                pair.get(draw.choice(KEYS[key]), *draw.choice([(), ("nothing",)]))
            elif what < 0.75:
                pair.put(draw.choice(KEYS[key]), draw.choice(VALUES[value]))
            elif what < 0.82:
                pair.do(lambda store: store.keep())
            elif what < 0.88:
                pair.do(lambda store: store.undo())
            elif what < 0.91:
                pair.do(scan)
            elif what < 0.94 and not is_frozen:
                pair.do(lambda store: commit(store, position))  # noqa: B023  called at once
            elif what < 0.96:  # a commit that is under way while the task goes on
                if is_frozen:
                    pair.do(lambda store: store.apply(replace(STAMP, position=position)))  # noqa: B023
                else:
                    pair.do(lambda store: store.keep())
                    pair.do(lambda store: list(store.freeze()))
                is_frozen = not is_frozen
            elif what < 0.98:
                pair.do(lambda store: store.write_out(3))
            else:
                pair.do(lambda store: store.discard())
                is_frozen = False
        for one in KEYS[key]:
            pair.get(one)


@pytest.mark.parametrize("value", FLAT, ids=lambda value: repr(value)[:40])
def test_a_flat_dict_is_kept_as_it_is_and_is_what_json_gives_back(value: dict[str, Any]) -> None:
    pair = Pair("string", "json", 1 << 20, 0, 1000)
    pair.put("a", value)
    before = repr(value)
    for store in pair.stores:
        assert type(store._live[b"a"]) is Flat
        found = store.get("a")
        assert (repr(found), found is not value, found is not store.get("a")) == (before, True, True)
        size = store.uncommitted_bytes
        ((_, data),) = commit(store, 2)
        assert (data, len(b"a" + data) <= size) == (orjson.dumps(value), True)
        assert repr(store.get("a")) == before


@pytest.mark.parametrize("value", NOT_FLAT, ids=lambda value: repr(value)[:40])
def test_any_other_value_is_encoded_at_once(value: Any) -> None:
    pair = Pair("string", "json", 1 << 20, 0, 1000)
    pair.put("a", value)
    assert [type(store._live.get(b"a")) for store in pair.stores] in ([bytes] * 2, [type(None)] * 2)
    assert type(value) is not dict or flat(value, 1 << 20) is None


def test_a_flat_dict_does_not_change_with_the_dict_that_was_put_nor_with_one_that_was_got() -> None:
    pair = Pair("string", "json", 1 << 20, 0, 1000)
    value = {"c": 1, "text": "a" * 20}
    pair.put("a", value)
    value["c"] = 2
    for store in pair.stores:
        found = store.get("a")
        found["c"], found["more"] = 3, 4
        assert store.get("a") == {"c": 1, "text": "a" * 20}


def test_dicts_of_all_shapes_at_once_are_kept_apart() -> None:
    """Names that are equal but other objects, the same names in another order, names of the same lengths, fewer and more of them."""
    draw = random.Random(5)
    items = [None, True, False, 0, -1, 1 << 62, -(1 << 63), 0.1, -0.0, 1e300, "", "x", "a" * 5]
    kept: list[tuple[dict[str, Any], Any]] = []
    for _ in range(20_000):
        names = draw.sample(["a", "b", "ab", "ba", "aa", "c", "", "count", "total"], draw.randrange(9))
        value = {"".join(list(name)): draw.choice(items) for name in names}
        found = flat(value, 512)
        assert found is not None and repr(found.dict()) == repr(value)  # noqa: PT018
        if draw.random() < 0.5 or not kept:
            kept.append((value, found))
        else:
            kept[draw.randrange(len(kept))] = (value, found)
    assert all(repr(found.dict()) == repr(value) and len(orjson.dumps(value)) <= found.bytes for value, found in kept)


def test_only_what_is_small_enough_is_kept_flat() -> None:
    assert flat({"c": 1}, 40).bytes == 40
    assert flat({"c": 1}, 39) is None
    assert flat({}, 2).dict() == {}
    assert flat({chr(97 + number): 1 for number in range(13)}, 1 << 20).bytes == 2 + 13 * 38
    assert flat({chr(97 + number): 1 for number in range(14)}, 1 << 20) is None
    assert flat({str(number): 1 for number in range(100)}, 1 << 20) is None
    for wrong in (([], 1), ({},), ({}, "x")):
        with pytest.raises(TypeError):
            flat(*wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Flat()


def test_a_flat_dict_is_encoded_at_once_where_the_serde_is_not_plain_json_or_the_cache_is_small() -> None:
    class Own(JsonSerde):
        decode = staticmethod(lambda data: list(orjson.loads(data).items()))

    for serde, cache_bytes, kept in ((Own(), 1 << 20, 0), (serde_named("json", []), 2047, 0), (serde_named("json", []), 3 * 2048, 3)):
        store = OverlayStore("counts", MemoryEngine(), serde_named("string", []), serde, cache_bytes, LIMIT, "Partition 3", 0)
        store.load([], STAMP)
        for number in range(5):
            store.put(str(number), {"c": number})
        assert [type(store._live[str(number).encode()]) is Flat for number in range(5)] == [number < kept for number in range(5)]
        assert store.get("4") == ([("c", 4)] if isinstance(serde, Own) else {"c": 4})


def test_what_the_store_refuses_is_refused_in_the_same_words() -> None:
    pair = Pair("string", "json", 1 << 20, 1 << 20)
    pair.put("a", 1)
    for call in (pair.get, pair.put):
        call()
        call("a", 1, 2, 3)
    pair.do(lambda store: store.get("b", default=3), lambda store: in_python(OverlayStore.get)(store, "b", default=3))
    pair.do(lambda store: store.put(key="b", value=3), lambda store: in_python(OverlayStore.put)(store, key="b", value=3))
    pair.do(lambda store: commit(store, 2))
    pair.do(lambda store: store.refuse_writes())
    pair.put("a", 2)
    pair.get("a")
    pair.do(lambda store: store.close())
    pair.put("a", 2)
    pair.get("a")


def test_another_thread_is_refused_or_reads_what_is_in_memory() -> None:
    pair = Pair("string", "json", 1 << 20, 1 << 20)
    pair.put("a", 1)

    def beside() -> None:
        pair.put("a", 2)
        pair.get("a")
        pair.get("b")

    failed: list[BaseException] = []

    def run() -> None:
        try:
            beside()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert failed == []
    assert pair.stores[0].writes == [(b"a", pair.stores[0].writes[0][1])]  # only the first


def test_a_value_that_cannot_be_read_is_named_with_its_key() -> None:
    pair = Pair("string", "integer", 1 << 20, 1 << 20)
    for store in pair.stores:
        store._live[b"a"] = b"seven bytes"
    pair.get("a")


def test_it_is_a_method_with_the_name_and_the_signature_of_the_function() -> None:
    import inspect

    assert type(OverlayStore.get) is native.hot_path.StoreGet
    assert (OverlayStore.put.__name__, OverlayStore.put.__doc__) == ("put", in_python(OverlayStore.put).__doc__)
    store = Pair("string", "json", 0, 0).stores[0]
    assert str(inspect.signature(store.get)) == "(key: 'Any', default: 'Any' = None) -> 'Any'"
    put = store.put
    put("a", 1)
    assert store.get("a") == 1
    with pytest.raises(AttributeError):
        OverlayStore.get("no store", "a")  # type: ignore[arg-type]
