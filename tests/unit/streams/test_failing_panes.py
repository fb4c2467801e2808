"""Panes that fail: `on_error` applies to them as to records, all other panes come once, and nothing of the window stays behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from samzapy.api.errors import StateUnreadable, TaskError
from samzapy.streams import App, Pane, agg, hopping, tumbling
from samzapy.streams import task_windows as windows
from samzapy.streams.window_shapes import Window
from samzapy.testing import Harness

T0 = 1_600_041_600_000
KEYS = [f"k{n:02}" for n in range(12)]
MINUTE, HALF = "1m", "30s"
Make = Callable[[Window], App]


def source(app: App) -> Any:
    return app.stream("in", key=str, value=dict, time=lambda v: v["at"], watermark_delay="0s")


def behind(window: Window) -> App:
    """A function behind a window fails for some keys."""

    def look(pane: Pane[int], key: str) -> None:
        if key in ("k03", "k04", "k11"):
            raise ValueError(f"not {key}")

    app = App()
    source(app).window(window).count("w").peek(look).to("out")
    return app


def in_the_result(window: Window) -> App:
    """What makes the result fails."""

    def result(total: int) -> int:
        if total in (3, 4, 11):
            raise ValueError(f"not {total}")
        return total

    total = agg.Aggregate(lambda: 0, lambda total, value: total + value["n"], lambda a, b: a + b, result, int)
    app = App()
    source(app).window(window).aggregate("w", n=total).to("out")
    return app


def in_a_merge(window: Window) -> App:
    """A user's own function does not merge what it added."""

    def merge(a: int, b: int) -> int:
        if a + b in (6, 8, 22):
            raise ValueError(f"not {a} and {b}")
        return a + b

    app = App()
    source(app).window(window).fold("w", lambda: 0, lambda total, value: total + int(value["n"]), merge=merge, value=int).to("out")
    return app


BAD = {"k03", "k04", "k11"}
CASES = [(behind, tumbling(MINUTE)), (in_the_result, tumbling(MINUTE)), (behind, hopping(MINUTE, every=HALF)), (in_a_merge, hopping(MINUTE, every=HALF))]
of_cases = pytest.mark.parametrize(("make", "window"), CASES, ids=["behind", "result", "behind, hopping", "merge"])


def feed(h: Harness, *seconds: int) -> None:
    for at in seconds:
        for n, key in enumerate(KEYS):
            h.send("in", {"at": T0 + 1000 * at, "n": n}, key=key)
    h.run()


def pass_time(h: Harness) -> None:
    h.send("in", {"at": T0 + 600_000, "n": 0}, key="last")
    h.run()


def panes(h: Harness) -> dict[tuple[str, int], int]:
    found = [((key, pane["start"] - T0), pane.get("value", pane.get("n"))) for key, pane in h.output("out") if key != "last"]
    assert len(found) == len(dict(found)), "each pane comes once"
    return dict(found)


def expected(make: Make, window: Window) -> set[tuple[str, int]]:
    """What must come of records at seconds 5 and 35."""
    starts = {"tumbling": [0], "hopping": [-30_000, 0, 30_000]}["tumbling" if window.size_ms == window.every_ms else "hopping"]
    is_bad_at = {behind: starts, in_the_result: starts, in_a_merge: [0]}[make]
    return {(key, start) for key in KEYS for start in starts if not (key in BAD and start in is_bad_at)}


def times(make: Make, window: Window) -> int:
    """How many panes of a bad key fail."""
    return 3 if make is behind and window.every_ms < window.size_ms else 1


@of_cases
@pytest.mark.parametrize("unit", [1, 2, 5, 256])
@pytest.mark.parametrize("crashes", [False, True])
def test_those_that_fail_are_set_aside_and_all_others_come_once(make: Make, window: Window, unit: int, crashes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "UNIT", unit)
    with Harness(make(window), on_error={"then": "dead_letter"}, commit={"max_uncommitted": "1KiB"}) as h:
        feed(h, 5, 35) if make is not in_the_result else feed(h, 5)
        if crashes:
            h.crash(keep_state=unit % 2 == 0)
        pass_time(h)
        if crashes:
            h.crash(keep_state=unit % 2 == 1)
        else:
            assert h.metric("dead_letters") == len(BAD) * times(make, window)
        h.end()
        assert expected(make, window) == panes(h).keys()
        letters = h.dead_letters()
        assert sorted([*BAD] * times(make, window)) == sorted(each.key.decode() for each in letters)
        for letter in letters:
            told = json.loads(letter.value)
            assert {"start", "end"} <= told.keys()
            assert told["end"] - told["start"] == window.size_ms
            assert f"the result of window 'w' for key '{letter.key.decode()}', {told['start']} to {told['end']} (ms since 1970)" in letter.error
            assert ("value" in told) == (make is behind)
        assert {} == {key: value for key, value in h.store("w").items() if key[:1] == b"\x10"}, "nothing of the windows stays"


