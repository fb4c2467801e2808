"""What a killed process was doing, told by what it left in Kafka: a kill that met nothing proves nothing.

A transaction that was written and never committed says how far its owner had come: records of a checkpoint are the last before the decision,
changes of stores come before them, outputs (and barriers without a nonce) while records are processed, other barriers when tasks start. So each
aborted record is evidence about the first kill after it that hit its task, provided that the task has committed nothing in between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from samzapy.model.names import task_name
from tests.recovery.audit import Committed, Event
from tests.recovery.faults import Fault

OUTPUT, CHANGES, CHECKPOINT, BARRIER = "output", "changes", "checkpoint", "barrier"
IN_COMMIT, STARTING, RESTORING, PROCESSING, IDLE = "in commit", "starting", "restoring", "processing", "idle"
BUSY = (IN_COMMIT, STARTING, RESTORING, PROCESSING)
SLACK_MS = 100  # a record may be made between the note of a fault and its signal
LONGEST_MS = 10_000  # that a transaction of the trials takes


class Aborted(NamedTuple):
    """A record that was written and will never be committed, of the task of this partition."""

    kind: str
    partition: int
    made_ms: int


def phases(faults: Sequence[Fault], aborted: Iterable[Aborted], events: Iterable[Event]) -> list[str]:
    """What each of the faults met."""
    committed: dict[str, list[Committed]] = {}
    for event in events:
        if isinstance(event, Committed):
            committed.setdefault(event.checkpoint.task, []).append(event)
    for commits in committed.values():
        commits.sort(key=lambda c: c.at.made_ms)
    made = {task: [c.at.made_ms for c in commits] for task, commits in committed.items()}
    evidence: list[set[str]] = [set() for _ in faults]
    order = sorted(range(len(faults)), key=lambda i: faults[i].at_ms)
    for record in aborted:
        task = task_name(record.partition)
        index = next((i for i in order if faults[i].at_ms + SLACK_MS >= record.made_ms and task in faults[i].tasks), None)
        if index is not None and not _was_over(record, faults[index], made.get(task, [])):
            evidence[index].add(record.kind)
    return [_phase(fault, found, committed) for fault, found in zip(faults, evidence, strict=True)]


def _was_over(record: Aborted, fault: Fault, commits_ms: Sequence[int]) -> bool:
    """Whether the record is of an earlier transaction than the one that the fault met. `commits_ms`: of its task, in order."""
    if fault.at_ms - record.made_ms > LONGEST_MS:
        return True
    return bisect_right(commits_ms, fault.at_ms) > bisect_right(commits_ms, record.made_ms)


def _phase(fault: Fault, evidence: set[str], committed: Mapping[str, Sequence[Committed]]) -> str:
    if {CHECKPOINT, CHANGES} & evidence:
        return IN_COMMIT
    if BARRIER in evidence:
        return STARTING
    states = {s.strip() for s in fault.phase.split(",") if s.strip()}
    if "RESTORING" in states or "BOOTSTRAPPING" in states:
        return RESTORING
    if not states or states - {"RUNNING", "STOPPED"}:
        return STARTING
    if OUTPUT in evidence:
        return PROCESSING
    if any(c.at.made_ms <= fault.at_ms < c.at.seen_ms <= c.at.made_ms + LONGEST_MS for t in fault.tasks for c in committed.get(t, ())):
        return IN_COMMIT  # written before the kill, visible after it
    return IDLE
