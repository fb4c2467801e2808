"""A program that keeps another kind of values than before, under the same name, is refused: JSON does not tell a dict from a list, nor from a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest

from samzapy.api.errors import StateMismatch
from samzapy.streams import App, agg, tumbling
from samzapy.testing import Harness

GIVEN: dict[Any, Any] = {dict: {"a": 1}, list: ["a"], float: 1.5, bool: True}


@dataclass
class Bought:
    n: int
    amount: int = 0


def folded(kind: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int).fold("kept", lambda: GIVEN[kind], lambda old, n: old, value=kind).updates().map(str, value=str).to("out")
    return app


def folded_in_windows(kind: Any) -> App:
    app = App()
    windows = app.stream("in", key=str, value=int, watermark_delay="1s").window(tumbling("1h"))
    windows.fold("kept", lambda: GIVEN[kind], lambda old, n: old, value=kind).values().map(str, value=str).to("out")
    return app


def collected(kind: Any) -> App:
    app = App()
    made = app.stream("in", key=str, value=int, watermark_delay="1s").map(lambda n: kind(n) if kind is not dict else {"n": n}, value=kind)
    made.window(tumbling("1h")).collect("kept").values().map(str, value=str).to("out")
    return app


def largest(kind: Any) -> App:
    app = App()
    made = app.stream("in", key=str, value=int).map(lambda n: kind(n) if kind is not dict else {"n": n}, value=kind)
    made.aggregate("kept", most=agg.max_by(lambda v: 1), n=agg.count()).updates().map(str, value=str).to("out")
    return app


def said(kind: Any) -> str:
    return "record" if kind is Bought else str(kind.__name__)


CHANGES = [
    *((make, old, new) for make in (folded, folded_in_windows) for old, new in permutations(GIVEN, 2)),
    *((make, old, new) for make in (collected, largest) for old, new in permutations((Bought, dict), 2)),
]


@pytest.mark.parametrize(("make", "old", "new"), CHANGES)
def test_another_kind_is_refused_and_the_same_goes_on(make: Callable[[Any], App], old: Any, new: Any) -> None:
    with Harness(make(old)) as h:
        h.send("in", 5, key="ada", timestamp=1)
        h.run()
        with pytest.raises(StateMismatch, match=rf"store 'kept' kind of (values|records in accumulators) was {said(old)} when .* now says {said(new)}"):
            h.restart(make(new))
        h.restart(make(old))
        h.send("in", 6, key="ada", timestamp=2)
        h.run()
