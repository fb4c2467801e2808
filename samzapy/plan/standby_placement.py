"""Which containers keep standby copies of which tasks' stores.

It guarantees: no copy lies on the host of the task's owner, and no two copies of a task lie on one host, so a lost host costs one copy at
most; a task has as many copies as asked for, or one on every other host if these are fewer; the containers keep copies as evenly as
these two rules allow; its own result, given back as `before`, stays. A container whose host is not known keeps no copy and its tasks get
none, because nobody can tell whether that copy would be lost together with the original.

The method: copies that may stay do so. Missing ones go to the host with the newest state, while its containers have less than an even
share, and else to the least loaded host. Then copies move from containers with more to containers with less, if need be over a chain of
hosts (a task's copies may not lie just anywhere), until no chain can make a difference of two or more smaller: the load is then as even
as it can be. Within a host any container can take a copy, so hosts are decided first, and their containers share evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from samzapy.plan.assignment import divide, members
from samzapy.plan.preferred_hosts import Locality, Worth, weigh


def standbys(
    plan_tasks: Mapping[int, Sequence[str]],
    hosts: Mapping[int, str | None],
    count: int,
    before: Mapping[int, Sequence[str]],
    locality: Locality,
) -> dict[int, tuple[str, ...]]:
    """Container -> the tasks of which it keeps copies; containers that keep none are left out.

    Args:
        plan_tasks: container -> the tasks it runs.
        hosts: container -> its host (None: not known yet).
        count: how many copies of each task there should be.
        before: container -> the tasks of which it kept copies until now.
        locality: task -> host -> rank of the state that lies there; the larger, the newer.
    """
    groups: dict[str, list[int]] = {}  # host -> its containers
    for c in sorted(plan_tasks):
        if (host := hosts.get(c)) is not None:
            groups.setdefault(host, []).append(c)
    owners = {t: host for host in sorted(groups) for c in groups[host] for t in plan_tasks[c]}
    at_host = {host: {t: c for c in reversed(groups[host]) for t in before.get(c, ())} for host in sorted(groups)}
    copies = _Copies(owners, {host: len(groups[host]) for host in at_host}, weigh(owners, locality))
    copies.keep(at_host, count)
    copies.fill(count)
    copies.level()
    kept: dict[int, tuple[str, ...]] = {}
    for host, tasks in copies.held.items():
        names = [t for t in owners if t in tasks]
        kept |= divide(names, members(names, groups[host], at_host[host]), {}, {}, {})
    return {c: kept[c] for c in sorted(kept) if kept[c]}


class _Copies:
    """Which hosts have copies of which tasks."""

    def __init__(self, owners: Mapping[str, str], width: Mapping[str, int], worth: Worth) -> None:
        self._owners = owners
        self._width = width  # host -> number of its containers
        self._worth = worth
        self._closed = {task: {owner} for task, owner in owners.items()}  # hosts that can take no (other) copy of a task
        self._old: set[tuple[str, str]] = set()  # (task, host) as it was before
        self.held: dict[str, dict[str, None]] = {host: {} for host in width}

    def keep(self, before: Mapping[str, Mapping[str, int]], count: int) -> None:
        """Takes over what was there, as far as the rules allow; of too many copies of a task the newest."""
        former = [(-self._gain(t, host), t, host) for host in self._width for t in before[host] if t in self._owners]
        for _, task, host in sorted(former):
            if host not in self._closed[task] and len(self._closed[task]) <= count:
                self._add(task, host)
                self._old.add((task, host))

    def fill(self, count: int) -> None:
        """Adds the copies that are missing; tasks whose state lies somewhere else already choose first."""
        hosts = list(self._width)
        copies = len(self._owners) * max(0, min(count, len(hosts) - 1))
        share = -(-copies // max(1, sum(self._width.values())))
        for task in sorted(self._owners, key=lambda t: -max((self._gain(t, h) for h in self._worth[t]), default=0)):
            while len(self._closed[task]) <= min(count, len(hosts) - 1):
                free = [h for h in hosts if h not in self._closed[task]]
                self._add(task, min(free, key=lambda h: (self._least(h) >= share, -self._gain(task, h), self._load(h))))

    def level(self) -> None:
        """Moves copies until no container has two more than another one that could be relieved by it.

        Where no chain leads from the fullest host to a place that is better, none ever will from any host that it reaches: these are
        done, since no other host's chain can enter them.
        """
        done: set[str] = set()
        while rest := [host for host in self._width if host not in done]:
            source = max(rest, key=self._most)
            chain, reached = self._chain(source, done)
            if not chain:
                done |= reached
            for host, after in reversed(list(pairwise(chain))):
                self._move(host, after)

    def _chain(self, source: str, done: set[str]) -> tuple[list[str], set[str]]:
        """The shortest chain of moves from `source` to a host with two copies a container less; else none, and all hosts in reach."""
        came_from: dict[str, str] = {}
        unseen = set(self._width) - done - {source}
        frontier = [source]
        while frontier:
            found: dict[str, str] = {}
            for host in frontier:
                for task in self.held[host]:
                    for after in unseen - self._closed[task]:
                        found[after] = host
                        unseen.discard(after)
                    if not unseen:
                        break
            came_from |= found
            goals = [h for h in found if self._least(h) <= self._most(source) - 2]
            if goals:
                chain = [min(goals, key=lambda h: (self._load(h), h))]
                while chain[0] != source:
                    chain.insert(0, came_from[chain[0]])
                return chain, set()
            frontier = sorted(found)
        return [], {source, *came_from}

    def _move(self, host: str, after: str) -> None:
        """One copy goes on: one that was placed just now rather than an old one, and that which has most to find there."""
        free = [t for t in self.held[host] if after not in self._closed[t]]
        task = max(free, key=lambda t: ((t, host) not in self._old, self._gain(t, after) - self._gain(t, host)))
        self._closed[task].discard(host)
        del self.held[host][task]
        self._add(task, after)

    def _add(self, task: str, host: str) -> None:
        self._closed[task].add(host)
        self.held[host][task] = None

    def _gain(self, task: str, host: str) -> int:
        return self._worth[task].get(host, 0)

    def _load(self, host: str) -> float:
        return len(self.held[host]) / self._width[host]

    def _least(self, host: str) -> int:
        """What the container of this host with the fewest copies has."""
        return len(self.held[host]) // self._width[host]

    def _most(self, host: str) -> int:
        """What the container of this host with the most copies has."""
        return -(-len(self.held[host]) // self._width[host])
