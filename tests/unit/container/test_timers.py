"""The table of duties: when a row is due again."""

from __future__ import annotations

import pytest

from samzapy.container.facts import Facts
from samzapy.container.timers import Duty, Schedule
from samzapy.testing.manual_clock import ManualClock


def schedule(clock: ManualClock, interval_s: float) -> Schedule:
    made = Schedule(clock, Facts(clock).loop)
    made.set([Duty("commit", lambda: None, interval_s)])
    return made


@pytest.mark.parametrize(
    ("interval_s", "took_s", "after_s"),
    [
        (1.0, 0.0, 1.0),
        (1.0, 0.02, 0.98),  # from beginning to beginning
        (0.1, 0.02, 0.08),
        (0.1, 0.05, 0.05),
        (0.1, 0.08, 0.08),  # as much time for records as it took
        (0.1, 5.0, 0.1),  # but no more than an interval: a commit must not get larger because brokers are slow
        (1.0, 5.0, 1.0),
    ],
)
def test_what_took_its_time_is_due_an_interval_after_it_began(interval_s: float, took_s: float, after_s: float) -> None:
    clock = ManualClock()
    table = schedule(clock, interval_s)
    began = clock.monotonic()
    clock.sleep(took_s)
    table.done_since("commit", began)
    clock.sleep(after_s - 0.001)
    assert not table.is_over("commit")
    clock.sleep(0.002)
    assert table.is_over("commit")


def test_a_row_that_is_done_before_another_is_done_once_before_each_of_its_times() -> None:
    clock, done = ManualClock(), list[tuple[str, float]]()
    table = Schedule(clock, Facts(clock).loop)

    def commit() -> None:
        done.append(("commit", clock.monotonic()))
        table.done_since("commit", clock.monotonic())

    table.set([Duty("commit", commit, 0.5), Duty("partitions", lambda: done.append(("partitions", clock.monotonic())), 0.125, before="commit")])
    for _ in range(24):
        table.run()
        clock.sleep(0.0625)
    assert [("partitions", 0.375), ("commit", 0.5), ("partitions", 0.875), ("commit", 1.0), ("partitions", 1.375)] == done

    table.done_since("commit", clock.monotonic())  # one that somebody asked for
    table.run()
    clock.sleep(0.375)
    table.run()
    assert [("partitions", 1.875)] == done[5:]
