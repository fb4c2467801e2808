"""What the native functions are given is given back: after many calls, failing ones too, no more memory is in use."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Message

from samzapy import native
from samzapy.container.envelopes import LazyEnvelope, RecordEnvelope
from samzapy.serde import basic
from samzapy.serde.record import RecordSerde
from samzapy.store.flat import flat
from samzapy.store.overlay import OverlayStore
from tests.unit.native.pairs import needs_native
from tests.unit.native.test_hot_loop import LATER, Side
from tests.unit.native.test_sends import collector
from tests.unit.native.test_serdes import Struct
from tests.unit.native.test_stores import Pair, commit

pytestmark = needs_native
CALLS = 3000
FEW_BLOCKS = 200  # caches of Python's own


def stores() -> Callable[[], None]:
    store = Pair("string", "json", 1 << 20, 1 << 20).stores[0]
    position = iter(range(1, 1 << 40))

    def call() -> None:
        for key, value in (("a", {"x": 1}), ("b", {1}), (7, 1), ("a", "x" * 1000), ("a", None)):
            for one in (lambda: store.put(key, value), lambda: store.get(key)):  # noqa: B023  called at once
                try:
                    one()
                except Exception:
                    pass
        store.undo()
        store.put("a", 1)
        commit(store, next(position))
        store.get("a")
        store.write_out()

    return call


def flat_dicts() -> Callable[[], None]:
    numbers = iter(range(1, 1 << 40))

    def call() -> None:
        name, text = f"n{next(numbers)}", f"text {next(numbers)}"
        for value in ({name: text, "c": 1 << 40, "s": 0.5, "b": True}, {name: None, "x": text}, {}, {"x": text, "set": {1}}, {"x": "y" * 600}):
            for most in (600, 3):
                found = flat(value, most)
                if found is not None:
                    found.dict()

    return call


def sends() -> Callable[[], None]:
    one = collector()

    def call() -> None:
        for args in (("out", 1, "k"), ("out", {1}), ("out", 1, 7), ("numbers", bytearray(b"x"), 1), ("out", "x" * 600), ("nowhere", 1)):
            try:
                one.send(*args)
            except Exception:
                pass
        one.clear()

    return call


def serdes() -> Callable[[], None]:
    serde = RecordSerde("record:x:X", Struct)

    def call() -> None:
        for function, value in (
            (basic.JsonSerde.encode, {"a": [1]}), (basic.JsonSerde.encode, {1}), (basic.JsonSerde.decode, b'{"a":[1]}'), (basic.JsonSerde.decode, b"{"),
            (basic.IntegerSerde.encode, 10**6), (basic.IntegerSerde.encode, "x"), (basic.IntegerSerde.decode, b"12345678"), (basic.IntegerSerde.decode, b"1"),
            (serde.encode, Struct(1, "x")), (serde.encode, Struct("x")), (serde.decode, b'{"a":1000}'), (serde.decode, b"[]"),  # type: ignore[arg-type]
        ):  # fmt: skip
            try:
                function(value)
            except Exception:
                pass

    return call


def loop() -> Callable[[], None]:
    side = Side(native_loop, 11)
    good = [Message(topic="in", partition=0, offset=n, key=b"k", value=b"1") for n in range(1, 8)]
    bad = [*good, Message(topic="in", partition=0, offset=9, key=b"k", value=b"{"), Message(topic="in", partition=1, offset=9)]

    def call() -> None:
        for batch in (good, bad):
            try:
                side.run(side.task_input, batch, 0, len(batch), LATER)
            except Exception:
                pass
        side.collector.clear()
        side.seen.clear()
        for store in side.stores:
            store.discard()
        for make in (RecordEnvelope, lambda *args: args):
            native.hot_path.envelopes(good, make, None, bytes.decode, basic.JsonSerde.decode)
        native.hot_path.in_a_row(bad, 0, len(bad))
        native.hot_path.has_error(bad)
        native.hot_path.produce_all(lambda *args: None, [("t", b"1", None, -1, 7, [("h", b"x")]), ("t", b"1", None, -1, 0, None)], set(), (BufferError,))

    return call


def native_loop(collector: Any, requests: Any, clock: Any) -> Any:
    from samzapy.container.hot_loop import hot_loop

    return hot_loop(collector, requests, clock)


@pytest.mark.parametrize("make", [stores, flat_dicts, sends, serdes, loop])
def test_no_memory_is_kept(make: Callable[[], Callable[[], None]]) -> None:
    call = make()
    for _ in range(50):
        call()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(CALLS):
        call()
    gc.collect()
    assert sys.getallocatedblocks() - before < FEW_BLOCKS


def test_counts_of_references_stay() -> None:
    store, key, value = Pair("bytes", "bytes", 1 << 20, 1 << 20).stores[0], b"some key", b"some value"
    held = [sys.getrefcount(one) for one in (key, value, store, OverlayStore, str, None.__class__)]
    for _ in range(1000):
        store.put(key, value)
        store.get(key)
        store.undo()
    assert held == [sys.getrefcount(one) for one in (key, value, store, OverlayStore, str, None.__class__)]


def test_a_flat_dict_holds_its_texts_and_names_and_gives_them_back() -> None:
    name, text, number = "some name", "some text", 1 << 40
    found = flat({name: 1}, 600)  # the names of the last shapes are kept
    held = [sys.getrefcount(one) for one in (name, text, number)]
    for _ in range(1000):
        found = flat({name: text}, 600)
        again = found.dict()
        assert again[name] is text
        found = flat({name: number}, 600)
    del again
    assert [sys.getrefcount(one) for one in (name, text, number)] == held


def test_an_envelope_holds_what_it_was_made_of_and_gives_it_back() -> None:
    record, ssp, key, value = Message(topic="in", partition=0, offset=7, key=b"k", value=b"v"), object(), object(), object()
    counted = (RecordEnvelope, record, ssp, key, value)
    held = [sys.getrefcount(one) for one in counted]

    (envelope,) = native.hot_path.envelopes([record], RecordEnvelope, ssp, lambda data: key, lambda data: value)
    assert type(envelope) is RecordEnvelope
    assert (envelope.key, envelope.message, envelope.system_stream_partition, envelope._record) == (key, value, ssp, record)
    assert (envelope.offset, repr(envelope)) == (7, repr(RecordEnvelope(key, value, ssp, record)))  # type: ignore[arg-type]
    del envelope
    assert [sys.getrefcount(one) for one in counted] == held


def test_only_a_class_of_just_four_slots_is_filled_without_a_call() -> None:
    class Collected(Struct):
        pass

    for other in (LazyEnvelope, Collected, dict, object, len):
        with pytest.raises(TypeError, match="four slots"):
            native.hot_path.fill_envelopes(other)
