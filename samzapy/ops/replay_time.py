"""With which timestamp a record is sent back: its own, where its topic takes that and keeps such records."""

from __future__ import annotations

from collections.abc import Mapping

from samzapy.ports import gives_times

DAY_MS, HOUR_MS = 86_400_000, 3_600_000
NONE = -1  # of a record without a timestamp
NOW = 0  # what a producer takes for: when it is sent


def why_not_own(timestamp_ms: int, now_ms: int, config: Mapping[str, str]) -> str:
    """Why a topic with these settings refuses a record of this time, or removes it before it is read for sure; "" where it does neither.

    A limit begins a tenth of it early, at most an hour: clocks differ, and the job has yet to read the record.
    """
    if gives_times(config):
        return ""
    if timestamp_ms <= NOW:
        return "it has no timestamp" if timestamp_ms == NONE else f"its timestamp is {timestamp_ms}, which Kafka's client cannot send"
    age_ms = now_ms - timestamp_ms
    limits = [
        ("message.timestamp.before.max.ms", age_ms, "takes none that are older than"),
        ("message.timestamp.after.max.ms", -age_ms, "takes none that are further ahead than"),
    ]
    if "delete" in config.get("cleanup.policy", "delete"):
        limits.append(("retention.ms", age_ms, "removes those that are older than"))
    for setting, passed_ms, what in limits:
        limit_ms = int(config.get(setting, -1))
        if limit_ms >= 0 and passed_ms > limit_ms - min(limit_ms // 10, HOUR_MS):
            side = "old" if passed_ms == age_ms else "ahead"
            return f"its time is {passed_ms / DAY_MS:.2f} days {side}, and the topic {what} {limit_ms / DAY_MS:.2f} days ({setting}={limit_ms})"
    return ""


def time_to_send(timestamp_ms: int, now_ms: int, config: Mapping[str, str], may_be_new: bool) -> int:
    """Its own, or `NOW`: the topic gives one, or it may get a new one and needs it."""
    if gives_times(config) or (may_be_new and why_not_own(timestamp_ms, now_ms, config)):
        return NOW
    return timestamp_ms
