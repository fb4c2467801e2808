"""Sums that are made before an internal topic: the same panes as without them, whatever fails, and what must not be summed up is not."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from samzapy.api.errors import RecordTooLarge, StateUnreadable, TransactionAborted
from samzapy.model.marks import MARKS_KEY
from samzapy.streams import App, agg, hopping, tumbling, updates
from samzapy.streams.combiners import CountCombiner
from samzapy.streams.combining import PARTIAL_HEADER, Combiner, WaitingSums, combined_windows, header_of, records_of
from samzapy.testing import Harness

T0 = 1_600_041_600_000
TOPIC = "test-1-by-key"
AGGREGATES: dict[str, Callable[[], Any]] = {
    "n": agg.count, "total": lambda: agg.sum(lambda v: v["n"]), "mean": lambda: agg.mean(lambda v: v["n"]), "least": lambda: agg.min(lambda v: v["n"]),
    "best": lambda: agg.max_by(lambda v: [v["n"], v["id"]]), "first": lambda: agg.first(lambda v: v["id"]), "last": lambda: agg.last(lambda v: v["id"]),
    "different": lambda: agg.distinct(lambda v: v["n"]), "counts": lambda: agg.value_counts(lambda v: [str(v["n"])]), "top": lambda: agg.top(2, lambda v: v["id"]),
}  # fmt: skip


def summing(*, combine: bool = True, window: Any = None, **more: Any) -> App:
    app = App()
    stream = app.stream("in", value=dict, time=lambda v: v["at"], watermark_delay="4s", idle_timeout=None)
    windows = stream.key_by(lambda v: v["key"], "by-key", key=str, combine=combine).window(window or tumbling("10s"))
    windows.aggregate("sums", **{name: make() for name, make in (AGGREGATES | more).items()}).to("out")
    return app


def sent(h: Harness) -> list[bool]:
    """Of each record in the topic between, whether it is a sum."""
    return [PARTIAL_HEADER in dict(m.headers() or []) for p in range(len(h.container.tasks)) for m in h.records(TOPIC, p) if m.key() != MARKS_KEY]


def live(app: App, seed: int) -> tuple[list[Any], list[bool]]:
    """The panes of a random history, which is the same for the same seed, and what went through the topic."""
    draw = random.Random(seed)
    given = sorted((draw.randrange(60_000), draw.randrange(2), draw.choice(["a", "b", "", "a\x00"]), draw.randrange(9)) for _ in range(150))
    with Harness(app, tasks=2) as h:
        through: list[bool] = []
        for number, (at, partition, key, n) in enumerate(given):
            h.send("in", {"at": T0 + at - draw.randrange(4000), "key": key, "n": n, "id": number}, partition=partition)
            fate = draw.random()
            if fate < 0.1:
                h.run(commit=draw.random() < 0.5)
            elif fate < 0.15:
                h.container.commit()
            elif fate < 0.2:
                h.crash(keep_state=draw.random() < 0.5)
        h.end()
        through = sent(h)
        return sorted(((key, pane) for key, pane in h.output("out")), key=repr), through


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(2, 60))])
@pytest.mark.parametrize("window", [tumbling("10s"), hopping("20s", every="5s")], ids=["tumbling", "hopping"])
def test_the_panes_are_those_that_the_records_alone_give(seed: int, window: Any) -> None:
    combined, through = live(summing(window=window), seed)
    alone, each = live(summing(window=window, combine=False), seed)
    assert alone == combined
    assert {True} == set(through)
    assert {False} == set(each)
    assert len(through) < len(each) == 150


def test_a_key_that_most_records_have_is_one_record_a_commit() -> None:
    app = App()
    stream = app.stream("in", value=int, watermark_delay="0s")
    stream.key_by(lambda n: "all", "by-key", key=str).window(tumbling("10s")).count("n").to("out")
    with Harness(app, tasks=2) as h:
        for n in range(600):
            h.send("in", n, partition=n % 2, timestamp=T0)
        h.run()
        assert [True] == sent(h)  # of both tasks
        h.end()
        assert [600] == [pane["value"] for _, pane in h.output("out")]


def only(define: Callable[[Any], object]) -> bool:
    app = App()
    define(app.stream("in", value=int, watermark_delay="0s").key_by(lambda n: n, "by-key", key=int))
    return bool(combined_windows(app.graph))


def late_is_read(keyed: Any) -> None:
    panes = keyed.window(tumbling("1s")).count("n")
    panes.late.to("late")


OWN = agg.Aggregate(int, lambda a, v: a + v, lambda a, b: a + b, lambda a: a, int)


def test_what_needs_each_record_alone_is_not_summed_up() -> None:
    assert only(lambda keyed: keyed.window(tumbling("1s")).count("n").to("out"))
    assert not only(late_is_read)
    assert not only(lambda keyed: (keyed.window(tumbling("1s")).count("n"), keyed.to("copy")))
    assert not only(lambda keyed: keyed.window(tumbling("1s"), allowed_lateness="1s").count("n"))
    assert not only(lambda keyed: keyed.window(tumbling("1s"), emit=updates()).count("n"))
    assert not only(lambda keyed: keyed.window(tumbling("1s")).collect("n"))
    assert not only(lambda keyed: keyed.window(tumbling("1s")).reduce("n", lambda a, b: a + b))
    assert not only(lambda keyed: keyed.window(tumbling("1s")).aggregate("n", own=OWN))
    assert not only(lambda keyed: keyed.map(lambda n: n, value=int).window(tumbling("1s")).count("n"))


def failing(seen: list[int]) -> App:
    """Fails with the value 13 at its first three attempts."""

    def number(v: dict[str, Any]) -> int:
        if v["n"] == 13:
            seen.append(13)
            if len(seen) <= 3:
                raise ValueError("thirteen")
        return int(v["n"])

    app = App()
    stream = app.stream("in", value=dict, time=lambda v: v["at"], watermark_delay="4s")
    stream.key_by(lambda v: v["key"], "by-key", key=str).window(tumbling("10s")).aggregate("sums", total=agg.sum(number)).to("out")
    return app


def test_what_a_batch_that_failed_had_summed_up_is_undone() -> None:
    seen: list[int] = []
    with Harness(failing(seen), tasks=1, on_error={"retries": 5, "then": "fail"}) as h:
        for n in range(20):
            h.send("in", {"at": T0, "key": "k", "n": n})
        h.run()
        h.end()
        assert [190] == [pane["total"] for _, pane in h.output("out")]
        assert len(seen) > 3


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(2, 40))])
@pytest.mark.parametrize("kind", [str, bytes, int])
def test_counts_of_batches_that_fail_are_undone(seed: int, kind: type) -> None:
    """Some records fail at their first attempt, in the middle of batches whose keys were counted before, are counted for the first time, or both."""
    draw = random.Random(seed)
    keys: list[Any] = {str: ["a", "b", "", "a\x00", "é"], bytes: [b"a", b"b", b"", b"a\x00", b"\xff"], int: [0, 1, -1, 2**40, 7]}[kind]
    given = [(draw.randrange(40_000), draw.randrange(len(keys)), draw.random() < 0.05) for _ in range(400)]
    failed: set[int] = set()

    def key_of(v: list[int]) -> Any:
        number = v[0]
        if given[number][2] and number not in failed:
            failed.add(number)
            raise ValueError("at the first attempt")
        return keys[given[number][1]]

    app = App()
    stream = app.stream("in", value=list, time=lambda v: v[1], watermark_delay="1h")
    stream.key_by(key_of, "by-key", key=kind).window(tumbling("10s")).count("n").to("out")
    with Harness(app, tasks=2, on_error={"retries": 2, "then": "fail"}) as h:
        for number, (at, _, _) in enumerate(given):
            h.send("in", [number, T0 + at], partition=number % 2)
            if draw.random() < 0.04:
                h.run(commit=draw.random() < 0.5)
        h.end()
        found = {(key, pane["start"]): pane["value"] for key, pane in h.output("out")}
        assert all(sent(h))
    assert failed
    assert Counter((keys[k], (T0 + at) // 10_000 * 10_000) for at, k, _ in given) == found


def aborted(h: Harness) -> None:
    """The first commit fails in the container's loop."""
    while h.container.step(0.0):
        pass
    h.advance("2s")
    h.run()


