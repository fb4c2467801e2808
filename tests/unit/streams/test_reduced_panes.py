"""`reduce` of panes: its function gets panes, also of what a store or an internal topic gives back; and their results are of their class there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from samzapy.api.errors import TaskError
from samzapy.streams import App, Pane, hopping, tumbling
from samzapy.streams.expand import sections
from samzapy.testing import Harness

T0 = 1_600_000_020_000
COUNTS = [1, 3, 2]  # of the spans of ten seconds from T0 on


@dataclass
class Buy:
    item: str
    price: float


def larger(one: Pane[Any], other: Pane[Any]) -> Pane[Any]:
    return one if one.value > other.value else other


def dearer(one: Pane[Buy], other: Pane[Buy]) -> Pane[Buy]:
    return one if one.value.price > other.value.price else other


def counted(app: App) -> Any:
    return app.stream("in", key=str, value=int, watermark_delay="0s").window(tumbling("10s")).count("n")


def by_key(stream: Any) -> Any:
    return stream.key_by(lambda pane: "all", "by-key", key=str)


def run(app: App, crash: bool) -> list[Any]:
    with Harness(app) as h:
        for span, records in enumerate(COUNTS):
            for _ in range(records):
                h.send("in", span, key="k", timestamp=T0 + span * 10_000)
            h.run()
            if crash:
                h.crash()
        h.end()
        return [value for _, value in h.output("out")]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("through", [by_key, lambda stream: stream])
def test_a_table_keeps_the_largest_pane(through: Callable[[Any], Any], crash: bool) -> None:
    app = App()
    through(counted(app)).reduce("most", larger).to("out")
    found = run(app, crash)
    assert [(T0, 1), (T0 + 10_000, 3), (T0 + 10_000, 3)] == [(pane["start"], pane["value"]) for pane in found]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("through", [by_key, lambda stream: stream])
@pytest.mark.parametrize("window", [tumbling("1m"), hopping("1m", every="20s")])
def test_a_window_keeps_the_largest_pane_and_gives_it_as_a_pane(through: Callable[[Any], Any], window: Any, crash: bool) -> None:
    app = App()
    through(counted(app)).window(window).reduce("most", larger).map(lambda pane: [pane.value.start, pane.value.value], value=list).to("out")
    assert [T0 + 10_000, 3] in run(app, crash)


def test_a_look_into_such_a_table_gives_panes() -> None:
    app = App()
    stream = app.stream("in", key=str, value=int, watermark_delay="0s")
    most = stream.window(tumbling("10s")).count("n").reduce("most", larger)
    stream.lookup(most, how="inner").map(lambda pair: pair[1].value, value=int).to("out")
    assert run(app, crash=False) == [1, 1, 1, 3]


def bought(app: App) -> Any:
    stream = app.stream("in", key=str, value=int, watermark_delay="0s").map(lambda n: Buy(str(n), float(n)), value=Buy)
    return stream.window(tumbling("10s")).reduce("dearest", lambda old, new: old)


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("through", [by_key, lambda stream: stream])
def test_a_result_in_a_pane_is_of_its_class_again(through: Callable[[Any], Any], crash: bool) -> None:
    app = App()
    through(bought(app)).reduce("most", dearer).updates().map(lambda pane: pane.value.item, value=str).to("out")
    assert ["0", "1", "2"] == run(app, crash)


def test_a_pane_of_a_pane_of_a_class_is_made_again_behind_a_topic() -> None:
    app = App()
    by_key(bought(app).window(tumbling("1m")).reduce("most", dearer)).map(lambda pane: pane.value.value.item, value=str).to("out")
    assert ["2"] == run(app, crash=False)


def test_what_is_no_pane_is_the_panes_error() -> None:
    app = App()
    counted(app).reduce("most", lambda old, new: new.value)
    with pytest.raises(TaskError, match=r"the function of reduce gave 3 \(int\), and it reduces panes.*values\(value=…\)\.reduce"):
        run(app, crash=False)


def test_its_store_is_described_as_before() -> None:
    app = App()
    counted(app).reduce("most", larger)
    assert sections(app.graph, {}, {}).to_json()["stores"]["most"]["value"] == "json"
