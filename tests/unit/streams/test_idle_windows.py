"""Windows of inputs that are idle: nobody waits for ever, and what was in time is in the result."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.container.marked_partition import MarkedPartition
from samzapy.model.event_time import PartitionMark
from samzapy.model.marks import ACTIVE, IDLE, Mark, mark_from_json, marks_to_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.streams import App, agg, hopping, tumbling
from samzapy.streams.idle_windows import shared_topics
from samzapy.testing import Harness

T0 = 1_600_000_000_000
OPTIONS: dict[str, Any] = {"watermark_delay": "0s", "idle_timeout": "10s"}


def of_users(when_idle: Any = "hold", partitions: int | None = None, window: Any = None) -> App:
    """Visits of each user, and of all of them, in each ten seconds."""
    app = App()
    visits = app.stream("visits", key=str, value=str, when_idle=when_idle, **OPTIONS)
    counts = visits.window(window or tumbling("10s")).count("per-user").map(lambda pane: pane.value, value=int)
    totals = counts.key_by(lambda count: "all", "all", key=str, partitions=partitions).window(tumbling("10s")).aggregate("total", visits=agg.sum())
    totals.to("total")
    totals.late.to("late")
    return app


def visit(h: Harness, partition: int, *seconds: int, topic: str = "visits", value: Any = "/") -> None:
    for second in seconds:
        h.send(topic, value, key=f"of {partition}", partition=partition, timestamp=T0 + second * 1000)


def silence(h: Harness, seconds: int = 15) -> None:
    for _ in range(seconds):
        h.advance(1)
        h.run()


def totals(h: Harness) -> dict[int, int]:
    given = [((pane["start"] - T0) // 1000, pane["visits"]) for _, pane in h.output("total")]
    assert len(given) == len(dict(given))
    return dict(given)


def waits(h: Harness) -> str:
    return str([t.time.status(h.clock.monotonic(), h.clock.now_ms()) for t in h.container.tasks.values() if t.time is not None])


@pytest.mark.parametrize("crashes", [False, True])
def test_panes_of_a_task_that_is_idle_come_before_the_following_stage_goes_on(crashes: bool) -> None:
    with Harness(of_users(), tasks=2) as h:
        visit(h, 0, 1, 1, 1)
        visit(h, 1, 1)
        h.run()
        silence(h)
        if crashes:
            h.crash()
            h.run()
            silence(h)
        visit(h, 1, 5, 15, 25, 35)
        h.run()
        silence(h, 5)
        assert {0: 5, 10: 1, 20: 1} == totals(h)
        visit(h, 0, 36)
        visit(h, 1, 45)
        h.run()
        visit(h, 0, 50)
        visit(h, 1, 50)
        h.run()
        assert {0: 5, 10: 1, 20: 1, 30: 2, 40: 1} == totals(h)
        assert [0, 0] == [h.late(name) for name in ("per-user", "total")]


def test_they_do_where_time_goes_on_by_the_clock_too() -> None:
    with Harness(of_users("advance"), tasks=2) as h:
        visit(h, 0, 1, 1, 1)
        visit(h, 1, 1)
        h.run()
        silence(h)
        visit(h, 1, 9, 15, 25, 35)
        h.run()
        assert {0: 5, 10: 1, 20: 1} == totals(h)
        assert [0, 0] == [h.late(name) for name in ("per-user", "total")]


def test_windows_that_overlap_come_in_time_too() -> None:
    with Harness(of_users(window=hopping("30s", every="10s")), tasks=2) as h:
        visit(h, 0, 1, 1)
        visit(h, 1, 1)
        h.run()
        silence(h)
        for second in (15, 25, 35, 45):
            visit(h, 1, second)
            h.run()
        assert {0: 3, 10: 4, 20: 5, 30: 3} == totals(h)  # of the 30 s that end at 10, 20, 30 and 40
        h.end()
        assert [] == h.output("late")
        assert 3 * 7 == sum(totals(h).values())  # each visit is in three windows


def test_a_bounded_run_after_a_silence_misses_nothing() -> None:
    with Harness(of_users(), tasks=2) as h:
        visit(h, 0, 1, 1, 1)
        visit(h, 1, 1)
        h.run()
        silence(h)
        visit(h, 1, 5, 15, 100)
        h.run()
        h.end()
        assert {0: 5, 10: 1, 100: 1} == totals(h)
        assert [] == h.output("late")


def test_a_window_stays_open_while_others_have_not_passed_its_end() -> None:
    """A task that is idle with an open window may go on with it: nobody was ahead of that."""
    with Harness(of_users(), tasks=2) as h:
        visit(h, 0, 1)
        visit(h, 1, 1)
        h.run()
        silence(h)
        visit(h, 1, 9)
        h.run()
        visit(h, 0, 8)  # before the time of the other, in time for its own
        h.run()
        assert {} == totals(h)
        visit(h, 0, 20)
        visit(h, 1, 20)
        h.run()
        assert {0: 4} == totals(h)
        assert [0, 0] == [h.late(name) for name in ("per-user", "total")]


def test_if_all_are_silent_all_windows_stay_open() -> None:
    with Harness(of_users(), tasks=2) as h:
        visit(h, 0, 1)
        visit(h, 1, 2)
        h.run()
        silence(h, 60)
        assert {} == totals(h)
        assert "is idle with open windows" in waits(h)
        visit(h, 0, 8)
        visit(h, 1, 9)
        h.run()
        visit(h, 0, 10)
        visit(h, 1, 10)
        h.run()
        assert {0: 4} == totals(h)


def test_what_comes_after_the_others_have_gone_on_is_late_and_counted() -> None:
    with Harness(of_users(), tasks=2) as h:
        visit(h, 0, 1)
        visit(h, 1, 1)
        h.run()
        silence(h)
        visit(h, 1, 15)
        h.run()
        assert {0: 2} == totals(h)
        visit(h, 0, 2)
        h.run()
        assert 1 == h.late("per-user")
        h.end()
        assert {0: 2, 10: 1} == totals(h)


def test_a_task_that_does_not_read_the_topic_goes_on_by_the_clock() -> None:
    """It cannot know how far the others are."""
    with Harness(of_users(partitions=1), tasks=2) as h:
        for partition in (1, 0):
            visit(h, partition, 1)
        h.run()
        silence(h, 12)
        visit(h, 0, 5, 15, 25)
        h.run()
        assert {} == totals(h)
        assert "Partition 1, which writes test-1-all[0], and is idle with open windows" in waits(h)
        silence(h, 12)
        visit(h, 0, 26)
        h.run()
        assert {0: 3, 10: 1} == totals(h)
        assert [0, 0] == [h.late(name) for name in ("per-user", "total")]


def joined(is_staged: bool) -> App:
    app = App()
    one, two = (app.stream(topic, key=str, value=int, **OPTIONS) for topic in ("one", "two"))
    both = one.window(tumbling("10s")).count("count").map(lambda pane: 1000 + pane.value, value=int).merge(two)
    if is_staged:
        both = both.key_by(lambda value: "x", "st", key=str)
    found = both.window(tumbling("10s")).collect("found")
    found.to("out")
    found.late.to("late")
    return app


@pytest.mark.parametrize("is_staged", [False, True])
@pytest.mark.parametrize("is_one_batch", [False, True])
def test_a_window_of_two_inputs_waits_for_the_panes_of_the_one_that_is_idle(is_staged: bool, is_one_batch: bool) -> None:
    with Harness(joined(is_staged)) as h:
        visit(h, 0, 1, topic="one", value=1)
        visit(h, 0, 1, topic="two", value=1)
        h.run()
        silence(h)
        for second in (5, 15, 50, 100):
            visit(h, 0, second, topic="two", value=second)
            if not is_one_batch:
                h.run()
        h.run()
        assert [[1, 5, 1001], [15], [50]] == [pane["value"] for _, pane in h.output("out")]
        visit(h, 0, 101, topic="one", value=1)
        visit(h, 0, 200, topic="two", value=200)
        h.run()
        assert 3 == len(h.output("out"))
        visit(h, 0, 200, topic="one", value=1)
        h.run()
        assert [100, 1001] == h.output("out")[-1][1]["value"]
        assert [] == h.output("late")


def sees_all_of_both(app: App, seconds: int) -> None:
    """Though the first input stays idle: after so many seconds more the other one goes on."""
    with Harness(app) as h:
        visit(h, 0, 1, topic="one", value=1)
        visit(h, 0, 1, topic="two", value=1)
        h.run()
        silence(h, 12)
        visit(h, 0, 5, 15, topic="two", value=2)
        h.run()
        silence(h, seconds)
        visit(h, 0, 16, topic="two", value=2)
        h.run()
        assert [[1, 2, 1001]] == [pane["value"] for _, pane in h.output("out")]
        assert 0 == h.late("found")


def test_a_topic_that_is_merged_with_another_input_does_not_hold_it_for_ever() -> None:
    """All who write the topic are idle with open windows; those behind it have another input, of which the writers know nothing."""
    app = App()
    one, two = (app.stream(topic, key=str, value=int, **OPTIONS) for topic in ("one", "two"))
    counts = one.window(tumbling("10s")).count("count").map(lambda pane: 1000 + pane.value, value=int).key_by(lambda value: "of 0", "st", key=str)
    counts.merge(two).window(tumbling("10s")).collect("found").to("out")
    sees_all_of_both(app, 12)


def test_nor_does_it_through_a_stage_between() -> None:
    app = App()
    one, two = (app.stream(topic, key=str, value=int, **OPTIONS) for topic in ("one", "two"))
    counts = one.window(tumbling("10s")).count("count").map(lambda pane: pane.value, value=int).key_by(lambda value: "x", "st", key=str)
    sums = counts.window(tumbling("10s")).aggregate("sum", n=agg.sum()).map(lambda pane: 1000 + pane.value["n"], value=int)
    sums.key_by(lambda value: "of 0", "again", key=str).merge(two).window(tumbling("10s")).collect("found").to("out")
    sees_all_of_both(app, 24)


def test_after_which_topics_others_wait() -> None:
    fed = {"a": ["in"], "b": ["a"], "c": ["b"], "d": ["in"], "e": ["d"]}
    assert set() == shared_topics(fed, [["in"], ["a"], ["b"], ["c"], ["e"]])
    assert {"a", "b", "c"} == shared_topics(fed, [["in"], ["a"], ["c", "other"], ["e"]])
    assert {"a", "d", "e"} == shared_topics(fed, [["a", "e"], ["in", "other"]])


def test_what_an_idle_task_says_of_open_windows() -> None:
    partition = MarkedPartition(TopicPartition("t", 0), ["a", "b", "c"], PartitionMark(), "run", lambda: 0)

    def hear(**marks: Mark) -> tuple[int, bool]:
        partition.heard(marks_to_bytes(marks, ""))
        return partition.watermark, partition.idle

    assert (3, False) == hear(a=Mark(3), b=Mark(50), c=Mark(70))
    assert (9, False) == hear(a=Mark(3, IDLE, first=9))
    assert ("a", True) == (partition.held_by(), partition.is_idle("a"))
    assert [50, 70, 50] == [partition.others(task) for task in "abc"]
    again = MarkedPartition(TopicPartition("t", 0), ["a", "b", "c"], partition.mark, "run", lambda: 0)
    assert 9 == again.watermark
    assert (19, False) == hear(a=Mark(3, IDLE, first=19))
    assert (19, False) == hear(b=Mark(50, IDLE), c=Mark(70, IDLE))  # not left out as a whole: something is still to come
    assert [70, 70, 50] == [partition.others(task) for task in "abc"]
    assert (3, False) == hear(a=Mark(2))  # it comes back, and what it has said stands
    assert (70, True) == hear(a=Mark(3, IDLE))


def test_marks_of_open_windows_are_read_by_earlier_versions_as_idle() -> None:
    mark = Mark(5, IDLE, first=-9)
    assert [5, "idle", "-9"] == mark.to_json()
    assert mark == mark_from_json(mark.to_json())
    assert Mark(5, IDLE) == mark_from_json([5, "idle", ""])
    assert Mark(5, ACTIVE) == mark_from_json([5, "active", "7"])
    with pytest.raises(ValueError, match="invalid literal"):
        mark_from_json([5, "idle", "soon"])


@pytest.mark.parametrize("is_one_batch", [False, True])
def test_a_late_record_does_not_pass_panes_that_are_still_to_come(is_one_batch: bool) -> None:
    """The idle input's window fires as soon as it is due, within a batch too: a late record of the other input finds it fired."""
    app = App()
    one, two = (app.stream(topic, key=str, value=int, **OPTIONS) for topic in ("one", "two"))
    both = one.window(tumbling("10s")).count("count").map(lambda pane: 1000 + pane.value, value=int).merge(two)
    both.window(hopping("20s", every="10s")).collect("found").to("out")
    with Harness(app) as h:
        visit(h, 0, 1, topic="one", value=1)
        h.run()
        silence(h)
        for second in (15, 8, 40):
            visit(h, 0, second, topic="two", value=second)
            if not is_one_batch:
                h.run()
        h.run()
        found = [((pane["start"] - T0) // 1000, sorted(pane["value"])) for _, pane in h.output("out")]
        assert [(-10, [1001]), (0, [8, 15, 1001]), (10, [15])] == found
