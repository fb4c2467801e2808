"""What must hold between stages whatever crashes; and bugs planted there, each of which one of these tests notices."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from samzapy import failpoints
from samzapy.api.errors import ClusterUnreachable, StateRefused
from samzapy.container.collector import Collector
from samzapy.container.commit_due import RECORD
from samzapy.container.committer import Committer
from samzapy.container.marked_partition import MarkedPartition
from samzapy.container.marks import Marks
from samzapy.container.purge import PURGE_S, Purge
from samzapy.container.tasks import Tasks
from samzapy.model.event_time import NEVER, PartitionMark
from samzapy.model.marks import ENDED, IDLE, MARKS_KEY, Mark, marks_to_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.streams import App, tumbling
from samzapy.streams import task_windows as stage
from samzapy.streams.idle_windows import IdleWindows
from samzapy.testing import Harness
from samzapy.testing.manual_clock import ManualClock
from tests.unit.streams import test_idle_windows as idle
from tests.unit.streams import test_stages as stages

T0 = 1_600_041_600_000
TOPIC = "test-1-by-word"


class Died(Exception):
    """The process ends here."""


@contextmanager
def dying(h: Harness, point: str) -> Iterator[None]:
    """The process dies at a failpoint; a new one begins with what is committed."""

    def strike(name: str) -> None:
        if name == point:
            raise Died

    with failpoints.calling(strike), pytest.raises(Died):
        yield
    h.crash()


def counting(**time: Any) -> App:
    app = App()
    words = app.stream("lines", value=str, **time).key_by(lambda word: word, "by-word", key=str)
    words.count("counts")
    if time:
        words.window(tumbling("10s")).count("panes").to("panes")
    return app


@pytest.mark.parametrize("point", ["commit.C2.flushed", "commit.C4.before", "commit.C4.after"])
def test_a_window_misses_nothing_of_a_commit_that_failed(point: str) -> None:
    with Harness(counting(watermark_delay="0s"), tasks=2) as h:
        for partition in (0, 1):
            h.send("lines", "a", partition=partition, timestamp=T0)
        h.run()
        for partition in (0, 1):
            for at in (5_000, 20_000):
                h.send("lines", "a", partition=partition, timestamp=T0 + at)
        with dying(h, point):
            h.run()
        h.run()
        assert [4] == [pane["value"] for _, pane in h.output("panes")]
        assert 0 == h.late("panes")


@pytest.mark.parametrize("point", ["commit.C2.flushed", "commit.C4.before"])
def test_records_on_their_way_count_once_with_at_least_once_too(point: str) -> None:
    with Harness(counting(), tasks=2, commit={"guarantee": "at_least_once"}) as h:
        for n in range(10):
            h.send("lines", str(n % 3), partition=n % 2)
        with dying(h, point):
            h.run()
        h.run()
        assert Counter(str(n % 3) for n in range(10)) == h.store("counts")


def test_time_behind_a_window_waits_until_it_has_fired(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit comes after each pane: what the following stage is told must not be ahead of the panes that are still to come."""
    fire = Tasks._fire

    def fired(tasks: Tasks) -> None:
        fire(tasks)
        tasks._commits.commit(RECORD)

    monkeypatch.setattr(stage, "UNIT", 1)
    monkeypatch.setattr(Tasks, "_fire", fired)
    app = App()
    words = app.stream("lines", key=str, value=str, watermark_delay="0s")
    panes = words.window(tumbling("10s")).count("first")
    panes.key_by(lambda pane: "all", "one", key=str).window(tumbling("10s")).count("second").to("out")
    with Harness(app) as h:
        for n in range(7):
            h.send("lines", "x", key=f"k{n}", timestamp=T0)
        h.send("lines", "x", key="k", timestamp=T0 + 10_000)
        h.run()
        assert [7] == [pane["value"] for _, pane in h.output("out")]
        assert 0 == h.late("second")


def purged(h: Harness) -> None:
    """What runs beside the loop every 30 seconds."""
    clock = ManualClock()
    purge = Purge(lambda: h.container.consumed, clock)
    clock.advance(PURGE_S)
    with h.log.admin() as admin:
        purge.step(admin)


