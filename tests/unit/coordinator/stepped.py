"""A clock that the test steps: threads that sleep by it go on one at a time, in the order of their time, and only while the test steps.

So a coordinator runs as in production, `run()` in a thread of its own, and a test is the same on an idle machine and on a busy one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

LIMIT_S = 30.0  # by the machine's clock: only to fail instead of hanging
START_S = 1000.0
ALONE_S = 0.05  # that a step takes when nobody sleeps, so that whoever steps until something holds comes to an end


@dataclass(order=True, slots=True)
class _Sleeper:
    wakes_at: float
    number: int
    awake: threading.Event = field(default_factory=threading.Event, compare=False)


class SteppedClock:
    """Time that passes only in `step`, and where the test itself sleeps."""

    def __init__(self) -> None:
        self._now_s = START_S
        self._numbers = 0
        self._sleepers: list[_Sleeper] = []
        self._actors: set[int] = set()
        self._has_stopped = threading.Event()  # the thread that was let go on sleeps again, or has ended

    def monotonic(self) -> float:
        return self._now_s

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(self._now_s * 1000)

    def sleep(self, seconds: float) -> None:
        if threading.get_ident() in self._actors:
            self._sleep(self._note(seconds))
            return
        until = self._now_s + seconds
        while self._sleepers and min(self._sleepers).wakes_at <= until:
            self.step()
        self._now_s = max(self._now_s, until)

    def start(self, run: Callable[[], None]) -> threading.Thread:
        """Run this in a thread, from the next step on."""
        mine = self._note(0.0)

        def body() -> None:
            self._actors.add(threading.get_ident())
            try:
                assert mine.awake.wait(LIMIT_S)
                run()
            finally:
                self._actors.discard(threading.get_ident())
                self._has_stopped.set()

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread

    def step(self) -> None:
        """Let whoever wakes first go on until it sleeps again; time is then as late as it woke."""
        if not self._sleepers:
            self._now_s += ALONE_S
            return
        first = min(self._sleepers)
        self._sleepers.remove(first)
        self._now_s = max(self._now_s, first.wakes_at)
        self._has_stopped.clear()
        first.awake.set()
        assert self._has_stopped.wait(LIMIT_S), "a thread neither sleeps by this clock nor ends"

    def until(self, holds: Callable[[], bool], limit_s: float, what: str) -> None:
        """Step until it holds, for at most so many seconds of this clock."""
        deadline = self._now_s + limit_s
        while not holds():
            assert self._sleepers, f"{what}: nobody is there who could bring that about"
            assert self._now_s < deadline, f"{what}: not within {limit_s:g} s"
            self.step()

    def _note(self, seconds: float) -> _Sleeper:
        self._numbers += 1
        sleeper = _Sleeper(self._now_s + seconds, self._numbers)
        self._sleepers.append(sleeper)
        return sleeper

    def _sleep(self, mine: _Sleeper) -> None:
        self._has_stopped.set()
        mine.awake.wait()
