"""O1 and O2: ownership of the container's transactional id and tasks.

Init before check: after `init` every predecessor of this transactional.id is fenced and its open transaction decided; only then is the
coordinator topic read, to an end fetched after the init. The reverse order would let a container that was paused between the check and
its init reopen an id that had been fenced. A new producer is made by the same two steps, for any reason.

Tasks join and leave a running container by a newer record with the same incarnation, which `check` reads. That needs no new init: a
container whose incarnation has been ended is fenced, and all its later writes fail.
"""

from __future__ import annotations

import logging

from samzapy import failpoints
from samzapy.api.errors import LogError, StateRefused, Superseded
from samzapy.container.transaction import Transaction
from samzapy.model.names import Job
from samzapy.model.ownership import ContainerRecord, FirstRun, Ledger
from samzapy.plan.lost_topics import checkpoints_gone, differs_from_first_run
from samzapy.ports import Clock, Log, TransactionalProducer
from samzapy.readers import read_ledger

LOG = logging.getLogger("samzapy")


class Ownership:
    """Holds the container's one transactional producer.

    Args:
        transaction: is told whether a transaction is open on the producer.

    Attributes:
        named: the tasks that the newest record read gives to this container.
        epoch: of that record.
    """

    def __init__(self, job: Job, container: int, incarnation: str, log: Log, clock: Clock, transaction: Transaction) -> None:
        self._job = job
        self._container = container
        self._log = log
        self._clock = clock
        self.incarnation = incarnation
        self.epoch = 0
        self.named: tuple[str, ...] = ()
        self.ledger = Ledger()
        self.producer: TransactionalProducer | None = None
        self._transaction = transaction
        self.renewals = 0

    def take(self) -> TransactionalProducer:
        """O1, O2: a new producer that is known to be the owner's.

        Raises:
            Superseded: the coordinator topic names another incarnation, or none. LogError: Kafka could not be asked.
        """
        self.drop()
        producer = self._log.transactional_producer(self._job.container_transactional_id(self._container))
        try:
            failpoints.hit("own.init.before")
            producer.init()  # O1
            failpoints.hit("own.init.after")
            self.check()  # O2
            failpoints.hit("own.checked")
        except BaseException:
            producer.close()
            raise
        self.producer = producer
        return producer

    def check(self) -> None:
        """O2: this container's record in the coordinator topic.

        Raises:
            Superseded, LogError: as `take`.
        """
        ledger, named = self._read()
        self.ledger, self.epoch, self.named = ledger, named.epoch, named.tasks

    def refuse_if_superseded(self) -> None:
        """To be asked before an error is said: a container that was frozen, and has a successor, finds its topics as the successor has left them.

        Raises:
            Superseded: as `check`. Nothing if Kafka could not be asked.
        """
        try:
            self._read()
        except Superseded:
            raise
        except LogError as error:
            LOG.info("the coordinator topic was not read: %s", error)

    def _read(self) -> tuple[Ledger, ContainerRecord]:
        with self._log.restore_consumer("ownership") as consumer:
            ledger = read_ledger(consumer, self._job.coordinator_topic, self._clock)
        try:
            named = ledger.containers.get(self._container)
        except StateRefused as error:  # the coordinator ends this incarnation, and writes the record anew
            raise Superseded(f"container {self._container}: {error.message}", error.remedy) from None
        if named is None or named.incarnation != self.incarnation:
            raise self._superseded(named)
        return ledger, named

    def check_checkpoint_topic(self) -> None:
        """To be asked after checkpoints were read: that they came from the topic of the job's first run. Another topic by its name is as empty
        as the topic was before a first start. Ids never come back, so what was read before was read from this one.

        Raises:
            StateRefused: it was deleted, or deleted and created again.
        """
        first, topic = self.ledger.first_run, self._job.checkpoint_topic
        if first is None:
            return
        admin = self._log.admin()
        try:
            facts = admin.topics([topic]).get(topic)
        finally:
            admin.close()
        if facts is None:
            raise checkpoints_gone(self._job)
        refusal = differs_from_first_run(self._job, "", first, FirstRun(facts.topic_id, 0))
        if refusal is not None:
            raise refusal

    def _superseded(self, named: ContainerRecord | None) -> Superseded:
        who = "nobody" if named is None or not named.incarnation else f"{named.incarnation} (epoch {named.epoch})"
        return Superseded(
            f"container {self._container}: the coordinator topic names {who} as its process, not this one, {self.incarnation}.",
            "Nothing to do: uncommitted work of this process was never visible.",
        )

    def open(self) -> TransactionalProducer:
        """The producer, with a transaction open on it."""
        producer = self.producer
        if producer is None:
            producer = self.take()
        if not self._transaction.is_open:
            producer.begin()
            self._transaction.is_open = True
        return producer

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open on the producer."""
        return self._transaction.is_open

    def decided(self, clean: bool) -> None:
        """The transaction was committed or aborted; if that was suspicious, the producer must not begin another one."""
        self._transaction.is_open = False
        if not clean:
            self.renewals += 1
            self.take()

    def drop(self) -> None:
        """Close the producer without deciding anything."""
        self._transaction.is_open = False
        if self.producer is not None:
            self.producer.close()
            self.producer = None