def test_sums_that_cannot_be_made_go_as_records() -> None:
    """An error of the merging is no single record's: the commit fails, and the records go alone."""
    app = App()
    stream = app.stream("in", value=dict, time=lambda v: v["at"], watermark_delay="4s")
    stream.key_by(lambda v: v["key"], "by-key", key=str).window(tumbling("10s")).aggregate("sums", n=agg.count(), most=agg.max(lambda v: v["n"])).to("out")
    failed: list[int] = []
    merge = Combiner.flush

    def flush(combiner: Combiner, send: Any) -> None:
        if not failed:
            failed.append(1)
            combiner._waiting.failed = TypeError("not comparable")
        merge(combiner, send)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Combiner, "flush", flush)
        with Harness(app, tasks=1) as h:
            for n in range(6):
                h.send("in", {"at": T0, "key": "k", "n": n})
            aborted(h)
            assert [False] * 6 == sent(h)
            h.end()
            assert [(6, 5)] == [(pane["n"], pane["most"]) for _, pane in h.output("out")]


def test_a_sum_that_no_topic_takes_is_the_error_of_the_record_that_is_too_many() -> None:
    """As without sums: the state of the window is too large for its changelog, and a record of the following stage says so."""
    app = App()
    stream = app.stream("in", value=dict, time=lambda v: v["at"], watermark_delay="4s")
    stream.key_by(lambda v: v["key"], "by-key", key=str).window(tumbling("10s")).aggregate("sums", different=agg.distinct(lambda v: v["n"])).to("out")
    with Harness(app, tasks=1) as h:
        for n in range(30):
            h.send("in", {"at": T0, "key": "k", "n": f"{n:050000}"})
        with pytest.raises(RecordTooLarge, match=r"its program failed on record test-1-by-key\[0\]@\d+"):
            aborted(h)


