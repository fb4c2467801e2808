"""Event times as values: milliseconds since 1970, and what a checkpoint keeps of the time of an input partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from samzapy.model.marks import Mark, mark_from_json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
NEVER = -(1 << 63)  # before every time: nothing is known yet
LARGEST = 10**15  # of a record's time, either way from 1970: 31,000 years
END = (1 << 63) - 1  # after every time: nothing comes any more
_SECONDS_FROM, _1971 = 10**8, 31_536_000_000  # seconds since 1970 of the years after 1973, read as milliseconds, are all in the first weeks of 1970
MILLISECONDS = (
    "`time=` of a stream (in a job file `inputs[].time`) must give milliseconds since 1970. If it gives seconds, multiply them by 1000; "
    "if the times are Kafka's timestamps, correct the producer."
)


@dataclass(frozen=True, slots=True)
class Leap:
    """A record that was further ahead than the clock explains, until enough records after it agree or one does not.

    Attributes:
        time: of that record.
        since_ms: when it was processed, by the wall clock.
        records: it, and those after it that were not far below it.
        low: the lowest time among the later half of them; None before.
    """

    time: int
    since_ms: int
    records: int = 1
    low: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionMark:
    """The time of one input partition at a commit.

    Attributes:
        newest: the newest time that counts; NEVER: none yet.
        idle: whether it is left out of the minimum, because it was at its end for long enough.
        seen_ms: when `newest` last moved, by the wall clock.
        leap: a record that does not count yet.
        marks: of an internal topic, the newest mark of each task that writes it, by task; the rest is not used then. None: it is no such topic.
    """

    newest: int = NEVER
    idle: bool = False
    seen_ms: int = 0
    leap: Leap | None = None
    marks: Mapping[str, Mark] | None = None

    def to_json(self) -> dict[str, Any]:
        if self.marks is not None:
            return {"marks": {task: mark.to_json() for task, mark in sorted(self.marks.items())}}
        leap = None if self.leap is None else [self.leap.time, self.leap.since_ms, self.leap.records, self.leap.low]
        newest = None if self.newest == NEVER else self.newest
        return {"newest": newest, "idle": self.idle, "seen_ms": self.seen_ms, "leap": leap}


def is_same(one: PartitionMark, other: PartitionMark | None) -> bool:
    """Whether two marks say the same of time; when it was seen is no reason for a commit."""
    return other is not None and replace(one, seen_ms=other.seen_ms) == other


def partition_mark_from_json(raw: Mapping[str, Any]) -> PartitionMark:
    """What `to_json` made.

    Raises:
        TypeError, ValueError, KeyError: it is something else.
    """
    if "marks" in raw:
        return PartitionMark(marks={str(task): mark_from_json(mark) for task, mark in dict(raw["marks"]).items()})
    newest, idle, seen_ms, leap = raw["newest"], raw["idle"], raw["seen_ms"], raw["leap"]
    if not isinstance(idle, bool):
        raise TypeError("expected true or false for `idle`")
    found = None
    if leap is not None:
        at, since_ms, records, low = leap
        found = Leap(whole(at), whole(since_ms), whole(records), None if low is None else whole(low))
    return PartitionMark(NEVER if newest is None else whole(newest), idle, whole(seen_ms), found)


def whole(value: object) -> int:
    """The value, if it is a whole number.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected a whole number, found {type(value).__name__}")
    return value


def in_ms(moment: datetime) -> int:
    """Milliseconds since 1970 of a datetime with a time zone, exactly."""
    return (moment - _EPOCH) // _MILLISECOND


def looks_like_seconds(time: int) -> bool:
    """Whether a time in milliseconds is so early in 1970 that it was likely meant as seconds. Smaller numbers, as tests use, are not.

    >>> looks_like_seconds(1_700_000_000), looks_like_seconds(1_700_000_000_000), looks_like_seconds(60_000)
    (True, False, False)
    """
    return _SECONDS_FROM <= time < _1971


def as_utc(time: int) -> str:
    """A time in words, to the second; one that no calendar has as a number.

    >>> as_utc(1_700_000_000)
    '1970-01-20 16:13:20 UTC'
    """
    try:
        return f"{_EPOCH + time * _MILLISECOND:%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{time} ms since 1970"
