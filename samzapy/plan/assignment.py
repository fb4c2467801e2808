"""Which container runs which tasks: balanced, stable, with as few moves as balance allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
