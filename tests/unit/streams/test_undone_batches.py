"""Batches that are undone: windows are as they were before, also where a late record that they still take had told them of the time."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.streams import App, agg, hopping, tumbling
from samzapy.streams.window_shapes import Window
from samzapy.testing import Harness

T0 = 1_600_000_000_000
LATER, FLAKY, LATE, NEVER_GOOD = 0, 1, 2, 3


def program(window: Window) -> App:
    """A record that is good at first, and not when it comes again alone: time must not have been moved by it."""
    tried: list[int] = []

    def look(value: int) -> int:
        tried.append(value)
        if value == NEVER_GOOD or (value == FLAKY and tried.count(FLAKY) > 1):
            raise ValueError(f"not {value}")
        return value

    app = App()
    values = app.stream("in", key=str, value=int, watermark_delay="0s").map(look, value=int)
    values.window(window, allowed_lateness="10m").aggregate("w", all=agg.collect()).to("out")
    return app


def panes(window: Window, batch: list[tuple[int, int]]) -> list[tuple[int, str, list[int]]]:
    """What the window gives of records later than one batch, which fails: start in seconds, kind, values."""
    with Harness(program(window), on_error={"then": "skip"}) as h:

        def send(*records: tuple[int, int]) -> None:
            for value, second in records:
                h.send("in", value, key="k", timestamp=T0 + second * 1000)
            h.run()

        send(*[(LATER, 50)] * 100)  # so that the container takes several records at once
        h.time_passes("in", T0 + 70_000)
        h.run()
        send(*batch)
        assert h.watermark() == T0 + 70_000
        send((4, 75), (5, 76))
        send((6, 200))
        send((7, 300))
        given: list[tuple[Any, Any]] = h.output("out")
        return [((pane["start"] - T0) // 1000, pane["pane"], pane["all"]) for _, pane in given if pane["all"][0] != LATER]


@pytest.mark.parametrize("window", [tumbling("10s"), hopping("20s", every="10s")])
def test_a_window_is_not_ahead_of_its_time_when_a_batch_with_a_late_record_was_undone(window: Window) -> None:
    bad = [(FLAKY, 100), (NEVER_GOOD, 101)]
    without = panes(window, bad)
    assert [4, 5] in [values for _, _, values in without]
    found = panes(window, [bad[0], (LATE, 5), bad[1]])
    assert [pane for pane in found if LATE not in pane[2]] == without
    assert [pane for pane in found if LATE in pane[2]] == [(start, "late", [LATE]) for start in ((0,) if window.size_ms == window.every_ms else (-10, 0))]
