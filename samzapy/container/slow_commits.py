"""Tells people that brokers take long for commits, and what became of the size of transactions for it (plan/transaction_size.py)."""

from __future__ import annotations

import logging
import time

from samzapy.container.spec import ContainerSpec
from samzapy.model.transaction_contents import Contents
from samzapy.plan.refused_record_search import PoisonSearch
from samzapy.plan.transaction_size import why_smaller
from samzapy.ports import Clock

LOG = logging.getLogger("samzapy.container")


class SlowCommits:
    """Looks after each commit, abort and commit in doubt."""

    def __init__(self, spec: ContainerSpec, search: PoisonSearch, clock: Clock) -> None:
        self._number = spec.number
        self._patience = spec.patience
        self._search = search
        self._clock = clock
        self._fits = search.size.fits
        self._last = Contents(0)
        self._at = ""

    def look(self, contents: Contents) -> None:
        """The size was decided anew, after a transaction that held this."""
        before, self._fits = self._fits, self._search.size.fits
        if self._fits < before:
            self._last, self._at = contents, time.strftime("%H:%M:%S UTC", time.gmtime(self._clock.now_ms() / 1000))
            LOG.warning("container %d: %s", self._number, self.why())
        elif self._fits > before:
            LOG.info("container %d: commits are quick; a transaction holds up to %s records again", self._number, f"{self._fits:,}")

    def why(self) -> str:
        """Why transactions are smaller than they might be; "" if they are not."""
        if not self._search.size.is_felt:
            return ""
        return why_smaller(self._last.records, self._last.waited_s, self._at, self._fits, self._patience)
