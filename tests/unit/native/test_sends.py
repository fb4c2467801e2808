"""Collector.send, and what producers do with many records, beside the functions in Python."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy import OutgoingMessageEnvelope, SystemStream, native
from samzapy.container.collector import Collector
from samzapy.container.spec import OutputSpec
from samzapy.kafka.sending import _produce_all
from samzapy.serde.registry import serde_named
from tests.unit.native.pairs import in_python, needs_native, outcome

pytestmark = needs_native


def collector() -> Collector:
    return Collector({
        "out": OutputSpec("out", serde_named("string", []), serde_named("json", []), 4, 500),
        "bytes": OutputSpec("bytes", serde_named("bytes", []), serde_named("bytes", []), 1, 500),
        "numbers": OutputSpec("numbers", serde_named("integer", []), serde_named("bytes", []), 1, 500),
    })


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("out", {"a": 1}), {}),
    (("out", {"a": 1}, "key"), {}),
    (("out", {"a": 1}), {"key": "key"}),
    (("out", None), {"key": "key"}),
    (("out", None), {}),
    (("out", {"a": 1}), {"key": "key", "partition": 3}),
    (("out", {"a": 1}), {"key": "key", "partition": 4}),
    (("out", {"a": 1}), {"partition_key": "key"}),
    (("out", {"a": 1}), {"key": "key", "timestamp": 7}),
    (("out", {"a": 1}), {"timestamp": 7}),
    (("out", {"a": 1}), {"timestamp": 0}),
    (("out", {"a": 1}), {"headers": {"h": "x"}}),
    (("out", {"a": 1}), {"key": None}),
    (("out", {"a": 1}, None), {}),
    (("out", {"a": 1}, "key"), {"key": "twice"}),
    (("out", {"a": 1}), {"kee": "key"}),
    (("out", "x" * 600), {}),
    (("out", "x", "k" * 600), {}),
    (("out", "x", 7), {}),
    (("out", "x", "ä"), {}),
    (("out", "x", "\ud800"), {}),
    (("bytes", b"x", b"k"), {}),
    (("bytes", b"x", bytearray(b"k")), {}),
    (("bytes", b"x", memoryview(b"k")), {}),
    (("bytes", b"x", "k"), {}),
    (("out", {1}), {}),
    (("out", float("nan")), {}),
    (("out", "null"), {}),
    (("numbers", b"x", 5), {}),
    (("numbers", bytearray(b"x"), 5), {}),
    (("numbers", "x", 5), {}),
    (("numbers", b"x", 2**64), {}),
    (("nowhere", 1), {}),
    ((SystemStream("kafka", "out"), 1, "k"), {}),
    ((SystemStream("files", "out"), 1), {}),
    ((7, 1), {}),
    ((OutgoingMessageEnvelope("out", 1, "k"),), {}),
    ((OutgoingMessageEnvelope("out", 1, "k"),), {"key": "k"}),
    (("out",), {}),
    ((), {}),
    (("out", 1, "k", 2), {}),
]


@pytest.mark.parametrize(("args", "options"), CALLS)
def test_a_send_does_what_the_function_in_python_does(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    one, other = collector(), collector()
    for _ in range(2):
        said = outcome(lambda: one.send(*args, **options)), outcome(lambda: in_python(Collector.send)(other, *args, **options))
        assert said[0] == said[1]
        assert (one.pending, one._size) == (other.pending, other._size)
    one.keep()
    other.keep()
    one.drop()
    other.drop()
    assert (one.pending, one._size, one.kept) == (other.pending, other._size, other.kept)


def test_it_is_a_method() -> None:
    assert type(Collector.send) is native.hot_path.Send
    one = collector()
    send = one.send
    send("out", 1, key="k")
    assert one.pending == [("out", b"1", b"k", -1, 0, None)]


RECORDS: list[Any] = [
    ("out", b"1", b"k", -1, 0, None),
    ("out", None, b"k", 3, 0, ()),
    ("timed", b"2", None, -1, 77, None),
    ("headed", b"3", None, -1, 0, [("h", b"x")]),
    ("both", b"4", b"k", 0, 78, (("h", None),)),
]


@pytest.mark.parametrize("fails_at", range(len(RECORDS) + 1))
@pytest.mark.parametrize("error", [BufferError("full"), KeyError("another")])
def test_records_are_produced_up_to_the_one_that_is_refused(fails_at: int, error: Exception) -> None:
    def produced(call: Any) -> tuple[Any, ...]:
        taken: list[Any] = []
        timed: set[str] = set()

        def produce(*args: Any) -> None:
            if len(taken) == fails_at:
                raise error
            taken.append(args)

        return outcome(lambda: call(produce, RECORDS, timed)), taken, timed

    from confluent_kafka import KafkaException

    refusals = (BufferError, KafkaException)
    assert produced(lambda *args: native.hot_path.produce_all(*args, refusals)) == produced(_produce_all)


def test_a_producer_may_keep_what_it_is_given() -> None:
    """The arguments of one call are used again for the next one only if nobody holds them."""

    class Kept(Exception):
        def __init__(self, *_: Any) -> None:
            kept.append(self)

    kept: list[Kept] = []
    records: list[Any] = [("out", b"%d" % i, b"k", -1, 0, None) for i in range(3)]
    assert native.hot_path.produce_all(Kept, records, set(), ()) == 3
    assert [one.args for one in kept] == [("out", b"0", b"k", -1), ("out", b"1", b"k", -1), ("out", b"2", b"k", -1)]
