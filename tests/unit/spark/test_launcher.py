"""Waiting for Spark's executors, with hosts that the test names and a clock of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from samzapy.spark.launcher import EXECUTORS_PATIENCE_S, EXECUTORS_SETTLED_S, MORE_EXECUTORS_S, wait_for_hosts

Hosts = Mapping[str, int | None]


class Spark:
    """Answers with the hosts that are there at a time (seconds)."""

    def __init__(self, hosts_from: Mapping[float, Hosts]) -> None:
        self.now = 0.0
        self._hosts_from = hosts_from

    def hosts(self) -> Hosts:
        return next((h for at, h in sorted(self._hosts_from.items(), reverse=True) if at <= self.now), {})

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, needed: int = 1) -> float:
        wait_for_hosts(self.hosts, needed, lambda: self.now, self.sleep)
        return self.now


def test_it_waits_until_no_more_hosts_come(caplog: pytest.LogCaptureFixture) -> None:
    assert 1.0 + EXECUTORS_SETTLED_S == Spark({0.5: {"a": 2}, 1.0: {"a": 2, "b": 2}}).wait()
    assert [] == caplog.messages


def test_a_full_cluster_is_waited_for_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert EXECUTORS_PATIENCE_S == Spark({}).wait()
    [said] = caplog.messages
    assert "0 of the 1 slots that it needs; waiting for up to 55 s for an executor" in said
    assert "Ctrl-C ends the wait" in said


def test_a_host_that_comes_late_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert 20.0 + EXECUTORS_SETTLED_S == Spark({20.0: {"a": 1}}).wait()
    assert 1 == len(caplog.messages)


def test_a_host_that_is_needed_is_waited_for_though_another_came_long_before(caplog: pytest.LogCaptureFixture) -> None:
    assert 25.0 + EXECUTORS_SETTLED_S == Spark({1.0: {"a": 2}, 25.0: {"a": 2, "b": 1}}).wait(needed=3)
    [said] = caplog.messages
    assert "2 of the 3 slots that it needs; waiting for up to 26 s for another executor" in said


def test_a_cluster_that_is_too_small_is_not_waited_for_much_longer() -> None:
    assert 1.0 + MORE_EXECUTORS_S == Spark({1.0: {"a": 2}}).wait(needed=3)


def test_hosts_without_a_known_limit_are_enough() -> None:
    assert 1.0 + EXECUTORS_SETTLED_S == Spark({1.0: {"a": None}}).wait(needed=3)
