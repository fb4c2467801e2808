"""Watches, from the heartbeat's thread, whether the run loop goes on. Two things end the process if it does not:

- a hook that has not returned for `commit.timeout` (stuck_hook.py says how that is seen);
- a call into Kafka's client that was under way when the host's clock was set back. librdkafka waits until a time of the wall clock, so such a call, a
  poll of idle inputs for example, returns only when the clock shows that time again: after a day, if the clock was set back by a day. What is
  processed would not be committed for as long, and the lag would be 0. A new process has new clients, and goes on from the last commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from samzapy.api.errors import TaskError
from samzapy.clock import SetBack
from samzapy.container.stuck_hook import user_frames
from samzapy.ports import Clock

LOG = logging.getLogger("samzapy.container")
WAITS_S = 5.0  # so long after the clock was set back the call that was under way has not returned


class LoopWatch:
    """
    Args:
        number: the container's.
        loop_thread: which thread the run loop is on.
        stuck_hook_s: a hook that runs as long as this, in seconds, ends the process; at half of it its stack is logged.
        end: ends the process for the given reason. `record`: whether the records that are under way may be the reason.
    """

    def __init__(self, *, number: int, loop_thread: int, stuck_hook_s: float, clock: Clock, end: Callable[[str, bool], None]) -> None:
        self._number = number
        self._loop_thread = loop_thread
        self._stuck_hook_s = stuck_hook_s
        self._clock = clock
        self._end = end
        self._stuck_logged_at = -1.0
        self._set_back = SetBack(clock.now_ms, clock.monotonic)
        self._set_back_s, self._set_back_at = 0.0, -1.0

    def look(self, seen_at: float, *, is_running: bool) -> None:
        """Called with every heartbeat.

        Args:
            seen_at: monotonic seconds: when the loop was last seen outside of hooks and of Kafka's client.
            is_running: all tasks have started.
        """
        now = self._clock.monotonic()
        if by_s := self._set_back.by_s():
            self._set_back_s, self._set_back_at = by_s, now
        waits_for_clock = seen_at <= self._set_back_at and now - self._set_back_at >= WAITS_S
        silent_s = now - seen_at
        if silent_s < self._stuck_hook_s / 2 and not waits_for_clock:
            return
        stack, record = user_frames(self._loop_thread)
        if stack:
            self._look_at_hook(stack, record, seen_at, silent_s, is_running)
        elif waits_for_clock:
            self._end(
                f"this host's clock was set back by {self._set_back_s:,.0f} s, and a call into Kafka's client would wait until the clock shows again what it "
                "showed before: this process ends, and a new one goes on from the last commit",
                False,
            )

    def _look_at_hook(self, stack: list[str], record: str, seen_at: float, silent_s: float, is_running: bool) -> None:
        if silent_s < self._stuck_hook_s / 2:
            return
        if self._stuck_logged_at != seen_at:
            self._stuck_logged_at = seen_at
            then = "that is no error: while a container starts, a hook may take as long as it needs"
            if is_running:
                then = f"after {self._stuck_hook_s:.0f} s (commit.timeout) this process ends itself"
            LOG.warning(
                "container %d: a hook%s has not returned for %.0f s; %s. The hook is at\n  %s", self._number, record, silent_s, then, "\n  ".join(stack)
            )
        if silent_s >= self._stuck_hook_s and is_running:
            self._end(
                f"{TaskError.code}: a hook{record} did not return within commit.timeout ({self._stuck_hook_s:.0f} s); it was at {stack[-1]}", True
            )
