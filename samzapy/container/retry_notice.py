"""A record that fails again and again, and is tried again as `on_error.retries` says: its container does nothing else meanwhile, so people are told."""

from __future__ import annotations

import logging

from samzapy.container.failure import origin_of
from samzapy.container.inputs import Inputs
from samzapy.ports import Clock, Message

LOG = logging.getLogger("samzapy.container")
TOLD_AFTER_S, TOLD_AGAIN_S = 5.0, 60.0
BEFORE_ERROR = " times (on_error.retries): "


class RetryNotice:
    """Tells of the record under retry: in the log, and as the reason why the container's tasks stand still.

    Args:
        retries: how often a record is tried again.
    """

    def __init__(self, inputs: Inputs, clock: Clock, retries: int) -> None:
        self._inputs, self._clock, self._retries = inputs, clock, retries
        self._since: float | None = None
        self._tell_at = 0.0

    def failed(self, message: Message, error: BaseException, attempts: int) -> None:
        """The record failed once more, and will be tried again."""
        now = self._clock.monotonic()
        if self._since is None:
            self._since, self._tell_at = now, now + TOLD_AFTER_S
        if now >= self._tell_at:
            self._tell_at = now + TOLD_AGAIN_S
            what = f"{type(error).__name__}: {error}"[:200]
            record = f"record {origin_of(message)} failed {attempts} times in {now - self._since:.0f} s, and its container waits"
            self._inputs.all_wait = f"{record}: it is tried again up to {self._retries}{BEFORE_ERROR}{what}"
            LOG.warning("%s", self._inputs.all_wait)

    def ended(self) -> None:
        """It succeeded, or was given up."""
        self._since, self._inputs.all_wait = None, ""
