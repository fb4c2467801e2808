"""What is wrong in a program is refused where it is written, with file and line."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.streams import Aggregate, App, Pane, agg, tumbling
from samzapy.streams.expand import check_names, sections
from samzapy.testing import Harness


@dataclass(frozen=True)
class Tags:
    tags: frozenset[str]


@dataclass
class Pair:
    left: int
    right: int


class Priced(pydantic.BaseModel):
    price: float = pydantic.Field(0.0, validation_alias="unitPrice")


async def later(value: int) -> int:
    return value


def several(value: int) -> Any:
    yield value


def wants_more(value: int, other: int) -> int:
    return other


def refusals() -> dict[str, tuple[Callable[[App, Any], object], str]]:
    """What is written, and what is said about it."""
    return {
        "an unknown parameter": (lambda app, s: s.map(wants_more), "map: wants_more asks for 'other'.* Besides the value it may name: key, time, headers"),
        "no parameter": (lambda app, s: s.map(lambda: 1), "takes no value"),
        "no function": (lambda app, s: s.filter(3), "filter takes a function, not int"),
        "a coroutine": (lambda app, s: s.map(later), "later is a coroutine"),
        "a generator": (lambda app, s: s.map(several), "several is a generator"),
        "an aggregate's name": (lambda app, s: s.aggregate("a", start=agg.count()), "no aggregate can be called 'start'"),
        "no aggregate": (lambda app, s: s.aggregate("a", n=len), "n is builtin_function_or_method, not an aggregate"),
        "no aggregates": (lambda app, s: s.aggregate("a"), "needs at least one aggregate"),
        "a bad name": (lambda app, s: s.count("a/b"), "'a/b' cannot be a store's name"),
        "a name twice": (lambda app, s: (s.count("a"), s.count("a")), "'a' is the name of the count at test_refusals.py:"),
        "a topic twice": (lambda app, s: app.stream("in"), "topic 'in' is read at test_refusals.py:"),
        "no topic": (lambda app, s: app.stream("a b"), "'a b' is not a Kafka topic name"),
        "no kind": (lambda app, s: app.stream("b", value=set), "set is no kind of value"),
        "no serde": (lambda app, s: app.stream("b", value="strnig"), "there is no serde 'strnig'"),
        "a key with many forms": (lambda app, s: app.stream("b", key=dict).count("n"), "keys of kind dict cannot be looked up"),
        "a field of a key with many forms": (lambda app, s: app.stream("b", key=Tags).count("n"), "its field 'tags' is frozenset, which has several forms"),
        "the same before an internal topic": (lambda app, s: s.key_by(Tags, "by-tags", key=Tags).count("n"), "its field 'tags' is frozenset"),
        "values that do not come back": (
            lambda app, s: s.map(lambda v: Priced(), value=Priced).key_by(lambda v: "a", "by-a", key=str).to("out"),
            r"key_by\('by-a'\): its values could not be read back: Priced writes its field price as 'price', but reads it from 'unitPrice'",
        ),
        "a key that can change": (lambda app, s: app.stream("b", key=Pair).count("n"), "Pair is not frozen"),
        "an unknown kind": (lambda app, s: s.map(lambda v: v).reduce("r", max), "the kind of its values is not known"),
        "a zero": (lambda app, s: s.fold("f", 0, lambda a, b: a), "its initial value must come from a function, not 0"),
        "any key of a part": (lambda app, s: s.lookup(app.table("t", key=str, value=str), on=str), "has only the part of 't'"),
        "keys of another kind": (lambda app, s: s.lookup(app.table("t", key=int, value=str)), "the stream's keys are str, the table's are int"),
        "a strange join": (lambda app, s: s.lookup(app.table("t", key=str, value=str), how="outer"), "how='outer'"),
        "a table's name": (lambda app, s: app.table("a.b", key=str, value=str), "Name its store: store="),
        "two programs": (lambda app, s: s.merge(App().stream("in", key=str, value=int)), "of different programs"),
        "two kinds of keys": (lambda app, s: s.merge(app.stream("b", value=int)), "keys are str in one stream and bytes in another"),
        "one topic in two ways": (lambda app, s: (s.to("out"), s.to("out", value=str)), "at test_refusals.py:.* it is written as str and int"),
        "no partitions": (lambda app, s: s.to("out", partitions=0), "partitions=0"),
        "many of a top": (lambda app, s: agg.top(0, len), "agg.top: 0 is not a number from 1 to 1000"),
    }  # fmt: skip


@pytest.mark.parametrize("what", refusals())
def test_it_is_refused_where_it_is_written(what: str) -> None:
    write, said = refusals()[what]
    app = App()
    stream = app.stream("in", key=str, value=int)
    with pytest.raises(ConfigurationError, match=said) as caught:
        write(app, stream)
    assert caught.value.message.startswith(("test_refusals.py:", "agg."))


@pytest.mark.parametrize("function", [sorted, functools.partial(pow, 2), str, Pair, lambda value, other=1: value, lambda value, **rest: value, max])
def test_only_parameters_without_default_are_filled_in(function: Any) -> None:
    app = App()
    node = app.stream("in").map(function).node
    assert () == node.function.asks  # type: ignore[attr-defined]


def test_what_goes_nowhere_is_refused() -> None:
    app = App()
    stream = app.stream("in", value=int)
    stream.to("out")
    stream.map(lambda n: n).filter(bool)
    with pytest.raises(ConfigurationError, match=r"test_refusals.py:\d+: filter goes nowhere"):
        sections(app.graph, {}, {})


def test_a_branch_of_which_some_ways_go_nowhere_drops_their_records() -> None:
    app = App()
    app.stream("in", value=int).branch(bool)[0].to("out")
    assert [{"topic": "in", "key": "bytes", "value": "integer"}] == sections(app.graph, {}, {}).inputs


def test_the_sections_of_a_program() -> None:
    app = App()
    users = app.table("users", key=str, value=Pair, broadcast=True)
    stream = app.stream("in", key=str, value=dict)
    stream.lookup(users, on=lambda v: v["u"]).to("out", partitions=3)
    stream.aggregate("sums", n=agg.count(), total=agg.sum(lambda v: v["n"])).to("sums")
    found = sections(app.graph, {"in": {"topic": "prod.in", "start": "latest"}}, {"sums": {"engine": "memory"}})

    record = f"record:{__name__}:Pair"
    assert [
        {"topic": "users", "key": "string", "value": record, "bootstrap": True, "broadcast": True},
        {"topic": "prod.in", "key": "string", "value": "json", "start": "latest"},
    ] == found.inputs
    assert [{"topic": "out", "key": "string", "value": "json", "partitions": 3}, {"topic": "sums", "key": "string", "value": "json"}] == found.outputs
    assert {"users": {"key": "string", "value": record, "changelog": False}, "sums": {"key": "string", "value": "json", "engine": "memory"}} == found.stores
    assert {"operator sums": "aggregate(n=count, total=sum)"} == found.operators


@pytest.mark.parametrize(
    ("streams", "stores", "said"),
    [
        ({"ins": {}}, {}, ("the program has no stream 'ins'", "did you mean 'in'?")),
        ({"out": {"start": "latest"}}, {}, ("the program does not read 'out'", "Remove it.")),
        ({}, {"cuonts": {}}, ("the program has no store 'cuonts'", "did you mean 'counts'?")),
        ({}, {"counts": {"value": "json"}}, ("`value` of a program's store cannot be set in the job file", "Only `engine` can be.")),
    ],
)
def test_the_job_file_names_what_the_program_has(streams: Any, stores: Any, said: tuple[str, str]) -> None:
    app = App()
    stream = app.stream("in", key=str, value=int)
    stream.to("out")
    stream.count("counts")
    assert [said] == [(finding.message, finding.hint) for finding in check_names(app.graph, streams, stores)]


def test_an_aggregate_that_cannot_be_called_is_refused() -> None:
    bad: Aggregate[Any, Any, Any] = Aggregate(lambda: 0, lambda a: a, None, lambda a: a)
    with pytest.raises(ConfigurationError, match="takes 1 values"):
        App().stream("in", key=str, value=int).aggregate("x", bad=bad)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda app: app.stream("s", time="at"), r"time=….* takes a function, not str.*lambda value: value\.at; of a dict: lambda value: value\['at'\]"),
        (lambda app: app.stream("s").key_by("hall", "by-hall", key=str), r"takes a function, not str.*lambda value: value\.hall"),
        (lambda app: agg.sum("hall"), r"an aggregate takes a function, not str.*lambda value: value\.hall"),
        (lambda app: agg.first("hall"), r"an aggregate takes a function, not str"),
        (lambda app: agg.max_by("hall"), r"agg\.max_by takes a function, not str"),
        (lambda app: agg.top(3, "hall"), r"agg\.top takes a function, not str"),
        (lambda app: app.stream("s").map("a b"), r"takes a function, not str\.$"),
    ],
)
def test_the_name_of_a_field_is_no_function_and_the_remedy_shows_one(wrong: Callable[[App], object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        wrong(App())


def test_a_new_key_without_its_kind_is_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigurationError, match=r"key_by\('by-length'\) does not say of what kind the new keys are.*key=str"):
        App().stream("s", value=str).key_by(len, "by-length")  # type: ignore[call-overload]


@pytest.mark.parametrize(("name", "operator"), [("groupby", "key_by"), ("group_by", "key_by"), ("join", "lookup"), ("flatmap", "flat_map"), ("where", "filter")])
def test_a_name_from_elsewhere_leads_to_the_operator(name: str, operator: str) -> None:
    stream: Any = App().stream("s", key=str, value=dict)
    with pytest.raises(AttributeError, match=f"'Stream' object has no attribute '{name}'; the operator is called '{operator}'"):
        getattr(stream, name)
    assert not hasattr(stream, "nothing_like_that")


def test_a_pane_is_no_dict_and_says_where_its_result_is() -> None:
    pane: Any = Pane(0, 10, {"n": 1}, "on_time", 0)
    with pytest.raises(TypeError, match=r"pane\.value\['n'\]"):
        pane["n"]


def test_a_table_has_no_operators_of_streams_and_says_how_its_changes_are_a_stream() -> None:
    table: Any = App().stream("s", key=str, value=dict).count("c")
    with pytest.raises(AttributeError, match=r"a table has no 'map'; its changes are a stream: \.updates\(\)\.map\("):
        table.map(len)
    assert not hasattr(table, "nothing_like_that")


def test_a_record_after_the_harnesss_clock_is_refused_with_both_times_and_what_sets_the_clock() -> None:
    app = App()
    app.stream("s", key=str, value=int).to("out")
    said = r"a record of 2030-03-17 17:46 UTC .*here it is 2023-11-14 22:13 UTC; `now=` of a Harness"
    with Harness(app) as harness, pytest.raises(SamzapyError, match=said):
        harness.send("s", 1, key="a", timestamp=1_900_000_000_000)


WRONG = [("abc", (float, bool, dict, list)), ({"a": 1}, (float, bool, list)), ([1], (float, bool, dict)), (5, (bool, dict, list)), (True, (float, dict, list)),
         (1.5, (bool, dict, list))]  # fmt: skip


@pytest.mark.parametrize("says", ["value=", "its annotation"])
@pytest.mark.parametrize(("value", "kind"), [(value, kind) for value, kinds in WRONG for kind in kinds])
def test_a_value_of_another_kind_than_is_said_is_not_written(value: Any, kind: Any, says: str) -> None:
    def given(text: str) -> Any:
        return value

    if says == "its annotation":
        given.__annotations__["return"] = kind
    app = App()
    seen: list[Any] = []
    values = app.stream("s", key=str, value=str).map(given, **({"value": kind} if says == "value=" else {}))
    values.to("out")
    values.repartition("again").peek(seen.append).to("after")
    values.reduce("newest", lambda one, other: other)
    with Harness(app, on_error={"then": "dead_letter"}) as harness:
        harness.send("s", "x", key="a")
        harness.run()
        assert ([], [], [], {}) == (harness.output("out"), harness.output("after"), seen, harness.store("newest"))
        [letter] = harness.dead_letters()
    assert re.search(rf"to out \(.*\): the value is .* \({type(value).__name__}\), not {kind.__name__}\.", letter.error)


def test_what_a_fold_gives_is_looked_at_before_it_is_kept() -> None:
    app = App()
    app.stream("s", key=str, value=int).fold("sums", float, lambda total, value: "n/a" if value < 0 else total + value, value=float)
    with Harness(app, on_error={"then": "dead_letter"}) as harness:
        for value in (2, -1, 3):
            harness.send("s", value, key="a")
        harness.run()
        assert {"a": 5.0} == harness.store("sums")
        assert [1] == [letter.offset for letter in harness.dead_letters()]


def test_what_a_windows_fold_gives_is_looked_at_too() -> None:
    app = App()
    stream = app.stream("s", key=str, value=int, watermark_delay="0s")
    stream.window(tumbling("1s")).fold("sums", float, lambda total, value: "n/a" if value < 0 else total + value, value=float).to("out")
    with Harness(app, on_error={"then": "dead_letter"}) as harness:
        for value in (2, -1, 3):
            harness.send("s", value, key="a", timestamp=1_700_000_000_000)
        harness.end()
        assert [5.0] == [pane["value"] for _, pane in harness.output("out")]
        assert [1] == [letter.offset for letter in harness.dead_letters()]


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [(float, 5, 5), (dict, Counter(a=1), {"a": 1}), (list, (1, 2), [1, 2]), (dict, None, None)],
)
def test_a_value_that_is_read_as_its_kind_is_written(kind: Any, value: Any, read: Any) -> None:
    app = App()
    app.stream("s", key=str, value=str).map(lambda text: value, value=kind).to("out")
    with Harness(app) as harness:
        harness.send("s", "x", key="a")
        harness.run()
        assert [("a", read)] == harness.output("out")
