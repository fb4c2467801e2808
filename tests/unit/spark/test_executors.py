"""What registered executors mean for placement."""

from __future__ import annotations

from samzapy.spark.executors import Executor, host_slots, leaving_hosts


def test_a_hosts_slots_are_the_cores_of_its_executors() -> None:
    executors = [Executor("1", "b", 2, False), Executor("0", "a", 1, False), Executor("2", "b", 1, False)]

    assert {"a": 1, "b": 3} == host_slots(executors)
    assert frozenset() == leaving_hosts(executors)


def test_a_host_with_a_leaving_executor_takes_no_containers() -> None:
    executors = [Executor("0", "a", 1, True), Executor("1", "b", 1, False), Executor("2", "a", 1, False)]

    assert {"b": 1} == host_slots(executors)
    assert {"a"} == leaving_hosts(executors)


def test_no_executors_no_hosts() -> None:
    assert {} == host_slots([])
    assert frozenset() == leaving_hosts([])
