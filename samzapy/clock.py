"""ports.Clock and ports.Spawn of a real process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STEP_S = 2.0


class SystemClock:
    """The machine's own time."""

    monotonic = staticmethod(time.monotonic)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float) -> None:
        event.wait(seconds)


class SetBack:
    """Whether a host's clock is set back. `now_ms`, `monotonic`: those of ports.Clock."""

    def __init__(self, now_ms: Callable[[], int], monotonic: Callable[[], float]) -> None:
        self._now_ms, self._monotonic = now_ms, monotonic
        self._ahead_s = self._found()

    def by_s(self) -> float:
        """By how many seconds it was, since the last call; 0 if by no more than 2 s."""
        before, self._ahead_s = self._ahead_s, self._found()
        return before - self._ahead_s if self._ahead_s < before - STEP_S else 0.0

    def _found(self) -> float:
        return self._now_ms() / 1000 - self._monotonic()


def start_thread(name: str, work: Callable[[], None]) -> threading.Thread:
    """A daemon thread, started."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


@contextmanager
def if_longer_than(seconds: float, call: Callable[[], object]) -> Iterator[None]:
    """`call`, on a thread of its own, if the block takes longer than so many seconds; it has returned when the block is left."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
