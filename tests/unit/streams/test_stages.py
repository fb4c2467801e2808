"""Programs of several stages on the in-memory log: what goes through internal topics, the time behind them, and what is refused."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest

from samzapy.api.errors import CodeReplaced, ConfigurationError, StateMismatch, StateRefused, TaskError, TopicMisconfigured
from samzapy.model.key_partition import murmur2
from samzapy.model.marks import MARKS_KEY, Mark, marks_to_bytes
from samzapy.ops.prepare_topics import grown_tasks, prepare_topics
from samzapy.streams import App, Stream, agg, hopping, picture, tumbling
from samzapy.streams.partition_choice import partitions_of
from samzapy.testing import Harness, harness
from samzapy.testing.harness_job import HarnessJob
from samzapy.testing.memory_registry import MemoryRegistry

T0 = 1_600_041_600_000
SENTENCE = "NE Scala 2016 Apache Apache Spark Storm Apache Trident Flink Streaming Samza Scala 2016 Streaming"
ONCE = ("NE", "Spark", "Storm", "Trident", "Flink", "Samza")


def words(app: App, **time: Any) -> Stream[str, str]:
    return app.stream("lines", key=str, value=str, **time).flat_map(str.split, value=str)


def crash(h: Harness, crashes: bool, keep: bool = True) -> None:
    """With `crashes`, all that was done since the last commit is lost."""
    if crashes:
        h.run(commit=False)
        h.crash(keep_state=keep)


# -- counts ----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crashes", [False, True])
def test_words_are_counted_in_a_following_stage(crashes: bool) -> None:
    """J1, without its snapshot."""
    app = App()
    words(app).key_by(lambda word: word, "by-word", key=str).count("counts").to("counts")
    with Harness(app, tasks=3) as h:
        for number, word in enumerate(SENTENCE.split()):
            h.send("lines", word, partition=number % 3)
            crash(h, crashes and number % 5 == 0, keep=number != 5)
        h.run()
        found = h.output("counts")
        assert 15 == len(found)
        newest = dict(found)
        assert {"Apache": 3, "Scala": 2, "2016": 2, "Streaming": 2, **dict.fromkeys(ONCE, 1)} == newest == h.store("counts")
        assert Counter(SENTENCE.split()) == Counter(key for key, _ in found)


def test_a_tumbling_window_of_them_gives_ten_panes_at_its_end() -> None:
    app = App()
    words(app, watermark_delay="0s").key_by(lambda word: word, "by-word", key=str).window(tumbling("10s")).count("panes").to("panes")
    with Harness(app, tasks=2) as h:
        h.send("lines", SENTENCE, partition=0, timestamp=T0)
        h.run()
        assert [] == h.output("panes")
        h.time_passes("lines", T0 + 10_000)
        h.run()
        found = {key: (pane["start"], pane["value"]) for key, pane in h.output("panes")}
        assert 10 == len(h.output("panes")) == len(found)
        assert (T0, 3) == found["Apache"]


def test_what_is_sent_after_time_has_passed_is_late_in_a_following_stage() -> None:
    app = App()
    panes = words(app, watermark_delay="0s").key_by(lambda word: word, "by-word", key=str).window(tumbling("10s")).count("panes")
    panes.to("panes")
    panes.late.to("late")
    with Harness(app, tasks=2) as h:
        h.time_passes("lines", T0 + 10_000)
        h.send("lines", "a", partition=0, timestamp=T0)
        h.run()
        assert ([], [("a", "a")]) == (h.output("panes"), h.output("late"))


def test_a_bounded_run_goes_through_all_stages_and_a_later_one_goes_on() -> None:
    app = App()
    longer = words(app).key_by(lambda word: word, "by-word", key=str).count("counts").updates().filter(lambda n: n == 2)
    longer.key_by(lambda n, key: len(key), "by-length", key=int, partitions=5).count("twice").to("twice")
    with Harness(app, tasks=2) as h:
        h.send("lines", "a b a b", partition=1)
        h.end()
        assert {1: 2} == h.store("twice")
        h.restart()
        h.send("lines", "cc cc", partition=0)
        h.end()
        assert {1: 2, 2: 1} == h.store("twice")
        assert [(1, 1), (1, 2), (2, 1)] == sorted(h.output("twice"))


def test_an_empty_input_ends_too() -> None:
    app = App()
    words(app, watermark_delay="0s").key_by(lambda word: word, "by-word", key=str).window(tumbling("1s")).count("n").to("out")
    with Harness(app, tasks=2) as h:
        h.end()
        assert [] == h.output("out")


@pytest.mark.parametrize("time", [0, -1, 1, 2, -(10**14), 10**14])
def test_any_time_and_all_headers_go_through(time: int) -> None:
    app = App()
    stream = app.stream("in", key=str, value=int, time=lambda n: time)
    seen: list[Any] = []
    stream.repartition("again").peek(lambda n, key, time, headers: seen.append((n, key, time, list(headers)))).count("n")
    with Harness(app) as h:
        h.send("in", 7, key="k", headers=[("a", b"1"), ("samzapy-time", b"5"), ("a", None)])
        h.send("in", 8, key="k")
        h.run()
    kept = [("a", b"1"), ("a", None)]
    assert [(7, "k", time, kept if time < 2 else [kept[0], ("samzapy-time", b"5"), kept[1]]), (8, "k", time, [])] == seen


def test_keys_lie_where_javas_clients_put_them() -> None:
    """P5, without its join."""
    app = App()
    app.stream("in", value=int).key_by(lambda n: f"key-{n}", "by-name", key=str, partitions=8).to("out")
    with Harness(app) as h:
        for n in range(1000):
            h.send("in", n)
        h.run()
        found = {m.key(): m.partition() for m in h.records("test-1-by-name") if m.key() != MARKS_KEY}
    assert {key: murmur2(key) % 8 for key in (f"key-{n}".encode() for n in range(1000))} == found


def test_who_gets_what_with_other_groupings() -> None:
    """P6, without `broadcast`."""
    app = App()
    stream = app.stream("in", key=str, value=int)
    stream.repartition("shuffled", by="round_robin", partitions=8).to("shuffled-out")
    stream.repartition("direct", by=lambda n: n % 3, partitions=8).to("direct-out")
    stream.key_by(lambda n: 0, "global", key=int, partitions=8).to("global-out")
    with Harness(app) as h:
        for n in range(1000):
            h.send("in", n, key="k")
        h.run()
        shares = {name: Counter(m.partition() for m in h.records(f"test-1-{name}") if m.key() != MARKS_KEY) for name in ("shuffled", "direct", "global")}
    assert {125} == set(shares["shuffled"].values())
    assert {0: 334, 1: 333, 2: 333} == shares["direct"]
    assert [1000] == list(shares["global"].values())


def test_a_key_that_most_records_have_is_spread_over_two_partitions() -> None:
    """P6: 90 % of the records are of one key."""
    app = App()
    stream = app.stream("in", key=str, value=int)
    stream.repartition("spread", choices=2, partitions=8).key_by(lambda n, key: key, "again", key=str).count("counts")
    stream.repartition("one", partitions=8).to("one-out")
    with Harness(app, tasks=2) as h:
        for n in range(200):
            h.send("in", n, key="most" if n % 10 else f"k{n}", partition=n % 2)
            crash(h, n in (40, 140), keep=n == 40)
        h.run()
        by_key: dict[Any, set[int]] = {}
        for m in (m for m in h.records("test-1-spread") if m.key() != MARKS_KEY):
            by_key.setdefault(m.key(), set()).add(m.partition())
        shares, alone = (Counter(m.partition() for m in h.records(f"test-1-{name}") if m.key() != MARKS_KEY) for name in ("spread", "one"))
        assert {"most": 180, **{f"k{n}": 1 for n in range(0, 200, 10)}} == h.store("counts")
    assert 200 == shares.total() == alone.total()
    assert max(shares.values()) <= 120 < 180 <= max(alone.values())
    assert (2, {1}) == (len(by_key.pop(b"most")), {len(places) for places in by_key.values()})


def test_the_partitions_of_a_key_are_the_same_everywhere_and_begin_where_the_key_alone_goes() -> None:
    found = {n: partitions_of(b"key-%d" % n, 8, 3) for n in range(200)}
    assert all(murmur2(b"key-%d" % n) % 8 == places[0] and len(set(places)) == 3 for n, places in found.items())
    assert {partitions_of(b"k", 2, 5), partitions_of(b"k", 1, 2)} == {tuple(sorted((0, 1), key=lambda p: p != murmur2(b"k") % 2)), (0,)}


@dataclass
class Paid:
    user: str
    cents: int


@pytest.mark.parametrize("changed", [(), ("program.py",)])
def test_a_record_between_stages_that_the_code_cannot_read_is_no_record_at_fault_if_that_code_was_replaced(
    changed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as containers restart one by one, those with the old code meet what those with the new code wrote."""
    spec_of = harness.container_spec
    monkeypatch.setattr(harness, "container_spec", lambda *given: replace(spec_of(*given), replaced_files=lambda: changed))
    app = App()
    app.stream("payments", value=Paid).key_by(lambda p: p.user, "by-user", key=str).count("counts").to("counts")
    with Harness(app, tasks=1, on_error={"then": "skip"}) as h:
        h.send("payments", Paid("ann", 1))
        h.run()
        h.send_raw("test-1-by-user", b'{"user": "ann"}', b"ann")
        if changed:
            with pytest.raises(CodeReplaced, match=r"record test-1-by-user\[0\]@\d+ cannot be read by the code that this container runs, and program.py changed"):
                h.run()
        else:
            h.run()
            assert 1 == h.metric("skipped")
        assert [("ann", 1)] == h.output("counts")


