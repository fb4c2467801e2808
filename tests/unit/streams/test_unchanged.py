"""The harness finds functions that change what other operators are given as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from samzapy.api.errors import TaskError
from samzapy.streams import App, agg, tumbling
from samzapy.testing import Harness


def taken(value: dict[str, Any]) -> int:
    return int(value.pop("x", 0))


def after_its_first(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {}
    value["x"] = 5


def before_its_first(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    value["x"] = 5
    yield {}


def one_that_it_gave(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    row: dict[str, Any] = {}
    for row["n"] in range(2):
        yield row


def good(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield value
    yield value
    yield {**value, "x": 5}


def windowed(stream: Any, combine: bool = False) -> Any:
    return (stream.key_by(lambda v: "k", "by-key", key=str, combine=combine) if combine else stream).window(tumbling("10s"))


CHANGING: dict[str, tuple[Callable[[Any], object], str]] = {
    "table": (lambda s: s.aggregate("w", n=agg.sum(taken)), "gets"),
    "window aggregate": (lambda s: windowed(s).aggregate("w", n=agg.sum(taken)), "gets"),
    "window aggregate, summed up": (lambda s: windowed(s, combine=True).aggregate("w", n=agg.sum(taken)), "gets"),
    "window fold": (lambda s: windowed(s).fold("w", list, lambda all_, v: [*all_, taken(v)], value=list), "gets"),
    "window reduce": (lambda s: windowed(s).reduce("w", lambda old, new: {"x": taken(new)}), "gets"),
    "generator, at its beginning": (lambda s: s.flat_map(before_its_first, value=dict).count("n"), "gets"),
    "generator, at its end": (lambda s: s.flat_map(after_its_first, value=dict).count("n"), "gets"),
    "generator, what it gave": (lambda s: s.flat_map(one_that_it_gave, value=dict).count("n"), "gave"),
}


def run(define: Callable[[Any], object]) -> list[Any]:
    app = App()
    stream = app.stream("in", key=str, value=dict, watermark_delay="0s")
    define(stream)
    stream.to("out")
    with Harness(app) as h:
        for _ in range(2):
            h.send("in", {"x": 1}, key="k", timestamp=1000)
        h.run()
        return [value for _, value in h.output("out")]


@pytest.mark.parametrize("how", CHANGING)
def test_a_function_that_changes_what_others_get_is_named_with_its_line(how: str) -> None:
    define, does = CHANGING[how]
    with pytest.raises(TaskError, match=rf"test_unchanged\.py:\d+\): its function changes the value that it {does}, and other operators"):
        run(define)


def test_what_a_function_does_with_its_accumulator_is_its_own_affair() -> None:
    def add(all_: list[int], value: dict[str, Any]) -> list[int]:
        all_.append(value["x"])
        return all_

    assert [{"x": 1}] * 2 == run(lambda s: windowed(s).fold("w", list, add, value=list))
    assert [{"x": 1}] * 2 == run(lambda s: s.fold("w", list, add, value=list))


def test_a_generator_may_give_its_value_and_new_ones() -> None:
    seen: list[Any] = []
    assert [{"x": 1}] * 2 == run(lambda s: s.flat_map(good, value=dict).sink(seen.append))
    assert [{"x": 1}, {"x": 1}, {"x": 5}] * 2 == seen
