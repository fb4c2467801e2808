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
from samzapy.store.problems import MARKER
from samzapy.wiring.clients import kafka_log

AGREES = "agrees"
DAMAGED = "its files are damaged or missing"  # in the mark of a store that was set aside


@dataclass(frozen=True, slots=True)
class LocalStores:
    """`problems`: one sentence each. `summary`: how many stores were found how, so that nothing compared is seen to be nothing."""

    problems: tuple[str, ...]
    summary: str


def verify_stores(job_file: Path, damaged_since_ms: int | None = None) -> LocalStores:
    """Compare every local store of a stopped job with its changelog; a store that no host has complete is a problem too.

    Args:
        damaged_since_ms: when the job began to stop, if the run damaged files of stores. RocksDB may meet the damage only in the flush of the
            stop; the store is then set aside, as it must be, and nobody starts that could restore it.
    """
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
    for task, store in sorted(places - complete):
        if damaged_since_ms is not None and found_damaged(Path(settings.state.dir).expanduser(), task, store, damaged_since_ms):
            outcomes["found damaged at the stop, and set aside"] += 1
        else:
            problems.append(f"{task}, store {store!r}: no host has it complete")
    found = ", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items()))
    return LocalStores(tuple(problems), f"{len(places)} stores on {len(hosts)} hosts ({', '.join(hosts)}): {found or 'nothing'}")


def found_damaged(state: Path, task: str, store: str, since_ms: int) -> bool:
    """Whether a local store of that name was set aside at `since_ms` or later, because of damage."""
    marks = [mark for mark in state.rglob(MARKER) if (mark.parent.parent.parent.name, mark.parent.parent.name) == (task, store)]
    return any(mark.stat().st_mtime_ns // 1_000_000 >= since_ms and DAMAGED in mark.read_text() for mark in marks)
