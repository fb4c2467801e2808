"""What a container reports: the part of a heartbeat that the run loop knows. Lag, memory and phase are added by the process (runner.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samzapy.container.assigned import AssignedTasks
from samzapy.container.commits import Commits
from samzapy.container.committer import Committer
from samzapy.container.facts import Facts
from samzapy.container.hooks import Hooks
from samzapy.container.input_consumer import InputConsumer
from samzapy.container.inputs import Inputs
from samzapy.container.ownership import Ownership
from samzapy.container.pausing import Pausing
from samzapy.container.standby import Standbys
from samzapy.container.task_instance import TaskInstance
from samzapy.container.transaction import Transaction
from samzapy.model.offsets import TopicPartition
from samzapy.plan.refused_record_search import PoisonSearch
from samzapy.ports import Clock


class Report:
    """Looks, and changes nothing."""

    def __init__(
        self,
        *,
        host: str,
        tasks: Mapping[str, TaskInstance],
        inputs: Inputs,
        transaction: Transaction,
        committer: Committer,
        own: Ownership,
        assigned: AssignedTasks,
        standbys: Standbys,
        clock: Clock,
        facts: Facts,
        hooks: Hooks,
        consumer: InputConsumer,
        pausing: Pausing,
        commits: Commits,
        search: PoisonSearch,
    ) -> None:
        self._host = host
        self._tasks = tasks
        self._inputs = inputs
        self._transaction = transaction
        self._committer = committer
        self._own = own
        self._assigned = assigned
        self._standbys = standbys
        self._clock = clock
        self._facts = facts
        self._consumer = consumer
        self._collector = hooks.collector
        self._pausing = pausing
        self._commits = commits
        self._search = search

    def positions(self) -> dict[str, dict[TopicPartition, int]]:
        """By task: where it stands in each input."""
        here = self._inputs.positions(self._transaction.unprocessed)
        return {
            t.name: {i.partition: max(here.get(t.name, {}).get(i.partition, 0), i.committed_offset) for i in t.inputs}
            for t in self._tasks.values()
        }

    def status(self) -> dict[str, Any]:
        """As JSON."""
        positions = self.positions()
        commits = self._committer
        now_s, now_ms = self._clock.monotonic(), self._clock.now_ms()
        return {
            "host": self._host,
            "slow": self._commits.slow.why() or self._consumer.why_slow(),
            "most_records": self._search.size.fits,
            "commits": commits.commits,
            "commit_seconds_sum": round(commits.total_seconds, 6),
            "commit_seconds_last": round(commits.last_seconds, 6),
            "producer_renewals": self._own.renewals,
            "paused": self._pausing.is_on,
            "ordered": self._pausing.ordered,
            "epoch": self._assigned.epoch,
            "released": sorted(self._assigned.released),
            "standbys": self._standbys.status(),
            "sent": dict(self._collector.sent),
            "committed": dict(self._commits.done),
            **self._facts.to_json(),
            "tasks": [task.status(positions[task.name], now_s, now_ms) for task in self._tasks.values()],
        }
