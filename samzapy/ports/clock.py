"""Time, and work beside its caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Time, passed as an argument: `monotonic` (seconds) for durations, `now_ms` (milliseconds since 1970) for stamps and for people."""

    def monotonic(self) -> float: ...
    def now_ms(self) -> int: ...
    def sleep(self, seconds: float) -> None: ...
    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait until the event is set, at most `seconds`."""


class Joinable(Protocol):
    """Work that runs beside its caller."""

    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


Spawn = Callable[[str, Callable[[], None]], Joinable]  # begin this work beside its caller, under this name
