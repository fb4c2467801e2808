"""When a record is too late for a window of event time. Windows keep to it in streams/operators/window_firing.py."""

from __future__ import annotations


def is_closed(window_end: int, watermark: int, lateness_ms: int, closed: int) -> bool:
    """Whether the window takes no record any more; see `is_too_late`."""
    return window_end + lateness_ms <= watermark or window_end <= closed


def is_too_late(end: int, last_end: int, watermark: int, lateness_ms: int, closed: int) -> bool:
    """Whether no window takes the record any more. All times are of event time, in milliseconds.

    Args:
        end, last_end: the ends of the first and of the last window that the record lies in.
        lateness_ms: how long after its end by the watermark a window takes late records (`allowed_lateness`).
        closed: windows that end up to here are closed for ever, also if `allowed_lateness` was raised since.
    """
    return end <= watermark and is_closed(last_end, watermark, lateness_ms, closed)
