"""Whole programs on the in-memory log: what comes out, in which order, after crashes too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from samzapy.api.errors import ConfigurationError, TaskError
from samzapy.container.failure import told_stack
from samzapy.container.task_metrics import OperatorCounts
from samzapy.ports import TopicSpec
from samzapy.serde.basic import MAX_JSON_BYTES
from samzapy.streams import Aggregate, App, Stream, agg, tumbling
from samzapy.testing import Harness


@dataclass
class Click:
    ad: str
    price: float


class View(msgspec.Struct):
    ad: str
    at: int


class Buy(TypedDict):
    item: str


class Visit(BaseModel):
    path: str


def values(h: Harness, topic: str) -> list[Any]:
    return [value for _, value in h.output(topic)]


def numbers(app: App) -> Stream[str, int]:
    return app.stream("numbers", key=str, value=int)


def feed(h: Harness, *given: Any, topic: str = "numbers", key: str | None = "k") -> None:
    for value in given:
        h.send(topic, value, key=key)


def five(h: Harness, crashes: bool) -> None:
    """1 to 5; with `crashes`, three of them, each of which loses what the record before it did."""
    for n in range(1, 6):
        feed(h, n)
        if crashes and n % 2:
            h.run(commit=False)
            h.crash(keep_state=n != 3)
    h.run()


@pytest.mark.parametrize("crashes", [False, True])
def test_the_simple_operators_give_what_they_should(crashes: bool) -> None:
    app = App()
    stream = numbers(app)
    stream.map(lambda n: n * 2).to("doubled", value=int)
    stream.reduce("sums", lambda a, b: a + b).to("sums")
    stream.fold("texts", lambda: "start", lambda text, n: f"{text}-{n}", value=str).to("texts")
    even, odd = stream.branch(lambda n: n % 2 == 0)
    even.to("even")
    odd.to("odd")
    stream.merge(stream).count("merged").to("merged")
    with Harness(app) as h:
        five(h, crashes)
        assert [2, 4, 6, 8, 10] == values(h, "doubled")
        assert [1, 3, 6, 10, 15] == values(h, "sums")
        assert ["start-1", "start-1-2", "start-1-2-3", "start-1-2-3-4", "start-1-2-3-4-5"] == values(h, "texts")
        assert ([2, 4], [1, 3, 5]) == (values(h, "even"), values(h, "odd"))
        assert 10 == values(h, "merged")[-1] == h.store("merged")["k"]


@pytest.mark.parametrize("crashes", [False, True])
def test_min_by_keeps_the_record_of_the_smallest(crashes: bool) -> None:
    app = App()
    rows = app.stream("rows", key=str, value=list)
    rows.aggregate("best", row=agg.min_by(lambda row: row[0])).updates().map(lambda best: best["row"][1] if best else None).to("best")
    with Harness(app) as h:
        for row in ([3, "x"], [1, "y"], [2, "z"]):
            h.send("rows", row, key="a")
            if crashes:
                h.run(commit=False)
                h.crash()
        h.run()
        assert ["x", "y", "y"] == values(h, "best")


@pytest.mark.parametrize("crashes", [False, True])
def test_a_fold_begins_with_what_a_table_has_for_the_key(crashes: bool) -> None:
    """J21."""
    app = App()
    table = app.table("initial", key=str, value=float)
    halves = app.stream("values", key=str, value=float).fold(
        "halves", lambda: 0.0, lambda last, new: last / 2 + new / 2, value=float, initial=table
    )
    halves.to("halves")
    with Harness(app) as h:
        h.send("initial", 1.0, key="u2")
        for key, value in (("u1", 1.0), ("u1", 1.0), ("u1", -1.0), ("u2", 1.0)):
            h.send("values", value, key=key)
            if crashes:
                h.run(commit=False)
                h.crash(keep_state=value > 0)
        h.run()
        assert [("u1", 0.5), ("u1", 0.75), ("u1", -0.125), ("u2", 1.0)] == h.output("halves")


def test_a_lookup_pairs_a_record_with_what_a_broadcast_table_has_now() -> None:
    app = App()
    users = app.table("users", key=str, value=str, broadcast=True)
    views = app.stream("views", key=str, value=str)
    views.lookup(users, on=lambda page: page.split("/")[0]).to("left")
    views.lookup(users, on=lambda page: page.split("/")[0], how="inner").map(lambda pair: pair[1]).to("inner")
    with Harness(app, tasks=3) as h:
        h.send("users", "LNKD", key="user1", partition=2)
        for number, page in enumerate(("user1/a", "user2/b")):
            h.send("views", page, key=page, partition=number)
        h.run()
        assert {("user1/a", ("user1/a", "LNKD")), ("user2/b", ("user2/b", None))} == {(k, tuple(v)) for k, v in h.output("left")}
        assert ["LNKD"] == values(h, "inner")
        h.send("users", "MSFT", key="user1", partition=2)
        h.run()
        h.crash(keep_state=False)
        h.send("users", None, key="user9", partition=0)
        h.send("views", "user1/c", key="x", partition=0)
        h.run()
        assert {"LNKD", "MSFT"} == set(values(h, "inner"))


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("broadcast", [False, True])
def test_views_are_paired_with_the_profiles_of_their_users(broadcast: bool, crashes: bool) -> None:
    """J17 without `as_of`: every profile is read before the first view, and one that changes counts for later views only."""
    app = App()
    profiles = app.table("profiles", key=str, value=str, broadcast=broadcast)
    views = app.stream("views", key=str, value=str)
    views.lookup(profiles, how="inner").map(lambda pair, key: [key, pair[1], pair[0]], value=list).to("pairs")
    views.lookup(profiles).filter(lambda pair: pair[1] is None).map(lambda pair: pair[0], value=str).to("nobodys")

    def view(h: Harness, *given: tuple[str, str]) -> None:
        for user, page in given:
            h.send("views", page, key=user)
            if crashes:
                h.run(commit=False)
                h.crash(keep_state=user == "user1")
        h.run()

    with Harness(app, tasks=3) as h:
        h.send("profiles", "LNKD", key="user1")
        h.send("profiles", "MSFT", key="user2")
        view(h, ("user1", "google.com"), ("user2", "yahoo.com"), ("user3", "samza.org"))
        h.send("profiles", "APPL", key="user1")
        h.run()
        view(h, ("user1", "google.com"))
        h.send("profiles", None, key="user1")
        h.run()
        view(h, ("user1", "bing.com"))
        wanted = [["user1", "LNKD", "google.com"], ["user2", "MSFT", "yahoo.com"], ["user1", "APPL", "google.com"]]
        assert sorted(wanted) == sorted(values(h, "pairs"))
        assert {"samza.org", "bing.com"} == set(values(h, "nobodys"))


def test_a_lookup_by_the_records_key_reads_the_tasks_own_part_of_a_table() -> None:
    app = App()
    totals = app.stream("buys", key=str, value=Buy).count("totals")
    app.stream("views", key=str, value=View).lookup(totals).map(lambda pair: [pair[0].ad, pair[1]]).to("views-with-totals")
    with Harness(app, tasks=2) as h:
        for _ in range(3):
            h.send("buys", {"item": "book"}, key="ada")
        h.run()
        h.send("views", View("x", 1), key="ada")
        h.send("views", View("y", 1), key="bob")
        h.run()
        assert [["x", 3], ["y", None]] == sorted(values(h, "views-with-totals"))


def test_records_keep_their_key_time_and_headers() -> None:
    app = App()
    stream = app.stream("in", key=str, value=dict)
    stream.map(lambda value, key, time, headers: [value["n"], key, time, [[name, data.decode()] for name, data in headers]]).to("all")
    stream.to("kept")
    stream.to("sent", timestamps="send")
    counts = stream.count("counts")
    counts.to("counts-kept")
    counts.to("counts-sent", timestamps="send")
    timed = app.stream("timed", value=dict, time=lambda value: value["at"])
    timed.map(lambda value, time: time).to("times")
    with Harness(app) as h:
        h.send("in", {"n": 1}, key="a", timestamp=5, headers=[("h", b"1"), ("h", b"2")])
        h.send("timed", {"at": 7})
        h.run()
        assert [[1, "a", 5, [["h", "1"], ["h", "2"]]]] == values(h, "all")
        kept, sent = h.records("kept")[0], h.records("sent")[0]
        assert (5, [("h", b"1"), ("h", b"2")]) == (kept.timestamp()[1], list(kept.headers() or ()))
        assert h.clock.now_ms() == sent.timestamp()[1] == h.records("counts-sent")[0].timestamp()[1]
        assert 5 == h.records("counts-kept")[0].timestamp()[1]
        assert ([7], 7) == (values(h, "times"), h.records("times")[0].timestamp()[1])


def test_typed_values_are_objects_of_their_class() -> None:
    app = App()
    for topic, kind in (("clicks", Click), ("views", View), ("visits", Visit)):
        stream: Stream[bytes, Any] = app.stream(topic, value=kind)
        stream.map(lambda value: type(value).__name__, label=topic).to(f"{topic}-names")
        stream.to(f"{topic}-copy")
    with Harness(app) as h:
        given = {"clicks": Click("a", 1.5), "views": View("a", 1), "visits": Visit(path="/")}
        for topic, value in given.items():
            h.send(topic, value)
        h.run()
        for topic, value in given.items():
            assert [type(value).__name__] == values(h, f"{topic}-names")
            assert [value] == values(h, f"{topic}-copy")


def test_a_record_of_another_kind_fails_before_any_operator() -> None:
    app = App()
    seen: list[Any] = []
    app.stream("in", value=dict).sink(seen.append)
    app.stream("views", value=View).sink(seen.append)
    app.stream("flags", value=bool).sink(seen.append)
    with Harness(app, on_error={"then": "skip"}) as h:
        h.send_raw("in", b"[1]")
        h.send_raw("in", b'{"a": 1}')
        h.send_raw("views", b'{"ad": "x", "at": "y"}')
        h.send_raw("flags", b"1")
        h.run()
        assert ([{"a": 1}], 3) == (seen, h.metric("skipped"))


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda s: s.map(lambda n: 1 // (n - 3)).to("out"), "integer division or modulo by zero"),
        (lambda s: s.map(lambda n: [n], value=list).map(len).map(str.upper).to("out"), "map (test_programs.py:"),
        (lambda s: s.map(lambda n: object()).to("out"), "to out (test_programs.py:"),
        (lambda s: s.reduce("sums", lambda a, b: None), "reduce sums (test_programs.py:"),
    ],
)
def test_an_error_names_the_operator_or_the_users_line(break_it: Any, said: str) -> None:
    app = App()
    break_it(numbers(app))
    with Harness(app) as h:
        feed(h, 1, 2, 3)
        with pytest.raises(TaskError) as caught:
            h.run()
        assert said in str(caught.value)
        assert "test_programs.py:" in str(caught.value)


def test_state_by_key_needs_a_key() -> None:
    app = App()
    numbers(app).count("n")
    with Harness(app) as h:
        feed(h, 1, key=None)
        with pytest.raises(TaskError, match=r"count n \(test_programs.py:\d+\): the record has no key.*filter\(lambda value, key") as found:
            h.run()
        assert "contextlib" not in str(found.value), "where an error passed through is not where it was"


def test_a_record_that_fails_leaves_nothing_in_any_branch() -> None:
    app = App()
    stream = numbers(app)
    stream.to("before")
    stream.reduce("sums", lambda a, b: a + b).to("sums")
    stream.map(lambda n: 1 // (n - 3)).to("after")
    with Harness(app, on_error={"then": "skip"}) as h:
        feed(h, 1, 2, 3, 4)
        h.run()
        assert ([1, 2, 4], [1, 3, 7]) == (values(h, "before"), values(h, "sums"))


def test_a_function_that_changes_what_it_is_given_is_told() -> None:
    app = App()
    app.stream("in", value=dict).map(lambda value: value.update(n=1) or value).to("out")
    with Harness(app) as h:
        h.send("in", {"n": 0})
        with pytest.raises(TaskError, match=r"map \(test_programs.py:\d+\): its function changes the value"):
            h.run()


def test_an_accumulator_may_be_changed() -> None:
    app = App()
    words = app.stream("words", key=str, value=str)

    def add(seen: list[str], word: str) -> list[str]:
        seen.append(word)
        return seen

    words.fold("all", list, add, value=list).to("all")
    with Harness(app) as h:
        feed(h, "a", "b", topic="words")
        h.run()
        assert [["a"], ["a", "b"]] == values(h, "all")


def test_an_aggregate_of_ones_own() -> None:
    app = App()
    product: Aggregate[int, int, int] = Aggregate(lambda: 1, lambda a, n: a * n, lambda a, b: a * b, lambda a: a, int, "product")
    numbers(app).aggregate("products", product=product, n=agg.count()).to("products")
    with Harness(app) as h:
        feed(h, 2, 3)
        h.run()
        assert [{"product": 2, "n": 1}, {"product": 6, "n": 2}] == values(h, "products")


def test_where_a_stream_really_is_stands_in_the_job_file() -> None:
    app = App()
    numbers(app).to("out")
    with Harness(app, streams={"numbers": {"topic": "prod.numbers.v3"}, "out": {"topic": "prod.out"}}) as h:
        feed(h, 1, topic="prod.numbers.v3")
        h.run()
        assert [1] == values(h, "prod.out")


def test_a_table_with_its_updates() -> None:
    app = App()
    users = app.table("users", key=str, value=str)
    users.to("copy")
    with Harness(app) as h:
        feed(h, "a", None, "b", topic="users")
        h.run()
        assert (["a", None, "b"], {"k": "b"}) == (values(h, "copy"), h.store("users"))


def test_a_program_of_another_module_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="reads no stream"):
        Harness(App())


def counts_of(h: Harness) -> dict[str, dict[str, int]]:
    [task] = h.container.tasks.values()
    found: dict[str, dict[str, int]] = task.status({})["operators"]
    return found


def test_each_operator_counts_what_it_took_gave_on_and_dropped() -> None:
    app = App()
    stream = numbers(app)
    even, odd = stream.branch(lambda n: n % 2 == 0)
    even.filter(lambda n: n > 2).count("large").to("large")
    odd.filter_map(lambda n: n if n != 3 else None).flat_map(lambda n: [n] * 3).to("odd")
    stream.merge(stream).sink(lambda n: None)
    with Harness(app) as h:
        feed(h, *range(1, 7))
        h.run()
        assert {
            "0-stream": {"in": 6, "out": 6}, "1-branch": {"in": 6, "out": 6}, "2-way": {"in": 3, "out": 3}, "3-way": {"in": 3, "out": 3},
            "4-filter": {"in": 3, "out": 2, "dropped": 1}, "large": {"in": 2, "out": 2}, "6-to": {"in": 2},
            "7-filter_map": {"in": 3, "out": 2, "dropped": 1}, "8-flat_map": {"in": 2, "out": 6}, "9-to": {"in": 6},
            "10-merge": {"in": 12, "out": 12}, "11-sink": {"in": 12},
        } == counts_of(h)  # fmt: skip


def test_records_of_a_batch_that_failed_are_counted_once() -> None:
    app = App()
    numbers(app).filter(lambda n: 6 // (n - 3) > 0).to("out")
    with Harness(app, on_error={"then": "skip"}) as h:
        feed(h, 4, 5, 3, 2, 6)
        h.run()
        assert {"in": 4, "out": 3, "dropped": 1} == counts_of(h)["1-filter"]


def test_what_an_abort_undoes_is_counted_once() -> None:
    counts = OperatorCounts()
    numbers = counts.of(2)
    numbers[0] += 5
    counts.stand()
    numbers[1] += 7
    counts.go_back()
    assert [5, 0] == numbers
    assert numbers is counts.of(2)


def test_of_operators_on_one_line_the_error_names_the_one_that_failed_and_its_remedy_is_of_a_program() -> None:
    app = App()
    app.stream("s", key=str, value=int).map(lambda n: n + 1, value=int).filter(lambda n: 1 / (n - 3) > 0, label="near three").to("out")
    with Harness(app) as h:
        h.send("s", 2, key="a")
        with pytest.raises(TaskError, match=r"its program, in filter near three, failed on record s\[0\]@0.*ZeroDivisionError.*\(test_programs.py:\d+\)") as found:
            h.run()
    assert found.value.remedy.startswith("Fix the program, or set `on_error")


def test_an_error_that_names_its_operator_has_no_stack_of_python_s_own_lines() -> None:
    app = App()
    app.stream("s", key=str, value=str).key_by(lambda line: None, "by-none", key=str).count("n").to("out")
    with Harness(app) as h:
        h.send("s", "x", key="a")
        with pytest.raises(TaskError, match=r"its program failed on record .*: key_by by-none \(test_programs.py:\d+\): its function gave None") as found:
            h.run()
    cause = found.value.__cause__
    assert cause is not None
    assert [] == told_stack(cause)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (b"\xff", b"1", "serde string: b'\\xff' is not UTF-8: invalid start byte at byte 0"),
        (b"k", b"{", "serde json cannot read b'{'"),
        (b"k", b'"' + b"x" * MAX_JSON_BYTES + b'"', f"{MAX_JSON_BYTES + 2} bytes, more than {MAX_JSON_BYTES}"),
    ],
)
def test_a_record_that_cannot_be_decoded_is_told_as_its_serde_tells_it(key: bytes, value: bytes, said: str) -> None:
    app = App()
    app.stream("s", key=str, value=float).map(lambda v, key: key).to("out", value=str)
    with Harness(app) as h:
        h.log.admin().delete(["s"])
        h.log.admin().create([TopicSpec("s", 1, {"max.message.bytes": str(2 * MAX_JSON_BYTES)})])
        h.log.plain_producer("stranger").send("s", value, key, 0)
        with pytest.raises(TaskError) as found:
            h.run()
        assert said in str(found.value)
        assert "record s[0]@0" in str(found.value)


@dataclass
class Account:
    cents: int


class Balance(msgspec.Struct):
    cents: int


class Sum(TypedDict):
    cents: int


@pytest.mark.parametrize(("kind", "bad"), [(Account, 125.0), (Balance, None), (Sum, "12")])
def test_a_value_that_could_not_be_read_back_sets_its_record_aside_and_the_store_keeps_its_old_one(kind: Any, bad: Any) -> None:
    def added(account: Any, cents: int) -> Any:
        old = account["cents"] if kind is Sum else account.cents
        return kind(cents=bad if cents < 0 else old + cents)

    app = App()
    app.stream("in", key=str, value=int).fold("accounts", lambda: kind(cents=0), added, value=kind).to("out")
    with Harness(app, on_error={"then": "dead_letter"}) as h:
        for cents in (5, -1, 7):
            h.send("in", cents, key="a")
        h.run()
        assert ["in[0]@1"] == [f"{letter.topic}[{letter.partition}]@{letter.offset}" for letter in h.dead_letters()]
        assert "`$.cents`" in h.dead_letters()[0].error
        assert [kind(cents=5), kind(cents=12)] == values(h, "out")
        assert {"a": kind(cents=12)} == h.store("accounts")


@pytest.mark.parametrize(("kind", "bad"), [(Account, 7), (Account, Account(1.5)), (str, 7), (int, 1.5), (float, float("nan"))])  # type: ignore[arg-type]
def test_a_sum_of_a_window_that_its_serde_refuses_is_its_records_fault(kind: Any, bad: Any) -> None:
    app = App()
    windows = app.stream("in", key=str, value=int, watermark_delay="1s").window(tumbling("10s"))
    windows.fold("sums", lambda: kind(0), lambda _, value: bad if value < 0 else kind(value), value=kind).to("out")
    with Harness(app, on_error={"then": "dead_letter"}) as h:
        for value in (5, -1, 7):
            h.send("in", value, key="a", timestamp=1_600_000_000_000)
        h.run()
        h.time_passes("in", 1_600_000_060_000)
        h.run()
        assert ["in[0]@1"] == [f"{letter.topic}[{letter.partition}]@{letter.offset}" for letter in h.dead_letters()]
        assert [msgspec.to_builtins(kind(7))] == [pane["value"] for pane in values(h, "out")]
