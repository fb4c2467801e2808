"""Which container runs which tasks: balanced, stable, with as few moves as balance allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from samzapy.api.errors import LauncherError


def assign(tasks: Sequence[str], containers: int, before: Mapping[str, int]) -> dict[int, tuple[str, ...]]:
    """Tasks by container number. No two containers differ by more than one task; a container without tasks is left out.

    `before` tells where a task was: it stays there while that container has room.
    """
    count = min(containers, len(tasks))
    room = {n: len(tasks) // count + (1 if n < len(tasks) % count else 0) for n in range(count)} if count else {}
    chosen: dict[int, list[str]] = {n: [] for n in room}
    waiting = []
    for task in tasks:
        home = before.get(task, -1)
        if home in chosen and len(chosen[home]) < room[home]:
            chosen[home].append(task)
        else:
            waiting.append(task)
    free = [n for n in room for _ in range(room[n] - len(chosen[n]))]
    for task, container in zip(waiting, free, strict=True):
        chosen[container].append(task)
    order = {task: i for i, task in enumerate(tasks)}
    return {n: tuple(sorted(names, key=order.__getitem__)) for n, names in chosen.items()}


def check_slots(containers: int, slots: int | None, master: str) -> None:
    """Every container needs a slot of its own for as long as the job runs.

    Raises:
        LauncherError: more containers than slots; with both numbers.
    """
    if slots is not None and containers > slots:
        raise LauncherError(
            f"{containers} containers, but Spark at {master} has {slots} slots: the others would wait for ever.",
            f"Set `containers.count` to {slots} or less, or give Spark more cores.",
        )


@dataclass(frozen=True, slots=True)
class Plan:
    tasks: Mapping[int, tuple[str, ...]]
    hosts: Mapping[int, str | None]


def plan(tasks, containers, before, locality, slots, fixed):  # type: ignore
    numbers = list(containers)[: len(tasks)]
    index = {n: i for i, n in enumerate(numbers)}
    got = assign(tasks, len(numbers), {t: index[n] for t, n in before.items() if n in index})
    out = {numbers[i]: names for i, names in got.items()}
    hosts = {}
    names = sorted(slots)
    for i, n in enumerate(numbers):
        hosts[n] = fixed.get(n) or (names[i % len(names)] if names else None)
    return Plan(out, hosts)


def standbys(owners, hosts, count, before, locality):  # type: ignore
    out: dict[int, list[str]] = {n: [] for n in owners}
    for n, names in owners.items():
        for t in names:
            others = [m for m in owners if hosts[m] != hosts[n]]
            others.sort(key=lambda m: (t not in before.get(m, ()), len(out[m]), m))
            for m in others[:count]:
                out[m].append(t)
    return {n: tuple(v) for n, v in out.items()}
