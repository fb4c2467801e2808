"""A command that ends in the time it was given, whatever it waits for: a request to Kafka that hangs cannot be interrupted from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from samzapy import in_time
from samzapy.api.errors import ClusterUnreachable

T = TypeVar("T")
MORE_S = 5.0  # beyond what was given, so that a short time suffices to find out whether the job runs


def within(timeout_s: float, work: Callable[[], T], servers: str, what_is_known: Callable[[], str]) -> T:
    """What `work` returns, or raises. It runs on a thread of its own, which is left alone if time is up: the process is about to end.

    Args:
        timeout_s: seconds; `MORE_S` are given besides.
        servers: of Kafka, for the message.
        what_is_known: a sentence on how far it came.

    Raises:
        ClusterUnreachable: time is up.
    """
    limit_s = timeout_s + MORE_S
    try:
        return in_time.within(limit_s, work, "command")
    except in_time.NotInTime:
        raise ClusterUnreachable(
            f"{what_is_known()} after {limit_s:.0f} s: Kafka at {servers} does not answer.",
            "Check `kafka.bootstrap.servers` and that the brokers run; then run this again.",
        ) from None
