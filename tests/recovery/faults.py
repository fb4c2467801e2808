"""Faults for a running job: which processes it has, a signal to exactly those, and how long it took to be whole again.

Processes are found in /proc from two facts: the driver's process id and the containers' (from the status). What lies between them is
Spark's: executors are the JVMs above containers, with the other executors of the same application; PySpark's daemons lie below those, workers
above. A signal goes to a process only if it is still the one that was found (same start time), so a process id that was used again is safe.

Two times are told of each fault. Until every task runs: by the samples of the status, the first good one after the last bad one. Until the
hit tasks have committed: by the first checkpoint of each that was made after the fault, when it was visible to a read_committed reader.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.recovery.audit import Committed, Event

EXECUTOR, DAEMON, WORKER = "CoarseGrainedExecutorBackend", "pyspark.daemon", "deploy.worker.Worker"
ZOMBIE = "Z"
MARK = "SAMZAPY_TESTS_JOB"  # in the environment of a driver under test, and so of what it starts

Status = Mapping[str, Any]


# -- processes -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proc:
    """A process: `start` (kernel ticks) tells it from a later one with the same id."""

    pid: int
    parent: int
    start: int
    state: str = field(compare=False)
    command: tuple[str, ...] = field(compare=False)

    def runs(self, name: str) -> bool:
        """Whether `name` is in its command line."""
        return any(name in word for word in self.command)


Table = Mapping[int, Proc]


def processes() -> dict[int, Proc]:
    """All processes of this machine, by id."""
    return {p.pid: p for p in (_proc(int(d.name)) for d in Path("/proc").iterdir() if d.name.isdigit()) if p is not None}


def _proc(pid: int) -> Proc | None:
    folder = Path(f"/proc/{pid}")
    try:
        stat = (folder / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()
        command = (folder / "cmdline").read_bytes().split(b"\0")
    except (OSError, IndexError):
        return None  # gone meanwhile
    return Proc(pid, int(stat[1]), int(stat[19]), stat[0], tuple(os.fsdecode(word) for word in command if word))


def ancestors(table: Table, pid: int) -> list[Proc]:
    """From the parent upwards."""
    found: list[Proc] = []
    while pid in table and table[pid].parent in table:
        pid = table[pid].parent
        found.append(table[pid])
    return found


def descendants(table: Table, pid: int) -> list[Proc]:
    """Everything below a process, parents before children."""
    found, fresh = [], [pid]
    while fresh:
        below = [p for p in table.values() if p.parent in fresh]
        found += below
        fresh = [p.pid for p in below]
    return found


def marked(job: str) -> list[Proc]:
    """What runs with a job's mark in its environment: its driver and all that this started, whatever became of their parents."""
    wanted = f"{MARK}={job}".encode()
    found = []
    for proc in processes().values():
        try:
            environment = Path(f"/proc/{proc.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue  # gone meanwhile, or another user's
        if wanted in environment and proc.state != ZOMBIE:
            found.append(proc)
    return found


def left_behind(job: str, known: Iterable[Proc], limit_s: float = 30.0) -> list[str]:
    """What still runs of a job that has ended: by its mark, or known to be its; Spark's executors are given some time to end."""
    deadline, pause, mine = time.monotonic() + limit_s, threading.Event(), list(known)
    while True:
        left = {*marked(job), *(p for p in mine if is_alive(p))}
        if not left or time.monotonic() > deadline:
            return [f"{p.pid}: {' '.join(p.command)[:200]}" for p in sorted(left, key=lambda p: p.pid)]
        pause.wait(0.2)


@dataclass(frozen=True, slots=True)
class JobProcesses:
    """The processes of one job. `executors`, `daemons` and `workers` are empty where Spark does not run them apart."""

    driver: Proc | None
    containers: Mapping[int, Proc]
    executors: tuple[Proc, ...] = ()
    daemons: tuple[Proc, ...] = ()
    workers: tuple[Proc, ...] = ()

    def all(self) -> set[Proc]:
        """What belongs to the job and must be gone when it has ended: all but Spark's workers."""
        return {*([self.driver] if self.driver else []), *self.containers.values(), *self.executors, *self.daemons}


def find(table: Table, driver: int, status: Status | None) -> JobProcesses:
    """The job's processes, by the driver's id and the status."""
    pids = {c["id"]: c["pid"] for c in status["containers"] if c.get("pid") in table} if status else {}
    above = [a for pid in pids.values() for a in ancestors(table, pid)]
    applications = {app for a in above if a.runs(EXECUTOR) for app in [_application(a)] if app}
    executors = [p for p in table.values() if p.runs(EXECUTOR) and _application(p) in applications]
    daemons = [p for e in executors for p in descendants(table, e.pid) if p.runs(DAEMON) and p.pid not in pids.values()]
    workers = {a.pid: a for e in executors for a in ancestors(table, e.pid) if a.runs(WORKER)}
    return JobProcesses(
        table.get(driver),
        {number: table[pid] for number, pid in pids.items()},
        tuple(executors),
        tuple(d for d in daemons if not table[d.parent].runs(DAEMON)),
        tuple(workers.values()),
    )


def _application(executor: Proc) -> str | None:
    words = executor.command
    return words[words.index("--app-id") + 1] if "--app-id" in words[:-1] else None


def containers_below(table: Table, found: JobProcesses, proc: Proc) -> list[int]:
    """The containers that a process's death takes along: those that are it, or below it."""
    below = {proc.pid, *(p.pid for p in descendants(table, proc.pid))}
    return sorted(n for n, c in found.containers.items() if c.pid in below or (found.driver is not None and proc.pid == found.driver.pid))


def is_alive(proc: Proc) -> bool:
    """Whether this very process still runs, or is stopped; a zombie does not."""
    now = _proc(proc.pid)
    return now is not None and now.start == proc.start and now.state != ZOMBIE


def send(proc: Proc, number: signal.Signals) -> bool:
    """A signal to this very process; False if it is gone."""
    if not is_alive(proc):
        return False
    try:
        os.kill(proc.pid, number)
    except ProcessLookupError:
        return False
    return True


# -- what a fault did ----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Fault:
    """One fault and what followed.

    Attributes:
        tasks: those of the containers that it hit.
        gone: process ids of containers that it ended; a status that still names one of them is out of date.
        phase: the states that the hit tasks were in, as far as known.
        until_running_s, until_commit_s: see the module; None: not before the next fault, or the end.
        part: of a run of several parts, the one that it happened in.
        over_ms: when a fault that lasts was over: what was committed meanwhile is no recovery.
    """

    at_ms: int
    kind: str
    target: str
    tasks: tuple[str, ...]
    gone: frozenset[int] = frozenset()
    phase: str = ""
    until_running_s: float | None = None
    until_commit_s: float | None = None
    note: str = ""
    over_ms: int = 0
    part: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """The job as its status said at a time; `whole`: every task ran. No pids and not whole: no coordinator answered."""

    at_ms: int
    whole: bool
    pids: frozenset[int] = frozenset()


def sample_of(status: Status | None, at_ms: int) -> Sample:
    if status is None:
        return Sample(at_ms, False)
    tasks = status["tasks"]
    whole = status["state"] == "RUNNING" and bool(tasks) and all(t["state"] == "RUNNING" for t in tasks)
    return Sample(at_ms, whole, frozenset(c["pid"] for c in status["containers"] if c.get("pid")))


def seconds_until_running(samples: Sequence[Sample], fault: Fault, until_ms: int | None = None) -> float | None:
    """The first good sample after the last bad one between the fault and `until_ms`; 0 if none was bad; None if it ends badly."""
    window = [s for s in samples if fault.at_ms <= s.at_ms and (until_ms is None or s.at_ms < until_ms)]
    bad = [i for i, s in enumerate(window) if not s.whole or s.pids & fault.gone]
    if not window or (bad and bad[-1] + 1 == len(window)):
        return None
    return (window[bad[-1] + 1].at_ms - fault.at_ms) / 1000 if bad else 0.0


def seconds_until_commit(events: Iterable[Event], fault: Fault) -> float | None:
    """Until the last of the hit tasks had a checkpoint visible that was made after the fault; None if one had none."""
    first: dict[str, int] = {}
    for event in events:
        if isinstance(event, Committed) and event.at.made_ms > max(fault.at_ms, fault.over_ms) and event.checkpoint.task in fault.tasks:
            task = event.checkpoint.task
            first[task] = min(first.get(task, event.at.seen_ms), event.at.seen_ms)
    if not fault.tasks or set(fault.tasks) - set(first):
        return None
    return (max(first.values()) - fault.at_ms) / 1000


def timed(
    faults: Sequence[Fault], samples: Sequence[Sample], events: Sequence[Event], until_ms: int, breaks: Sequence[int] = ()
) -> None:  # fmt: skip
    """Fill in both times of each fault: each one's time ends where the next begins, or at a break; the last one's at `until_ms`."""
    ordered = sorted(faults, key=lambda f: f.at_ms)
    for fault, end_ms in zip(ordered, [*(f.at_ms for f in ordered[1:]), until_ms], strict=False):  # one more if there was no fault
        end_ms = min([end_ms, *(b for b in breaks if b > fault.at_ms)])
        fault.until_running_s = seconds_until_running(samples, fault, end_ms)
        fault.until_commit_s = seconds_until_commit(events, fault)
