"""Whether a container spends its time on its duties while records wait: commits to slow brokers, a long window(), or a defect of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SPAN_S = 10.0
SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Spent:
    """At a time (monotonic seconds): the seconds that each duty has taken so far, and how many polls have brought less than they could."""

    at_s: float
    drained: int
    by_duty: Mapping[str, float]


def crowded(before: Spent, now: Spent) -> str:
    """What is to be said; "" while records get their time, or none wait: then a poll has brought less than it could."""
    span_s = now.at_s - before.at_s
    spent = {name: seconds - before.by_duty.get(name, 0.0) for name, seconds in now.by_duty.items()}
    if now.drained != before.drained or sum(spent.values()) < SHARE * span_s:
        return ""
    largest = sorted((item for item in spent.items() if item[1] >= 0.01 * span_s), key=lambda item: -item[1])
    shares = ", ".join(f"{name} {100 * seconds / span_s:.0f} %" for name, seconds in largest)
    return (
        f"records wait, because {100 * sum(spent.values()) / span_s:.0f} % of the last {span_s:.0f} s went to other work than records: {shares}"
    )
