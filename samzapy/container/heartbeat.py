"""The container's side of its lease, and its line to the coordinator: a thread that tells how it is, takes commands and instructions, and stops or
ends the container when it hears nothing, as model/lease_times.py says.

The run loop never waits for it: the loop leaves a report here and looks at `command` and `instructions`. A container that was not answered for
most of its lease stops by itself, before the coordinator, which counts from when it heard of it last, may give its tasks away; if the
loop does not look (a hung `process`), `die` ends the process. All by the monotonic clock, which no one sets.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from samzapy.api.errors import ClusterUnreachable, SamzapyError, Superseded
from samzapy.model.bounded_json import NOT_UNDERSTOOD
from samzapy.model.job_model import tasks_from_json
from samzapy.model.lease_times import Step, due_step, until_next_step_s
from samzapy.ports import Clock, Control, Instructions, Joinable, Spawn

LOG = logging.getLogger("samzapy.heartbeat")
RUN, STOP, EXIT = "run", "stop", "exit"
SHORTEST_S = 0.05


class Heartbeat:
    """Sends `report()` every `heartbeat_s`, or sooner when the coordinator or the loop asks for it.

    Args:
        watch: called before each heartbeat; may end the process.
        die: ends the process; called when the lease is over and nobody stopped.

    Attributes:
        command: the last answer's.
        instructions: the last answer's.
        told: the number of the newest event that the coordinator has heard of.
    """

    def __init__(
        self,
        *,
        control: Control,
        incarnation: str,
        heartbeat_s: float,
        lease_s: float,
        clock: Clock,
        report: Callable[[], Mapping[str, Any]],
        watch: Callable[[], None],
        die: Callable[[str], None],
        spawn: Spawn,
    ) -> None:
        self._control = control
        self._incarnation = incarnation
        self._heartbeat_s = heartbeat_s
        self._lease_s = lease_s
        self._clock = clock
        self._report = report
        self._watch = watch
        self._die = die
        self._spawn = spawn
        self.command = RUN
        self.why = ""
        self.instructions = Instructions()
        self.told = 0
        self._again_s = heartbeat_s
        self._awake = threading.Event()
        self._is_stopping = False
        self._thread: Joinable | None = None

    def start(self) -> None:
        self._thread = self._spawn("heartbeat", self._beat)

    def stop(self) -> None:
        self._is_stopping = True
        self._awake.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def beat_now(self) -> None:
        """Send the next heartbeat now."""
        self._awake.set()

    def report_now(self) -> None:
        """Send a report on the caller's thread, and wait for the answer. If none comes, the other thread acts on it."""
        try:
            self._control.heartbeat(self._incarnation, self._report())
        except SamzapyError as error:
            LOG.debug("a report did not reach the coordinator: %s", error)

    def _beat(self) -> None:
        last_answer = self._clock.monotonic()
        while not self._is_stopping:
            self._awake.clear()
            self._watch()
            sent = self._clock.monotonic()
            try:
                answer = self._control.heartbeat(self._incarnation, self._report())
                self._apply(answer)
                last_answer = sent  # the coordinator counts from when it heard us: never assume later than we spoke
            except Superseded as error:
                self._give_up(error.message)
            except SamzapyError as error:
                silent_s = self._clock.monotonic() - last_answer
                told = "the coordinator has not answered for %.1f s (the lease is %.0f s; near its end this container stops): %s"
                LOG.warning(told, silent_s, self._lease_s, error.message)
            step = due_step(self._clock.monotonic() - last_answer, self._lease_s)
            if step is not Step.GO_ON:
                self._give_up(f"the coordinator was silent for most of the lease of {self._lease_s:.0f} s")
            if step is Step.DIE:
                self._die(f"{Superseded.code}: {self.why}")
                return
            self._clock.wait(self._awake, max(SHORTEST_S, self._pause(last_answer) - (self._clock.monotonic() - sent)))

    def _pause(self, last_answer: float) -> float:
        """Seconds to the next heartbeat; fewer if the lease runs out before it."""
        left = until_next_step_s(self._clock.monotonic() - last_answer, self._lease_s)
        return min(self._heartbeat_s, self._again_s, max(left, SHORTEST_S))

    def _apply(self, answer: Mapping[str, Any]) -> None:
        """
        Raises:
            ClusterUnreachable: it cannot be the coordinator's.
        """
        try:
            instructions, again_s = instructions_from(answer), float(answer.get("again_s", self._heartbeat_s))
            told = int(answer.get("told", 0))
        except NOT_UNDERSTOOD as error:
            raise ClusterUnreachable(f"the coordinator's answer is not understood: {type(error).__name__}: {error}.", "") from None
        self.instructions, self._again_s, self.told = instructions, again_s, max(told, self.told)
        if self.command != EXIT:
            self.command = str(answer.get("command", RUN))

    def _give_up(self, why: str) -> None:
        self.command = EXIT
        self.why = self.why or why


def instructions_from(answer: Mapping[str, Any]) -> Instructions:
    """The instructions in a heartbeat's answer."""
    return Instructions(
        int(answer.get("epoch", 0)),
        frozenset(str(t) for t in answer.get("release", ())),
        tuple(str(t) for t in answer.get("standby", ())),
        tasks_from_json(answer.get("models", {})),
        answer.get("paused") is True,
        int(answer.get("commit", 0)),
    )
