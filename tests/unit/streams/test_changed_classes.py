"""A value class that changed while its values lie in accumulators: its `upgrade` is applied; what cannot be read is no record's fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from samzapy.api.errors import StateUnreadable
from samzapy.streams import Aggregate, App, agg, tumbling, updates
from samzapy.testing import Harness

T0 = 1_600_000_000_000


@dataclass
class Buy:
    item: str
    price: float


@dataclass
class BuyNow:
    """As `Buy` is now."""

    item: str
    cents: int

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        return {"item": old.pop("item"), "cents": round(old.pop("price") * 100)}


@dataclass
class BuyAlone:
    """As `Buy` is now, without an `upgrade`."""

    item: str
    cents: int


def worth(buy: Any) -> float:
    return float(buy.price) if isinstance(buy, Buy) else buy.cents / 100


def program(cls: type, aggregate: Aggregate[Any, Any, Any], in_windows: bool = False, each: bool = False) -> App:
    app = App()
    buys = app.stream("buys", key=str, value=cls, watermark_delay="1s")
    if in_windows:
        windows = buys.window(tumbling("10s"), emit=updates()) if each else buys.window(tumbling("10s"))
        windows.aggregate("best", x=aggregate).to("out")
    else:
        buys.aggregate("best", x=aggregate).to("out")
    return app


def told(cls: type, aggregate: Aggregate[Any, Any, Any], **how: bool) -> Any:
    """What the aggregate says after two records of the class as it was, and one as it is now."""
    with Harness(program(Buy, aggregate, **how), on_error={"then": "dead_letter"}) as h:
        h.send("buys", Buy("tea", 3.0), key="a", timestamp=T0)
        h.send("buys", Buy("pot", 20.0), key="a", timestamp=T0 + 10)
        h.run()
        h.restart(program(cls, aggregate, **how))
        h.send("buys", cls("cup", 500), key="a", timestamp=T0 + 20)
        try:
            h.run()
            h.time_passes("buys", T0 + 60_000)
            h.run()
        finally:
            assert [] == h.dead_letters()
        return h.output("out")[-1][1]["x"]


TEA, POT, CUP = ({"item": item, "cents": cents} for item, cents in (("tea", 300), ("pot", 2000), ("cup", 500)))


@pytest.mark.parametrize("in_windows", [False, True])
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: agg.max_by(worth), POT), (lambda: agg.min_by(worth), TEA), (lambda: agg.top(2, worth), [POT, CUP]), (agg.first, TEA),
        (agg.collect, [TEA, POT, CUP]),
    ],
)  # fmt: skip
def test_values_in_accumulators_are_upgraded(made: Callable[[], Aggregate[Any, Any, Any]], expected: Any, in_windows: bool) -> None:
    assert expected == told(BuyNow, made(), in_windows=in_windows)


@pytest.mark.parametrize("how", [{}, {"in_windows": True}, {"in_windows": True, "each": True}])
def test_an_accumulator_that_cannot_be_read_stops_the_job_by_its_name_and_no_record_is_set_aside(how: dict[str, bool]) -> None:
    with pytest.raises(StateUnreadable, match=r"store 'best' of Partition 0.*: its entry for key 'a' cannot be read: .*`cents`.* No record is at fault"):
        told(BuyAlone, agg.max_by(worth), **how)


@pytest.mark.parametrize("how", [{}, {"in_windows": True, "each": True}])
def test_a_value_that_its_class_does_not_take_is_its_records_fault(how: dict[str, bool]) -> None:
    app = App()
    buys = app.stream("raw", key=str, value=str, watermark_delay="1s").map(lambda item: Buy(item if item != "bad" else 7, 1.0), value=Buy)  # type: ignore[arg-type]
    (buys.window(tumbling("10s"), emit=updates()) if how else buys).aggregate("all", x=agg.collect()).to("out")
    with Harness(app, on_error={"then": "dead_letter"}) as h:
        for item in ("tea", "bad", "pot"):
            h.send("raw", item, key="a", timestamp=T0)
        h.run()
        assert ["raw[0]@1"] == [f"{letter.topic}[{letter.partition}]@{letter.offset}" for letter in h.dead_letters()]
        assert [1, 2] == [len(value["x"]) for _, value in h.output("out")]


def test_a_lookup_of_a_table_of_aggregates_upgrades_too_and_says_what_cannot_be_read() -> None:
    def asking(cls: type) -> App:
        app = App()
        buys = app.stream("buys", key=str, value=cls)
        table = buys.aggregate("best", x=agg.max_by(worth))
        app.stream("asks", key=str, value=str).lookup(table).map(lambda pair: pair[1]["x"].item, value=str).to("out")
        return app

    with Harness(asking(Buy), on_error={"then": "skip"}) as h:
        h.send("buys", Buy("tea", 3.0), key="a")
        h.run()
        h.restart(asking(BuyNow))
        h.send("asks", "?", key="a")
        h.run()
        assert [("a", "tea")] == h.output("out")
        h.restart(asking(BuyAlone))
        h.send("asks", "?", key="a")
        with pytest.raises(StateUnreadable, match=r"store 'best' of Partition 0.*key 'a'"):
            h.run()
