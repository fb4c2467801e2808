"""Moving tasks by agreement: what each container is told next, and which records are written next.

A task moves in three steps, each seen before the next is taken: it is kept warm where it will go (a planned move waits for that); its owner
is told to release it and says that it has, under the newest record; one transaction takes it out of the owner's record and puts it
into the new owner's. A release that was ordered is never taken back: the owner may have carried it out already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

WARM_RECORDS = 10_000  # a copy that is this near its changelog's end is restored from in a moment


@dataclass(frozen=True, slots=True)
class Holder:
    """A container that the coordinator topic names, as it was last heard of.

    Attributes:
        tasks: its record's.
        is_ready: it runs, and is not to stop.
        releasing: tasks that it was told to release.
        released: tasks that it has released, under its newest record.
        copies: tasks that it keeps a warm copy of, and that copy's lag in records (None: not known).
    """

    tasks: tuple[str, ...]
    host: str
    is_ready: bool
    releasing: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    copies: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Steps:
    """What is to be done next.

    Attributes:
        records: containers whose record changes, with all their tasks from then on; to be written in one transaction.
        release: per container, all that it is to release.
        warm: per container, tasks that it is to warm up because they will move there.
        waiting: per task that is to move, what it waits for.
    """

    records: Mapping[int, tuple[str, ...]]
    release: Mapping[int, frozenset[str]]
    warm: Mapping[int, tuple[str, ...]]
    waiting: Mapping[str, str]


def decide_moves(desired: Mapping[str, int], holders: Mapping[int, Holder], has_changelogs: bool) -> Steps:
    """`desired`: where each task should run. Tasks that no holder owns are given to their container if that is a holder."""
    tasks = {n: [t for t in h.tasks if t not in h.released] for n, h in holders.items()}
    owned = {t for names in tasks.values() for t in names}
    for task, to in desired.items():
        if task not in owned and to in holders and holders[to].is_ready:
            tasks[to].append(task)
    records = {n: tuple(names) for n, names in tasks.items() if tuple(names) != holders[n].tasks or holders[n].released}
    release: dict[int, frozenset[str]] = {}
    warm: dict[int, list[str]] = {}
    waiting: dict[str, str] = {}
    for number, holder in holders.items():
        leaving = set(holder.releasing) - holder.released
        waiting.update({t: f"released, to be given to container {desired[t]}" for t in sorted(holder.released) if t in desired})
        for task in tasks[number]:
            to = desired.get(task, number)
            if to == number or task in holder.released or task not in holder.tasks:
                continue
            why = "" if task in leaving else _why_wait(task, holder, holders.get(to), has_changelogs)
            if why:
                waiting[task] = why.format(to=to)
                if to in holders and has_changelogs and holders[to].host != holder.host:
                    warm.setdefault(to, []).append(task)
            else:
                waiting[task] = f"being released by container {number}"
                leaving.add(task)
        release[number] = frozenset(leaving)
    return Steps(records, release, {n: tuple(names) for n, names in warm.items()}, waiting)


def _why_wait(task: str, owner: Holder, target: Holder | None, has_changelogs: bool) -> str:
    if target is None:
        return "waiting for container {to} to start"
    if not target.is_ready:
        return "waiting for container {to} to run"
    if not owner.is_ready:
        return "waiting for its container to run"
    if not has_changelogs or target.host == owner.host:
        return ""  # what lies on disk there is what the owner closes
    behind = target.copies.get(task)
    if behind is None or behind > WARM_RECORDS:
        return "warming up in container {to}: " + ("not started" if behind is None else f"{behind} records behind")
    return ""


def orphans(takers: Mapping[int, Holder], lost: Sequence[str], lost_host: str) -> dict[str, int]:
    """Who takes over the tasks of a lost container at once: for each, the container on another host whose copy is least behind."""
    chosen: dict[str, int] = {}
    for task in lost:
        ready = [
            (behind, n) for n, h in takers.items() if h.is_ready and h.host != lost_host and (behind := h.copies.get(task)) is not None
        ]
        if ready:
            chosen[task] = min(ready)[1]
    return chosen
