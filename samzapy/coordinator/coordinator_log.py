"""Writes the coordinator topic: every decision is a transactional record, so a coordinator that was replaced cannot write any more."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from samzapy.api.errors import ClusterUnreachable, Fenced, LogError, TopicMissing
from samzapy.model.commands_told import find_program
from samzapy.model.names import Job
from samzapy.model.ownership import Ledger
from samzapy.plan.lost_topics import MADE_AGAIN, lost_while_running
from samzapy.ports import Admin, Clock, Log, TopicOutline, TransactionalProducer
from samzapy.readers import owners_known, read_ledger

LOG = logging.getLogger("samzapy.coordinator")
FENCE_PATIENCE_S = 120.0
MAX_TOLD = 20  # records
LOOKS, BETWEEN_LOOKS_S = 3, 0.5  # at a topic that a broker does not show, before it is taken for deleted
ANSWER_S = 1.0  # a write waits no longer for the answer to a look
Written = tuple[str, bytes, bytes | None, int]  # topic, key, value, partition


class CoordinatorLog:
    """Reads and writes one job's coordinator topic, and fences container ids."""

    def __init__(self, job: Job, run_id: str, log: Log, clock: Clock) -> None:
        self._job = job
        self._run_id = run_id
        self._log = log
        self._clock = clock
        self._producer: TransactionalProducer | None = None
        self._told_of: set[bytes] = set()  # keys
        self._admin: Admin | None = None
        self._topic_id = ""  # Kafka's, as it was at the first write

    def read(self) -> Ledger:
        """The topic's current content. Of each record that cannot be read a warning is logged, once: only who needs it is refused.

        Raises:
            StateRefused: it was deleted since it was written. TopicMissing: it is not there. LogError.
        """
        consumer = self._log.restore_consumer("coordinator")
        try:
            ledger = read_ledger(consumer, self._job.coordinator_topic, self._clock)
        except TopicMissing as error:
            if not self._topic_id:
                raise
            raise lost_while_running([self._job.coordinator_topic], "deleted") from error
        finally:
            consumer.close()
        for key, why in ledger.unreadable.items():
            if key not in self._told_of and len(self._told_of) < MAX_TOLD:
                self._told_of.add(key)
                LOG.warning("a record that cannot be read is skipped, because it is not needed: %s", getattr(why, "message", why))
        return ledger

    def hidden(self) -> tuple[str, str, str]:
        """What to log where records that were written do not become visible: its text, and the arguments of that."""
        why = "another application's transaction is open in the topic; the run waits until that has ended"
        topic = self._job.coordinator_topic
        return f"%s: what this run has written there cannot be read yet: {why}. To find the program that has it open: %s", topic, find_program(topic, 0)

    def owners_by_checkpoints(self) -> tuple[dict[int, tuple[str, ...]], int]:
        """The tasks of each container number that the checkpoints name, and the highest epoch."""
        topic, admin = self._job.checkpoint_topic, self._log.admin()
        try:
            facts = admin.topics([topic]).get(topic)
        finally:
            admin.close()
        consumer = self._log.restore_consumer("owners")
        try:
            return owners_known(consumer, topic, facts.partitions if facts else 0, self._clock)
        finally:
            consumer.close()

    def take_over(self) -> None:
        """Fence every earlier coordinator of this job."""
        self._producer = self._log.transactional_producer(self._job.coordinator_transactional_id)
        self._producer.init()

    def write(self, *records: tuple[bytes, bytes | None]) -> None:
        """Write all of these records to the coordinator topic, or none; writing them again does no harm.

        Raises:
            Fenced: another coordinator has taken over. StateRefused: the topic was deleted since the first write. LogError: not written, or not known
                to be; the next call begins with a new producer.
        """
        if not self.write_to((self._job.coordinator_topic, key, value, 0) for key, value in records):
            self.renew_producer()

    def write_to(self, records: Iterable[Written]) -> bool:
        """Write all of these records, of any topics, or none, in one transaction. Raises as `write`.

        Returns:
            Whether the commit was clean; after one that was not, this producer must not be used again.
        """
        self._refuse_gone()
        try:
            producer = self._owned_producer()
            producer.begin()
            for topic, key, value, partition in records:
                producer.send(topic, value, key, partition)
            producer.flush()
            return producer.commit()
        except LogError:
            self.close()
            raise

    def _refuse_gone(self) -> None:
        """Kafka's client waits a minute for a topic that is gone, and nothing else is done meanwhile; so it is looked at before each write.

        Raises:
            StateRefused: it was deleted, or deleted and made again, since the first write.
        """
        for look in range(LOOKS):
            try:
                seen = self._seen()
            except LogError:  # the write itself finds out what it is
                self._close_admin()
                return
            if seen is not None:
                if self._topic_id not in ("", seen.topic_id):
                    raise lost_while_running([self._job.coordinator_topic], MADE_AGAIN)
                self._topic_id = seen.topic_id
                return
            if look + 1 < LOOKS:
                self._clock.sleep(BETWEEN_LOOKS_S)
        if self._topic_id:
            raise lost_while_running([self._job.coordinator_topic], "deleted")

    def _seen(self) -> TopicOutline | None:
        self._admin = self._admin or self._log.admin()
        return self._admin.outlines([self._job.coordinator_topic], ANSWER_S).get(self._job.coordinator_topic)

    def _close_admin(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def renew_producer(self) -> None:
        """Make a new producer: its init decides the open transaction of the last one, also after a failed write.

        Raises:
            Fenced: another coordinator has taken over. LogError.
        """
        self.close()
        self._owned_producer()

    def _owned_producer(self) -> TransactionalProducer:
        if self._producer is None:
            self.take_over()
            self._check_still_owner()
        if self._producer is None:
            raise AssertionError("take_over makes a producer")
        return self._producer

    def _check_still_owner(self) -> None:
        """A new producer (after a suspicious commit) fences another run that has taken the id over, so check the lease for one."""
        lease = self.read().lease
        if lease is not None and lease.run_id != self._run_id:
            raise Fenced(f"run {lease.run_id} on {lease.host} has taken over job {self._job}.", "")

    def fence(self, container: int) -> None:
        """Make every producer of a container's id dead at the broker, its open transaction decided; retried until it succeeds.

        Raises:
            ClusterUnreachable: not within two minutes.
        """
        deadline = self._clock.monotonic() + FENCE_PATIENCE_S
        while True:
            producer = self._log.transactional_producer(self._job.container_transactional_id(container))
            try:
                producer.init()
                return
            except (ClusterUnreachable, LogError) as error:
                if self._clock.monotonic() >= deadline:
                    raise ClusterUnreachable(f"container {container} could not be fenced: {error}", "Check the brokers.") from error
            finally:
                producer.close()
            self._clock.sleep(0.2)

    def close(self) -> None:
        self._close_admin()
        if self._producer is not None:
            self._producer.close()
            self._producer = None
