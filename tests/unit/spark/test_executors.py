"""What registered executors mean for placement."""

from __future__ import annotations

import pytest

from samzapy.spark.executors import Executor, host_of, host_slots, leaving_hosts


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


@pytest.mark.parametrize(
    ("host_port", "host"),
    [
        ("127.0.0.2:4711", "127.0.0.2"),
        ("127.0.0.2", "127.0.0.2"),
        ("[fe80::1]:4711", "fe80::1"),
        ("[fe80::1]", "fe80::1"),
        ("node-1", "node-1"),
    ],
)
def test_an_executors_host_with_a_port_and_before_it_has_one(host_port: str, host: str) -> None:
    assert host == host_of(host_port)
