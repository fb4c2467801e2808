"""When a partition that stands still is to be looked at: a state machine over what the run loop sees of it each second.

A position that does not move says little: there may be no more records, or the container may be busy with other partitions, so that records
of this one wait in the client. So it is asked about when it has stood still for the limit, and after that two polls have brought less than
they could: whatever the client had, it has handed out. Records that are there then may have come this moment. So only if it is still there a
little later, and the client has handed out what it has, does it stand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

DRAINED_POLLS = 2
CONFIRM_S = 5.0  # far longer than a fetch takes


@dataclass(frozen=True, slots=True)
class Still:
    """A partition's next offset, since when it is that (monotonic seconds), how many polls had drained the client when the limit was over, and whether
    the broker has said that there are records after it."""

    position: int
    since_s: float
    drained: int | None = None
    has_more: bool = False


def look(before: Still | None, position: int, is_paused: bool, now_s: float, drained: int, limit_s: float) -> tuple[Still | None, bool]:
    """What is known of the partition now, and whether to ask the broker for more records; after that the time counts from 0 again.

    Args:
        before: what was known at the last look.
        is_paused: it is held back on purpose.
        drained: polls so far that brought less than they could.
    """
    if is_paused:
        return None, False
    if before is None or before.position != position:
        return Still(position, now_s), False
    if now_s - before.since_s < limit_s:
        return before, False
    if before.drained is None:
        return replace(before, drained=drained), False
    if drained < before.drained + DRAINED_POLLS:
        return before, False
    return replace(before, since_s=now_s, drained=None), True


def confirmed(still: Still, now_s: float, limit_s: float) -> tuple[Still, bool]:
    """The broker says that there are records after the position. Whether that is said for the second time; else it is asked again soon."""
    if still.has_more:
        return replace(still, has_more=False), True
    return replace(still, since_s=now_s - limit_s + min(CONFIRM_S, limit_s / 2), has_more=True), False


def why_it_stands(partition: str, position: int, end: int, run_end: int | None, limit_s: float) -> str:
    """What is to be said of it; "" where it only has no more records.

    Args:
        end: the topic's end now, up to the oldest open transaction.
        run_end: where a bounded run ends in it.
    """
    if position < end:
        bounded = "" if run_end is None else f"; this run ends at {run_end}"
        stands = f"{partition}: the next offset is {position}, the end {end}"
        return f"{stands}, and no record came for {limit_s:g} s, although the partition is not held back on purpose{bounded}"
    if run_end is not None and end < run_end:
        return f"{partition} is at {position}, and this run ends at {run_end}, but no readable record is left before that end: the topic ends at {end}"
    return ""


def why_unanswered(partition: str, position: int, limit_s: float) -> str:
    """What is to be said where the broker does not say either whether there are more records."""
    return (
        f"{partition} is at {position}, no record came for {limit_s:g} s, and its broker does not answer: it is away, or a quota of the cluster "
        "holds back what this client gets (`kafka-configs.sh --bootstrap-server BROKER --describe --entity-type clients` lists quotas of clients, "
        "`--entity-type users` those of users)"
    )
