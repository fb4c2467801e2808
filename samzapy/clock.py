"""ports.Clock and ports.Spawn of a real process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SystemClock:
    """The machine's own time."""

    monotonic = staticmethod(time.monotonic)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float) -> None:
        event.wait(seconds)


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