def counting(*, window: str = "n", late: bool = False, copied: bool = False, combine: bool = True, **more: Any) -> App:
    app = App()
    keyed = app.stream("in", key=str, value=int, watermark_delay="0s").key_by(lambda n, key: key, "by-key", key=str, combine=combine)
    cut = keyed.window(tumbling("10s"), **more)
    panes = cut.count("n") if window == "n" else cut.aggregate(window, n=agg.count())
    panes.to("out")
    if late:
        panes.late.to("late")
    if copied:
        keyed.to("copy")
    return app


def with_sums_that_wait(on_error: str) -> Harness:
    """Three records went through the first stage as one sum, which the second has not read."""
    h = Harness(counting(), on_error={"then": on_error})
    for _ in range(3):
        h.send("in", 1, key="k", timestamp=T0)
    while h.container.step(0.0):
        pass
    h.container.commit()
    return h


PANES_ARE_OTHER: dict[str, dict[str, Any]] = {"lateness": {"allowed_lateness": "5s"}, "updates": {"emit": updates()}, "late records": {"late": True}}


@pytest.mark.parametrize("on_error", ["fail", "skip", "dead_letter"])
@pytest.mark.parametrize("change", PANES_ARE_OTHER)
def test_a_sum_that_waits_is_taken_whatever_the_windows_lateness_and_panes_are_now(change: str, on_error: str) -> None:
    with with_sums_that_wait(on_error) as h:
        h.restart(counting(**PANES_ARE_OTHER[change]), on_error={"then": on_error})
        h.send("in", 1, key="k", timestamp=T0)
        h.run()
        assert (0.0, []) == (h.metric("skipped"), h.dead_letters())
        h.end()
        assert [4] == [pane["value"] for _, pane in h.output("out") if pane["pane"] == "on_time"]


