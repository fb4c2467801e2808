"""What a simulated history covered: a clean verdict over histories in which nothing happened would prove nothing.

Counted where it is seen: what producers were told, which failpoints were met, and what the story did. A run of many seeds is valid only if each
of `REQUIRED` occurred in more than one per cent of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from samzapy.api.errors import Fenced, InDoubt, TransactionAborted
from samzapy.testing.memory_cluster import MemoryCluster
from samzapy.testing.memory_log import MemoryLog
from samzapy.testing.memory_producers import MemoryTransactionalProducer
from tests.recovery.sim_plan import PHASES
from tests.simulation.simulation import Simulation

REQUIRED = (
    "commits", "commits in doubt", "commits aborted", "suspicious commits", "fenced", "zombie containers", "zombie drivers", "moves",
    "fail-overs", "restored: local", "restored: changelog", "restored: empty", "warm copies", "scalings", "restarts", "outages",
    "transaction timeouts", "held EndTxn", "local state deleted", "old copy brought back", "inputs truncated", "end of stream",
    "exactly once", "at least once", "batches undone", "with a program", "with a second input", "windows of programs", "internal partitions with records",
    "internal partitions purged", *(f"struck in {phase}" for phase in PHASES),
)  # fmt: skip
OF_TASKS = ("restored: local", "restored: changelog", "restored: empty", "inputs truncated", "batches undone")  # seen where the job has a task only
AT_POINTS = {
    "move.released.before_ack": "moves", "coordinator.fenced": "take-overs", "standby.opened": "warm copies",
    "end.final_commit.after": "end of stream", "commit.C4.after": "commits", "own.init.before": "inits",
    "init.after": "starts of tasks", "coordinator.end.c": "ended by force",
}  # fmt: skip


class Coverage:
    """How often what happened in one history."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, what: str) -> None:
        self.counts[what] += 1


class Totals:
    """Over many histories: how often in all, and in how many of them."""

    def __init__(self) -> None:
        self.seeds = 0
        self.sums: Counter[str] = Counter()
        self.in_seeds: Counter[str] = Counter()

    def add(self, counts: Counter[str]) -> None:
        self.seeds += 1
        self.sums.update(counts)
        self.in_seeds.update(counts.keys())

    def missing(self, required: Iterable[str] = REQUIRED) -> list[str]:
        """What occurred in one per cent of the seeds or fewer."""
        return [name for name in required if self.in_seeds[name] <= self.seeds / 100]

    def lines(self) -> list[str]:
        width = max(map(len, self.sums), default=0)
        return [
            f"{name:{width}}  {n:8d} times, in {100 * self.in_seeds[name] / self.seeds:5.1f} % of seeds"
            for name, n in sorted(self.sums.items())
        ]


class _CountingProducer(MemoryTransactionalProducer):
    """Counts what its owner is told."""

    coverage: Coverage

    def commit(self) -> bool:
        try:
            clean = super().commit()
        except InDoubt:
            self.coverage.count("commits in doubt")
            raise
        except Fenced:
            self.coverage.count("fenced")
            raise
        except TransactionAborted:
            self.coverage.count("commits aborted")
            raise
        if not clean:
            self.coverage.count("suspicious commits")
        return clean

    def flush(self) -> None:
        try:
            super().flush()
        except Fenced:
            self.coverage.count("fenced")
            raise
        except TransactionAborted:
            self.coverage.count("commits aborted")
            raise


def counting(sim: Simulation, coverage: Coverage) -> None:
    """Count what the processes of a simulation meet."""

    class CountingLog(MemoryLog):
        def transactional_producer(self, transactional_id: str) -> _CountingProducer:
            made = _CountingProducer(self._cluster, transactional_id, self._commit_timeout_s, self._origin)
            made.coverage = coverage
            return made

    def make(cluster: MemoryCluster, commit_timeout_ms: int, lease_ms: int, origin: str) -> CountingLog:
        return CountingLog(cluster, commit_timeout_ms, lease_ms, origin)

    sim.make_log = make
