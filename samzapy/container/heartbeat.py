"""The container's line to the coordinator: a thread that tells how it is, takes commands, and watches the lease.

The run loop never waits for it: the loop leaves a report here and looks at `command`. When the coordinator was silent for the length of
the lease it may have given this container's tasks away; the loop is told to stop, and if it does not look (a hung `process`), `die` ends
the process. All by the monotonic clock, which no one sets.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from samzapy.api.errors import SamzapyError, Superseded
from samzapy.ports import Clock, Control

LOG = logging.getLogger("samzapy.heartbeat")
RUN, STOP, EXIT = "run", "stop", "exit"


class Heartbeat:
    """Sends `report()` every `heartbeat_s`; `command` is the last answer's. `die` is called when the lease is over and nobody stopped."""

    def __init__(
        self,
        control: Control,
        incarnation: str,
        heartbeat_s: float,
        lease_s: float,
        clock: Clock,
        report: Callable[[], Mapping[str, Any]],
        die: Callable[[str], None],
    ) -> None:
        self._control = control
        self._incarnation = incarnation
        self._heartbeat_s = heartbeat_s
        self._lease_s = lease_s
        self._clock = clock
        self._report = report
        self._die = die
        self.command = RUN
        self.why = ""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _beat(self) -> None:
        last_answer = self._clock.monotonic()
        while not self._stopping.is_set():
            sent = self._clock.monotonic()
            try:
                answer = self._control.heartbeat(self._incarnation, self._report())
                last_answer = sent  # the coordinator counts from when it heard us: never assume later than we spoke
                self._take(str(answer.get("command", RUN)))
            except Superseded as error:
                self._give_up(str(error))
            except SamzapyError as error:
                silent = self._clock.monotonic() - last_answer
                LOG.warning("no answer from the coordinator for %.1f s of a lease of %.0f s: %s", silent, self._lease_s, error.message)
            if self._clock.monotonic() - last_answer >= self._lease_s:
                self._give_up(f"the coordinator was silent for the lease of {self._lease_s:.0f} s")
                if self._stopping.wait(1.0):
                    return
                self._die(self.why)
                return
            self._stopping.wait(max(0.05, self._heartbeat_s - (self._clock.monotonic() - sent)))

    def _take(self, command: str) -> None:
        if self.command != EXIT:
            self.command = command

    def _give_up(self, why: str) -> None:
        self.command = EXIT
        self.why = why
