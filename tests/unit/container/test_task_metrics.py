"""A task's own metrics: what they take, and how they are shown. What they hold goes through JSON and into Prometheus' text form."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest

from samzapy.container.task_metrics import MOST_METRICS, MOST_OF_CONTAINER, Room, TaskMetrics


class Whole:
    def __index__(self) -> int:
        return 3


def test_numbers_of_any_kind_are_taken() -> None:
    metrics = TaskMetrics()
    counter, gauge, timer = metrics.counter("n"), metrics.gauge("g"), metrics.timer("t")
    for amount in (1, 0, True, 0.5, Whole()):
        counter.inc(amount)  # type: ignore[arg-type]
    gauge.set(Decimal("1.5"))  # type: ignore[arg-type]
    timer.update(2)
    assert metrics.snapshot() == {"counters": {"n": 5.5}, "gauges": {"g": 1.5}, "timers": {"t": {"count": 1, "sum": 2.0, "max": 2.0}}}
    assert (metrics.counter("n"), metrics.gauge("g"), metrics.timer("t")) == (counter, gauge, timer)


@pytest.mark.parametrize("value", ["x", None, [1], {}, 10**400, object()])
def test_what_is_no_number_is_refused_where_it_is_given(value: Any) -> None:
    metrics = TaskMetrics()
    metrics.gauge("g").set(1.0)
    for call, kind in ((metrics.gauge("g").set, "gauge 'g'"), (metrics.timer("t").update, "timer 't'")):
        with pytest.raises(TypeError, match=f"{kind} takes a number, not "):
            call(value)
    with pytest.raises((TypeError, ValueError), match="counter 'n'"):
        metrics.counter("n").inc(value)
    assert metrics.snapshot() == {"counters": {"n": 0}, "gauges": {"g": 1.0}, "timers": {"t": {"count": 0, "sum": 0.0, "max": 0.0}}}


@pytest.mark.parametrize("amount", [-1, 2**63, math.nan, math.inf, -0.5])
def test_a_counter_only_grows_as_far_as_readers_of_json_count(amount: float) -> None:
    counter = TaskMetrics().counter("n")
    with pytest.raises(ValueError, match=r"counter 'n' cannot grow by .*: it only grows, up to 2\*\*63 - 1"):
        counter.inc(amount)  # type: ignore[arg-type]
    counter.inc(2**63 - 1)
    assert counter.value == 2**63 - 1
    with pytest.raises(ValueError, match="cannot grow"):
        counter.inc()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_gauge_that_is_no_finite_number_has_no_place_in_json(value: float) -> None:
    metrics = TaskMetrics()
    metrics.gauge("g").set(value)
    assert json.dumps(metrics.snapshot()["gauges"], allow_nan=False) == '{"g": null}'
    assert repr(metrics.gauge("g").value) == repr(value)
    with pytest.raises(ValueError, match="timer 't' takes seconds"):
        metrics.timer("t").update(value)


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (("counter", "a.b"), ("counter", "a-b"), "samzapy_user_a_b_total"),
        (("gauge", "x_total"), ("counter", "x"), "samzapy_user_x_total"),
        (("timer", "x"), ("gauge", "x_seconds"), "samzapy_user_x_seconds"),
        (("gauge", "x_seconds_sum"), ("timer", "x"), "samzapy_user_x_seconds_sum"),
    ],
)
def test_two_metrics_of_one_name_in_prometheus_are_refused(one: tuple[str, str], other: tuple[str, str], shown: str) -> None:
    metrics = TaskMetrics()
    getattr(metrics, one[0])(one[1])
    with pytest.raises(ValueError, match=f"{other[0]} '{other[1]}' and {one[0]} '{one[1]}' would both be {shown} in /metrics"):
        getattr(metrics, other[0])(other[1])
    getattr(metrics, one[0])(one[1])


def test_a_counter_and_a_gauge_may_have_one_name() -> None:
    metrics = TaskMetrics()
    metrics.counter("x").inc()
    metrics.gauge("x").set(2)
    metrics.timer("x").update(1)


def test_a_task_has_a_thousand_metrics_at_most() -> None:
    metrics = TaskMetrics()
    for n in range(MOST_METRICS):
        (metrics.counter, metrics.gauge, metrics.timer)[n % 3](f"m{n}")
    with pytest.raises(ValueError, match=r"counter 'one_more': a task has at most 1000 metrics.*Count by key in a store"):
        metrics.counter("one_more")
    metrics.counter("m0").inc()


def test_the_tasks_of_a_container_have_no_more_together_than_a_report_takes() -> None:
    room = Room()
    for _ in range(MOST_OF_CONTAINER // MOST_METRICS):
        metrics = TaskMetrics(room)
        for n in range(MOST_METRICS):
            metrics.counter(f"m{n}")
    with pytest.raises(ValueError, match=r"gauge 'one_more': .*all tasks of a container 20000"):
        TaskMetrics(room).gauge("one_more")
    TaskMetrics().gauge("one_more")
