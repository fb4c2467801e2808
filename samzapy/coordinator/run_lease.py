"""Which run's coordinator is alive: a record that it renews. A second one asks before it begins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from samzapy import failpoints
from samzapy.api.errors import OwnedElsewhere, RecordRejected, RecordTooLarge
from samzapy.coordinator.ownership_records import OwnershipRecords
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model import lease_times
from samzapy.model.names import Job
from samzapy.model.ownership import LEASE_KEY, LeaseRecord, Ledger
from samzapy.ports import Clock

LOG = logging.getLogger("samzapy.coordinator")
MAX_ERROR = 1000  # characters
POLL_S = 0.5
LIVES = 3  # so many renewals, while it does not answer; one may have been on its way when the run ended


class Lease:
    """The lease of one run. `is_alive`: whether a coordinator answers at a URL for this job.

    Attributes:
        is_held: this run has written it.
    """

    def __init__(
        self,
        job: Job,
        run_id: str,
        ownership: OwnershipRecords,
        settings: CoordinatorSettings,
        clock: Clock,
        process: Process,
        is_alive: Callable[[str], bool],
    ) -> None:
        self._job = job
        self._run_id = run_id
        self._ownership = ownership
        self._settings = settings
        self._clock = clock
        self._process = process
        self._is_alive = is_alive
        self._renewed_at = 0.0
        self.is_held = False

    def await_the_other(self, read: Callable[[], Ledger]) -> Ledger:
        """Return what was read when no other run is alive: at once if it ended, or is provably gone; else when it has not renewed its lease
        for as long as one lasts, by this host's monotonic clock. What the hosts' wall clocks say decides nothing: they may differ, or jump.

        Raises:
            OwnedElsewhere: it answers, or goes on renewing its lease: then it lives, where this host cannot ask it.
        """
        watched: LeaseRecord | None = None
        since, renewals = 0.0, 0
        while True:
            ledger = read()
            lease = ledger.lease
            if lease is None or lease.ended or self._settings.takeover or lease.run_id == self._run_id:
                return ledger
            if self._process.is_gone(lease.host, lease.pid, lease.process_start):
                return ledger
            if lease.url and self._is_alive(lease.url):
                raise self._runs_elsewhere(lease)
            now = self._clock.monotonic()
            if watched is None:
                LOG.info(
                    "the lease of another run (process %d on %s) has not ended; waiting %g s to see whether it is renewed",
                    lease.pid, lease.host, self._settings.lease_s,
                )  # fmt: skip
            if lease != watched:
                renewals += watched is not None
                watched, since = lease, now
            if renewals >= LIVES:
                raise self._runs_elsewhere(lease)
            if now - since >= self._settings.lease_s:
                return ledger
            self._clock.sleep(POLL_S)

    def replaced(self, ledger: Ledger) -> LeaseRecord | None:
        """The lease of a run that has not ended, and that this one takes the job from."""
        lease = ledger.lease
        return None if lease is None or lease.ended or self._process.is_gone(lease.host, lease.pid, lease.process_start) else lease

    def _runs_elsewhere(self, lease: LeaseRecord) -> OwnedElsewhere:
        age_s = max((self._clock.now_ms() - lease.renewed_ms) / 1000, 0.0)
        return OwnedElsewhere(
            f"job {self._job} is run by process {lease.pid} on {lease.host} (lease {age_s:.0f} s old, {lease.url}).",
            "Stop it with `samzapy stop JOB.yaml`, or replace it with `samzapy run JOB.yaml --takeover`.",
        )

    def renew(self, url: str) -> None:
        """Renew the lease.

        Raises:
            Fenced: another coordinator has taken over. LogError.
        """
        now = self._clock.monotonic()
        failpoints.hit("coordinator.lease.before")
        self._ownership.write((LEASE_KEY, self._record(url).to_bytes()))
        self._renewed_at, self.is_held = now, True

    def renew_when_due(self, url: str) -> None:
        if self._clock.monotonic() - self._renewed_at >= lease_times.RENEW * self._settings.lease_s:
            self.renew(url)

    def give_up(self, outcome: str = "", error: str = "", beside: Sequence[tuple[bytes, bytes | None]] = ()) -> None:
        """Write that this run has ended, and how. `beside`: records that are written with it, if Kafka takes them."""
        record = LEASE_KEY, self.ended(outcome, error).to_bytes()
        try:
            self._ownership.write(record, *beside)
        except (RecordTooLarge, RecordRejected):
            if not beside:
                raise
            self._ownership.write(record)

    def ended(self, outcome: str = "", error: str = "") -> LeaseRecord:
        """The record of the end."""
        return replace(self._record(""), ended=True, outcome=outcome, error=error[:MAX_ERROR])

    def _record(self, url: str) -> LeaseRecord:
        p = self._process
        return LeaseRecord(run_id=self._run_id, url=url, host=p.host, pid=p.pid, process_start=p.start, renewed_ms=self._clock.now_ms())
