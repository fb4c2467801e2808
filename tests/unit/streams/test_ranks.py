"""What min, max, min_by, max_by and top compare: the same before a store and after it, or refused when it first comes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from samzapy.api.errors import TaskError
from samzapy.streams import App, agg, tumbling
from samzapy.testing import Harness

BY: dict[str, Callable[[Any], Any]] = {"min": agg.min, "max": agg.max, "min_by": agg.min_by, "max_by": agg.max_by, "top": lambda by: agg.top(2, by)}
GIVEN = [(1, "a"), (3, "b"), (3, "a"), (2, "z"), (3, "c")]


class Half(float):
    """A number of a class of its own, as numpy's are."""


def pair(v: dict[str, Any]) -> tuple[int, tuple[str]]:
    return v["x"], (v["id"],)


def program(way: str, by: Any) -> App:
    """The aggregates by each way: of a table, or of a window behind an internal topic, with sums before it or without."""
    app, all_of = App(), {name: make(by) for name, make in BY.items()}
    stream = app.stream("in", value=dict, key=str, watermark_delay="0s")
    if way == "table":
        stream.aggregate("best", **all_of).to("out")
    else:
        keyed = stream.key_by(lambda v: "k", "by-key", key=str, combine=way == "summed")
        keyed.window(tumbling("10s")).aggregate("best", **all_of).to("out")
    return app


@pytest.mark.parametrize("way", ["table", "summed", "each"])
@pytest.mark.parametrize("crash", [None, False])
def test_tuples_compare_as_lists_with_what_was_kept_of_them(way: str, crash: bool | None) -> None:
    with Harness(program(way, pair)) as h:
        for x, id_ in GIVEN:
            h.send("in", {"x": x, "id": id_}, key="k", timestamp=1000)
            if crash is not None and x == 2:
                h.run()
                h.crash(keep_state=crash)
        h.run()
        h.end()
        found = h.output("out")[-1][1]
    least, most, next_ = {"x": 1, "id": "a"}, {"x": 3, "id": "c"}, {"x": 3, "id": "b"}
    assert ([1, ["a"]], [3, ["c"]]) == (found["min"], found["max"])
    assert (least, most, [most, next_]) == (found["min_by"], found["max_by"], found["top"])


@pytest.mark.parametrize("name", BY)
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (datetime(2020, 1, 1, tzinfo=UTC), r"cannot compare a datetime: a store does not keep its order\. .* the value's \.timestamp\(\)"),
        (date(2020, 1, 1), r"cannot compare a date: .* the value's \.toordinal\(\) or \.isoformat\(\)"), ((1, date(2020, 1, 1)), "cannot compare a date: "),
        (UUID(int=1), "cannot compare a UUID: .* a number, a text, "), (Decimal(1), "cannot compare a Decimal: "), (b"x", "cannot compare a bytes: "),
        (float("nan"), r"cannot compare nan: .* \.filter\("), ((1, float("nan")), "cannot compare nan: "), ([[Half("nan")]], "cannot compare nan: "),
    ],
)  # fmt: skip
def test_what_a_store_gives_back_as_something_else_is_refused_at_the_first_record(name: str, value: Any, why: str) -> None:
    made = BY[name](lambda v: value)
    with pytest.raises(TaskError, match=rf"agg\.{name} {why}"):
        made.add(made.zero(), {})


@pytest.mark.parametrize("way", ["table", "summed", "each"])
@pytest.mark.parametrize("first", [["1", "2"], []])
def test_nan_is_its_own_records_error_and_loses_no_other_record(way: str, first: list[str]) -> None:
    with Harness(program(way, lambda v: float(v["x"])), tasks=2, on_error={"then": "dead_letter"}) as h:
        for partition, values in enumerate((first, ["nan", "9", "0", "5"] if first else ["3", "nan", "9", "0"])):
            for x in values:
                h.send("in", {"x": x}, key="k", partition=0 if way == "table" else partition, timestamp=1000)
        h.run()
        h.end()
        found = h.output("out")[-1][1]
        assert ["nan" in str(letter.value) for letter in h.dead_letters()] == [True]
    assert (0.0, 9.0, {"x": "0"}, {"x": "9"}) == tuple(found[name] for name in ("min", "max", "min_by", "max_by"))
    assert found["top"] == [{"x": "9"}, {"x": "5" if first else "3"}]


def test_infinity_compares() -> None:
    made = agg.min()
    assert made.result(made.add(made.add(made.zero(), 1.5), float("inf"))) == 1.5


def test_a_rank_of_none_is_refused_before_it_is_kept_and_the_key_goes_on() -> None:
    app = App()
    app.stream("in", key=str, value=dict).aggregate("best", best=agg.max_by(lambda v: v["x"]), most=agg.max(lambda v: v["x"])).to("out")
    with Harness(app, on_error={"then": "skip"}) as h:
        for x in (None, 2, 3):
            h.send("in", {"x": x}, key="k")
        h.run()
        assert [{"best": {"x": 2}, "most": 2}, {"best": {"x": 3}, "most": 3}] == [found for _, found in h.output("out")]


def test_lists_with_a_dict_at_their_end_still_compare_by_what_is_before_it() -> None:
    made = agg.max_by(lambda v: [v["x"], v])
    assert made.result(made.add(made.add(made.zero(), {"x": 1}), {"x": 2})) == {"x": 2}
