"""A job, for the length of one command: its file, its cluster, and what the runs of it left there or answer.

`with Job(file, more, sets) as job:` loads the file before anything else, and reaches the cluster where the block begins.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, NotAuthorized, OwnedElsewhere, SamzapyError, StateRefused
from samzapy.cli.begun import Begun, begun_here
from samzapy.cli.common import say
from samzapy.cli.coordinator_http import HTTP_TIMEOUT_S, http_json, is_status
from samzapy.cli.loading import load
from samzapy.cli.this_process import is_gone, is_there
from samzapy.clock import SystemClock
from samzapy.config.load import LoadedJob
from samzapy.config.schema import Settings
from samzapy.coordinator.token import read_token, token_path
from samzapy.http_client import trust
from samzapy.model.names import LOCALHOST
from samzapy.model.ownership import LeaseRecord, Ledger
from samzapy.ops.acls import explained
from samzapy.ports import Consumer, Log
from samzapy.readers import read_lease, read_ledger
from samzapy.store.directory import checked_name
from samzapy.wiring.clients import kafka_log
from samzapy.wiring.job_topics import job_of
from samzapy.wiring.local_state import local_state

LOOK_S = 0.5
SILENT_REMEDY = (
    "Ask again in some seconds. The run may be overloaded, suspended, or cut off from here. To stop it after a final commit, run `kill` with that process id on "
    "the host that is named above."
)
T = TypeVar("T")


class Job:
    """A job file and its cluster.

    Attributes:
        loaded, settings: what the job file says.
        names: of the job and of its topics.
        log: clients of the cluster; within the block only.
        clock: the machine's.
        again: loads the file once more, as it is then.

    Raises:
        ConfigError: the job file has problems; all at once. Where the block begins, ClusterUnreachable: no broker answered;
            NotAuthenticated, TlsFailed: none lets us in. Out of the block, NotAuthorized: with all that is not allowed.
    """

    log: Log
    again: Callable[[], LoadedJob]

    def __init__(
        self,
        file: Path,
        more: list[Path] | None,
        sets: list[str] | None,
        classes: bool = False,
        before_classes: Callable[[Settings], None] | None = None,
    ) -> None:
        self._take(load(file, more, sets, classes, before_classes))
        self.again = lambda: load(file, more, sets)

    @classmethod
    def of(cls, loaded: LoadedJob, log: Log) -> Self:
        """One that is loaded and connected already."""
        job = cls.__new__(cls)
        job._take(loaded)
        job.log = log
        return job

    def _take(self, loaded: LoadedJob) -> None:
        self.loaded, self.settings = loaded, loaded.settings
        self.again = lambda: loaded
        if loaded.settings.web.tls is not None:
            trust(loaded.settings.web.tls.cert)
        self.names = job_of(loaded.settings)
        self._token = ("", "")  # of which run, and what it is, if it is known here
        self.clock = SystemClock()

    def __enter__(self) -> Self:
        self.log = kafka_log(self.settings)
        self.cluster_id()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, NotAuthorized):
            raise explained(error, self.settings, self.log) from error

    def __str__(self) -> str:
        return f"job {self.settings.job}-{self.settings.id}"

    def cluster_id(self) -> str:
        with self.log.admin() as admin:
            return checked_name("the cluster's id", admin.cluster_id())  # it becomes a directory's name

    def local_state(self) -> Path:
        """Where this host keeps the job's local state, if it keeps any."""
        return local_state(self.settings, self.cluster_id(), LOCALHOST)

    # -- its runs ----------------------------------------------------------------------------------------------------------------------

    def lease(self) -> LeaseRecord | None:
        """The newest lease record of the coordinator topic, or None; readable or not, other records are left alone."""
        return self._read_coordinator_topic(lambda consumer, topic: read_lease(consumer, topic, self.clock), None)

    def ledger(self) -> Ledger:
        """What the coordinator topic says; nothing where there is none yet."""
        return self._read_coordinator_topic(lambda consumer, topic: read_ledger(consumer, topic, self.clock), Ledger())

    def status(self, timeout_s: float = HTTP_TIMEOUT_S) -> dict[str, Any] | None:
        """The status that the running coordinator gives, or None where none answers in time."""
        return self._answering(timeout_s)[1]

    def status_here(self) -> dict[str, Any] | None:
        """The status that a run of this host gives, for when Kafka, which knows of runs elsewhere, does not answer."""
        urls = [begun.url for begun in self._begun() if begun.url]
        return next((found for url in urls if (found := self._status_at(url)) is not None), None)

    def url(self) -> str | None:
        """The running coordinator's URL, or None where none answers."""
        return self._answering(HTTP_TIMEOUT_S)[0]

    def _answering(self, timeout_s: float) -> tuple[str | None, dict[str, Any] | None]:
        """URL and status of the coordinator that answers. The lease says where it is; should that be lost, runs of this host do."""
        url = self._lease_url()
        answer = None if url is None else self._status_at(url, timeout_s)
        if answer is not None:
            return url, answer
        for other in dict.fromkeys(begun.url for begun in self._begun() if begun.url not in ("", url)):
            if (answer := self._status_at(other, timeout_s)) is not None:
                return other, answer
        return None, None

    def _begun(self) -> list[Begun]:
        return begun_here(self.settings, self.loaded.sources[0])

    def answers(self, url: str) -> bool:
        """Whether a coordinator of this job answers at a URL."""
        return self._status_at(url) is not None

    def starting(self) -> Begun | None:
        """A run of this host that has begun and cannot be asked yet. Look for it before `status`: what has begun by then is seen by one of both."""
        here = [begun for begun in self._begun() if not begun.url]
        if not here:
            return None
        try:
            lease = self.lease()
        except StateRefused:  # unreadable: the process is there all the same
            lease = None
        return next((begun for begun in here if lease is None or begun.run_id != lease.run_id), None)

    def silent(self) -> str:
        """A run that lives, as far as can be known from here, in words; "" if there is none. To be asked for when none answers."""
        try:
            lease = self.lease()
        except StateRefused:  # nothing is known of who wrote it
            lease = None
        over = lease.run_id if lease is not None and lease.ended else None  # its process may be there for another moment
        begun = next((begun for begun in self._begun() if begun.url and begun.run_id != over), None)
        if begun is not None:
            return f"{begun}, on this host, asked at {begun.url}"
        if lease is None or lease.ended:
            return ""
        age_s, lease_s = (self.clock.now_ms() - lease.renewed_ms) / 1000, self.settings.containers.lease_ms / 1000
        if is_there(lease.host, lease.pid, lease.process_start):
            return f"process {lease.pid} on this host, asked at {lease.url}; it renewed its lease {age_s:.0f} s ago"
        if is_gone(lease.host, lease.pid, lease.process_start):
            return ""
        if abs(age_s) < lease_s:  # if the clocks of the two hosts agree; a run that is taken for one that lives does no harm
            return f"process {lease.pid} on {lease.host}, asked at {lease.url}; it renewed its lease {max(age_s, 0):.0f} s ago, and may have ended since"
        if self._is_renewed(lease, lease_s):
            return f"process {lease.pid} on {lease.host}, asked at {lease.url}; it has just renewed its lease, and its clock and this host's differ"
        return ""

    def _is_renewed(self, lease: LeaseRecord, lease_s: float) -> bool:
        """Whether a run renews its lease in the time that one lasts, by this host's monotonic clock. Its wall clock may be wrong, and this host's too."""
        say(
            f"the lease of another run (process {lease.pid} on {lease.host}) has not ended; waiting up to {lease_s:g} s to see whether it is renewed"
        )
        until = self.clock.monotonic() + lease_s
        while self.clock.monotonic() < until:
            self.clock.sleep(LOOK_S)
            found = self.lease()
            if found != lease:
                return found is not None and not found.ended
        return False

    def killed(self, run_id: str, timeout_s: float) -> LeaseRecord | None:
        """The lease of this run, if it ended without a word: nothing answers, and its process is gone, or has not renewed its lease in time."""
        if self.status(timeout_s) is not None or self.silent():
            return None
        lease = self.lease()
        return lease if lease is not None and lease.run_id == run_id and not lease.ended else None

    def refuse_running(self, url: Callable[[], str | None] | None = None) -> None:
        """That it does not run, nor starts. `url`: asks where a run answers; `self.url` by default.

        Raises:
            OwnedElsewhere: it does.
        """
        starting = self.starting()
        found = (url or self.url)()
        if found is not None:
            raise OwnedElsewhere(f"{self} is running ({found}).", "Stop it first: `samzapy stop JOB.yaml`.")
        if starting is not None:
            raise OwnedElsewhere(f"{self} is starting ({starting}).", "Stop it first: `samzapy stop JOB.yaml`.")
        if silent := self.silent():
            raise OwnedElsewhere(f"{self} runs, but does not answer ({silent}).", SILENT_REMEDY)

    def _status_at(self, url: str, timeout_s: float = HTTP_TIMEOUT_S) -> dict[str, Any] | None:
        try:
            answer = self.full_status(url, timeout_s)
        except ClusterUnreachable:
            return None
        if not is_status(answer):
            return None
        return answer if answer.get("job") == self.settings.job and answer.get("id") == self.settings.id else None

    def full_status(self, url: str, timeout_s: float) -> dict[str, Any]:
        """What answers there: with the texts of errors, if the run's token is in this user's state directory.

        Raises:
            ClusterUnreachable: no answer.
        """
        answer = http_json("GET", url + "/api/v1/status", timeout_s=timeout_s)
        if not is_status(answer):
            return answer
        if answer["run_id"] != self._token[0]:
            self._token = answer["run_id"], self._token_of(answer["run_id"])
        if not self._token[1]:
            return answer
        try:
            return http_json("GET", url + "/api/v1/status", self._token[1], timeout_s=timeout_s)
        except (ClusterUnreachable, ConfigurationError):  # it has ended meanwhile, or is another one
            return answer

    def _token_of(self, run_id: str) -> str:
        """"" where it is not known."""
        try:
            return read_token(token_path(Path(self.settings.state.dir), self.cluster_id(), str(self.names), run_id), is_ours=True)
        except SamzapyError:
            return ""

    def _lease_url(self) -> str | None:
        lease = self.lease()
        return lease.url if lease is not None and lease.url else None

    def _read_coordinator_topic(self, read: Callable[[Consumer, str], T], absent: T) -> T:
        topic = self.names.coordinator_topic
        with self.log.admin() as admin:
            if topic not in admin.topics([topic]):
                return absent
        with self.log.restore_consumer("status") as consumer:
            return read(consumer, topic)
