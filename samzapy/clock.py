"""ports.Clock of a real process."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's own time."""

    monotonic = staticmethod(time.monotonic)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
