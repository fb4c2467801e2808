"""Ownership of a stopped job for one transaction: the basis of `checkpoint set`, `checkpoint forget` and `state drop`.

It owns the job as a run does: another run that is alive is refused, earlier coordinators and every container id are fenced, and only then is
anything read. A run that starts in the meantime fences this one, and the transaction fails.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable
from types import TracebackType

from samzapy.api.errors import Fenced, InDoubt, LogError, OwnedElsewhere, SamzapyError, TransactionAborted
from samzapy.coordinator.coordinator_log import CoordinatorLog, Written
from samzapy.coordinator.ownership_records import OwnershipRecords
from samzapy.coordinator.run_lease import Lease
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.names import Job
from samzapy.model.ownership import LEASE_KEY, Ledger
from samzapy.plan.lost_topics import coordinator_emptied
from samzapy.ports import Clock, Log

LOG = logging.getLogger("samzapy.coordinator")
NOTHING = "Nothing has changed."
AGAIN = "Run it again; if it deletes much state, add `--set commit.timeout=10m`."


class Alone:
    """Owns the job while its block lasts; `ledger` is the coordinator topic's content then.

    Args:
        failed: what did not happen where it goes wrong ("the offsets were not set").
        is_alive: whether a coordinator answers at a URL for this job.

    Attributes:
        id: of this command, as a run has one.
    """

    def __init__(
        self,
        job: Job,
        settings: CoordinatorSettings,
        log: Log,
        clock: Clock,
        process: Process,
        is_alive: Callable[[str], bool],
        failed: str,
    ) -> None:
        self._job = job
        self._settings = settings
        self._clock = clock
        self._failed = failed
        self.id = secrets.token_hex(8)
        self.ledger = Ledger()
        self._may_be_written = False  # what was to be written, and with it the end of the lease
        self._topic = CoordinatorLog(job, self.id, log, clock)
        self._ownership = OwnershipRecords(self._topic, self.id, clock)
        self._lease = Lease(job, self.id, self._ownership, settings, clock, process, is_alive)

    def __enter__(self) -> Alone:
        """
        Raises:
            OwnedElsewhere: another run is alive, or has taken the job over. StateRefused: records of the coordinator topic were deleted.
        """
        found = self._lease.await_the_other(self._topic.read)
        if found.start > 0:
            raise coordinator_emptied(self._job, found.start)
        try:
            self.ledger = self._ownership.take_over()
            self._lease.renew("")
            self._ownership.end_all(self.ledger, range(self._settings.containers))
        except BaseException as error:
            try:
                self._give_back(error)
            finally:
                self._ownership.close()
            if isinstance(error, Fenced):
                raise self._replaced() from None
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self._give_back(error)
        finally:
            self._ownership.close()
        if isinstance(error, Fenced):
            raise self._replaced() from None

    def _give_back(self, error: BaseException | None) -> None:
        """If nothing was written: say that this command has ended, and how the run before it had. Otherwise the job looks killed."""
        if not self._lease.is_held or self._may_be_written or isinstance(error, Fenced):
            return
        before = self.ledger.lease
        try:
            if not isinstance(error, Exception | None):  # interrupted, perhaps within a transaction: a new producer ends that
                self._ownership.close()
            if before is not None and before.ended:
                self._ownership.write((LEASE_KEY, before.to_bytes()))
            else:
                self._lease.give_up()
        except Fenced:  # a run that has begun meanwhile has the lease
            return
        except SamzapyError as failed:
            if error is None:
                raise
            LOG.warning("the lease of this command could not be given up; the next run waits until it is over: %s", failed.message)

    def read(self) -> Ledger:
        """The coordinator topic's content now."""
        return self._topic.read()

    def stay(self) -> None:
        """Renew the lease; call it regularly during long reads."""
        self._lease.renew_when_due("")

    def write(self, records: Iterable[Written], is_written: Callable[[], bool]) -> None:
        """All of these and the end of this command's lease, or nothing. Returns when `is_written`: a commit that returned is not yet visible.

        Raises:
            OwnedElsewhere: another run has taken the job over. LogError: nothing was written.
        """
        self._ownership.close()  # the init of a new producer fences a run that has taken the job over in the meantime; the lease then shows that run
        if self.read().lease is None:  # the coordinator topic has been deleted
            raise self._replaced()
        ended = (self._job.coordinator_topic, LEASE_KEY, self._lease.ended().to_bytes(), 0)
        self._may_be_written = True
        try:
            self._topic.write_to((*records, ended))
        except TransactionAborted as error:
            raise self._unchanged(error) from error
        except InDoubt as error:
            self._decide(is_written, error)
        while not is_written():
            self._clock.sleep(0.02)

    def _decide(self, is_written: Callable[[], bool], error: InDoubt) -> None:
        """A new init decides the transaction; then the topics show the outcome, whichever run owns the job by then."""
        try:
            self._topic.renew_producer()
        except Fenced:
            if not is_written():
                raise
        if not is_written():
            raise self._unchanged(error) from error

    def _unchanged(self, error: LogError) -> LogError:
        self._may_be_written = False
        return LogError(f"{self._failed}: {error.message}", f"{NOTHING} {AGAIN}")

    def _replaced(self) -> OwnedElsewhere:
        return OwnedElsewhere(f"another run has taken over job {self._job}; {self._failed}.", "Stop it first: `samzapy stop JOB.yaml`.")