def test_what_was_read_and_committed_is_removed_and_nothing_else() -> None:
    with Harness(counting(), tasks=2) as h:
        for n in range(6):
            h.send("lines", "a", partition=n % 2)
        h.run()
        purged(h)
        assert [] == [m for m in h.records(TOPIC) if m.key() != MARKS_KEY]
        for n in range(4):
            h.send("lines", "a", partition=n % 2)
        while h.container.step(0.0):  # they are sent,
            pass
        h.container.commit()
        while h.container.step(0.0):  # and read, which is not committed
            pass
        purged(h)
        assert 4 == len([m for m in h.records(TOPIC) if m.key() != MARKS_KEY])
        h.crash()
        h.run()
        assert {"a": 10} == h.store("counts")


def test_a_purge_that_fails_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[dict[TopicPartition, int]] = []

    class Admin:
        def delete_records(self, before: dict[TopicPartition, int]) -> None:
            asked.append(before)
            if len(asked) < 3:
                raise ClusterUnreachable("no broker answered.", "")

    clock, at = ManualClock(), {TopicPartition(TOPIC, 0): 5}
    purge, admin = Purge(lambda: at, clock), Admin()
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            clock.advance(PURGE_S)
            purge.step(admin)  # type: ignore[arg-type]
            purge.step(admin)  # type: ignore[arg-type]  # not yet
    assert [at] * 3 == asked  # then it is done
    assert 1 == len(caplog.records)


def test_what_marks_say_of_a_partition() -> None:
    partition = MarkedPartition(TopicPartition("t", 0), ["a", "b"], PartitionMark(), "run-2", lambda: 0)

    def hear(**marks: Mark) -> tuple[int, bool, bool]:
        partition.heard(marks_to_bytes(marks, ""))
        return partition.watermark, partition.idle, partition.ended

    assert (NEVER, False, False) == hear(a=Mark(5))
    assert "b" == partition.held_by()
    assert (5, False, False) == hear(b=Mark(7), stranger=Mark(1))
    assert (5, False, False) == hear(a=Mark(3))  # it has said 5
    assert (7, False, False) == hear(a=Mark(5, IDLE))
    assert (7, True, False) == hear(b=Mark(7, IDLE))
    assert (7, False, False) == hear(b=Mark(7, ENDED, "run-1"))  # another run's
    assert (5, True, False) == hear(b=Mark(7, ENDED, "run-2"))
    assert hear(a=Mark(5, ENDED, "run-2"))[2]
    again = MarkedPartition(TopicPartition("t", 0), ["a", "b"], partition.mark, "run-3", lambda: 0)
    assert (5, False, False) == (again.watermark, again.idle, again.ended)


def test_what_marks_have_said_is_in_the_checkpoint() -> None:
    """A reader that starts again, when those who have ended say nothing any more."""
    with Harness(counting(watermark_delay="0s"), tasks=2) as h:
        for partition in (0, 1):
            h.send("lines", "a", partition=partition, timestamp=T0)
        h.run()
        said = {task: Mark(T0) for task in ("Partition 0", "Partition 1")}

        def known() -> list[Any]:
            return [dict(mark.time.marks or {}) for n in range(2) if (c := h.checkpoint(n)) for p, mark in c.inputs.items() if p.startswith(TOPIC) and mark.time]

        assert [said, said] == known()
        h.crash()
        assert h.container.tasks
        assert [said, said] == known()
        partitions = [i.watermark for task in h.container.tasks.values() for i in task.inputs if i.spec.between is not None]
        assert [T0, T0] == [partition.watermark for partition in partitions if partition is not None]


# -- planted bugs ----------------------------------------------------------------------------------------------------------------------------

send, settle, look = Marks._send, MarkedPartition._combine, MarkedPartition.__init__


def _outside(marks: Marks, topic: str, said: Any) -> None:
    """A mark is not in the transaction: it stands although that is aborted."""
    producer = marks._own._log.plain_producer("outside")
    for partition in range(marks._between[topic].partitions):
        producer.send(topic, marks_to_bytes(said, marks._topic_ids[topic]), MARKS_KEY, partition)
    producer.flush()


def _forgetting(partition: MarkedPartition, topic_partition: Any, writers: Any, *rest: Any) -> None:
    look(partition, topic_partition, sorted(writers)[:-1], *rest)


def _largest(partition: MarkedPartition) -> None:
    settle(partition)
    times = [mark.time for mark in partition._newest.values() if mark.time is not None]
    if not partition.ended and times:
        partition.watermark = max(times)


