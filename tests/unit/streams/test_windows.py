"""Windows of event time in whole programs on the in-memory log: what must come out, whatever the order, the runs, the commits and the crashes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError, TaskError, TransactionAborted
from samzapy.container.task_watermark import StageTime, TaskTime
from samzapy.container.times import Times
from samzapy.failpoints import Crash
from samzapy.model.event_time import NEVER
from samzapy.ports import TopicSpec
from samzapy.streams import FINAL, App, Pane, agg, hopping, tumbling, updates, window_sums
from samzapy.streams import compile as compiling
from samzapy.streams import task_windows as stage
from samzapy.streams.operators.rows import CURSOR
from samzapy.streams.operators.window_firing import Slices
from samzapy.streams.window_time import Now
from samzapy.testing import Harness

T0 = 1_600_041_600_000
MINUTE, DAY = 60_000, 86_400_000
Given = Sequence[tuple[str, float, Any]]  # key, time, value


def source(app: App, topic: str = "s", delay: str = "0s", **rest: Any) -> Any:
    return app.stream(topic, key=str, value=dict, time=lambda v: v["at"], watermark_delay=delay, **rest)


def feed(h: Harness, given: Given, unit: int, crashes: int = 0, topic: str = "s") -> None:
    """Send records; with `crashes`, that many are spread over them, each of which loses the record before it."""
    at = {(len(given) * n) // (crashes + 1) for n in range(1, crashes + 1)}
    for number, (key, time, value) in enumerate(given, 1):
        h.send(topic, {"at": T0 + round(time * unit), "v": value}, key=key)
        if number in at:
            h.run(commit=False)
            h.crash(keep_state=number % 2 == 0)
    h.run()


def told(h: Harness, unit: int, topic: str = "out") -> list[tuple[Any, ...]]:
    """(key, end, value) of each pane; the value of an aggregate's one entry `r`."""
    return [(key, (pane["end"] - T0) / unit, pane["r"] if "r" in pane else pane["value"]) for key, pane in h.output(topic)]


def test_a_datetime_is_in_the_window_of_its_own_time_to_its_last_microsecond() -> None:
    """23:59:59.999999 is the end of its day for Python (`time.max`), and a window ends where the next one begins."""
    given = [datetime(2026, 11, 23, 23, 59, 59, us, UTC) for us in (0, 999_499, 999_500, 999_501, 999_999)]
    east = timezone(timedelta(hours=5, minutes=30))
    app = App()
    days = app.stream("s", key=str, value=str, time=datetime.fromisoformat, watermark_delay="0s").window(tumbling("1d")).count("days")
    days.to("out")
    with Harness(app, now=datetime(2026, 11, 25, tzinfo=UTC)) as h:
        for at in [*given, datetime(2026, 11, 24, tzinfo=UTC)]:
            h.send("s", at.isoformat(), key="k")
            h.send("s", at.astimezone(east).isoformat(), key="k")
        h.run()
        h.end()
        assert [10, 2] == [pane["value"] for _, pane in h.output("out")]


CRASHES = pytest.mark.parametrize("crashes", [0, 3])


# -- acceptance --------------------------------------------------------------------------------------------------------------------------

MEANS = {10: 0.5, 20: 1.5, 30: 2.5, 40: 3.5, 50: 4.5, 60: 5.5, 70: 7.5, 80: 9.5, 90: 11.5, 100: 13.5, 110: 15.5, 120: 17.5, 130: 18.5, 140: 19.5,
         150: 20.5, 160: 21.5, 170: 22.5}  # fmt: skip


def means() -> App:
    app = App()
    panes = source(app).window(hopping("60m", every="10m"), allowed_lateness="30m").aggregate("means", r=agg.mean(lambda v: v["v"]))
    panes.to("out")
    panes.late.map(lambda v: v["v"]).to("late", value=int)
    return app


@CRASHES
def test_means_of_windows_that_overlap(crashes: int) -> None:
    with Harness(means()) as h:
        feed(h, [("k", 5 * n, n) for n in range(24)], MINUTE, crashes)
        assert told(h, MINUTE) == [("k", end, mean) for end, mean in MEANS.items() if end <= 110]
        h.end()
        assert told(h, MINUTE) == [("k", end, mean) for end, mean in MEANS.items()]
        assert set(h.store("means")) == {CURSOR}, "no window has anything left; only how far they have fired"


