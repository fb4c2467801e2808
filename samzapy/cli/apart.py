"""The coordinator's turns on a thread of their own, so that signals and stops are served whatever its Kafka client does.

librdkafka waits until a time of the wall clock: when that is set back by two hours, a call with a timeout of seconds returns after two hours.
Python handles signals between two steps of the main thread only, so the main thread makes no such call: it waits here, by the monotonic clock.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from samzapy.api import exit_codes
from samzapy.clock import SetBack
from samzapy.ports import Clock

LOG = logging.getLogger("samzapy.coordinator")
LOOK_S = 0.1
KILL_PATIENCE_S = 10.0  # after a second signal
STOP_MARGIN_S = 15.0  # beyond the time that a stop may take anyway
GIVEN_UP = exit_codes.FAILED


@dataclass(frozen=True, slots=True)
class StopTimes:
    """Monotonic seconds.

    Attributes:
        seen_at: when the coordinator was last seen to begin something.
        stop_asked_at: None: nobody asked.
        killed_at: when it was asked to end at once; None: not yet.
    """

    seen_at: float
    stop_asked_at: float | None = None
    killed_at: float | None = None


def is_given_up(facts: StopTimes, now: float, stop_timeout_s: float) -> bool:
    """Whether a coordinator that is to end has not got on for so long that the process ends without it."""
    if facts.killed_at is not None and now - max(facts.killed_at, facts.seen_at) > KILL_PATIENCE_S:
        return True
    asked = facts.stop_asked_at
    return asked is not None and now - max(asked, facts.seen_at) > stop_timeout_s + STOP_MARGIN_S


class Apart:
    """Runs `work`, which returns an exit code, on a thread, and waits for it on this one.

    Args:
        facts: asked every tenth of a second.
        end_containers: called when the work is given up.
    """

    def __init__(
        self, work: Callable[[], int], facts: Callable[[], StopTimes], end_containers: Callable[[], None], stop_timeout_s: float, clock: Clock
    ) -> None:
        self._work = work
        self._facts = facts
        self._end_containers = end_containers
        self._stop_timeout_s = stop_timeout_s
        self._clock = clock
        self._is_over = threading.Event()
        self._code = GIVEN_UP
        self._error: BaseException | None = None

    def run(self) -> int:
        """The work's exit code, or 1 if it was given up. Raises what the work raises."""
        threading.Thread(target=self._run, name="coordinator", daemon=True).start()
        set_back = SetBack(self._clock.now_ms, self._clock.monotonic)
        while not self._is_over.is_set():
            self._clock.wait(self._is_over, LOOK_S)
            if by_s := set_back.by_s():
                LOG.warning("this host's clock was set back by %.0f s: calls that wait in Kafka's client may take that much longer", by_s)
            facts, now = self._facts(), self._clock.monotonic()
            if not self._is_over.is_set() and is_given_up(facts, now, self._stop_timeout_s):
                LOG.error(
                    "the coordinator should end, but a call to Kafka or to Spark has not returned for %.0f s; the run ends without waiting longer: "
                    "the next run continues from the last commits",
                    now - facts.seen_at,
                )
                self._end_containers()
                return GIVEN_UP
        if self._error is not None:
            raise self._error
        return self._code

    def _run(self) -> None:
        try:
            self._code = self._work()
        except BaseException as error:  # noqa: BLE001  raised again where it is waited for
            self._error = error
        finally:
            self._is_over.set()