# -- time behind an internal topic -----------------------------------------------------------------------------------------------------------


def tagged(app: App, window: Any) -> None:
    tweets = app.stream("tweets", value=str, watermark_delay="0s").flat_map(str.split, value=str)
    tweets.key_by(lambda tag: tag, "by-tag", key=str).window(window).count("tags").to("tags")


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("tasks", [1, 3])
def test_hopping_windows_by_tag(tasks: int, crashes: bool) -> None:
    """J10."""
    app = App()
    tagged(app, hopping("60s", every="5s"))
    with Harness(app, tasks=tasks) as h:
        for second, text in ((0, "#cat #dog"), (7, "#cat"), (58, "#dog")):
            h.send("tweets", text, partition=0, timestamp=T0 + second * 1000)
            h.time_passes("tweets", T0 + second * 1000)
            crash(h, crashes)
        h.end()
        found: dict[int, dict[str, int]] = {}
        for tag, pane in h.output("tags"):
            found.setdefault((pane["end"] - T0) // 1000, {})[tag] = pane["value"]
        assert 36 == len(h.output("tags"))
    both, early, late = {"#cat": 2, "#dog": 1}, {"#cat": 1, "#dog": 1}, {"#dog": 1}
    wanted = {5: early, **dict.fromkeys(range(10, 60, 5), both), 60: {"#cat": 2, "#dog": 2}, 65: early, **dict.fromkeys(range(70, 120, 5), late)}
    assert wanted == found
    assert 48 == sum(n for tags in found.values() for n in tags.values())


@pytest.mark.parametrize("crashes", [False, True])
def test_tumbling_windows_by_word(crashes: bool) -> None:
    """J11."""
    app = App()
    tagged(app, tumbling("5s"))
    with Harness(app, tasks=2) as h:
        for number, (ms, text) in enumerate(((0, "a b a"), (4999, "b"), (5000, "a"), (11000, "c"))):
            h.send("tweets", text, partition=number % 2, timestamp=T0 + ms)
            crash(h, crashes, keep=number != 2)
        h.end()
        found = sorted(((pane["start"] - T0) // 1000, tag, pane["value"]) for tag, pane in h.output("tags"))
    assert [(0, "a", 2), (0, "b", 2), (5, "a", 1), (10, "c", 1)] == found


def test_a_window_waits_for_every_task_of_the_stage_before() -> None:
    app = App()
    stream = app.stream("in", value=int, watermark_delay="0s", idle_timeout="5s")
    stream.key_by(lambda n: "all", "one", key=str).window(tumbling("10s")).count("n").to("out")
    with Harness(app, tasks=3) as h:
        for partition in (0, 1):
            h.send("in", 1, partition=partition, timestamp=T0 + 1)
            h.send("in", 1, partition=partition, timestamp=T0 + 20_000)
        h.run()
        assert [] == h.output("out")  # nobody knows of the third
        told = [t.time.status(0.0, 0) for t in h.container.tasks.values() if t.time is not None]
        assert any("Partition 2, which writes test-1-one" in str(stage["test-1-one"]["waits_for"]) for stage in told if "test-1-one" in stage)
        for _ in range(12):
            h.advance("1s")
        h.run()
        assert [2] == [pane["value"] for _, pane in h.output("out")]  # the broker has said that it has nothing

        # It comes back: what it sends is in time as long as the others have not gone on.
        h.send("in", 1, partition=2, timestamp=T0 + 20_001)
        h.run()
        for partition in (0, 1):
            h.send("in", 1, partition=partition, timestamp=T0 + 40_000)
        h.run()
        assert 1 == len(h.output("out"))
        h.send("in", 1, partition=2, timestamp=T0 + 40_000)
        h.run()
        assert [2, 3] == [pane["value"] for _, pane in h.output("out")]
        assert 0 == h.late("n")


def test_panes_go_through_an_internal_topic_too() -> None:
    app = App()
    stream = app.stream("in", key=str, value=int, watermark_delay="0s")
    sums = stream.window(tumbling("10s")).aggregate("sums", total=agg.sum())
    best = sums.key_by(lambda pane: "all", "one", key=str).window(tumbling("10s"))
    best.aggregate("best", most=agg.max(lambda pane: pane.value["total"])).to("best")
    with Harness(app, tasks=2) as h:
        for partition, key, n in ((0, "a", 1), (0, "b", 5), (1, "c", 2), (1, "c", 2)):
            h.send("in", n, key=key, partition=partition, timestamp=T0)
        for partition in (0, 1):
            h.send("in", 9, key="z", partition=partition, timestamp=T0 + 10_000)
        h.run()
        assert [5] == [pane["most"] for _, pane in h.output("best")]
        h.end()
        assert [5, 9] == [pane["most"] for _, pane in h.output("best")]


SPAN, DELAY = 60_000, 4_000


def directly(given: list[tuple[int, int, str]]) -> dict[tuple[str, int], int]:
    """How many there are of each key in each window of ten seconds, by a plain loop."""
    return dict(Counter((key, at // 10_000 * 10_000) for _, at, key in given))


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(4, 60))])
def test_windows_behind_a_topic_do_what_a_plain_loop_does(seed: int) -> None:
    """Random keys, times out of order within the bound, partitions, commits, crashes with and without state, and bounded runs."""
    draw = random.Random(seed)
    tasks, partitions = draw.randint(1, 4), draw.choice([None, 1, 2, 5])
    app = App()
    stream = app.stream("in", value=str, watermark_delay="4s", idle_timeout=None)
    kept = stream.key_by(lambda text: text[:2], "by-start", key=str, partitions=partitions)
    kept.window(tumbling("10s")).count("sums").to("out")
    keys = [draw.choice("abc") + draw.choice(["", "x", "\x00"]) for _ in range(6)]
    given = sorted((draw.randrange(SPAN), draw.randrange(tasks), draw.choice(keys)) for _ in range(120))
    records = [(partition, T0 + at - draw.randrange(DELAY), key) for at, partition, key in given]
    with Harness(app, tasks=tasks) as h:
        for partition, at, key in records:
            h.send("in", key, partition=partition, timestamp=at)
            fate = draw.random()
            if fate < 0.1:
                h.run(commit=draw.random() < 0.5)
            elif fate < 0.2:
                h.container.step(0.0)
            elif fate < 0.25:
                h.container.commit()
            elif fate < 0.3:
                h.crash(keep_state=draw.random() < 0.5)
        h.end()
        panes = {(key, pane["start"]): pane["value"] for key, pane in h.output("out")}
        assert directly(records) == panes
        assert len(panes) == len(h.output("out"))  # none twice
        assert {"on_time"} == {pane["pane"] for _, pane in h.output("out")}


def test_marks_are_no_records() -> None:
    app = App()
    stream = app.stream("in", value=str, watermark_delay="0s")
    stream.key_by(lambda text: text, "by-text", key=str).window(tumbling("10s")).count("n").to("out")
    with Harness(app, tasks=2) as h:
        for partition in (0, 1):
            h.send("in", "a", partition=partition, timestamp=T0)
        h.run()
        assert 2 + 1 == h.metric("processed")  # the records, and the sum of both


def test_the_picture_says_which_stage_begins_where() -> None:
    app = App()
    stream = app.stream("in", key=str, value=str).key_by(lambda text: text, "by-text", key=str)
    stream.count("n").updates().key_by(lambda n: n, "by-n", key=int, partitions=3).to("out")
    shown = picture.text(app.graph, {})
    assert "══ stage 2: read by-text: str → str" in shown
    assert "key_by by-n (3 partitions)" in shown
    assert "══ stage 3: read by-n: int → int" in shown
    code = picture.code(app.graph)
    assert "if x == marks_key:" in code


# -- what is refused -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("define", "said"),
    [
        (lambda s: s.map(lambda n: n).key_by(lambda n: n, "x", key=int), "the kind of its values is not known"),
        (lambda s: s.key_by(lambda n: n, "x", key=float), "cannot be looked up"),
        (lambda s: s.key_by(lambda n: n, "x", key=int, partitions=0), "partitions=0"),
        (lambda s: s.key_by(lambda n: n, "n-changelog", key=int), "ends like the name of a changelog"),
        (lambda s: s.key_by(lambda n: n, "dead-letter", key=int), "ends like the name of a changelog or of dead letters"),
        (lambda s: (s.count("x"), s.key_by(lambda n: n, "x", key=int)), "is the name of the count"),
        (lambda s: (s.key_by(lambda n: n, "x", key=int), s.count("x")), "is the name of the key_by"),
        (lambda s: s.repartition("x", by="round_robin").count("n"), "the records of one key may be in several tasks"),
        (lambda s: s.repartition("x", by="random"), "by='random'"),
        (lambda s: s.repartition("x", choices=0), "choices=0"),
        (lambda s: s.repartition("x", by="round_robin", choices=2), "choices=2 with by=…"),
        (lambda s: s.repartition("x", choices=2).count("n"), r"after repartition\('x', choices=2\) the records of one key may be in several tasks"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_defined(define: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        define(App().stream("in", key=str, value=int))


def test_a_topic_that_nobody_reads_goes_nowhere() -> None:
    app = App()
    app.stream("in", key=str, value=int).key_by(lambda n: n, "x", key=int)
    with pytest.raises(ConfigurationError, match="read x goes nowhere"):
        Harness(app)


def counting(name: str, **more: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int).key_by(lambda n: n, name, key=more.pop("key", int), **more).count("n")
    return app


def test_a_renamed_internal_topic_is_refused_with_both_names() -> None:
    with Harness(counting("by-number")) as h:
        h.send("in", 1, key="k")
        h.run()
        with pytest.raises(StateMismatch, match=r"'by-number' \(test-1-by-number\).*is it 'by-n', which is new") as refused:
            h.restart(counting("by-n"))
        assert "checkpoint forget" in refused.value.remedy


def test_another_kind_of_key_in_an_internal_topic_is_refused() -> None:
    with Harness(counting("by-number")) as h:
        h.send("in", 1, key="k")
        h.run()
        with pytest.raises((StateMismatch, StateRefused), match=r"keys integer.*keys string"):
            h.restart(counting("by-number", key=str))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda s: s.key_by(lambda v: v, "x", key=bytes).count("n"), "is samzapy's own in internal topics"),
        (lambda s: s.key_by(lambda v: None, "x", key=bytes).count("n"), "its function gave None, and a record needs a key"),
        (lambda s: s.repartition("x").count("n"), "the record has no key"),
    ],
)
def test_what_cannot_be_a_key_is_the_records_error(program: Any, said: str) -> None:
    app = App()
    program(app.stream("in", value=bytes))
    with Harness(app) as h:
        h.send("in", MARKS_KEY)
        with pytest.raises(TaskError, match=said):
            h.run()


def test_who_writes_marks_by_hand_stops_the_job() -> None:
    with Harness(counting("by-number")) as h:
        h.send_raw("test-1-by-number", b"{}", MARKS_KEY)
        with pytest.raises(TaskError, match="samzapy's own key for marks holds no mark"):
            h.run()


@pytest.mark.parametrize(
    "seal", [{}, {"v": 1}, {"seal": "0123456789abcdef"}, {"of": "another topic"}], ids=["none", "version 1", "wrong", "of another topic"]
)
def test_a_mark_far_ahead_that_this_job_did_not_write_is_named_and_makes_nothing_late(seal: dict[str, Any]) -> None:
    year_2100, app = 4_102_444_800_000, App()
    words(app, watermark_delay="0s").key_by(lambda word: word, "by-word", key=str).window(tumbling("10s")).count("panes").to("panes")
    if "of" in seal:
        forged = marks_to_bytes({"Partition 0": Mark(year_2100)}, seal["of"])
    else:
        forged = json.dumps({"v": 2, "marks": {"Partition 0": [year_2100, "active", ""]}, **seal}).encode()
    with Harness(app, on_error={"then": "dead_letter"}) as h:
        h.send("lines", "a", timestamp=T0)
        h.run()
        h.send_raw("test-1-by-word", forged, MARKS_KEY)
        h.run()
        h.send("lines", "a b", timestamp=T0 + 5_000)
        h.time_passes("lines", T0 + 10_000)
        h.run()
        assert {"a": 2, "b": 1} == {key: pane["value"] for key, pane in h.output("panes")}
        assert 0 == h.late("panes")
        (letter,) = h.dead_letters()
        assert "samzapy's own key for marks" in letter.error
        assert ("test-1-by-word", 0) == (letter.topic, letter.partition)


def test_an_internal_topic_that_grows_while_the_job_runs_stops_it() -> None:
    """Of 2 to 3 partitions: the number of tasks stays, and keys go to other tasks all the same."""
    with Harness(counting("by-number", partitions=2), tasks=4) as h:
        h.send("in", 1, key="k")
        h.run()
        with h.log.admin() as admin:
            admin.grow("test-1-by-number", 3)
        h.advance("2s")
        h.send("in", 2, key="k")
        with pytest.raises(StateMismatch, match=r"^internal topic test-1-by-number grew from 2 to 3 partitions while the job ran") as ended:
            h.run()
        assert ": test-1-by-number[0] offsets 0 to 1. They may have been counted in the wrong task" in ended.value.message, "no input is in doubt"
        assert ended.value.remedy.startswith("Kafka takes no partitions back: run `samzapy reset JOB.yaml`")


def test_an_internal_topic_that_has_grown_since_the_last_run_is_refused() -> None:
    with Harness(counting("by-number", partitions=2), tasks=4) as h:
        h.send("in", 1, key="k")
        h.run()
        h.restart(counting("by-number"))  # its own count holds
        with h.log.admin() as admin:
            admin.grow("test-1-by-number", 3)
        with pytest.raises(StateMismatch, match=r"test-1-by-number had 2 partitions when the state of the operators after it was written, and has 3 now"):
            h.restart(counting("by-number"))


@pytest.mark.parametrize("partitions", [1, 3])
def test_another_number_of_partitions_than_an_internal_topic_has_is_refused_by_a_run_and_in_the_harness(partitions: int) -> None:
    with Harness(counting("by-number", partitions=2), tasks=4) as h:
        h.send("in", 1, key="k")
        h.run()
        said = f"test-1-by-number has 2 partitions, the program says {partitions}: .* say partitions=2, give it another name, or run `samzapy reset JOB.yaml`"
        with pytest.raises(TopicMisconfigured, match=said):
            prepare_topics(HarnessJob.of(counting("by-number", partitions=partitions), (), {}, MemoryRegistry()).settings, h.log, h.clock)
        with pytest.raises(TopicMisconfigured, match=said):
            h.restart(counting("by-number", partitions=partitions))
        h.restart(counting("by-number", partitions=2))
        assert {1: 1} == h.store("n")


@pytest.mark.parametrize("crashes", [False, True])
def test_inputs_may_grow_where_all_state_lies_behind_an_internal_topic(crashes: bool) -> None:
    """Their keys decide nothing: the internal topic keeps its partitions, and the new tasks only bring records."""
    app = App()
    by_word = words(app, watermark_delay="0s").key_by(lambda word: word, "by-word", key=str)
    by_word.count("counts").to("counts")
    by_word.window(tumbling("10s")).count("panes").to("panes")
    with Harness(app, tasks=2, on_error={"then": "dead_letter"}) as h:
        job = HarnessJob.of(app, (), {"on_error": {"then": "dead_letter"}}, MemoryRegistry())
        for partition in (0, 1):
            h.send("lines", "a b c d", partition=partition, timestamp=T0)
        h.run()
        with h.log.admin() as admin:
            admin.grow("lines", 4)
        running = grown_tasks(job.settings, h.log, 2)
        assert ["Partition 0", "Partition 1"] == list(running), "no new tasks in this run"
        assert {"lines[2]", "lines[3]"} <= {str(p) for p in running["Partition 1"].inputs}
        h.stop()
        assert 4 == len(prepare_topics(job.settings, h.log, h.clock))
        for partition in range(4):
            h.send("lines", "a e", partition=partition, timestamp=T0 + 5_000)
            crash(h, crashes, keep=partition % 2 == 0)
        h.run()
        h.time_passes("lines", T0 + 10_000)
        h.run()
        assert {"a": 6, "b": 2, "c": 2, "d": 2, "e": 4} == dict(h.output("counts")) == h.store("counts")
        assert {"a": 6, "b": 2, "c": 2, "d": 2, "e": 4} == {key: pane["value"] for key, pane in h.output("panes")}
        assert 0 == h.late("panes")


def test_inputs_that_state_is_bound_to_may_not_grow() -> None:
    app = App()
    app.stream("lines", key=str, value=str).count("counts")
    with Harness(app, tasks=2) as h:
        h.send("lines", "a", key="a")
        h.run()
        with h.log.admin() as admin:
            admin.grow("lines", 4)
        with pytest.raises(StateMismatch, match="lines: 4 partitions now, 2 when this job's state was created"):
            prepare_topics(HarnessJob.of(app, (), {}, MemoryRegistry()).settings, h.log, h.clock)


# -- to every task ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crashes", [False, True])
def test_a_broadcast_stream_is_whole_in_every_task(crashes: bool) -> None:
    """P6, all: each record once in each of eight tasks, whatever crashes."""
    app = App()
    rules = app.stream("in", key=str, value=int).broadcast("rules")
    rules.count("counts").to("counts")
    rules.key_by(lambda n, key: "all", "one-place", key=str).count("deliveries")
    with Harness(app, tasks=8) as h:
        for n in range(100):
            h.send("in", n, key=f"k{n % 7}", partition=n % 8)
            crash(h, crashes and n in (20, 50, 70), keep=n != 50)
        h.run()
        assert 800 == h.store("deliveries")["all"] == len(h.output("counts"))
        assert {(f"k{k}", n) for k in range(7) for n in range(1, 1 + len(range(k, 100, 7)))} == set(h.output("counts"))
        assert {8} == set(Counter(h.output("counts")).values())


def test_time_goes_to_every_task_with_a_broadcast_stream() -> None:
    app = App()
    app.stream("in", key=str, value=int, watermark_delay="0s").broadcast("rules").window(tumbling("10s")).count("n").to("out")
    with Harness(app, tasks=3) as h:
        for partition in range(3):
            h.send("in", 1, key="k", partition=partition, timestamp=T0)
        h.send("in", 1, key="k", partition=0, timestamp=T0 + 10_000)
        h.run()
        assert [] == h.output("out")  # two of the three that write are not that far
        for partition in (1, 2):
            h.send("in", 1, key="k", partition=partition, timestamp=T0 + 10_000)
        h.run()
        assert [3] * 3 == [pane["value"] for _, pane in h.output("out")]
        h.end()
        assert [3] * 6 == [pane["value"] for _, pane in h.output("out")]


def test_a_broadcast_stream_needs_a_partition_for_each_task() -> None:
    app = App()
    app.stream("in", key=str, value=int).broadcast("rules").to("out")
    topics = HarnessJob.of(app, (), {}, MemoryRegistry()).topics
    assert {"in": 4, "test-1-rules": 4} == topics.counts({"in": 4})
    assert 4 == len(topics.tasks({"in": 4}))
    assert 6 == len(topics.tasks({"in": 4, "test-1-rules": 6}))
    with pytest.raises(ConfigurationError, match="the job has 6 tasks, and a topic of `broadcast` needs a partition for each: test-1-rules has 4"):
        topics.tasks({"in": 6, "test-1-rules": 4})


def test_a_transaction_that_is_open_in_an_internal_topic_is_the_jobs_own() -> None:
    app = App()
    app.stream("in", key=str, value=str).key_by(lambda value: value, "by", key=str).count("n").to("out")
    with Harness(app) as h:
        h.send("in", "a", key="k")
        h.run()
        topic = next(name for name in h.container.status()["tasks"][0]["positions"] if "by" in name).partition("[")[0]
        dead = h.log.transactional_producer("of a container that died")
        dead.init()
        dead.begin()
        dead.send(topic, b"b", b"b", 0)
        dead.flush()
        reasons = set()
        for _ in range(60):
            h.advance(1)
            reasons |= {task["reason"] for task in h.container.status()["tasks"]} - {""}
        (reason,) = reasons
        assert reason.startswith(f"{topic}[0]: a transaction is open at offset ")
        assert reason.endswith(
            "; the task waits for the records after it. It is of a container of this job that has ended or has not committed yet, or of another application that "
            "writes to this topic"
        )


@pytest.mark.parametrize(("interval", "late_s"), [("200ms", 0.3), ("1s", 1.1), ("15s", 1.1)])
def test_a_clock_that_only_moves_on_is_told_once_a_second(interval: str, late_s: float) -> None:
    """Else a job without records would write into its internal topics without pause; and windows behind them end in time all the same."""
    app = App()
    stream = app.stream("in", value=str, time="processing")
    stream.key_by(lambda text: text, "by-text", key=str).window(tumbling("10s")).count("n").to("out")
    with Harness(app, tasks=2, commit={"interval": interval}) as h:
        h.clock.advance(10.0 - h.clock.now_ms() % 10_000 / 1000)  # to the begin of a window
        h.send("in", "a", partition=0)
        for _ in range(20):
            h.advance(0.02)
        assert [] == h.output("out")
        marks = lambda: len([r for r in h.records("test-1-by-text", 0) if r.key() == MARKS_KEY])  # noqa: E731
        before = marks()
        for _ in range(600):
            h.advance(0.02)
            if h.output("out"):
                break
        assert [1] == [pane["value"] for _, pane in h.output("out")]
        assert h.clock.now_ms() % 10_000 / 1000 <= late_s, "the next commit shows the pane"
        assert 9 <= marks() - before <= 12
