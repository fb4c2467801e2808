"""What a record left out is in the object that was read, and is written with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import pytest

from samzapy.api.task import StreamTask
from samzapy.serde.record import RecordSerde
from samzapy.serde.record_defaults import filling
from samzapy.testing import Harness


@dataclass
class Order:
    item: str
    currency: str = "EUR"
    count: int = 1


@dataclass(frozen=True)
class Frozen:
    item: str
    currency: str = "EUR"


@dataclass(slots=True)
class Slotted:
    item: str
    currency: str = "EUR"


@dataclass
class Special(Order):
    notes: list[str] = field(default_factory=list)
    first: Order | None = None


@dataclass
class Shouting:
    item: str
    currency: str = "eur"

    def __post_init__(self) -> None:
        self.currency = self.currency.upper()


class Pair(NamedTuple):
    one: Order
    more: tuple[Frozen, ...] = ()


class Box(msgspec.Struct):
    name: str
    orders: dict[str, list[Order]] = {}


@dataclass
class Tree:
    name: str
    weight: int = 1
    parts: list[Tree] = field(default_factory=list)


@dataclass
class Plain:
    item: str
    boxes: list[Box] | None = None


CASES: dict[str, tuple[type, str, str]] = {
    "a default": (Order, '{"item":"tea"}', '{"item":"tea","currency":"EUR","count":1}'),
    "all are there": (Order, '{"item":"tea","currency":"USD","count":2}', '{"item":"tea","currency":"USD","count":2}'),
    "a frozen class": (Frozen, '{"item":"tea"}', '{"item":"tea","currency":"EUR"}'),
    "a class with slots": (Slotted, '{"item":"tea"}', '{"item":"tea","currency":"EUR"}'),
    "an inherited default": (
        Special, '{"item":"tea","first":{"item":"x"}}', '{"item":"tea","currency":"EUR","count":1,"notes":[],"first":{"item":"x","currency":"EUR","count":1}}',
    ),
    "what the class makes of it": (Shouting, '{"item":"tea"}', '{"item":"tea","currency":"EUR"}'),
    "in a NamedTuple": (Pair, '[{"item":"a"},[{"item":"b"}]]', '[{"item":"a","currency":"EUR","count":1},[{"item":"b","currency":"EUR"}]]'),
    "in a Struct": (Box, '{"name":"b","orders":{"x":[{"item":"a"}]}}', '{"name":"b","orders":{"x":[{"item":"a","currency":"EUR","count":1}]}}'),
    "in itself": (Tree, '{"name":"a","parts":[{"name":"b"}]}', '{"name":"a","weight":1,"parts":[{"name":"b","weight":1,"parts":[]}]}'),
    "below a class that lacks none": (
        Plain, '{"item":"a","boxes":[{"name":"b","orders":{"x":[{"item":"a"}]}}]}',
        '{"item":"a","boxes":[{"name":"b","orders":{"x":[{"item":"a","currency":"EUR","count":1}]}}]}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_it_is_written_with_what_the_record_left_out(case: str) -> None:
    cls, given, written = CASES[case]
    serde = RecordSerde(f"record:m:{cls.__name__}", cls)
    found = serde.encode(serde.decode(given.encode()))
    assert msgspec.json.decode(written) == msgspec.json.decode(found)


def test_msgspec_leaves_a_default_to_the_class() -> None:
    read = msgspec.json.Decoder(Order).decode(b'{"item":"tea"}')
    assert ("EUR", b'{"item":"tea"}') == (read.currency, msgspec.json.encode(read))


def test_where_nothing_can_be_missing_nothing_is_done() -> None:
    loads = msgspec.json.Decoder(Slotted).decode
    assert loads is filling(loads, Slotted)


class Keeps(StreamTask):
    def init(self, context: Any) -> None:
        self.store = context.get_store("orders")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        self.store.put(envelope.message.item, envelope.message)


def test_a_store_has_the_default_of_the_day() -> None:
    kind = f"record:{__name__}:Order"
    with Harness(Keeps, inputs=[{"topic": "in", "value": kind}], stores={"orders": {"key": "string", "value": kind}}) as h:
        h.send_raw("in", b'{"item":"tea"}')
        h.run()
        (value,) = [m.value() for m in h.records("test-1-orders-changelog") if m.key() == b"tea"]
    assert {"item": "tea", "currency": "EUR", "count": 1} == msgspec.json.decode(value)
