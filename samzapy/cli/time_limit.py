"""A command that ends in the time it was given, whatever it waits for: a request to Kafka that hangs cannot be interrupted from outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from samzapy import in_time
from samzapy.api.errors import ClusterUnreachable
from samzapy.config.units import parse_duration

T = TypeVar("T")
MORE_S = 5.0  # beyond what was given, so that a short time suffices to find out whether the job runs


def seconds_of(given: str | float) -> float:
    """The seconds that an option gives: `5`, or a duration as in a job file, `5s`.

    Raises:
        BadParameter: it is neither.
    """
    duration_ms = parse_duration(str(given))
    try:
        seconds = float(given) if duration_ms is None else duration_ms / 1000
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise typer.BadParameter(f"{given!r}: give seconds, 0 or more, as `60`, or a duration as `500ms`, `10s`, `5m`.")
    return seconds


Timeout = Annotated[
    float,
    typer.Option(
        help="How long to wait until it is done: seconds, or `5m`. The command may take 5 s more if Kafka does not answer.", parser=seconds_of, metavar="TIME"
    ),
]


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
