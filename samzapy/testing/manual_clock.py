"""A clock for tests that only they move."""

from __future__ import annotations

import threading


class ManualClock:
    """Time that only passes when it is told to: `now_ms` and `monotonic` move together; sleeping moves them."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._passed_s = 0.0

    def monotonic(self) -> float:
        return self._passed_s

    def now_ms(self) -> int:
        return self._start_ms + int(self._passed_s * 1000)

    def sleep(self, seconds: float) -> None:
        self._passed_s += seconds

    def wait(self, event: threading.Event, seconds: float) -> None:
        if not event.is_set():
            self.sleep(seconds)

    def advance(self, seconds: float) -> None:
        self._passed_s += seconds