def _ahead(committer: Committer, cuts: Any, checkpoints: Any) -> None:
    apply(committer, cuts, checkpoints)
    committer.consumed = {partition: at + 2 for partition, at in committer.consumed.items()}


apply = Committer._apply
BUGS: dict[str, tuple[Any, str, Any, Callable[[pytest.MonkeyPatch], object]]] = {
    "marks are dropped": (Marks, "_send", lambda marks, topic, said: None, lambda patch: stages.test_a_tumbling_window_of_them_gives_ten_panes_at_its_end()),
    "marks outside the transaction": (Marks, "_send", _outside, lambda patch: test_a_window_misses_nothing_of_a_commit_that_failed("commit.C4.before")),
    "a writer is forgotten": (MarkedPartition, "__init__", _forgetting, lambda patch: stages.test_a_window_waits_for_every_task_of_the_stage_before()),
    "maximum over the writers": (MarkedPartition, "_combine", _largest, lambda patch: stages.test_a_window_waits_for_every_task_of_the_stage_before()),
    "a task that returns says nothing": (Marks, "announce", lambda marks, tasks: None, lambda patch: test_a_task_that_returns_holds_time_for_its_own_records()),
    "what marks said is not in the checkpoint": (
        MarkedPartition, "mark", property(lambda partition: PartitionMark(marks={})), lambda patch: test_what_marks_have_said_is_in_the_checkpoint(),
    ),
    "another run's end counts": (
        MarkedPartition, "_is_end", lambda partition, mark: mark.state == ENDED,
        lambda patch: stages.test_a_bounded_run_goes_through_all_stages_and_a_later_one_goes_on(),
    ),
    "time is ahead of panes that are still to come": (
        stage.TaskWindows, "reached", lambda windows, node, at: (at.kept, False), test_time_behind_a_window_waits_until_it_has_fired,
    ),
    "nobody is told of open windows of idle tasks": (
        stage.TaskWindows, "still_to_come", lambda windows, topic: None,
        lambda patch: idle.test_panes_of_a_task_that_is_idle_come_before_the_following_stage_goes_on(False),
    ),
    "idle windows do not go on": (
        IdleWindows, "go_on", lambda windows: None,
        lambda patch: idle.test_panes_of_a_task_that_is_idle_come_before_the_following_stage_goes_on(False),
    ),
    "records of a following stage outside the transaction": (
        Collector, "take", lambda collector, topics: [],
        lambda patch: test_records_on_their_way_count_once_with_at_least_once_too("commit.C4.before"),
    ),
    "purge beyond the committed position": (Committer, "_apply", _ahead, lambda patch: test_what_was_read_and_committed_is_removed_and_nothing_else()),
}  # fmt: skip


def test_a_task_that_returns_holds_time_for_its_own_records() -> None:
    """It was idle, and brings several records in one transaction, while the others go on."""
    app = counting(watermark_delay="0s", idle_timeout="5s")
    with Harness(app, tasks=2) as h:
        h.send("lines", "a", partition=0, timestamp=T0)
        h.run()
        for _ in range(12):
            h.advance("1s")
        h.run()
        assert [Mark(T0, IDLE), Mark(None, IDLE)] == [task.said[TOPIC] for task in h.container.tasks.values()]
        h.send("lines", "a", partition=1, timestamp=T0 + 1)
        h.container.step(0.0)
        h.container.commit()
        keys = [m.key() for p in range(2) for m in h.records(TOPIC, p)]
        first = next(n for n, m in enumerate(h.records(TOPIC, place_of(h))) if m.key() != MARKS_KEY and m.timestamp()[1] == T0 + 1)
        before = h.records(TOPIC, place_of(h))[first - 1]
        assert keys
        assert MARKS_KEY == before.key()
        topic_id = h.container.tasks["Partition 0"].committed.inputs[f"{TOPIC}[0]"].topic_id
        assert marks_to_bytes({"Partition 1": Mark()}, topic_id) == before.value()


def place_of(h: Harness) -> int:
    """The partition in which the records are."""
    return next(m.partition() for m in h.records(TOPIC) if m.key() == b"a")


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong, scenario = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises((AssertionError, StateRefused)):
        scenario(monkeypatch)
