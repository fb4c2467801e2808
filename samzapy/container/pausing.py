"""What people order of the run loop while it runs: to pause, to go on, to commit.

A pause begins between two records: all that came before is committed, the rest of the batch goes back to Kafka, the inputs are held. Tasks, stores and
membership stay; orders, moves and reports go on; no hook of the user's is called by the clock.
"""

from __future__ import annotations

import logging

from samzapy.container.commit_due import ORDERED, PAUSE
from samzapy.container.commits import Commits
from samzapy.container.inputs import Inputs
from samzapy.container.transaction import Transaction
from samzapy.model.offsets import TopicPartition
from samzapy.ports import Supervision

LOG = logging.getLogger("samzapy.container")


class Paused(Exception):
    """The batch under way is given back: a pause has begun in the middle of it."""


class Pausing:
    """Follows the coordinator's orders.

    Attributes:
        is_on: the inputs are held.
        ordered: the number of the newest commit that was ordered and is done.
    """

    def __init__(self, supervision: Supervision, inputs: Inputs, transaction: Transaction, commits: Commits) -> None:
        self._supervision = supervision
        self._inputs = inputs
        self._transaction = transaction
        self._commits = commits
        self.is_on = False
        self.ordered = 0

    def follow(self) -> None:
        """Between two records: do what was ordered since.

        Raises:
            Paused: a pause begins, and `put_back` is to be called; TransactionAborted and what a commit raises: the order is followed later.
        """
        order = self._supervision.instructions()
        if order.commit > self.ordered:
            self._commits.commit(ORDERED)
            self.ordered = order.commit
            self._supervision.report(True)
        if order.paused and not self.is_on:
            self._commits.commit(PAUSE)
            self._turn(True)
            if self._transaction.unprocessed:
                raise Paused
        elif self.is_on and not order.paused:
            self._turn(False)

    def _turn(self, is_on: bool) -> None:
        self.is_on = is_on
        self._inputs.hold_all(is_on)
        LOG.info("paused: inputs are not read" if is_on else "goes on reading its inputs")
        self._supervision.report(True)

    def put_back(self) -> None:
        """Outside of a batch: what of it is not processed is read again when it goes on."""
        first: dict[TopicPartition, int] = {}
        for message in self._transaction.unprocessed:
            first.setdefault(TopicPartition(message.topic(), message.partition()), message.offset())
        self._transaction.end_batch()
        for partition, offset in first.items():
            if (partition.topic, partition.partition) in self._inputs.readers:
                self._inputs.go_on(partition, offset)
