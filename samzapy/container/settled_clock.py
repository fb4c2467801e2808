"""The wall clock as event time and `ttl` go by it: a clock that is set ahead by mistake must not make records late, or entries expire."""

from __future__ import annotations

from samzapy.ports import Clock

STEP_MS = 10_000  # a clock that is ahead by so much more than has passed was set
SETTLE_S = 60.0  # until it is followed


class SettledClock:
    """A wall clock that was set ahead is followed only after a minute, since it may be set back before. One that was set back is followed at once.
    For one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen_s, self._seen_ms = clock.monotonic(), clock.now_ms()
        self._set_s: float | None = None  # since when the clock is ahead by more than has passed

    def now_ms(self) -> int:
        now_s, now_ms = self._clock.monotonic(), self._clock.now_ms()
        passed_ms = int((now_s - self._seen_s) * 1000)
        if now_ms - self._seen_ms > passed_ms + STEP_MS:
            self._set_s = now_s if self._set_s is None else self._set_s
            if now_s - self._set_s < SETTLE_S:
                return self._seen_ms + passed_ms
        self._seen_s, self._seen_ms, self._set_s = now_s, now_ms, None
        return now_ms

    def put_ms(self) -> int:
        """When a store's entry that is put now counts as put: by the clock as it is, if that is later. Else it would lose as much of its `ttl` as the
        clock was set ahead by, once the clock is followed."""
        return max(self.now_ms(), self._clock.now_ms())