@CRASHES
def test_a_late_record_corrects_exactly_the_windows_that_have_fired_and_still_take_it(crashes: int) -> None:
    with Harness(means()) as h:
        given: list[tuple[str, float, Any]] = [("k", 5 * n, n) for n in range(16)]  # the watermark is 75 minutes
        given.append(("k", 35, 100))
        given += [("k", 5 * n, n) for n in range(16, 24)]
        feed(h, given, MINUTE, crashes)
        h.end()
        panes = [((p["end"] - T0) // MINUTE, p["pane"], p["index"], round(p["r"], 6)) for _, p in h.output("out")]
        late = [(50, "late", 1, 13.181818), (60, "late", 1, 12.769231), (70, "late", 1, 14.615385)]
        changed = {80: 16.461538, 90: 18.307692}
        on_time = [(end, "on_time", 0, changed.get(end, mean)) for end, mean in MEANS.items()]
        assert panes == [*on_time[:7], *late, *on_time[7:]]
        assert h.output("late") == []


@CRASHES
def test_what_is_too_late_goes_another_way_and_is_counted(crashes: int) -> None:
    with Harness(means()) as h:
        given = [("k", 5 * n, n) for n in range(24)]
        feed(h, [*given, ("other", 125, 1)], MINUTE, crashes)
        before = h.output("out")
        h.crash()
        feed(h, [("k", 35, 100)], MINUTE)
        assert h.output("out") == before
        assert h.output("late") == [("k", 100)]
        assert (h.late("means"), h.container.status()["tasks"][0]["operators"]["means"]["late"]) == (1, 1)


@CRASHES
def test_windows_of_five_seconds_each_second(crashes: int) -> None:
    app = App()
    source(app).window(hopping("5s", every="1s")).count("counts").to("out")
    with Harness(app) as h:
        feed(h, [("x", 0.5, 0), ("x", 3.2, 0)], 1000, crashes)
        h.end()
        assert told(h, 1000) == [("x", end, count) for end, count in zip(range(1, 9), (1, 1, 1, 2, 2, 1, 1, 1), strict=True)]


@CRASHES
def test_one_window_reduced_averaged_and_collected(crashes: int) -> None:
    app = App()
    windows = source(app).map(lambda v: v["v"], value=int).window(tumbling("1m"))
    windows.reduce("sum", lambda a, b: a + b).to("sum")
    windows.aggregate("mean", r=agg.mean()).to("mean")
    windows.collect("all").to("all")
    windows.fold("text", lambda: {"seen": ""}, lambda old, v: {"seen": f"{old['seen']}{v}"}).to("text")
    with Harness(app) as h:
        feed(h, [("k", 1, 1), ("k", 2, 2), ("k", 3, 6)], 1000, crashes)
        h.end()
        found = {topic: told(h, 1000, topic) for topic in ("sum", "mean", "all", "text")}
        results = {"sum": 9, "mean": 3.0, "all": [1, 2, 6], "text": {"seen": "126"}}
        assert found == {topic: [("k", 60, value)] for topic, value in results.items()}


@CRASHES
def test_totals_of_thirty_days_each_day(crashes: int) -> None:
    app = App()
    source(app).window(hopping("30d", every="1d")).aggregate("totals", r=agg.sum(lambda v: v["v"])).to("out")
    with Harness(app) as h:
        entries = []
        days = [("a", day - 0.5, 10) for day in range(1, 41)]
        for day in days:
            feed(h, [day], DAY, crashes if day[1] in (4.5, 19.5) else 0)
            h.advance(86_400)
            entries.append(len(h.store("totals")))
        h.end()
        totals = {end: total for _, end, total in told(h, DAY)}
        assert (totals[5], totals[30], totals[40]) == (50, 300, 300)
        assert [totals[end] for end in sorted(totals)] == [10 * min(n, 30, 70 - n) for n in range(1, 70)]
        assert max(entries) <= 31
        assert set(h.store("totals")) == {CURSOR}


@CRASHES
def test_words_in_windows_of_five_seconds(crashes: int) -> None:
    app = App()
    source(app).window(tumbling("5s")).count("counts").to("out")
    given = [("a", 0, 0), ("b", 0, 0), ("a", 0, 0), ("b", 4.999, 0), ("a", 5, 0), ("c", 11, 0)]
    with Harness(app) as h:
        feed(h, given, 1000, crashes)
        assert told(h, 1000) == [("a", 5, 2), ("b", 5, 2), ("a", 10, 1)]
        h.end()
        assert told(h, 1000) == [("a", 5, 2), ("b", 5, 2), ("a", 10, 1), ("c", 15, 1)]


# -- orders ------------------------------------------------------------------------------------------------------------------------------


def within(given: Given, bound: float, random: Random) -> Given:
    """An order in which no record is more than `bound` older than one before it."""
    return [record for _, record in sorted(((record[1] + random.uniform(0, bound), record) for record in given), key=lambda pair: pair[0])]


def sums(given: Given, size: int) -> list[tuple[Any, ...]]:
    found: dict[tuple[float, str], int] = {}
    for key, time, value in given:
        place = (time // size * size + size, key)
        found[place] = found.get(place, 0) + value
    return [(key, end, found[end, key]) for end, key in sorted(found)]


@pytest.mark.parametrize("seed", range(20))
def test_event_time_gives_the_same_in_every_order_within_the_bound_over_several_inputs_runs_and_crashes(seed: int) -> None:
    random = Random(seed)
    app = App()
    a, b = (source(app, topic, "30s", idle_timeout=None) for topic in "ab")
    a.merge(b).window(tumbling("10s")).aggregate("sums", r=agg.sum(lambda v: v["v"])).to("out")
    halves = [[(f"k{random.randrange(5)}", random.randrange(0, 300), random.randrange(100)) for _ in range(60)] for _ in range(2)]
    left = [list(within(half, 30, random)) for half in halves]
    with Harness(app) as h:
        while any(left):
            number = random.choice([n for n in range(2) if left[n]])
            count = random.randint(1, 12)
            for key, time, value in left[number][:count]:
                h.send("ab"[number], {"at": T0 + time * 1000, "v": value}, key=key)
            del left[number][:count]
            h.run(commit=random.random() < 0.5)
            if random.random() < 0.15:
                h.crash(keep_state=random.random() < 0.5)
        h.end()
        assert told(h, 1000) == sums([*halves[0], *halves[1]], 10)
        assert set(h.store("sums")) == {CURSOR}


def test_processing_time_gives_what_the_clock_gives() -> None:
    outputs = set()
    for seed in range(4):
        random = Random(seed)
        app = App()
        app.stream("s", key=str, value=dict, time="processing").window(tumbling("10s")).count("counts").to("out")
        with Harness(app) as h:
            for number in range(20):
                h.send("s", {"v": number}, key=f"k{number % 2}")
                h.run()
                h.advance(random.choice([1, 6]))
            h.advance(10)
            assert sum(count for _, _, count in told(h, 1000)) == 20
            assert set(h.store("counts")) <= {CURSOR}
            outputs.add(str(told(h, 1000)))
    assert len(outputs) >= 2


def disordered(seed: int) -> Given:
    random = Random(seed)
    return [(f"k{random.randrange(3)}", max(0.0, n + random.uniform(-40, 3)), n) for n in range(150)]


def judged(given: Given, size: float, lateness: float) -> tuple[list[tuple[Any, ...]], int]:
    """The panes of a tumbling window over one partition, record by record, and how many were too late: by brute force."""
    kept: list[tuple[str, float]] = []
    panes: list[tuple[Any, ...]] = []
    newest, late = float("-inf"), 0
    for key, time, _ in given:
        end = time // size * size + size
        if end + lateness <= newest:
            late += 1
        else:
            kept.append((key, end))
            if end <= newest:
                panes.append((key, end, "late", kept.count((key, end))))
        due = sorted({(e, k) for k, e in kept if newest < e <= time})
        panes += [(k, e, "on_time", kept.count((k, e))) for e, k in due]
        newest = max(newest, time)
    return panes, late


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("run", [1, 7, 256])
def test_what_is_late_does_not_depend_on_how_many_records_come_at_once(seed: int, run: int) -> None:
    app = App()
    panes = source(app).window(tumbling("5s"), allowed_lateness="10s").count("counts")
    panes.to("out")
    panes.late.to("late")
    given = [(key, round(time, 3), value) for key, time, value in disordered(seed)]
    with Harness(app) as h:
        for begin in range(0, len(given), run):
            feed(h, given[begin : begin + run], 1000)
        expected, late = judged(given, 5.0, 10.0)
        assert [(k, (p["end"] - T0) / 1000, p["pane"], p["value"]) for k, p in h.output("out")] == expected
        assert len(h.output("late")) == late == h.late("counts") > 0


# -- the rest ----------------------------------------------------------------------------------------------------------------------------


def test_updates_give_a_pane_after_each_record_and_one_at_the_end() -> None:
    app = App()
    source(app).window(tumbling("10s"), allowed_lateness="10s", emit=updates()).count("counts").to("out")
    with Harness(app) as h:
        feed(h, [("k", 1, 0), ("k", 2, 0), ("k", 12, 0), ("k", 3, 0)], 1000)
        assert [(p["end"] - T0, p["pane"], p["index"], p["value"]) for _, p in h.output("out")] == [
            (10_000, "early", 0, 1), (10_000, "early", 1, 2), (20_000, "early", 0, 1), (10_000, "on_time", 2, 2), (10_000, "late", 3, 3),
        ]  # fmt: skip


@CRASHES
def test_windows_of_panes_of_windows(crashes: int) -> None:
    app = App()
    tens = source(app).window(tumbling("10s")).count("tens")
    tens.to("tens")
    tens.window(tumbling("30s")).aggregate("thirties", r=agg.sum(lambda pane: pane.value)).to("out")
    with Harness(app) as h:
        given = [(f"k{n % 3}", n, 0) for n in range(100)]
        feed(h, given, 1000, crashes)
        h.end()
        assert told(h, 1000) == sums([(key, time, 1) for key, time, _ in given], 30)
        assert told(h, 1000, "tens") == sums([(key, time, 1) for key, time, _ in given], 10)
        assert set(h.store("tens")) == set(h.store("thirties")) == {CURSOR}


def test_what_comes_after_a_window_gets_panes_keys_and_times() -> None:
    app = App()
    panes = source(app).window(tumbling("10s")).count("counts")
    panes.filter(lambda pane: pane.value > 1).map(lambda pane, key, time: f"{key} {time - T0} {pane.value}").to("texts", value=str)
    panes.values().to("values", value=int)
    with Harness(app) as h:
        feed(h, [("a", 1, 0), ("a", 2, 0), ("b", 3, 0)], 1000)
        h.end()
        assert h.output("texts") == [("a", "a 9999 2")]
        assert h.output("values") == [("a", 2), ("b", 1)]
        assert [m.timestamp()[1] for m in h.records("values")] == [T0 + 9999] * 2


@dataclass
class Bought:
    at: int
    price: Decimal


def test_values_of_panes_keep_the_class_of_a_windows_results() -> None:
    app = App()
    bought = app.stream("s", key=str, value=Bought, time=lambda v: v.at, watermark_delay="0s").window(tumbling("10s"))
    dearest = bought.reduce("dearest", lambda a, b: max(a, b, key=lambda each: each.price)).values()
    dearest.to("values")
    dearest.reduce("ever", lambda a, b: max(a, b, key=lambda each: each.price))
    bought.fold("spent", dict, lambda sums, v: {"sum": str(v.price)}).values(value=dict).filter(lambda sums: "sum" in sums).to("spent")
    with Harness(app) as h:
        for price in ("1.50", "2.25", "0.10"):
            h.send("s", Bought(T0, Decimal(price)), key="a")
        h.end()
        assert [("a", Bought(T0, Decimal("2.25")))] == h.output("values")
        assert {"a": Bought(T0, Decimal("2.25"))} == h.store("ever")
        assert [("a", {"sum": "0.10"})] == h.output("spent")


def test_a_function_behind_a_window_that_fails_stops_the_job_and_names_the_pane() -> None:
    app = App()
    source(app).window(tumbling("10s")).count("counts").map(lambda pane, key: 1 // (key != "bob"), value=int).to("out")
    with Harness(app) as h:
        said = r"the result of window 'counts' for key 'bob', 1600041600000 to 1600041610000 \(ms since 1970\) failed: ZeroDivis"
        with pytest.raises(TaskError, match=said) as found:
            feed(h, [("ada", 1, 0), ("bob", 2, 0), ("ada", 10, 0)], 1000)
        assert "run the job again" in found.value.remedy
        h.crash()
        assert [("ada", 1)] == h.output("out")


def test_what_was_too_late_may_have_windows_of_its_own() -> None:
    app = App()
    panes = source(app).window(tumbling("10s"), allowed_lateness="5s").count("counts")
    panes.to("out")
    panes.late.window(tumbling("1m")).count("late-counts").to("late")
    with Harness(app) as h:
        feed(h, [("k", 1, 0), ("k", 30, 0), ("k", 2, 0), ("k", 3, 0)], 1000)
        h.end()
        assert told(h, 1000) == [("k", 10, 1), ("k", 40, 1)]
        assert told(h, 1000, "late") == [("k", 60, 2)]


def fires_in_units(fails_at: int | None, *, thirties: bool = True) -> Callable[[list[int]], App]:
    """A program whose windows fire in small units, and fail at a pane."""

    def make(seen: list[int]) -> App:
        def look(pane: Pane[int]) -> None:
            seen.append(pane.value)
            if fails_at is not None and len(seen) == fails_at:
                raise Crash("as a crash")

        app = App()
        tens = source(app).window(hopping("20s", every="10s")).count("tens")
        tens.peek(look).to("out")
        if thirties:
            tens.window(tumbling("30s")).count("thirties").to("thirties")
        return app

    return make


@pytest.mark.parametrize("fails_at", [1, 3, 10, 17, 24])
@pytest.mark.parametrize("at_end", [False, True])
def test_a_crash_in_the_middle_of_firing_loses_no_pane_and_repeats_none(fails_at: int, at_end: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "UNIT", 2)
    given = [(f"k{n:02}", 1 + n / 10, 0) for n in range(12)]
    outputs, failed, committed = [], "", 0
    for fails in (None, fails_at):
        with Harness(fires_in_units(fails)([]), commit={"max_uncommitted": "1KiB"}) as h:
            feed(h, given, 1000)
            try:
                if at_end:
                    h.end()
                else:
                    feed(h, [("z", 100, 0)], 1000)
            except Crash as error:
                failed = str(error)
                committed = len(h.output("out"))
                h.crash(keep_state=fails_at % 2 == 0)
            if at_end:
                h.end()
            else:
                h.run()
            outputs.append((h.output("out"), h.output("thirties"), h.checkpoint().watermarks))
    assert "as a crash" in failed
    assert (fails_at > 5) <= (committed > 0)  # some units are committed, others are not
    assert committed < fails_at
    assert len(outputs[0][0]) >= 24
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("windows", [1, 3])
@pytest.mark.parametrize("fails_in", [0, 1, 2])
def test_a_commit_between_the_firing_of_two_windows_loses_no_pane(windows: int, fails_in: int) -> None:
    """Time has passed the end of several windows at once. What has fired is committed together with that time, then the container dies."""
    calls: list[int] = []

    def look(pane: Pane[int], number: int) -> None:
        calls.append(number)
        if len(calls) == 1 + 12 * fails_in:
            raise Crash("as a crash")

    app = App()
    edits = source(app)
    for number in range(windows):
        lateness = "30s" if number == 1 else "0s"
        panes = edits.window(tumbling("10s"), allowed_lateness=lateness).count(f"w{number}")
        panes.peek(lambda pane, number=number: look(pane, number)).to(f"out{number}")
    with Harness(app, commit={"max_uncommitted": "1KiB"}) as h:
        try:
            feed(h, [*((f"k{n:02}", n / 2, 0) for n in range(12)), ("z", 15, 0)], 1000)
        except Crash:
            h.crash(keep_state=windows == 1)
        h.run()
        for number in range(windows):
            assert [(f"k{n:02}", 10, 1) for n in range(12)] == told(h, 1000, f"out{number}"), number


def test_time_that_moves_without_a_record_and_is_committed_before_a_window_fires_loses_no_pane(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App()
    source(app, idle_timeout="1s").window(tumbling("10s")).count("counts").to("out")
    with Harness(app) as h, monkeypatch.context() as patch:
        feed(h, [("k", 1, 0)], 1000)
        patch.setattr(stage.TaskWindows, "is_due", False)  # it has not come to firing yet
        feed(h, [("k", 25, 0)], 1000)
        assert h.output("out") == []
        assert h.checkpoint().watermarks == {"s": T0 + 25_000}
        h.crash(keep_state=False)
        patch.undo()
        h.run()
        assert told(h, 1000) == [("k", 10, 1)]


def test_a_record_that_fails_in_a_window_moves_no_time_and_counts_nothing() -> None:
    app = App()
    panes = source(app).window(tumbling("10s")).aggregate("sums", r=agg.sum(lambda v: v["v"]))
    panes.to("out")
    with Harness(app, on_error={"then": "skip"}) as h:
        given = [("k", 1, 1), ("k", 50, "wrong"), ("k", 2, 2), ("k", 0, 3)]
        feed(h, given, 1000)
        assert h.watermark() == T0 + 2000
        assert h.output("out") == []
        feed(h, [("k", 20, 0)], 1000)
        assert told(h, 1000) == [("k", 10, 6)]
        assert h.metric("skipped") == 1


def test_a_record_that_is_given_up_after_all_has_moved_no_time() -> None:
    flaky: list[int] = []

    def look(value: Any) -> None:
        if value["v"] == "bad" or (value["v"] == "flaky" and len(flaky) > 0):
            raise ValueError(value["v"])
        if value["v"] == "flaky":
            flaky.append(1)

    app = App()
    source(app).peek(look).window(tumbling("1m")).count("counts").to("out")
    with Harness(app, on_error={"then": "skip"}) as h:
        feed(h, [("k", 1, n) for n in range(20)], 1000)  # so that several are taken at once
        feed(h, [("k", 9, "flaky"), ("k", -70, 0), ("k", 1, "bad")], 1000)  # where a record is of another window, time has to be known
        assert (len(flaky), h.metric("skipped")) == (1, 2)
        assert h.watermark() == T0 + 1000


def test_a_record_is_late_by_the_time_of_the_records_before_it_in_its_batch() -> None:
    app = App()
    source(app, delay="15s").window(tumbling("10s")).count("counts").to("out")
    with Harness(app) as h:
        feed(h, [("k", 21, n) for n in range(20)], 1000)  # so that several are taken at once
        feed(h, [("k", 29, 0), ("x", 5, 0)], 1000)
        assert (told(h, 1000), h.late("counts")) == ([], 1)


def test_a_window_that_a_record_opens_fires_before_the_next_record_of_its_batch_that_is_later() -> None:
    app = App()
    source(app, delay="15s").window(tumbling("10s"), allowed_lateness="1h").count("counts").to("out")
    with Harness(app) as h:
        feed(h, [("k", at, n) for n in range(10) for at in (21, 34)], 1000)
        feed(h, [("k", 34, 0), ("x", 12, 0), ("k", 36, 0), ("y", 15, 0)], 1000)
        assert h.late("counts") == 0
        assert told(h, 1000) == [("x", 20, 1), ("y", 20, 1)]


def test_late_is_judged_by_the_time_of_the_task_not_of_the_partition() -> None:
    app = App()
    a, b = (source(app, topic, idle_timeout=None) for topic in "ab")
    panes = a.merge(b).window(tumbling("10s")).count("counts")
    panes.to("out")
    with Harness(app) as h:
        feed(h, [("k", 1, 0)], 1000, topic="b")
        feed(h, [("k", 100, 0), ("k", 2, 0)], 1000, topic="a")  # time is at 1 s
        feed(h, [("k", 50, 0)], 1000, topic="b")
        assert (told(h, 1000), h.late("counts")) == ([("k", 10, 2)], 0)
        feed(h, [("k", 49, 0), ("k", 55, 0)], 1000, topic="b")
        assert h.late("counts") == 1


def test_a_run_counts_what_was_too_late_once_however_often_it_was_read() -> None:
    app = App()
    source(app).window(tumbling("10s")).count("counts").to("out")
    with Harness(app) as h:
        feed(h, [("k", 100, 0)], 1000)
        for aborted in (False, True, False):
            h.send("s", {"at": T0 + 1000, "v": 0}, key="k")
            if aborted:
                h.run(commit=False)
                h.container._rollback.after(TransactionAborted("for this test"))
                while h.container.is_starting:
                    h.container.step(0.0)
            h.run()
        assert (h.container.status()["committed"]["too_late"], h.late("counts")) == (3, 3)


def test_an_input_that_joins_windows_whose_time_has_come_far_is_warned_of_and_its_old_records_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def program(*topics: str, apart: bool = False) -> App:
        app = App()
        first, *rest = (source(app, topic) for topic in topics)
        for n, other in enumerate(rest):
            if apart:
                other.window(tumbling("10s")).count(f"counts-{n}").to("out")
            else:
                first = first.merge(other)
        first.window(tumbling("10s")).count("counts").to("out")
        return app

    def warned() -> list[str]:
        return [line for line in caplog.messages if "has had no event time so far" in line]

    with Harness(program("s"), tasks=2) as h:
        h.restart(program("s", "early"))  # nothing has been read: no record can be late
        for topic in ("s", "early"):
            feed(h, [(key, 100, 0) for key in "abcdef"], 1000, topic=topic)
        h.restart(program("s", "early"))
        assert warned() == []
        h.restart(program("s", "early", "other"))
        (warning,) = warned()
        assert warning.startswith(
            "other[0] has had no event time so far, and that of the other inputs has reached 2020-09-14 00:01:40 UTC: its records with earlier times come too late"
        )
        feed(h, [("a", 1, 0)], 1000, topic="other")
        assert h.container.status()["committed"]["too_late"] == 1
        h.restart(program("s", "early", "other"))
        assert len(warned()) == 1, "it is no longer new"
    with Harness(program("s")) as h:
        feed(h, [("a", 100, 0)], 1000)
        h.restart(program("s", "other", apart=True))
        assert len(warned()) == 1, "it has windows of its own"


def test_time_that_passes_without_a_record_fires_windows() -> None:
    app = App()
    source(app, delay="5s").window(tumbling("10s")).count("counts").to("out")
    with Harness(app) as h:
        feed(h, [("k", 1, 0)], 1000)
        h.time_passes("s", T0 + 9_999)
        h.run()
        assert h.output("out") == []
        h.time_passes("s", T0 + 10_000)
        h.run()
        assert told(h, 1000) == [("k", 10, 1)]
        assert h.late("counts") == 0
        with pytest.raises(ConfigurationError, match="no window 'count'"):
            h.late("count")


def test_a_window_that_was_flushed_by_a_bounded_run_gives_a_second_pane_for_later_records() -> None:
    app = App()
    source(app).window(tumbling("10s")).count("counts").to("out")
    with Harness(app) as h:
        feed(h, [("k", 1, 0)], 1000)
        h.end()
        assert told(h, 1000) == [("k", 10, 1)]
        h.crash()
        feed(h, [("k", 2, 0), ("k", 3, 0), ("k", 10, 0)], 1000)
        assert told(h, 1000) == [("k", 10, 1), ("k", 10, 2)]


def kept_for(lateness: str, window: Any) -> App:
    app = App()
    counts = source(app, delay="2s").window(window, allowed_lateness=lateness).count("counts")
    counts.to("out")
    counts.late.to("late")
    return app


@pytest.mark.parametrize(
    ("window", "panes"), [(tumbling("10s"), [("k", 10, 4)]), (hopping("10s", every="5s"), [("k", 5, 4), ("k", 10, 4)])], ids=["tumbling", "hopping"]
)
def test_a_lateness_that_is_raised_later_does_not_open_windows_that_were_deleted(window: Any, panes: list[Any]) -> None:
    """What a window had is gone: a pane of the late record alone would take the place of the right one."""
    with Harness(kept_for("0s", window)) as h:
        feed(h, [("k", t, 0) for t in (1, 2, 3, 4, 15)], 1000)
        assert told(h, 1000) == panes
        h.restart(kept_for("1h", window))
        feed(h, [("k", 3, 0), ("k", 16, 0), ("k", 30, 0)], 1000)
        assert ("k", 10, 1) not in told(h, 1000)
        assert 1 == len(h.output("late"))
        before = told(h, 1000)
        feed(h, [("k", 16, 0)], 1000)  # of a window that has fired under the new lateness
        (corrected,) = [pane for pane in told(h, 1000)[len(before) :] if pane[1] == 20]
        assert corrected == ("k", 20, 3)
        h.restart(kept_for("0s", window))
        feed(h, [("k", 31, 0)], 1000)
        h.restart(kept_for("1h", window))
        before = told(h, 1000)
        feed(h, [("k", 16, 0)], 1000)
        assert before == told(h, 1000), "its window was deleted meanwhile"


def test_a_window_that_fired_before_the_end_of_a_bounded_run_takes_no_records_afterwards() -> None:
    """What it had went at the end of the run: it must not be corrected by a pane of the late record alone."""
    with Harness(kept_for("1h", tumbling("10s"))) as h:
        feed(h, [("k", t, 0) for t in (1, 2, 15)], 1000)
        feed(h, [("k", 3, 0)], 1000)
        assert [("k", 10, 2), ("k", 10, 3)] == told(h, 1000)
        h.end()
        assert ("k", 20, 1) == told(h, 1000)[-1]
        h.restart()
        feed(h, [("k", 5, 0), ("k", 16, 0), ("k", 40, 0)], 1000)
        assert [("k", 10, 2), ("k", 10, 3), ("k", 20, 1), ("k", 20, 1)] == told(h, 1000)
        assert 1 == len(h.output("late"))


def test_windows_of_windows_that_fired_before_the_end_of_a_bounded_run_stay_closed() -> None:
    app = App()
    counts = source(app).window(tumbling("10s")).count("counts")
    counts.to("first")
    counts.window(tumbling("20s")).aggregate("sums", r=agg.sum(lambda pane: pane.value)).to("out")
    with Harness(app) as h:
        feed(h, [("k", t, 0) for t in (1, 11, 12, 25)], 1000)
        h.end()
        assert [("k", 20, 3), ("k", 40, 1)] == told(h, 1000)
        h.restart()
        feed(h, [("k", 13, 0), ("k", 26, 0), ("k", 60, 0)], 1000)
        assert [("k", 20, 3), ("k", 40, 1), ("k", 40, 1)] == told(h, 1000)


@pytest.mark.parametrize(
    ("at", "said"), [(-1, "time=… gave -1, which is before 1970"), (1 << 63, f"time=… gave {1 << 63} "), (-(10**16), f"time=… gave {-(10**16)} ")]
)
def test_a_time_that_no_window_can_have_is_the_records_error(at: int, said: str) -> None:
    for on_error in ({"then": "fail"}, {"then": "skip"}):
        app = App()
        source(app).window(tumbling("10s")).count("counts").to("out")
        with Harness(app, on_error=on_error) as h:
            for each in (at, 0, 9_999):
                h.send("s", {"at": each}, key="k")
            if on_error == {"then": "fail"}:
                with pytest.raises(TaskError) as found:
                    h.run()
                assert said in str(found.value)
                assert "record s[0]@0" in str(found.value)
            else:
                h.end()
                assert [(p["start"], p["value"]) for _, p in h.output("out")] == [(0, 2)]
                assert h.metric("skipped") == 1


def test_a_timestamp_of_kafka_that_is_no_time_is_the_records_error() -> None:
    app = App()
    app.stream("s", key=str, value=dict, watermark_delay="0s").window(tumbling("10s")).count("counts").to("out")
    with Harness(app) as h:
        h.log.admin().delete(["s"])
        h.log.admin().create([TopicSpec("s", 1, {"message.timestamp.after.max.ms": str((1 << 63) - 1)})])
        h.send("s", {}, key="k", timestamp=(1 << 63) - 1)
        with pytest.raises(TaskError, match=r"record s\[0\]@0: stream s: the record has the timestamp 9223372036854775807, which is no time"):
            h.run()


def test_a_pane_of_the_first_millisecond_is_written() -> None:
    app = App()
    source(app).window(tumbling("1ms")).count("counts").to("out")
    with Harness(app) as h:
        h.send("s", {"at": 0}, key="k")
        h.end()
        assert [(p["end"], m.timestamp()[1]) for (_, p), m in zip(h.output("out"), h.records("out"), strict=True)] == [(1, 1)]


def test_a_pane_whose_window_still_goes_on_is_written_with_the_time_of_sending() -> None:
    app = App()
    panes = source(app).window(tumbling("1d"), emit=updates()).count("counts")
    panes.map(lambda pane, time: time, value=int).to("times")
    panes.to("out")
    with Harness(app) as h:
        now = h.clock.now_ms()
        end = (now // DAY + 1) * DAY
        h.send("s", {"at": now - 2 * DAY}, key="k")
        h.send("s", {"at": now}, key="k")
        h.run()
        h.end()
        given = [(p["pane"], p["end"], m.timestamp()[1]) for (_, p), m in zip(h.output("out"), h.records("out"), strict=True)]
        past = end - 2 * DAY
        assert [(kind, at) for kind, at, _ in given] == [("early", past), ("early", end), ("on_time", past), ("on_time", end)]
        assert [time for _, at, time in given if at == past] == [past - 1] * 2
        assert all(now <= time < now + 60_000 for _, at, time in given if at == end)
        assert sorted(time for _, time in h.output("times")) == [past - 1] * 2 + [end - 1] * 2  # what the program sees is the window's


def test_what_is_too_late_is_written_with_its_own_time() -> None:
    app = App()
    source(app, max_ahead=None).window(tumbling("10s")).count("counts").late.to("late")
    with Harness(app) as h:
        ahead = h.clock.now_ms() + 50 * MINUTE
        for at in (ahead, ahead - MINUTE):
            h.send("s", {"at": at}, key="k")
        h.run()
        assert [m.timestamp()[1] for m in h.records("late")] == [ahead - MINUTE]


def test_windows_before_1970_and_moved_ones() -> None:
    app = App()
    app.stream("s", key=str, value=dict, time=lambda v: v["at"], watermark_delay="0s").window(tumbling("10s", offset="3s")).count("c").to(
        "out", timestamps="send"
    )
    with Harness(app) as h:
        for at in (-14_000, -7_001, -7_000, 2_999, 3_000):
            h.send("s", {"at": at}, key="k")
        h.end()
        assert [(p["start"], p["end"], p["value"]) for _, p in h.output("out")] == [
            (-17_000, -7_000, 2), (-7_000, 3_000, 2), (3_000, 13_000, 1),
        ]  # fmt: skip


def test_a_changed_window_over_state_is_refused_and_a_new_one_begins_empty() -> None:
    def program(size: str, *more: str) -> App:
        app = App()
        s = source(app)
        s.window(tumbling(size)).count("counts").to("out")
        for name in more:
            s.window(tumbling("1m")).count(name).to("out")
        return app

    with Harness(program("10s")) as h:
        feed(h, [("k", 1, 0)], 1000)
        h.restart(program("10s", "new"))
        feed(h, [("k", 2, 0)], 1000)
        with pytest.raises(Exception, match="operator counts"):
            h.restart(program("20s", "new"))


REFUSED: dict[str, tuple[Callable[[App, Any], object], str]] = {
    "no delay": (lambda app, s: app.stream("x", key=str).window(tumbling("1s")).count("c"), "nothing says how late records of 'x' may be"),
    "size": (lambda app, s: s.window(hopping("10s", every="3s")), "10s is no multiple of 3s"),
    "too many": (lambda app, s: s.window(hopping("1d", every="1s")), "86400 windows would overlap"),
    "number": (lambda app, s: s.window(tumbling(10)), "10 is no duration"),
    "negative": (lambda app, s: s.window(tumbling(timedelta(seconds=-1))), "is no duration"),
    "window": (lambda app, s: s.window("10s"), r"takes tumbling\(…\) or hopping\(…\)"),
    "emit": (lambda app, s: s.window(tumbling("1s"), emit=updates), r"takes FINAL or updates\(\)"),
    "merge": (lambda app, s: s.window(hopping("2s", every="1s")).fold("f", dict, lambda a, v: a), "which needs `merge`"),
    "reserved": (lambda app, s: s.window(tumbling("1s")).aggregate("a", start=agg.count()), "no aggregate can be called 'start'"),
    "updates again": (lambda app, s: s.window(tumbling("1s"), emit=updates()).count("a").window(tumbling("1m")).count("b"),
                      r"with updates\(\) the window 'a' gives several panes for one key"),
    "corrections again": (lambda app, s: s.window(tumbling("1s"), allowed_lateness="1s").count("a").values().window(tumbling("1m")).count("b"),
                          "with allowed_lateness the window 'a' gives several panes for one key"),
    "updates counted": (lambda app, s: s.window(tumbling("1s"), emit=updates()).count("a").count("b"),
                        r"count\('b'\): with updates\(\) the window 'a' gives several panes for one key.*or take its `.late` or the stream before it"),
    "corrections summed": (lambda app, s: s.window(tumbling("1s"), allowed_lateness="1s").count("a").filter(lambda p: p.kind == "on_time")
                           .map(lambda p: p.value, value=int).key_by(str, "k", key=str).aggregate("b", m=agg.max(), t=agg.sum()),
                           r"t of aggregate\('b'\): with allowed_lateness the window 'a' gives several panes for one key"),
    "name": (lambda app, s: (s.count("c"), s.window(tumbling("1s")).count("c")), "'c' is the name of the count"),
    "table": (lambda app, s: s.count("c").updates().merge(app.table("t", key=str, value=int).updates()).window(tumbling("1s")).count("w"),
              "changes of a table have no event time"),
    "when_idle": (lambda app, s: app.stream("x", watermark_delay="1s", when_idle="wait"), "Write 'hold' or 'advance'"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_window_that_cannot_be_is_refused_where_it_is_written(what: str) -> None:
    define, said = REFUSED[what]
    app = App()
    stream = source(app)
    with pytest.raises(ConfigurationError, match=said) as found:
        define(app, stream)
    assert "test_windows.py:" in found.value.message


def test_what_windows_are_called() -> None:
    assert [str(w) for w in (tumbling("1m"), hopping("1h", every="10m"), tumbling("1d", offset="2h"))] == [
        "tumbling 1m", "hopping 1h every 10m", "tumbling 1d, offset 2h",
    ]  # fmt: skip
    assert (str(FINAL), str(updates())) == ("final", "updates")




@pytest.mark.parametrize(
    ("retention_ms", "times", "is_told"),
    [(7 * DAY, "CreateTime", True), (7 * DAY, "LogAppendTime", False), (-1, "CreateTime", False), (50 * 365 * DAY, "CreateTime", False)],
)
def test_panes_that_kafka_would_delete_at_once_are_told_of(retention_ms: int, times: str, is_told: bool, caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    source(app).window(tumbling("10s")).count("counts").to("out")
    with Harness(app) as h:
        h.log.admin().delete(["out"])
        h.log.admin().create([TopicSpec("out", 1, {"retention.ms": str(retention_ms), "message.timestamp.type": times})])
        feed(h, [("k", 1, 0), ("k", 20, 0), ("k", 40, 0)], 1000)
        told_of = [record.message for record in caplog.records if "older than its retention.ms" in record.message]
        assert len(told_of) == is_told


@pytest.mark.parametrize("is_one_batch", [False, True])
@pytest.mark.parametrize("every", [None, "5s"])
def test_a_window_of_records_and_panes_is_as_strict_with_late_records_as_one_of_records(is_one_batch: bool, every: str | None) -> None:
    app = App()
    records = app.stream("in", key=str, value=int, watermark_delay="0s")
    direct, window = records.filter(lambda value: value >= 100), tumbling("10s") if every is None else hopping("10s", every=every)
    counts = records.window(tumbling("5s")).count("before").map(lambda pane: pane.value, value=int)
    for name, stream in (("both", counts.merge(direct)), ("alone", direct)):
        panes = stream.window(window).collect(name)
        panes.to(name)
        panes.late.to(f"{name}-late")
    with Harness(app) as h:
        for value, second in ((1, 12), (101, 5), (102, 6), (103, 11), (104, 3), (2, 100), (105, 12), (106, 97)):
            h.send("in", value, key="k", timestamp=T0 + second * 1000)
            if not is_one_batch:
                h.run()
        h.run()
        late = [value for _, value in h.output("alone-late")]
        assert late == [value for _, value in h.output("both-late")]
        assert set(late) == ({101, 102, 104, 105, 106} if every is None else {104, 105})
        h.end()
        given = {name: {pane["start"]: sorted(v for v in pane["value"] if v >= 100) for _, pane in h.output(name)} for name in ("both", "alone")}
        assert given["alone"] == {start: values for start, values in given["both"].items() if values}
        assert any(value < 100 for _, pane in h.output("both") for value in pane["value"])


# -- planted bugs ------------------------------------------------------------------------------------------------------------------------


def _starts_anew(slices: Slices) -> None:
    """The cursor is lost."""
    slices._put(CURSOR, None)
    start(slices)


def _starts_at_the_watermark(windows: stage.TaskWindows, program: Any, time: Any, *arguments: Any) -> None:
    """Whatever ended before the watermark of the checkpoint is taken to have fired."""
    make(windows, program, time, *arguments)
    for _, slices, now in windows._windows:
        slices.at = max(slices.at, now.stage.kept)
        slices._look()


def _goes_at_once(slices: Slices, *arguments: Any, **rest: Any) -> None:
    """A slice goes with its last window, and lateness is not waited for."""
    init(slices, *arguments, **rest)
    slices._stays -= slices._lateness


def _maximum(time: StageTime) -> int:
    time._reached = max(time._reached, max(partition.watermark for partition in time.partitions))
    return time._reached


def _without(called: str, given: Any) -> list[str]:
    """The lines of a window that counts in place, without those that call this."""
    return [line for line in counting_lines(*given) if called not in line]


def _unchecked(patch: pytest.MonkeyPatch) -> None:
    """The check that would find the bug, and have the records taken again one by one, is off."""
    patch.setattr(stage, "check", lambda condition, promise: None)


start, init, make, counting_lines = Slices.start, Slices.__init__, stage.TaskWindows.__init__, compiling.counting_lines
BUGS: dict[str, tuple[Any, str, Any, Callable[[pytest.MonkeyPatch], object]]] = {
    "maximum in place of minimum": (
        StageTime, "watermark", property(_maximum),
        lambda patch: test_event_time_gives_the_same_in_every_order_within_the_bound_over_several_inputs_runs_and_crashes(1),
    ),
    "late judged by the partition": (
        Now, "watermark", property(lambda now: now.bound),
        lambda patch: test_late_is_judged_by_the_time_of_the_task_not_of_the_partition(),
    ),
    "the end of time is kept": (
        StageTime, "kept", property(lambda time: time.watermark),
        lambda patch: test_a_window_that_was_flushed_by_a_bounded_run_gives_a_second_pane_for_later_records(),
    ),
    "undo leaves time where it was": (
        TaskTime, "go_back", lambda time, saved: None,
        lambda patch: test_a_record_that_is_given_up_after_all_has_moved_no_time(),
    ),
    "the cursor is lost": (
        Slices, "start", _starts_anew,
        lambda patch: test_a_crash_in_the_middle_of_firing_loses_no_pane_and_repeats_none(17, True, patch),
    ),
    "what ended before the watermark is taken to have fired": (
        stage.TaskWindows, "__init__", _starts_at_the_watermark,
        lambda patch: test_a_commit_between_the_firing_of_two_windows_loses_no_pane(3, 1),
    ),
    "lateness is not waited for": (
        Slices, "__init__", _goes_at_once, lambda patch: test_a_late_record_corrects_exactly_the_windows_that_have_fired_and_still_take_it(0),
    ),
    "time is not known where a record is late": (
        compiling, "counting_lines", lambda *given: _without("time_is", given),
        lambda patch: test_a_record_is_late_by_the_time_of_the_records_before_it_in_its_batch(),
    ),
    "a window that a record opens is not looked at": (
        compiling, "counting_lines", lambda *given: _without("plain_times", given),
        lambda patch: (_unchecked(patch), test_a_window_that_a_record_opens_fires_before_the_next_record_of_its_batch_that_is_later()),
    ),
    "windows fire only with records": (
        Times, "before", lambda times, batch: None, lambda patch: test_time_that_passes_without_a_record_fires_windows(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong, scenario = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        scenario(monkeypatch)


def _of_a_batch_that_failed(what: Any) -> list[Any]:
    """The panes of a window over numbers, of which the last of each batch fails the first time."""
    failed: list[int] = []

    def check(value: dict[str, Any]) -> dict[str, Any]:
        if value["v"] % 5 == 4 and value["v"] not in failed:
            failed.append(value["v"])
            raise ValueError("the first time")
        return value

    app = App()
    source(app).map(check, value=dict).window(tumbling("10s")).aggregate("all", r=what, n=agg.count()).to("out")
    with Harness(app, on_error={"retries": 1, "then": "fail"}) as h:
        for first in range(0, 20, 5):
            for v in range(first, first + 5):
                h.send("s", {"at": 1000, "v": v}, key="a")
            h.run()
        h.end()
        return [(pane["r"], pane["n"]) for _, pane in h.output("out")]


OF_TWENTY = {
    "sum": (agg.sum(lambda v: v["v"]), 190), "mean": (agg.mean(lambda v: v["v"]), 9.5), "min": (agg.min(lambda v: v["v"]), 0),
    "max": (agg.max(lambda v: v["v"]), 19), "collect": (agg.collect(lambda v: v["v"]), list(range(20))),
    "distinct": (agg.distinct(lambda v: v["v"]), 20), "value_counts": (agg.value_counts(lambda v: [str(v["v"] % 2)]), {"0": 10, "1": 10}),
}  # fmt: skip


@pytest.mark.parametrize("what", OF_TWENTY)
def test_a_batch_that_failed_leaves_nothing_in_an_accumulator(what: str) -> None:
    aggregate, wanted = OF_TWENTY[what]
    assert [(wanted, 20)] == _of_a_batch_that_failed(aggregate)


def test_an_accumulator_that_changes_must_not_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_sums, "OF_NUMBERS", window_sums.OF_NUMBERS | {"collect"})
    with pytest.raises(AssertionError):
        test_a_batch_that_failed_leaves_nothing_in_an_accumulator("collect")


# -- two inputs --------------------------------------------------------------------------------------------------------------------------


def of_two_inputs() -> App:
    """Windows of one input alone, and of both: directly, and in a following stage."""
    app = App()
    s, u = source(app, "s", "3s"), source(app, "u", "3s")
    s.window(tumbling("10s")).count("alone").to("alone-out")
    both = s.merge(u).window(tumbling("10s")).count("both")
    both.to("both-out")
    both.late.to("both-late")
    after = s.merge(u).key_by(lambda v: "k", "k", key=str).window(tumbling("10s")).count("after")
    after.to("after-out")
    after.late.to("after-late")
    return app


def counted_of_two_inputs(then: Callable[[Harness], object]) -> dict[str, Any]:
    """All of one input, then this, then all of the other, whose times are the same: nothing of that is late."""
    with Harness(of_two_inputs(), tasks=2) as h:
        for topic in ("s", "u"):
            for second in range(0, 200, 5):
                for partition in (0, 1):
                    h.send(topic, {"at": T0 + second * 1000}, key=f"k{partition}", partition=partition)
            h.run()
            then(h)
        h.end()
        return {name: sorted((key, str(value)) for key, value in h.output(name)) for name in ("alone-out", "both-out", "both-late", "after-out", "after-late")}


@pytest.mark.parametrize("writes", ["now", "before"])
@pytest.mark.parametrize("then", [Harness.restart, Harness.crash, lambda h: h.crash(keep_state=False)], ids=["restart", "crash", "gone"])
def test_a_restart_before_another_input_begins_makes_none_of_its_records_late(
    then: Callable[[Harness], object], writes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the windows of one input have come anywhere then: those of both must not take over how far. `before`: checkpoints as versions before this wrote
    them, without the stages that had not begun."""
    if writes == "before":
        kept = TaskTime.kept.fget
        monkeypatch.setattr(TaskTime, "kept", property(lambda time: {name: at for name, at in kept(time).items() if at != NEVER}))  # type: ignore[misc]
    right = counted_of_two_inputs(lambda h: None)
    assert [] == right["both-late"] == right["after-late"]
    assert right == counted_of_two_inputs(then)


@pytest.mark.parametrize(
    "operators",
    [
        lambda panes: panes.filter(lambda pane: pane.kind == "on_time"),
        lambda panes: panes.peek(lambda pane: None),
        lambda panes: panes.branch(lambda pane: pane.kind == "on_time")[0],
        lambda panes: panes.branch(lambda pane: pane.kind == "late")[1],
        lambda panes: panes.filter(lambda pane: True).merge(panes.filter(lambda pane: False)),
        lambda panes: panes.key_by(lambda pane: "k", "by-k", key=str),
        lambda panes: panes.key_by(lambda pane: "k", "by-k", key=str).filter(lambda pane: True),
    ],
)
def test_the_pane_of_an_aggregate_is_written_in_one_form_whatever_lets_it_through(operators: Callable[[Any], Any]) -> None:
    app = App()
    stream = app.stream("in", key=str, value=int, watermark_delay="0s")
    panes = stream.window(tumbling("10s")).aggregate("counts", n=agg.count())
    panes.to("out")
    operators(panes).to("through")
    panes.merge(stream.window(tumbling("10s")).count("others")).to("mixed")
    with Harness(app) as h:
        h.send("in", 1, key="k")
        h.end()
        assert h.output("out") == h.output("through") != []
        assert h.output("out")[0][1]["n"] == 1
        assert [pane["value"] for _, pane in h.output("mixed")] in ([{"n": 1}, 1], [1, {"n": 1}])


class Lower:
    """A serde of keys of which several are the same in bytes."""

    def encode(self, value: str) -> bytes:
        return value.lower().encode()

    def decode(self, data: bytes) -> str:
        return data.decode()


@pytest.mark.parametrize("window", [tumbling("10s"), hopping("20s", every="10s")])
@pytest.mark.parametrize(
    "result",
    [
        lambda w: w.count("out"),
        lambda w: w.reduce("out", lambda a, b: a + b),
        lambda w: w.aggregate("out", n=agg.count()),
        lambda w: w.fold("out", lambda: 0, lambda n, v: n + v, merge=lambda a, b: a + b, value=int),
    ],
)
def test_keys_that_the_users_serde_writes_as_the_same_bytes_are_one_key(window: Any, result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keys_in_lower", SimpleNamespace(Lower=Lower))
    app = App()
    result(app.stream("s", key="keys_in_lower:Lower", value=int, watermark_delay="0s").window(window)).to("panes")
    with Harness(app) as h:
        for key in (b"A", b"a", b"A", b"B", b"a", b"A"):
            h.send_raw("s", (1).to_bytes(8, "big"), key)
        h.end()
        found = {(key, pane["start"]): pane.get("value", pane.get("n")) for key, pane in h.output("panes")}
        assert {("a", 5), ("b", 1)} == {(key, n) for (key, _), n in found.items()}
