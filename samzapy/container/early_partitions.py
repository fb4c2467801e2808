"""Partitions of checkpoints and changelogs are added to the open transaction before its commit needs them.

A producer adds a partition to a transaction by a request, at the first record for it, and sends the record after the answer. Changelogs and
checkpoints get their first record in the commit, one after the other (C1, C3), so the commit waited for two more requests. Measured: 5 of its 9 ms
(test_a_partition_is_added_to_a_transaction_once_by_its_first_record).
A barrier is a record that every reader skips, so one is sent to each of these partitions a moment before the commit; the answers come while records
are processed. Not sooner: who reads checkpoints would find an open transaction there most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from samzapy.container.inputs import Inputs
from samzapy.container.ownership import Ownership
from samzapy.container.restore_end import barrier_of
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInstance
from samzapy.container.transaction import Transaction
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.offsets import TopicPartition
from samzapy.plan.refused_record_search import PoisonSearch

MOST = 200  # in a transaction: with more, so many barriers cost more than the wait
LEAD_S = 0.03


class EarlyPartitions:
    """Adds the partitions of tasks that have something to commit.

    Attributes:
        lead_s: how long before a commit is due `add` is to be called.
    """

    def __init__(self, spec: ContainerSpec, ownership: Ownership, transaction: Transaction, inputs: Inputs, search: PoisonSearch) -> None:
        self._spec = spec
        self._own = ownership
        self._transaction = transaction
        self._inputs = inputs
        self._search = search
        self.lead_s = min(LEAD_S, spec.commit_interval_s / 2)

    def add(self) -> None:
        """Between two records, once for a commit. While a poison record is searched for, nothing: its transactions hold as little as possible.

        Raises:
            As `Ownership.open`.
        """
        if not self._transaction.records or self._search.is_on:
            return
        for task, store, partition in islice(self._needed(), MOST):
            self._own.open().send(partition.topic, barrier_of(self._spec, self._own, task, store), BARRIER_KEY, partition.partition)

    def _needed(self) -> Iterator[tuple[TaskInstance, str, TopicPartition]]:
        """The partitions that a commit would write now, each with its task and store; "": the checkpoint's."""
        for task in self._inputs.tasks():
            changed = [name for name, store in task.stores.items() if store.uncommitted_bytes]
            if changed or any(task_input.first_ms for task_input in task.inputs):
                yield task, "", self._spec.checkpoint_of(task.model)
            for name in changed:
                if self._spec.stores[name].changelog is not None:
                    yield task, name, self._spec.stores[name].changelog_of(task.model.partition)