@pytest.mark.parametrize("on_error", ["fail", "skip", "dead_letter"])
def test_a_sum_that_nobody_can_take_stops_the_job_whatever_on_error_says_and_the_remedy_loses_nothing(on_error: str) -> None:
    with with_sums_that_wait(on_error) as h:
        h.restart(counting(copied=True), on_error={"then": on_error})
        with pytest.raises(StateUnreadable, match=r"is a partial sum of several records, which an earlier version of the program wrote.*combine=False"):
            h.run()
        h.crash()
        h.restart(counting(combine=False), on_error={"then": on_error})
        h.send("in", 1, key="k", timestamp=T0)
        h.run()
        h.restart(counting(copied=True), on_error={"then": on_error})
        h.end()
        assert [4] == [pane["value"] for _, pane in h.output("out")]


def test_a_sum_for_another_window_is_no_records_error() -> None:
    windows = [next(iter(combined_windows(counting(window=name).graph).values())) for name in ("n", "m")]
    assert 3 == records_of(windows[0], header_of(windows[0], 3))
    with pytest.raises(StateUnreadable, match="'m' as it is now cannot take it"):
        records_of(windows[1], header_of(windows[0], 3))


@pytest.mark.parametrize("values", [([1] * 10, [2**64 - 8] + [1] * 5), ([1e308] + [1.0] * 5, [1e308] + [1.0] * 5)], ids=["whole", "floats"])
def test_a_value_that_is_too_large_for_the_sum_takes_no_other_record_with_it(values: tuple[list[Any], ...]) -> None:
    def live_with(combine: bool) -> tuple[list[Any], float]:
        app = App()
        keyed = app.stream("in", key=str, value=dict, watermark_delay="0s").key_by(lambda v, key: key, "by-key", key=str, combine=combine)
        keyed.window(tumbling("10s")).aggregate("sums", n=agg.count(), total=agg.sum(lambda v: v["x"])).to("out")
        with Harness(app, tasks=1, on_error={"then": "skip"}) as h:
            for commit in values:
                for x in commit:
                    h.send("in", {"x": x}, key="k", timestamp=T0)
                h.run()
            skipped = h.metric("skipped")
            h.end()
            return [(pane["n"], pane["total"]) for _, pane in h.output("out")], skipped

    alone = live_with(combine=False)
    assert 1.0 == alone[1]
    assert alone == live_with(combine=True)


def different(values: list[list[Any]], made: Callable[[], Any], combine: bool) -> tuple[list[Any], float, list[str]]:
    """The panes of a window after these commits, how many records were skipped, and why."""
    app = App()
    keyed = app.stream("in", key=str, value=dict, watermark_delay="0s").key_by(lambda v, key: key, "by-key", key=str, combine=combine)
    keyed.window(tumbling("10s")).aggregate("sums", n=agg.count(), found=made()).to("out")
    with Harness(app, tasks=1, on_error={"then": "dead_letter"}) as h:
        for commit in values:
            for x in commit:
                h.send("in", {"x": x}, key="k", timestamp=T0)
            h.run()
        why = [letter.error for letter in h.dead_letters()]
        h.end()
        return [(pane["n"], pane["found"]) for _, pane in h.output("out")], len(why), why


