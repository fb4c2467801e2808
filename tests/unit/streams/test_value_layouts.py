"""State whose bytes do not say what they hold: values that are written by position or by number, and Avro without a schema. With another class or schema
they would be read as something else, and nothing would show it; so such a change is refused, except that a list may have more fields at its end, and an
Enum more members."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import pydantic
import pytest

from samzapy.api.errors import StateMismatch
from samzapy.config.value_layout import layout_of
from samzapy.plan.state_compatibility import _moved
from samzapy.serde.avro import AvroSchema
from samzapy.streams import App, agg, tumbling
from samzapy.testing import Harness


class Point(NamedTuple):
    x: int
    y: int = 0


class Listed(msgspec.Struct, array_like=True):
    a: int
    at: Point


class Named(msgspec.Struct):
    points: list[Point]
    by: dict[str, Listed]
    next: Named | None = None
    pair: tuple[Point, int] | None = None


@dataclasses.dataclass
class Data:
    at: Point | None
    seen: set[int]


class Model(pydantic.BaseModel):
    at: Point
    data: Data
    next: Model | None = None


class Kind(enum.Enum):
    DEBIT = enum.auto()
    CREDIT = enum.auto()


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2
    BOTH = 3


class Status(enum.Enum):
    OPEN = "open"


class Booking(msgspec.Struct):
    kind: Kind | None
    by: dict[Access, list[Kind]]
    status: Status


class Rate(enum.Enum):
    FULL = 1.5


class BookingModel(pydantic.BaseModel):
    rate: Rate  # msgspec has no such Enum
    kind: Kind


class Wire(pydantic.BaseModel):
    by: Literal["wire"] = "wire"
    kind: Kind


class Cash(pydantic.BaseModel):
    by: Literal["cash"] = "cash"
    access: Access | str


class Mixed(enum.Enum):
    A = 1
    S = "s"


class Payment(pydantic.BaseModel):
    pay: Annotated[Wire | Cash, pydantic.Field(discriminator="by")]
    all: list[Annotated[Wire | Cash, pydantic.Field(discriminator="by")]]
    either: Wire | str | datetime
    queue: deque[Mixed]
    rate: Rate


class Limits(msgspec.Struct, omit_defaults=True):
    name: str
    per_day: int = 100
    seen: list[int] = []
    made: uuid.UUID = msgspec.field(default_factory=uuid.uuid4)  # written always


KINDS, ACCESSES = {"CREDIT": 2, "DEBIT": 1}, {"READ": 1, "WRITE": 2, "BOTH": 3}


@pytest.mark.parametrize(
    ("cls", "layout"),
    [
        (Booking, {"$.kind": KINDS, "$.by{key}": ACCESSES, "$.by{}[]": KINDS}),
        (BookingModel, {"$.kind": KINDS, "$.rate": {"FULL": 1.5}}),
        (
            Payment,
            {
                "$.pay<Wire>.kind": KINDS, "$.pay<Cash>.access": ACCESSES, "$.all[]<Wire>.kind": KINDS, "$.all[]<Cash>.access": ACCESSES,
                "$.either<Wire>.kind": KINDS, "$.queue[]": {"A": 1}, "$.rate": {"FULL": 1.5},
            },
        ),
        (Limits, {"$ defaults": {"per_day": "100", "seen": "[]"}}),
        (msgspec.defstruct("S", [("limits", Limits | None)]), {"$.limits defaults": {"per_day": "100", "seen": "[]"}}),
        (NamedTuple("Pair", [("kind", Kind)]), {"$": ["kind"], "$.kind": KINDS}),
        (Point, {"$": ["x", "y"]}),
        (Listed, {"$": ["a", "at"], "$.at": ["x", "y"]}),
        (Named, {"$ whole": {}, "$.by{}": ["a", "at"], "$.by{}.at": ["x", "y"], "$.points[]": ["x", "y"], "$.pair[0]": ["x", "y"]}),
        (Data, {"$.at": ["x", "y"]}),
        (Model, {"$.at": ["x", "y"], "$.data.at": ["x", "y"]}),
    ],
)
def test_what_is_written_by_position_or_number_is_found_wherever_it_is(cls: Any, layout: dict[str, list[str]]) -> None:
    assert json.loads(layout_of(cls)) == layout


def test_what_is_written_by_name_has_no_layout() -> None:
    assert layout_of(dataclasses.make_dataclass("D", [("a", int)])) == layout_of(msgspec.defstruct("S", [("a", int)])) == ""


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ({"$": ["a"]}, {"$": ["a", "b"]}, False),
        ({"$": ["a", "b"]}, {"$": ["b", "a"]}, True),
        ({"$": ["a", "b"]}, {"$": ["a"]}, True),
        ({"$": ["a"]}, {"$": ["z", "a"]}, True),
        ({"$.p": ["a"]}, {"$.q": ["b"]}, False),  # another type: its values cannot be read, which is told
        ({"$": ["a"], "$.p": ["x", "y"]}, {"$": ["a"], "$.p": ["y", "x"]}, True),
    ],
)
def test_a_list_may_have_more_at_its_end(old: dict[str, list[str]], new: dict[str, list[str]], moved: bool) -> None:
    assert (_moved(json.dumps(old), json.dumps(new)) is not None) is moved


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ({"A": 1, "B": 2}, {"B": 2, "A": 1, "C": 3}, False),
        ({"A": 1, "B": 2}, {"NEW": 1, "A": 2, "B": 3}, True),
        ({"A": 1, "B": 2}, {"A": 1}, False),  # B cannot be read, which is told when it is
        ({"A": 1, "B": 2}, {"A": 1, "C": 2}, True),
        ({"A": 1, "B": 2}, {"A": 1, "C": 2, "B": 2}, False),  # B is another name for C
        ({"A": 1, "B": 2}, {"A": 10, "B": 20}, False),
        ({"A": 1, "B": 2}, {"A": 2, "B": 1}, True),
        ({"A": 1}, ["a"], False),  # another type
    ],
)
def test_an_enum_may_have_more_members_but_no_others_with_their_numbers(old: dict[str, int], new: Any, moved: bool) -> None:
    assert (_moved(json.dumps({"$.k": old}), json.dumps({"$.k": new})) is not None) is moved


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ({"$.p": ["a"]}, {"$.p<P>": ["a"], "$.p<Q>": ["b"]}, False),
        ({"$.p": ["a"]}, {"$.p<P>": ["z", "a"], "$.p<Q>": ["b"]}, True),
        ({"$.p<P>": ["a"], "$.p<Q>": ["b"]}, {"$.p": ["a"]}, True),  # those of Q could not be told from those of P
        ({"$.p<P>": ["a"]}, {"$.p": ["a", "c"]}, False),
        ({"$.p.k": {"A": 1}}, {"$.p<P>.k": {"N": 1, "A": 2}}, True),
        ({"$ defaults": {"n": "1", "m": "[]"}}, {"$ defaults": {"n": "1", "k": "2"}}, False),
        ({"$ defaults": {"n": "1"}}, {"$ defaults": {"n": "5"}}, True),
        ({"$ defaults": {"n": "1"}}, {"$ whole": {}}, True),
        ({"$ defaults": {}}, {"$ whole": {}}, False),
        ({"$ defaults": {"n": "1"}}, {"$.p": ["a"]}, False),  # the class is not there any more, or has no defaults: told when it is read
        ({"$.p<P> defaults": {"n": "1"}}, {"$.p whole": {}}, True),
        ({"$ whole": {}}, {"$ defaults": {"n": "1"}}, False),
    ],
)
def test_unions_and_defaults(old: dict[str, Any], new: dict[str, Any], moved: bool) -> None:
    assert (_moved(json.dumps(old), json.dumps(new)) is not None) is moved


def limited(patch: pytest.MonkeyPatch, per_day: int) -> App:
    limit = msgspec.defstruct("Limit", [("n", int), ("per_day", int, per_day)], module=__name__, omit_defaults=True)
    patch.setattr(sys.modules[__name__], "Limit", limit, raising=False)
    app = App()
    app.stream("in", key=str, value=int).map(lambda n: limit(n), value=limit).reduce("limits", lambda old, new: old).updates().map(str, value=str).to("out")
    return app


def test_another_default_of_a_class_that_does_not_write_its_defaults_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with Harness(limited(monkeypatch, 100)) as h:
        h.send("in", 1, key="ada")
        h.run()
        with pytest.raises(StateMismatch, match=r"store 'limits' value: the field 'per_day' of its class had the default 100 when .*, and has 500 now"):
            h.restart(limited(monkeypatch, 500))
        h.restart(limited(monkeypatch, 100), sets=["commit.interval=2s"])


@pytest.mark.parametrize("kind", ["a Struct", "a dataclass"])
def test_a_class_that_wrote_no_defaults_and_does_now_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def whole() -> App:
        fields = [("n", int), ("per_day", int, 100 if kind == "a Struct" else dataclasses.field(default=100))]
        limit = msgspec.defstruct("Limit", fields, module=__name__) if kind == "a Struct" else dataclasses.make_dataclass("Limit", fields)
        limit.__module__ = __name__
        monkeypatch.setattr(sys.modules[__name__], "Limit", limit, raising=False)
        app = App()
        app.stream("in", key=str, value=int).map(lambda n: limit(n), value=limit).reduce("limits", lambda old, new: old).updates().map(str, value=str).to("out")
        return app

    with Harness(limited(monkeypatch, 100)) as h:
        h.send("in", 1, key="ada")
        h.run()
        with pytest.raises(StateMismatch, match=r"store 'limits' value: its class had `omit_defaults` when the value was written, and does not.*\(per_day\)"):
            h.restart(whole())
        h.restart(limited(monkeypatch, 100))


def test_the_longest_enums_are_left_out_if_the_text_would_be_too_long() -> None:
    many = enum.Enum("Many", [f"A_NAME_THAT_IS_RATHER_LONG_{n:03}" for n in range(200)])  # type: ignore[misc]
    cls = msgspec.defstruct("S", [("at", Point), ("many", many), ("kind", Kind)])
    assert json.loads(layout_of(cls)) == {"$.at": ["x", "y"], "$.kind": KINDS}
    assert layout_of(msgspec.defstruct("S", [("many", many)])) == ""


@pytest.mark.parametrize("fields", [120, 200])
def test_classes_that_write_their_defaults_change_no_layout_that_an_earlier_version_kept(fields: int) -> None:
    """Short of room they are left out, and a layout that is kept as a hash is of the rest only."""
    many = NamedTuple("Many", [(f"field_with_a_long_name_{n:03}", int) for n in range(fields)])  # type: ignore[misc]
    earlier = layout_of(msgspec.defstruct("S", [("many", many)]))
    parts = [(f"part_{n}", msgspec.defstruct(f"P{n}", [("x", int, 1)])) for n in range(40)]
    now = layout_of(msgspec.defstruct("S", [("many", many), *parts]))
    assert _moved(earlier, now) is None if fields == 120 else earlier == now


def test_a_layout_that_is_too_long_to_keep_may_only_stay() -> None:
    many = NamedTuple("Many", [(f"field_with_a_long_name_{n:03}", int) for n in range(200)])  # type: ignore[misc]
    assert len(layout_of(many)) == 64
    assert _moved(layout_of(many), layout_of(many).replace("a", "b")) is not None


# -- a program, and a task ------------------------------------------------------------------------------------------------------------


def account(patch: pytest.MonkeyPatch, *fields: tuple[str, Any]) -> Any:
    """The class of that name, as a changed program has it; its first two fields are 0 by default."""
    cls = NamedTuple("Account", list(fields))  # type: ignore[misc]
    cls.__new__.__defaults__ = (0,) * len(fields)
    cls._field_defaults = dict.fromkeys(cls._fields, 0)
    cls.__module__ = __name__
    patch.setattr(sys.modules[__name__], "Account", cls, raising=False)
    return cls


def add(account: Any, value: int) -> Any:
    return account._replace(credit=account.credit + value, debit=account.debit + 1)


def rolling(cls: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int).fold("accounts", cls, add, value=cls).to("out")
    return app


def windowed(cls: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int, watermark_delay="1s").window(tumbling("1h")).fold("accounts", cls, add, value=cls).values().map(list, value=list).to("out")
    return app


def between(cls: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int).map(lambda n: cls(n, n), value=cls).repartition("spread").map(list, value=list).to("out")
    return app


CREDIT, DEBIT, CURRENCY = ("credit", int), ("debit", int), ("currency", int)


@pytest.mark.parametrize("make", [rolling, windowed, between])
def test_a_class_of_values_whose_fields_have_moved_is_refused(make: Callable[[Any], App], monkeypatch: pytest.MonkeyPatch) -> None:
    with Harness(make(account(monkeypatch, CREDIT, DEBIT))) as h:
        h.send("in", 100, key="ada", timestamp=1)
        h.run()
        for fields in ((CURRENCY, CREDIT, DEBIT), (DEBIT, CREDIT), (CREDIT,)):
            with pytest.raises(StateMismatch, match=r"the fields of its class were credit, debit when it was written, and are .* now.*read into other fields"):
                h.restart(make(account(monkeypatch, *fields)))
        h.restart(make(account(monkeypatch, CREDIT, DEBIT, CURRENCY)))
        h.send("in", 5, key="ada", timestamp=2)
        h.run()


def kinds(patch: pytest.MonkeyPatch, *names: str) -> tuple[Any, Any]:
    """The Enum `Sort` with these members by auto(), and the class `Entry` that has one."""
    sort: Any = enum.Enum("Sort", names, module=__name__)  # type: ignore[misc]
    patch.setattr(sys.modules[__name__], "Sort", sort, raising=False)
    entry = msgspec.defstruct("Entry", [("sort", sort)], module=__name__, frozen=True)
    patch.setattr(sys.modules[__name__], "Entry", entry, raising=False)
    return sort, entry


def in_values(sort: Any, entry: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int).fold("last", lambda: entry(sort.DEBIT), lambda kept, n: kept, value=entry).updates().map(str, value=str).to("out")
    return app


def in_windows(sort: Any, entry: Any) -> App:
    app = App()
    counted = app.stream("in", key=str, value=int, watermark_delay="1s").window(tumbling("1h"))
    counted.fold("last", lambda: entry(sort.DEBIT), lambda kept, n: kept, value=entry).values().map(str, value=str).to("out")
    return app


def in_keys(sort: Any, entry: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int).key_by(lambda n: entry(sort.DEBIT), "by", key=entry).count("counts").updates().map(str, value=str).to("out")
    return app


def between_stages(sort: Any, entry: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int).map(lambda n: entry(sort.DEBIT), value=entry).repartition("spread").map(str, value=str).to("out")
    return app


@pytest.mark.parametrize(
    ("make", "whose"),
    [
        (in_values, "store 'last' value"),
        (in_windows, "store 'last' value"),
        (in_keys, "(store 'counts' key|keys of internal topic by)"),
        (between_stages, "values of internal topic spread"),
    ],
)
def test_an_enum_whose_members_have_other_numbers_is_refused(make: Callable[..., App], whose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Harness(make(*kinds(monkeypatch, "DEBIT", "CREDIT"))) as h:
        h.send("in", 100, key="ada", timestamp=1)
        h.run()
        with pytest.raises(StateMismatch, match=rf"{whose}: its Enum at \$\.sort had DEBIT = 1 when .* PENDING = 1 now.*DEBIT would be read as PENDING"):
            h.restart(make(*kinds(monkeypatch, "PENDING", "DEBIT", "CREDIT")))
        h.restart(make(*kinds(monkeypatch, "DEBIT", "CREDIT", "PENDING")))
        h.send("in", 5, key="ada", timestamp=2)
        h.run()


def rolling_aggregate(how: Any, bookings: Any) -> Any:
    return bookings.aggregate("kept", it=how).updates()


def window_aggregate(how: Any, bookings: Any) -> Any:
    return bookings.window(tumbling("1h")).aggregate("kept", n=agg.count(), it=how).values()


def window_collect(how: Any, bookings: Any) -> Any:
    return bookings.window(tumbling("1h")).collect("kept").values()


KEEPING = {
    "max_by": agg.max_by(lambda b: b.cents), "min_by": agg.min_by(lambda b: b.cents), "top": agg.top(2, lambda b: b.cents), "first": agg.first(),
    "last": agg.last(), "collect": agg.collect(), "distinct": agg.distinct(),
}  # fmt: skip


def accumulated(patch: pytest.MonkeyPatch, keep: Callable[[Any, Any], Any], how: Any, names: Sequence[str], fields: Sequence[str]) -> App:
    """Bookings of a kind, an Enum with these members by auto(), at a place, a NamedTuple with these fields."""
    sort: Any = enum.Enum("Sort", names, module=__name__)  # type: ignore[misc]
    spot: Any = NamedTuple("Spot", [(field, int) for field in fields])  # type: ignore[misc]
    spot.__module__ = __name__
    entry = msgspec.defstruct("Entry", [("cents", int), ("sort", sort), ("at", spot)], module=__name__)
    for cls in (sort, spot, entry):
        patch.setattr(sys.modules[__name__], cls.__name__, cls, raising=False)
    app = App()
    bookings = app.stream("in", key=str, value=int, watermark_delay="1s").map(lambda n: entry(n, sort["DEBIT"], spot(*range(len(fields)))), value=entry)
    keep(how, bookings).map(str, value=str).to("out")
    return app


@pytest.mark.parametrize("how", KEEPING)
@pytest.mark.parametrize("keep", [rolling_aggregate, window_aggregate, window_collect])
def test_records_in_accumulators_are_refused_too(keep: Callable[[Any, Any], Any], how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = partial(accumulated, monkeypatch, keep, KEEPING[how])
    with Harness(make(["DEBIT", "CREDIT"], "xy")) as h:
        h.send("in", 100, key="ada", timestamp=1)
        h.run()
        with pytest.raises(StateMismatch, match=r"store 'kept' records in accumulators: its Enum at \$\.sort had DEBIT = 1 .* state drop|DEBIT would be read as"):
            h.restart(make(["PENDING", "DEBIT", "CREDIT"], "xy"))
        with pytest.raises(StateMismatch, match=r"store 'kept' records in accumulators: the fields of its class at \$\.at were x, y .* and are z, x, y now"):
            h.restart(make(["DEBIT", "CREDIT"], "zxy"))
        h.restart(make(["DEBIT", "CREDIT", "PENDING"], "xy"))
        h.send("in", 5, key="ada", timestamp=2)
        h.run()


OF_CENTS = (agg.count(), *(make(lambda b: b.cents) for make in (agg.sum, agg.collect, agg.last, agg.distinct)))


@pytest.mark.parametrize("how", OF_CENTS)
def test_accumulators_without_records_have_no_layout(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make = partial(accumulated, monkeypatch, rolling_aggregate, how)
    with Harness(make(["DEBIT", "CREDIT"], "xy")) as h:
        h.send("in", 100, key="ada", timestamp=1)
        h.run()
        h.restart(make(["PENDING", "DEBIT"], "zxy"))
        h.send("in", 5, key="ada", timestamp=2)
        h.run()


class ByKind:
    def init(self, context: Any) -> None:
        self.kept = context.get_store("kept")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        module = sys.modules[__name__]
        self.kept.put(module.Entry(module.Sort.DEBIT), envelope.message)


def test_an_enum_in_keys_of_a_tasks_store_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from samzapy import StreamTask

    task, store = type("Task", (ByKind, StreamTask), {}), {"key": f"record:{__name__}:Entry", "value": "integer"}
    kinds(monkeypatch, "DEBIT", "CREDIT")
    with Harness(task, inputs=[{"topic": "in", "key": "string", "value": "integer"}], stores={"kept": store}) as h:
        h.send("in", 100, key="ada")
        h.run()
        kinds(monkeypatch, "PENDING", "DEBIT", "CREDIT")
        with pytest.raises(StateMismatch, match=r"store 'kept' key: its Enum at \$\.sort had DEBIT = 1"):
            h.restart(sets=["commit.interval=2s"])


SCHEMA = {"type": "record", "name": "A", "fields": [{"name": "credit", "type": "long"}, {"name": "debit", "type": "long"}]}
Change = Callable[[dict[str, Any]], Any]


def reordered(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "fields": schema["fields"][::-1]}


def other_unit(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "fields": [{"name": "credit", "type": {"type": "long", "logicalType": "timestamp-millis"}}, schema["fields"][1]]}


def documented(schema: dict[str, Any]) -> dict[str, Any]:
    fields = [{**field, "doc": "cents", "default": 0} for field in schema["fields"]]
    return {"type": "record", "name": "space.Other", "doc": "an account", "fields": fields}


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        (lambda s: s, True),
        (documented, True),
        (lambda s: {**s, "fields": [{"name": f["name"], "type": {"type": "long"}} for f in s["fields"]]}, True),
        (reordered, False),
        (other_unit, False),
        (lambda s: {**s, "fields": [*s["fields"], {"name": "more", "type": "string", "default": ""}]}, False),
        (lambda s: {**s, "fields": [{**s["fields"][0], "type": ["null", "long"]}, s["fields"][1]]}, False),
        (lambda s: {"type": "array", "items": s}, False),
    ],
)
def test_avro_schemas_are_told_apart_by_what_their_bytes_mean(change: Change, is_same: bool) -> None:
    assert (AvroSchema(SCHEMA).layout == AvroSchema(change(SCHEMA)).layout) is is_same


def test_a_type_that_refers_to_itself_has_a_layout() -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    assert AvroSchema(node).layout == AvroSchema({**node, "name": "Other", "fields": [{"name": "next", "type": ["null", "Other"]}]}).layout


class Keeping:
    """Keeps each record under its key."""

    def init(self, context: Any) -> None:
        self.kept = context.get_store("kept")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        self.kept.put({"credit": 1, "debit": 2} if self.kept._key_serde.startswith("avro") else envelope.key, {"credit": envelope.message, "debit": 1})


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_store_whose_avro_schema_has_changed_is_refused(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from samzapy import StreamTask

    task = type("Task", (Keeping, StreamTask), {})
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "account.avsc"
    file.write_text(json.dumps(SCHEMA))
    store = {"key": "string", "value": "json", part: "avro:account.avsc"}
    with Harness(task, inputs=[{"topic": "in", "key": "string", "value": "integer"}], stores={"kept": store}) as h:
        h.send("in", 100, key="ada")
        h.run()
        file.write_text(json.dumps(documented(SCHEMA)))
        h.restart(sets=["commit.interval=2s"])
        file.write_text(json.dumps(reordered(SCHEMA)))
        with pytest.raises(StateMismatch, match=f"store 'kept' {part}: the Avro schema was another one when it was written.*state drop"):
            h.restart(sets=["commit.interval=3s"])
