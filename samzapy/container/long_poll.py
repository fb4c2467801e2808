"""The long poll: a request of the container that waits at the driver until there is a question for it. Containers listen nowhere.

Its thread knows what can be looked at (inside.py) and the driver. Whatever comes by it can change nothing: neither what the loop does, nor what
is committed. One thing that comes is no question: that the driver has orders, so that the next heartbeat, which fetches them, is sent at once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from samzapy.api.errors import SamzapyError, Superseded
from samzapy.clock import start_thread
from samzapy.container.inside import Inside

LOG = logging.getLogger("samzapy.container")
PARK_S = 20.0  # how long a request waits at the driver for a question
BUSY_S = 0.2  # while an answer is still to come
RETRY_S = 1.0
BEAT = "beat"


class Parked(Protocol):
    """The request to the driver."""

    def long_poll(self, incarnation: str, number: int, park_s: float, answers: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        """Hand in answers; waits for questions, at most so long.

        Raises:
            Superseded: this incarnation is not asked any more. SamzapyError: no answer.
        """


class LongPoll:
    """Answers until `stop`, or until another incarnation is asked."""

    def __init__(self, driver: Parked) -> None:
        self._driver = driver
        self._is_over = threading.Event()

    def start(self, incarnation: str, inside: Inside, beat_now: Callable[[], None] = lambda: None) -> None:
        """`beat_now`: sends the next heartbeat now."""
        start_thread("long-poll", lambda: self._answer(incarnation, inside, beat_now))

    def stop(self) -> None:
        """Not waited for: its request may be parked."""
        self._is_over.set()

    def _answer(self, incarnation: str, inside: Inside, beat_now: Callable[[], None]) -> None:
        answers: list[dict[str, Any]] = []
        number = 0
        while not self._is_over.is_set():
            number += 1
            try:
                questions = self._driver.long_poll(incarnation, number, BUSY_S if inside.is_busy else PARK_S, answers)
            except Superseded:
                return
            except SamzapyError as error:  # the heartbeat says so to people, if it lasts
                LOG.debug("the request to the driver failed: %s", error)
                self._is_over.wait(RETRY_S)
                continue
            if any(question.get("kind") == BEAT for question in questions):
                beat_now()
            answers = inside.take([question for question in questions if question.get("kind") != BEAT])