@pytest.mark.parametrize(
    ("made", "values"),
    [
        (lambda: agg.mean(lambda v: v["x"]), [[1e308, 1.0, 1.0]] * 3),
        (lambda: agg.mean(lambda v: v["x"]), [[-1e308, -1e308, 1.0], [1.0] * 5]),
        (lambda: agg.distinct(lambda v: v["x"]), [[*(f"{c}-{n} {'x' * 70_000}" for n in range(8)), *["small"] * 100] for c in range(3)]),
    ],
    ids=["mean", "mean in one commit", "bytes"],
)
def test_a_sum_that_may_not_fit_takes_no_other_record_with_it(made: Callable[[], Any], values: list[list[Any]]) -> None:
    alone = different(values, made, combine=False)
    assert alone[1] > 0
    assert alone[:2] == different(values, made, combine=True)[:2]


def test_a_mean_of_whole_numbers_is_summed_up_however_large_they_are() -> None:
    app = App()
    keyed = app.stream("in", key=str, value=int, watermark_delay="0s").key_by(lambda n, key: key, "by-key", key=str)
    keyed.window(tumbling("10s")).aggregate("sums", mean=agg.mean()).to("out")
    with Harness(app, tasks=1) as h:
        for n in (2**62, 2**62, 2**62):
            h.send("in", n, key="k", timestamp=T0)
        h.run()
        assert [True] == sent(h)
        h.end()
        assert [2.0**62] == [pane["mean"] for _, pane in h.output("out")]


def test_the_error_of_a_sum_that_does_not_fit_says_how_many_records_it_is_of() -> None:
    values = [[f"{c}-{n} {'x' * 1000}" for n in range(50)] for c in range(25)]
    _, skipped, why = different(values, lambda: agg.distinct(lambda v: v["x"]), combine=True)
    assert skipped > 0
    assert all("is the sum of 50 records; if it is skipped, all of them are left out" in said for said in why)


@pytest.mark.parametrize("key", [str, int])
def test_a_value_of_another_kind_is_refused_with_sums_as_without(key: type) -> None:
    def live_with(combine: bool) -> tuple[list[int], float]:
        app = App()
        made = app.stream("in", key=str, value=dict, watermark_delay="0s").map(lambda v: v["x"], value=float)
        made.key_by(lambda v: key(7), "by-key", key=key, combine=combine).window(tumbling("10s")).count("n").to("out")
        with Harness(app, on_error={"then": "skip"}) as h:
            for x in (1, 2, 3.5, "text", True, None):
                h.send("in", {"x": x}, key="k", timestamp=T0)
            h.run()
            assert [combine] == list(dict.fromkeys(sent(h)))
            skipped = h.metric("skipped")
            h.end()
            return [pane["value"] for _, pane in h.output("out")], skipped

    assert ([4], 2.0) == live_with(combine=True) == live_with(combine=False)


def test_the_harness_goes_on_alone_where_sums_cannot_be_made_as_a_job_does() -> None:
    app = App()
    keyed = app.stream("in", value=dict, watermark_delay="0s").key_by(lambda v: "all", "by-key", key=str)
    keyed.window(tumbling("10s")).aggregate("sums", n=agg.count(), most=agg.max(lambda v: v["n"])).to("out")
    with Harness(app, tasks=1, on_error={"then": "skip"}) as h:
        for n in (1, "one", 5):
            h.send("in", {"n": n}, timestamp=T0)
        h.run()
        assert 1.0 == h.metric("skipped")
        h.end()
        assert [(2, 5)] == [(pane["n"], pane["most"]) for _, pane in h.output("out")]


def test_a_users_header_of_that_name_does_not_go_through() -> None:
    seen: list[Any] = []
    app = App()
    app.stream("in", key=str, value=int).repartition("again").peek(lambda n, headers: seen.append(list(headers))).count("n")
    with Harness(app) as h:
        h.send("in", 7, key="k", headers=[(PARTIAL_HEADER, b"1"), ("a", b"2")])
        h.run()
    assert [[("a", b"2")]] == seen


