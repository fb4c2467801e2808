"""Samples of the run loop's stack, by a timer: for `run --profile`, and for whoever asks while the job runs. While nobody does, there is no timer.

The timer's signal is handled by the main thread itself, at its next bytecode. A sampling thread would have to wait for the interpreter's lock,
and so would see mostly the calls that release it. A sample counts for the time since the sample before it, so a call that blocks for long counts
whole, on the line that made it. Code in C has no frame of its own: it counts on the line that called it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from types import FrameType
from typing import Any, Protocol

from samzapy.api.errors import ConfigurationError

INTERVAL_S = 0.005
MOST_STACKS = 20_000
DEEPEST = 100
OTHERS = ("(stacks beyond the first 20,000)",)
STRAY_S = 5.0  # so long after the timer was stopped a signal may still be its last one
Stack = tuple[str, ...]


class Taker(Protocol):
    """Who is given samples."""

    def add(self, stack: Stack, microseconds: int) -> None: ...


class Samples:
    """Time by stack, outermost frame first."""

    def __init__(self) -> None:
        self.microseconds: Counter[Stack] = Counter()
        self.count = 0

    def add(self, stack: Stack, microseconds: int) -> None:
        if stack not in self.microseconds and len(self.microseconds) >= MOST_STACKS:
            stack = OTHERS
        self.microseconds[stack] += microseconds
        self.count += 1


class Sampler:
    """Takes samples of the main thread, which has to make it, while there are takers. Others may begin and end from any thread.

    Raises:
        RuntimeError: it is not made by the main thread.
    """

    def __init__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("only the main thread can be profiled: its signal handlers take the samples")
        self._takers: tuple[Taker, ...] = ()
        self._names: dict[Any, str] = {}  # by code object
        self._last, self._stopped_at = 0.0, float("-inf")
        self._handler = self._sample  # one object: a bound method is made anew each time that it is asked for
        self._before = signal.signal(signal.SIGALRM, self._handler)
        signal.siginterrupt(signal.SIGALRM, False)

    def begin(self, taker: Taker) -> None:
        """Give samples to this one, too.

        Raises:
            ConfigurationError: the task has taken the signal for itself.
        """
        if signal.getsignal(signal.SIGALRM) is not self._handler:
            raise ConfigurationError(
                "the task has its own signal handler for SIGALRM, the signal that the profiler uses.", "Use another signal there, or none."
            )
        is_first = not self._takers
        if is_first:
            self._last = time.perf_counter()
        self._takers = (*self._takers, taker)  # before the timer: its signal is a stray one while there are none
        if is_first:
            self._sample_soon()

    def end(self, taker: Taker) -> None:
        """No more samples for this one; once is enough."""
        if taker not in self._takers:
            return
        self._stopped_at = time.perf_counter()
        self._takers = tuple(one for one in self._takers if one is not taker)
        if not self._takers:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            self._stopped_at = time.perf_counter()  # the timer may be set once more by a sample that is being taken now

    def close(self) -> None:
        """On the main thread: as if it had never been made."""
        for taker in self._takers:
            self.end(taker)
        if signal.getsignal(signal.SIGALRM) is self._handler:
            signal.signal(signal.SIGALRM, self._before)

    def _sample(self, number: int, frame: FrameType | None) -> None:
        takers, now = self._takers, time.perf_counter()
        if not takers:
            if now - self._stopped_at > STRAY_S:  # none of ours: what the signal did without us
                signal.signal(number, self._before)
                os.kill(os.getpid(), number)
            return
        stack, microseconds = self._stack(frame), int((now - self._last) * 1e6)
        for taker in takers:
            taker.add(stack, microseconds)
        after = time.perf_counter()
        self._last = after if after - now > INTERVAL_S else now  # writing files is not the loop's time
        self._sample_soon()

    def _sample_soon(self) -> None:
        """The timer fires once. A periodic one would fire while a sample is taken or files are written (a second, where there are many stacks), and
        each of these samples would begin inside the one before, until the stack is full."""
        if self._takers:
            signal.setitimer(signal.ITIMER_REAL, INTERVAL_S)

    def _stack(self, frame: FrameType | None) -> Stack:
        names = [] if frame is None else [f"line {frame.f_lineno}"]
        while frame is not None and len(names) < DEEPEST:
            code = frame.f_code
            name = self._names.get(code)
            if name is None:
                name = self._names[code] = f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}".replace(";", ",")
            names.append(name)
            frame = frame.f_back
        return tuple(reversed(names))