@of_cases
def test_they_can_be_skipped(make: Make, window: Window) -> None:
    with Harness(make(window), on_error={"then": "skip"}) as h:
        feed(h, 5, 35) if make is not in_the_result else feed(h, 5)
        pass_time(h)
        assert h.metric("skipped") == len(BAD) * times(make, window)
        assert len(h.output("out")) == sum(counts["in"] for name, counts in h.container.status()["tasks"][0]["operators"].items() if name.endswith("to"))
        h.end()
        assert expected(make, window) == panes(h).keys()


@of_cases
def test_with_fail_the_job_stops_names_the_pane_and_what_fired_before_is_committed(make: Make, window: Window) -> None:
    with Harness(make(window)) as h:

        def live() -> None:
            feed(h, 5, 35) if make is not in_the_result else feed(h, 5)
            pass_time(h)

        said = r"the result of window 'w' for key 'k03', \d+ to \d+ \(ms since 1970\) failed: ValueError: not .*test_failing_panes.py:\d+"
        with pytest.raises(TaskError, match=said) as found:
            live()
        assert "set `on_error: {then: dead_letter}`" in found.value.remedy
        last = 0 if make is in_a_merge else min(start for _, start in panes(h))
        assert ["k00", "k01", "k02"] == sorted(key for key, start in panes(h) if start == last)


def test_one_that_fails_for_a_while_is_tried_again() -> None:
    tries: list[str] = []

    def look(pane: Pane[int], key: str) -> None:
        tries.append(key)
        if key == "k03" and tries.count(key) < 5:
            raise ConnectionError("not yet")

    app = App()
    source(app).window(tumbling(MINUTE)).count("w").peek(look).to("out")
    with Harness(app, on_error={"retries": 3, "then": "dead_letter"}) as h:
        feed(h, 5)
        pass_time(h)
        assert 12 == len(panes(h))
        assert [] == h.dead_letters()
        assert 5 == tries.count("k03")  # once among the others, and once and three times more alone


def test_it_is_given_up_after_so_many_attempts() -> None:
    app = App()
    source(app).window(tumbling(MINUTE)).count("w").map(lambda pane, key: 1 // (key != "k03"), value=int).to("out")
    with Harness(app, on_error={"retries": 2, "then": "dead_letter"}) as h:
        feed(h, 5)
        pass_time(h)
        assert [3] == [letter.attempts for letter in h.dead_letters()]
        assert "ZeroDivisionError" in h.dead_letters()[0].error


def test_a_sum_of_slices_that_no_store_holds_is_its_panes_error() -> None:
    """Each slice's sum is a number that JSON and a store hold; their sum is none."""
    app = App()
    source(app).window(hopping(MINUTE, every=HALF)).aggregate("w", n=agg.sum(lambda v: v["n"])).to("out")
    with Harness(app, on_error={"then": "dead_letter"}) as h:
        for at in (5, 35):
            for key, n in (("float", 1.7e308), ("whole", 1 << 63), ("good", 1)):
                h.send("in", {"at": T0 + 1000 * at, "n": n}, key=key)
        pass_time(h)
        h.end()
        assert {"float", "whole"} == {letter.key.decode() for letter in h.dead_letters()}
        assert {("good", 0): 2, ("good", -30_000): 1, ("good", 30_000): 1}.items() <= panes(h).items()
        assert {(key, start) for key in ("float", "whole") for start in (-30_000, 30_000)} <= panes(h).keys()


ORDERED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "min": (agg.min, 1), "max": (agg.max, "a"), "min_by": (agg.min_by, {"x": 1}), "max_by": (agg.max_by, {"x": "a"}),
    "top": (lambda of: agg.top(2, of), [{"x": "a"}, {"x": 1}]),
}  # fmt: skip


@pytest.mark.parametrize(("what", "found"), ORDERED.values(), ids=ORDERED)
@pytest.mark.parametrize("combined", [False, True])
def test_what_was_accepted_apart_has_an_order(what: Callable[[Any], Any], found: Any, combined: bool) -> None:
    """1 and "a" in two slices of a window, or in partial sums of two commits: no record is at fault when they meet."""
    app = App()
    stream = app.stream("in", key=str, value=dict, watermark_delay="0s")
    if combined:
        stream = stream.key_by(lambda v, key: key, "by-key", key=str)
    stream.window(tumbling(MINUTE) if combined else hopping(MINUTE, every=HALF)).aggregate("w", r=what(lambda v: v["x"])).to("out")
    with Harness(app, tasks=1, on_error={"then": "dead_letter"}) as h:
        for at, x in ((5, 1), (35, "a")):
            h.send("in", {"x": x}, key="k", timestamp=T0 + 1000 * at)
            h.run()
        h.end()
        assert [] == h.dead_letters()
        assert [found] == [pane["r"] for _, pane in h.output("out") if pane["start"] == T0]


def test_state_that_cannot_be_read_stops_the_job_whatever_on_error_says(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App()
    source(app).window(tumbling(MINUTE)).collect("w").to("out")
    with Harness(app, on_error={"then": "skip"}) as h:
        feed(h, 5)
        h.crash(keep_state=True)
        h.restart()
        monkeypatch.setattr("samzapy.streams.operators.held.HeldRows._stored", _unreadable)
        with pytest.raises(StateUnreadable):
            pass_time(h)
        assert 0 == h.metric("skipped")


def _unreadable(*_: Any) -> None:
    raise StateUnreadable("a value that is none", "")