@pytest.mark.parametrize("at", [0, 1, -1, -(10**13)])
def test_times_before_those_that_kafka_takes(at: int) -> None:
    app = App()
    stream = app.stream("in", key=str, value=int, time=lambda n: at, watermark_delay="0s")
    stream.key_by(lambda n, key: key, "by-key", key=str).window(tumbling("1s")).count("n").to("out", timestamps="send")
    with Harness(app) as h:
        for _ in range(3):
            h.send("in", 7, key="k")
        h.end()
        assert [(at // 1000 * 1000, 3)] == [(pane["start"], pane["value"]) for _, pane in h.output("out")]


def test_many_sums_do_not_wait_for_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("samzapy.container.commit_due.MOST_SUMS", 100)
    app = App()
    app.stream("in", value=int, watermark_delay="0s").key_by(lambda n: n, "by-key", key=int).window(tumbling("1s")).count("n").to("out")
    with Harness(app, commit={"interval": "1h", "timeout": "4h"}) as h:
        for n in range(1000):
            h.send("in", n, timestamp=T0)
        while h.container.step(0.0):
            pass
        assert h.container._commits.is_full()
        h.container.commit()
        assert not h.container._commits.is_full()


def test_an_abort_takes_back_the_sums_of_all_tasks() -> None:
    app = App()
    app.stream("in", value=int, watermark_delay="0s").key_by(lambda n: "all", "by-key", key=str).window(tumbling("10s")).count("n").to("out")
    with Harness(app, tasks=2, commit={"interval": "1h", "timeout": "4h"}) as h:
        for n in range(20):
            h.send("in", n, partition=n % 2, timestamp=T0)
        while h.container.step(0.0):
            pass
        h.container._rollback.after(TransactionAborted("for this test", ""))
        for n in range(10):
            h.send("in", n, partition=0, timestamp=T0)
        h.end()
        assert [30] == [pane["value"] for _, pane in h.output("out")]


# -- planted bugs ----------------------------------------------------------------------------------------------------------------------------


def _keeping(combiner: Combiner, send: Any) -> None:
    waiting = combiner._waiting
    kept, held = dict(waiting.slices), waiting.held
    flush(combiner, send)
    if not vars(combiner).setdefault("_was_kept", False):
        waiting.slices.update(kept)
        waiting.held = held
    vars(combiner)["_was_kept"] = True  # once: a commit that always has something to send would be followed by another one


def _only_when_sent(sums: WaitingSums) -> None:
    if sys._getframe(1).f_code.co_name == "flush":
        clear(sums)


def _only_made(combiner: CountCombiner) -> None:
    combiner._changed.clear()
    undo(combiner)


def _only_changed(combiner: CountCombiner) -> None:
    combiner._made.clear()
    undo(combiner)


flush, clear, undo = Combiner.flush, WaitingSums.clear, CountCombiner.undo
BUGS: dict[str, tuple[Any, str, Any, Callable[[], object]]] = {
    "sums are not sent at the cut": (
        Combiner, "flush", lambda combiner, send: combiner._waiting.clear(), lambda: test_the_panes_are_those_that_the_records_alone_give(1, tumbling("10s")),
    ),
    "sums of what failed stand": (Combiner, "undo", lambda combiner: None, test_what_a_batch_that_failed_had_summed_up_is_undone),
    "counts of what failed stand": (CountCombiner, "undo", CountCombiner.keep, lambda: test_counts_of_batches_that_fail_are_undone(1, str)),
    "a count that a hook found is not remembered": (
        CountCombiner, "undo", _only_made, lambda: test_counts_of_batches_that_fail_are_undone(1, str),
    ),
    "a count that a hook made stays": (CountCombiner, "undo", _only_changed, lambda: test_counts_of_batches_that_fail_are_undone(1, str)),
    "sums stay after an abort": (WaitingSums, "clear", _only_when_sent, test_an_abort_takes_back_the_sums_of_all_tasks),
    "sums that were sent are kept": (
        Combiner, "flush", _keeping, lambda: test_the_panes_are_those_that_the_records_alone_give(1, tumbling("10s")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong, scenario = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(AssertionError):
        scenario()
