"""Which container runs which tasks, and on which host: balanced first, then stable, then near to the state.

It guarantees: every task is in exactly one container; no two containers differ by more than one task; as few tasks change their container
as that allows; a plan applied to its own result changes nothing. A task that moves is stopped, committed and restored, so a move is
never made to bring state nearer; but which tasks move, and where to, is chosen so that as little as possible must be read.

The method has three steps. Containers get provisional hosts by the tasks they have now (see preferred_hosts.py). Containers with too many
tasks give up those whose newest state lies elsewhere, then those that find the best state where there is room; the tasks that are left
over are seated like containers are on hosts: who would lose most elsewhere chooses first. Then the hosts are decided again, by the tasks
that the containers have now. All of it is a function of its arguments: the same facts give the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from samzapy.api.errors import LauncherError
from samzapy.plan.preferred_hosts import Locality, Seats, Worth, newest, place, seat, weigh


@dataclass(frozen=True, slots=True)
class Plan:
    """Which tasks run in which container, and on which host."""

    tasks: Mapping[int, tuple[str, ...]]  # container -> its tasks, in the job's order
    hosts: Mapping[int, str | None]  # container -> the host to ask for; None: any


def plan(
    tasks: Sequence[str],
    containers: Sequence[int],
    before: Mapping[str, int],
    locality: Locality,
    slots: Mapping[str, int | None],
    fixed: Mapping[int, str],
) -> Plan:
    """Tasks to containers, containers to hosts.

    Args:
        tasks: all tasks of the job, in its order.
        containers: the numbers of the containers that are to run; with more of them than tasks the lowest are used.
        before: where a task runs, or ran last.
        locality: task -> host -> rank of the state that lies there; the larger, the newer.
        slots: the hosts that take containers -> all their slots, also those in use (None: no limit). Empty: nothing is known, ask for any.
        fixed: the containers that run now -> their hosts; they stay there.

    Raises:
        LauncherError: there are tasks, and no container to run them.
    """
    used = sorted(set(containers))[: len(tasks)]
    if tasks and not used:
        raise LauncherError(f"{len(tasks)} tasks, but no container to run them.", "Set `containers.count` to 1 or more.")
    worth = weigh(tasks, locality)
    pinned = {c: fixed[c] for c in used if c in fixed}
    standing = members(tasks, used, before)
    chosen = divide(tasks, standing, place(standing, worth, slots, pinned), locality, worth)
    return Plan(chosen, place(chosen, worth, slots, pinned))


def members(tasks: Iterable[str], containers: Iterable[int], before: Mapping[str, int]) -> dict[int, list[str]]:
    """The tasks that each of these containers had before."""
    had: dict[int, list[str]] = {c: [] for c in containers}
    for task in tasks:
        if (home := before.get(task)) in had:
            had[home].append(task)
    return had


def divide(
    tasks: Sequence[str], standing: Mapping[int, Sequence[str]], hosts: Mapping[int, str | None], locality: Locality, worth: Worth
) -> dict[int, tuple[str, ...]]:
    """Distributes all tasks over the containers of `standing`, as evenly as possible, moving as few as possible."""
    if not standing:
        return {}
    size, longer = divmod(len(tasks), len(standing))
    crowded = [c for c in standing if len(standing[c]) > size]
    extra = max(0, longer - len(crowded))  # so many of the others get one more
    wanting = [c for c in standing if len(standing[c]) < size + (extra > 0)]
    goals = list({host: None for c in wanting if (host := hosts.get(c)) is not None})
    kept = {c: list(standing[c]) for c in standing}
    stakes = {}
    for c in crowded:
        stake = {t: _stake(t, hosts.get(c), goals, locality, worth) for t in standing[c]}
        kept[c] = sorted(standing[c], key=stake.__getitem__, reverse=True)
        stakes[c] = stake[kept[c][size]]
    for i, c in enumerate(sorted(crowded, key=stakes.__getitem__, reverse=True)):
        kept[c] = kept[c][: size + (i < longer)]
    staying = {t for names in kept.values() for t in names}
    _fill_up([t for t in tasks if t not in staying], kept, wanting, size, extra, hosts, worth)
    order = {task: i for i, task in enumerate(tasks)}
    return {c: tuple(sorted(names, key=order.__getitem__)) for c, names in kept.items()}


def _stake(task: str, host: str | None, goals: Sequence[str], locality: Locality, worth: Worth) -> tuple[bool, int]:
    """The cost of moving a task from this host: whether its newest state is here; its state's worth here, minus the best elsewhere."""
    here = 0 if host is None else worth[task].get(host, 0)
    return newest(locality.get(task, {}), host), here - max((worth[task].get(goal, 0) for goal in goals), default=0)


def _fill_up(
    waiting: Sequence[str],
    kept: Mapping[int, list[str]],
    wanting: Sequence[int],
    size: int,
    extra: int,
    hosts: Mapping[int, str | None],
    worth: Worth,
) -> None:
    """Adds the tasks without a container to containers that have room: up to `size` each, and one more for `extra` of them."""
    seats = Seats({hosts.get(c): 0 for c in wanting}, spare=extra)
    missing = {c: max(0, size - len(kept[c])) for c in wanting}
    for c in wanting:
        seats.certain[hosts.get(c)] += missing[c]
        seats.room[hosts.get(c)] = seats.room.get(hosts.get(c), 0) + (extra > 0)
    seats.weight = {host: n + seats.room[host] for host, n in seats.certain.items()}
    found = seat(waiting, worth, seats)
    coming: dict[str | None, list[str]] = {host: [] for host in seats.certain}
    for task in waiting:
        coming[found[task]].append(task)
    beyond = {host: len(names) - sum(missing[c] for c in wanting if hosts.get(c) == host) for host, names in coming.items()}
    for c in wanting:
        host = hosts.get(c)
        count = missing[c] + (beyond[host] > 0)
        beyond[host] -= 1
        kept[c] += coming[host][:count]
        del coming[host][:count]


def check_slots(containers: int, slots: int | None, master: str) -> None:
    """Check the slots: every container needs one of its own for as long as the job runs. `master`: Spark's; "": of a job that runs, and is scaled.

    Raises:
        LauncherError: more containers than slots; with both numbers.
    """
    if slots is None or containers <= slots:
        return
    needed = f"{containers} {'container needs' if containers == 1 else 'containers need'} a slot each"
    spark = f"Spark at {master}" if master else "Spark"
    if not slots:
        remedy = "Start workers, or stop the applications that hold its cores or memory (the master's page shows them)."
        raise LauncherError(f"{needed}, but {spark} gave this run none.", remedy)
    others = "Other applications may hold its cores (the master's page shows them), and `spark.cores.max` limits what one run gets"
    more = f"set `spark.master` to local[{containers}]." if master.startswith("local") else f"give this run more cores. {others}."
    raise LauncherError(
        f"{needed}, but {spark} has {slots} {'slot' if slots == 1 else 'slots'} for this run: the others would wait for ever.",
        f"{f'Set `containers.count` to {slots} or less' if master else f'Ask for {slots} or less'}, or {more}",
    )
