"""Removes from internal topics what has been read and committed: nothing else ever does, because they have no retention.

Only committed positions are used, which never go back. So whoever removes, also one that has lost its tasks and does not know it yet, removes nothing
that a checkpoint still needs. It runs on the thread that asks for lags; what fails is told once and tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from samzapy import failpoints
from samzapy.api.errors import SamzapyError
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Admin, Clock

LOG = logging.getLogger("samzapy.container")
PURGE_S = 30.0


class Purge:
    """Removes every PURGE_S seconds.

    Args:
        consumed: up to where internal topics are read and committed; a mapping that is never changed, only replaced.
    """

    def __init__(self, consumed: Callable[[], Mapping[TopicPartition, int]], clock: Clock) -> None:
        self._consumed = consumed
        self._clock = clock
        self._next_at = clock.monotonic() + PURGE_S
        self._removed: dict[TopicPartition, int] = {}
        self._failed = ""

    def step(self, admin: Admin) -> None:
        """Remove what is new, if it is time."""
        if self._clock.monotonic() < self._next_at:
            return
        self._next_at = self._clock.monotonic() + PURGE_S
        wanted = {partition: at for partition, at in self._consumed().items() if at > self._removed.get(partition, 0)}
        if not wanted:
            return
        try:
            failpoints.hit("purge.before")
            admin.delete_records(wanted)
            failpoints.hit("purge.after")
        except SamzapyError as error:
            if str(error) != self._failed:
                LOG.warning("what was read of internal topics could not be removed, trying again every %.0f s: %s", PURGE_S, error)
            self._failed = str(error)
            return
        self._failed = ""
        self._removed.update(wanted)
