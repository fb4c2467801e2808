"""What `agg.distinct` counts as different."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from samzapy.streams import App, agg
from samzapy.streams.kinds import kind_of
from samzapy.testing import Harness

HOUR = timezone(timedelta(hours=1))


@dataclass
class Buy:
    price: float
    item: str
    tags: set[int] = field(default_factory=set)
    n: int = 1


class Visit(msgspec.Struct):
    page: str
    n: int = 1


class Seen(BaseModel):
    page: str
    n: int = 1


def counted(values: list[Any], kind: Any = None, kept: dict[str, Any] | None = None) -> int:
    """How many different ones there are, one after the other and merged."""
    made = agg.distinct().of(None if kind is None else kind_of(kind, "value"))
    seen, merged = made.zero() if kept is None else dict(kept), made.zero() if kept is None else dict(kept)
    assert made.merge is not None
    for value in values:
        seen = made.add(seen, value)
        merged = made.merge(merged, made.add(made.zero(), value))
    assert made.result(merged) == made.result(seen)
    return made.result(seen)


@pytest.mark.parametrize(
    "equal",
    [
        [{"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}], [0.0, -0.0, 0, False], [1, 1.0, True], [[1, {"x": 2.0}], [1.0, {"x": 2}]], [10**9, 1e9],
        [Buy(1.0, "tea", {8, 0, 16}), Buy(1, "tea", {16, 8, 0}, 1)], [Visit("a"), Visit("a", 1)], [Seen(page="a"), Seen(page="a", n=1)], [None, None],
        [datetime(2020, 1, 1, 1, tzinfo=HOUR), datetime(2020, 1, 1, tzinfo=UTC)],
        [{"at": datetime(2020, 1, 1, 1, tzinfo=HOUR)}, {"at": datetime(2020, 1, 1, tzinfo=UTC)}],
    ],
)  # fmt: skip
def test_equal_values_are_counted_once(equal: list[Any]) -> None:
    assert 1 == counted(equal)


def test_others_are_counted_each() -> None:
    assert 9 == counted(["1", 1, 1.5, None, "null", [1], [2, 1], [1, 2], {"a": 1}])


def test_what_an_older_samzapy_kept_is_read_and_counted_as_what_comes_now() -> None:
    kept = {'"1': 1, "1": 1, "1.0": 1, "true": 1, "-0.0": 1, '{"b":1,"a":2}': 1}
    assert 4 == counted([], kept=kept)
    assert 4 == counted(["1", 1.0, 0, {"a": 2, "b": 1}], kept=kept)
    assert 5 == counted([2], kept=kept)


def test_times_that_were_kept_count_by_their_instant_and_texts_stay_texts() -> None:
    kept = {'"2020-01-01T01:00:00+01:00"': 1, '"2020-01-01T00:00:00Z"': 1, '"2020-01-01T00:00:00"': 1, '"12"': 1, '"2020-01-01T00:00:00Z': 1}
    first = datetime(2020, 1, 1, tzinfo=UTC)
    times = [first, first.astimezone(HOUR), first.replace(tzinfo=None), '12"', "2020-01-01T00:00:00Z"]
    assert 4 == counted([], kept=kept) == counted(times, kept=kept) == counted(times)


def test_records_that_were_kept_count_once_after_their_class_changed() -> None:
    kept = {'{"item":"tea","price":1.0}': 1, '{"page":"no buy"}': 1}
    assert 2 == counted([Buy(1.0, "tea"), Buy(1, "tea", n=1)], Buy, kept)
    assert 3 == counted([Buy(1.0, "tea", n=2)], Buy, kept)


def test_a_program_counts_records_of_a_topic_by_what_they_say() -> None:
    app = App()
    app.stream("buys", key=str, value=Buy).aggregate("kinds", n=agg.distinct()).to("out")
    with Harness(app) as h:
        for data in (b'{"item":"tea","price":1}', b'{"price":1.0,"item":"tea","n":1}', b'{"price":2.0,"item":"tea"}'):
            h.send_raw("buys", data, b"k")
            h.run()
        assert [1, 1, 2] == [value["n"] for _, value in h.output("out")]
