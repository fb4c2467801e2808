"""Whether the local stores that a stopped job left are intact: on every host, and complete on one.

`samzapy state verify` looks at the stores of the machine it runs on; under Spark each executor's host has a directory of its own, so what
that command does is done here for each of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from samzapy.clock import SystemClock
from samzapy.config.load import load_job
from samzapy.ops.local_stores import LocalState
from samzapy.wiring.clients import kafka_log

AGREES = "agrees"


@dataclass(frozen=True, slots=True)
class LocalStores:
    """`problems`: one sentence each. `summary`: how many stores were found how, so that nothing compared is seen to be nothing."""

    problems: tuple[str, ...]
    summary: str


def verify_stores(job_file: Path) -> LocalStores:
    """Compare every local store of a stopped job with its changelog; a store that no host has complete is a problem too."""
    loaded = load_job([job_file])
    settings, log, clock = loaded.settings, kafka_log(loaded.settings), SystemClock()
    hosts = sorted({path.name for path in Path(settings.state.dir).expanduser().glob("*/*") if path.name != "run" and path.is_dir()})
    problems: list[str] = []
    outcomes: Counter[str] = Counter()
    complete: set[tuple[str, str]] = set()
    places: set[tuple[str, str]] = set()
    for host in hosts:
        local = LocalState(settings, list(loaded.folders), host, log, clock)
        places.update(local.places(None, None))
        for task, store in sorted(places):
            report = local.verify(task, store)
            outcomes[report.outcome] += 1
            if not report.good:
                problems.append(f"{host}: {task}, store {store!r}: {report.outcome}: {report.detail}")
            elif report.outcome == AGREES:
                complete.add((task, store))
    problems += [f"{task}, store {store!r}: no host has it complete" for task, store in sorted(places - complete)]
    found = ", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items()))
    return LocalStores(tuple(problems), f"{len(places)} stores on {len(hosts)} hosts ({', '.join(hosts)}): {found or 'nothing'}")
