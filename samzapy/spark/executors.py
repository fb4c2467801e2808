"""The executors of a session as the driver's JVM knows them now, and what they mean for placement. Nothing here waits.

Two sources, since neither has it all: Spark's status store lists the registered executors with their hosts and cores; the scheduler says
of each whether it still gets tasks. One that is listed and gets none is leaving: it is being decommissioned (a worker's or executor's
SIGPWR, a drained node), or it was lost a moment ago. A host with such an executor is leaving as a whole: in every cluster that
decommissions by itself (a standalone worker, a Kubernetes pod, a YARN node) it is the host that goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class Executor:
    """A registered executor; `host` as Spark names it."""

    id: str
    host: str
    cores: int
    is_leaving: bool


def host_slots(executors: Sequence[Executor]) -> dict[str, int]:
    """The hosts that can take containers, with their slots, by name."""
    gone = leaving_hosts(executors)
    found: dict[str, int] = {}
    for executor in sorted(executors, key=lambda e: e.host):
        if executor.host not in gone:
            found[executor.host] = found.get(executor.host, 0) + executor.cores
    return found


def leaving_hosts(executors: Sequence[Executor]) -> frozenset[str]:
    """The hosts that are about to go, and may still run containers."""
    return frozenset(executor.host for executor in executors if executor.is_leaving)


def host_of(host_port: str) -> str:
    """The host of `host:port`; an executor has no port yet for the moment between its own registration and its block manager's."""
    host, _, port = host_port.rpartition(":")
    return (host if host and port.isdecimal() else host_port).strip("[]")


def registered(context: SparkContext) -> list[Executor]:
    """Every executor that is registered now; of no use with a local master, which has none."""
    spark = context._jsc.sc()
    listed, scheduler = spark.statusStore().executorList(True), spark.schedulerBackend()
    found = []
    for i in range(listed.size()):
        summary = listed.apply(i)
        name = str(summary.id())
        if name != DRIVER:
            found.append(Executor(name, host_of(str(summary.hostPort())), int(summary.totalCores()), not scheduler.isExecutorActive(name)))
    return found


def local_slots(context: SparkContext) -> int:
    """The n of `local[n]`: what Spark counts tasks against, whatever spark.default.parallelism says."""
    return int(context._jsc.sc().schedulerBackend().totalCores())
