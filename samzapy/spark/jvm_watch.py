"""Watches how long Spark's JVM takes to answer. A call into it has no time limit of its own: if the JVM is suspended, or collects garbage for
minutes, the coordinator would wait as long, and nothing would be decided meanwhile: containers that died would be shown as running. So a JVM that
does not answer is ended, which ends the call and then the run; the next run continues from the last commits.

Time in which the watch itself stood still (the driver or the whole machine was suspended) does not count: the JVM may answer at once afterwards."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from samzapy.clock import start_thread

LOG = logging.getLogger("samzapy")
SILENT_S = 30.0
TOLD_S = 10.0
LOOK_S = 1.0
MOST_LOOKS = 3.0  # of time that passed between two looks: the rest of it the watch stood still


class JvmWatch:
    """`kill` is called with the reason, once, when a call has taken `silent_s` seconds. `monotonic`: tells how long calls take."""

    def __init__(
        self, kill: Callable[[str], None], silent_s: float = SILENT_S, told_s: float = TOLD_S, look_s: float = LOOK_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._kill, self._monotonic = kill, monotonic
        self._silent_s, self._told_s, self._look_s = silent_s, told_s, look_s
        self._since: dict[int, float] = {}  # by thread: when its call began
        self._is_closed = threading.Event()
        start_thread("spark-watch", self._work)

    @contextmanager
    def call(self) -> Iterator[None]:
        """A call into the JVM, which is to be answered at once."""
        thread = threading.get_ident()
        self._since[thread] = self._monotonic()
        try:
            yield
        finally:
            del self._since[thread]

    def close(self) -> None:
        self._is_closed.set()

    def _work(self) -> None:
        told, watched, silent_s, looked = 0.0, 0.0, 0.0, self._monotonic()
        while not self._is_closed.wait(self._look_s):
            now, since = self._monotonic(), min(list(self._since.values()), default=None)
            passed, looked = min(now - looked, MOST_LOOKS * self._look_s), now
            if since is None:
                continue
            silent_s = min(now - since, silent_s + passed if watched == since else passed)
            watched = since
            if silent_s >= self._told_s and told != since:
                told = since
                LOG.warning(
                    "Spark's JVM has not answered for %.0f s: the coordinator waits for it. If it has not answered after %.0f s, it is ended, and this run with it",
                    silent_s, self._silent_s,
                )  # fmt: skip
            if silent_s >= self._silent_s:
                self._kill(f"did not answer for {silent_s:.0f} s, and was ended")
                return
