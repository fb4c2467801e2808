"""Waiting for Spark's executors, with hosts that the test names and a clock of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from samzapy.spark.launcher import EXECUTORS_PATIENCE_S, EXECUTORS_SETTLED_S, wait_for_hosts

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

    def wait(self) -> float:
        wait_for_hosts(self.hosts, lambda: self.now, self.sleep)
        return self.now


def test_it_waits_until_no_more_hosts_come(caplog: pytest.LogCaptureFixture) -> None:
    assert 1.0 + EXECUTORS_SETTLED_S == Spark({0.5: {"a": 2}, 1.0: {"a": 2, "b": 2}}).wait()
    assert [] == caplog.messages


def test_a_full_cluster_is_waited_for_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert EXECUTORS_PATIENCE_S == Spark({}).wait()
    [said] = caplog.messages
    assert "waiting for up to 55 s more" in said
    assert "Ctrl-C ends the wait" in said


def test_a_host_that_comes_late_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert 20.0 + EXECUTORS_SETTLED_S == Spark({20.0: {"a": 1}}).wait()
    assert 1 == len(caplog.messages)
