"""Whether the coordinator topic can be written: since when not, why, and how long that is borne."""

from __future__ import annotations

import logging

from samzapy.api.errors import REFUSED, LogError
from samzapy.ports import Clock

LOG = logging.getLogger("samzapy.coordinator")
TELL_AGAIN_S = 60.0
REFUSED_PATIENCE_S = 60.0  # that Kafka refuses the coordinator's records, while a container waits for one of them


class Writing:
    """What became of the coordinator's writes.

    Attributes:
        why_not: why the topic cannot be written now; "" if it can, as far as is known.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused_since: float | None = None
        self._told_of, self._told_at = "", 0.0
        self.why_not = ""

    def succeeded(self) -> None:
        if self.why_not:
            LOG.info("the coordinator topic can be written again")
        self._refused_since, self._told_of, self.why_not = None, "", ""

    def failed(self, error: LogError) -> None:
        """Say so, the same again once a minute."""
        now = self._clock.monotonic()
        self.why_not = f"the coordinator topic cannot be written: {error.code}: {error}"
        if not isinstance(error, REFUSED):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        if error.code != self._told_of or now - self._told_at >= TELL_AGAIN_S:
            self._told_of, self._told_at = error.code, now
            LOG.warning("the coordinator topic could not be written, trying again: %s: %s", error.code, error)

    @property
    def is_refused(self) -> bool:
        """Kafka answers, and refuses the records themselves."""
        return self._refused_since is not None

    @property
    def is_hopeless(self) -> bool:
        """It has done so for so long that trying on will not help whoever waits for them."""
        return self._refused_since is not None and self._clock.monotonic() - self._refused_since >= REFUSED_PATIENCE_S
