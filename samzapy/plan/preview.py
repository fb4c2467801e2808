"""What a run would do that began now: which tasks, in which containers, asked for on which hosts. By the same rules as the coordinator's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from samzapy.model.names import LOCALHOST
from samzapy.model.ownership import Ledger
from samzapy.plan.assignment import Plan, plan

_LOCAL = re.compile(r"local(?:\[(?P<slots>\d+|\*)(?:,\s*\d+)?\])?")


@dataclass(frozen=True, slots=True)
class RunPreview:
    """`slots`: how many containers can run at once, None where only Spark knows. `before`: by task, the container it ran in last."""

    plan: Plan
    slots: int | None
    before: Mapping[str, int]
    hosts_are_assumed: bool


def last_owners(ledger: Ledger) -> dict[str, int]:
    """By task, the container that the newest record gives it to, whether that lives or not."""
    return {task: record.container for record in sorted(ledger.containers.values(), key=lambda r: r.epoch) for task in record.tasks}


def slots_of(master: str, cores: int) -> int | None:
    """How many containers a master runs at once, as far as its name says."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return None
    given = found["slots"]
    return 1 if given is None else cores if given == "*" else int(given)


def preview_run(tasks: Sequence[str], containers: int, ledger: Ledger, master: str | None, cores: int) -> RunPreview:
    """`master`: Spark's; None: containers are child processes. On a cluster, the hosts of earlier runs are assumed to be there again."""
    before = {task: number for task, number in last_owners(ledger).items() if task in tasks}
    slots = None if master is None else slots_of(master, cores)
    is_here = master is None or slots is not None
    hosts: dict[str, int | None] = {LOCALHOST: slots} if is_here else {h: None for t in sorted(tasks) for h in ledger.locality.get(t, {})}
    decided = plan(tasks, range(min(containers, len(tasks))), before, ledger.locality, hosts, {})
    return RunPreview(decided, slots, before, not is_here and bool(hosts))
