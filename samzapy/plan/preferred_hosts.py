"""The preferred host of each container: as near to its tasks' state as an even load of the hosts allows.

Guarantees: a running container stays where it is; no host gets more containers than it has slots (a container without a slot gets no host);
the load is even: no host is fuller with its last container than another would be with one more, so hosts of equal slots differ by at
most one container. Only containers that run already can make the load uneven; the others then level it as far as they can.

Load comes before locality, because state is read once and an overloaded host is slow for as long as the job runs: when a lost host
comes back, the next start of the job must use it again, although the newest state is on the hosts that took over.

Three steps. 1. Distribute as many seats as there are containers, one by one, each to the host that is least full with it; if the last ones
fit several hosts equally, they are spare and stay open. 2. The container that would lose most on its second best host (the regret)
chooses first; those that lose nothing choose last, and take the least full host. 3. Containers move to a free spare seat, two exchange
hosts, or one without a seat takes another's, where that is worth more. No clock, no randomness; names and numbers break ties: the same facts give the same result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeVar

Locality = Mapping[str, Mapping[str, int]]  # task -> host -> rank of the state there; the larger, the newer
Worth = Mapping[str, Mapping[str, int]]  # task -> host -> what it is worth to run the task there; hosts without state are left out

Item = TypeVar("Item", str, int)


def newest(states: Mapping[str, int], host: str | None) -> bool:
    """Whether the newest of a task's `states` is on this host."""
    return host is not None and host in states and states[host] == max(states.values())


def weigh(tasks: Collection[str], locality: Locality) -> Worth:
    """The value of each host's state for a task, such that sums over tasks can be compared.

    First counts how many tasks find their newest state, then how many find any, then how new it is (the number of hosts with older state).
    """
    # Three digits of one number: `unit` is larger than any sum of a lower digit, so no number of older copies outweighs a newest one.
    unit = 1 + len(tasks) + sum(len(locality.get(task, {})) for task in tasks)
    worth = {}
    for task in tasks:
        states = locality.get(task, {})
        ranks = sorted(states.values())
        worth[task] = {h: ((rank == ranks[-1]) * unit + 1) * unit + bisect_left(ranks, rank) for h, rank in states.items()}
    return worth


@dataclass
class Seats:
    """Seats by host: `certain` ones, which all get taken, and `spare` ones, for which a host may have `room`.

    `weight` and `taken` give how full a host is; that decides between hosts of equal worth.
    """

    certain: dict[str | None, int]
    room: dict[str | None, int] = field(default_factory=dict)
    spare: int = 0
    weight: Mapping[str | None, int] = field(default_factory=dict)
    taken: dict[str | None, int] = field(default_factory=dict)

    def is_open(self, host: str | None) -> bool:
        return self.certain.get(host, 0) > 0 or (self.spare > 0 and self.room.get(host, 0) > 0)

    def open(self) -> list[str | None]:
        """The hosts with a seat left."""
        return [host for host in self.certain if self.is_open(host)]

    def fullness(self, host: str | None) -> float:
        """How full this host is with one more."""
        return (self.taken.get(host, 0) + 1) / self.weight.get(host, 1)

    def take(self, host: str | None) -> bool:
        """Take a seat on this host. True if a host has none left now: this one, or all that had room for the last spare seat."""
        self.taken[host] = self.taken.get(host, 0) + 1
        if self.certain.get(host, 0) > 0:
            self.certain[host] -= 1
            return not self.is_open(host)
        self.room[host] -= 1
        self.spare -= 1
        return self.spare == 0 or not self.is_open(host)


def seat(items: Sequence[Item], worth: Mapping[Item, Mapping[str, int]], seats: Seats) -> dict[Item, str | None]:
    """A host for each item while there are seats: the item that would lose most elsewhere chooses first, ties in the order of `items`."""
    chosen: dict[Item, str | None] = {}
    waiting = list(items)
    while waiting and (hosts := seats.open()):
        # Regrets hold as long as the same hosts are open. When one closes, second best hosts change: compute them again.
        order = {host: i for i, host in enumerate(hosts)}
        bids = [_bid(worth.get(item, {}), order) for item in waiting]
        for i in sorted(range(len(waiting)), key=lambda i: (-bids[i][0], -bids[i][1])):
            best = bids[i][2] or hosts
            host = min(best, key=lambda h: (seats.fullness(h), order[h]))
            chosen[waiting[i]] = host
            if seats.take(host):
                break
        waiting = [item for item in waiting if item not in chosen]
    return chosen


def _bid(worth: Mapping[str, int], hosts: Mapping[str | None, int]) -> tuple[int, int, list[str | None]]:
    """An item's loss if it does not get its best host, the worth of that host, and all hosts of that worth (none: all are equal)."""
    offers = sorted((value for host, value in worth.items() if host in hosts), reverse=True)
    if not offers:
        return 0, 0, []
    if len(offers) < len(hosts):
        offers.append(0)
    regret = offers[0] - offers[1] if len(offers) > 1 else 0
    return regret, offers[0], [host for host, value in worth.items() if value == offers[0] and host in hosts]


def place(
    members: Mapping[int, Sequence[str]], worth: Worth, slots: Mapping[str, int | None], fixed: Mapping[int, str]
) -> dict[int, str | None]:
    """A host for each container of `members` (its tasks); None where no slot is known to be free.

    Args:
        members: the containers that are to run, with their tasks.
        worth: as `weigh` gives it.
        slots: the hosts that take containers, with all their slots, those of fixed containers included (None: no limit).
        fixed: the running containers, with their hosts.
    """
    total = {c: _sum(worth[task] for task in members[c] if task in worth) for c in sorted(members)}
    loose = [c for c in total if c not in fixed]
    seats = count_out(len(loose), slots, [fixed[c] for c in total if c in fixed])
    found = seat(loose, total, seats)
    places = {c: found.get(c) for c in loose}
    _trade(places, total, seats)
    return {c: fixed[c] if c in fixed else places[c] for c in total}


def _sum(worths: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for worth in worths:
        for host, value in worth.items():
            total[host] = total.get(host, 0) + value
    return total


def count_out(count: int, slots: Mapping[str, int | None], occupied: Iterable[str]) -> Seats:
    """Seats for `count` containers, each given to the host that is least full with it; fewer if there are too few slots.

    A host without a limit counts as large as the largest one with a limit, and takes containers that find no slot elsewhere.
    """
    largest = max((s for s in slots.values() if s is not None), default=1)
    limits = {h: slots[h] for h in sorted(slots)}
    weight: dict[str | None, int] = {h: max(1, largest if limit is None else limit) for h, limit in limits.items()}
    taken: dict[str | None, int] = dict.fromkeys(weight, 0)
    for host in occupied:
        taken[host] = taken.get(host, 0) + 1
    seats = Seats(dict.fromkeys(weight, 0), weight=weight, taken=dict(taken))
    while count > 0:
        free = [h for h, limit in limits.items() if limit is None or taken[h] < limit]
        if not free:
            break
        # One level at a time: all hosts that would be equally full with one more get a seat. If fewer containers are left than such hosts,
        # any of these hosts will do, so state decides among them: spare seats.
        level = min((taken[h] + 1) / weight[h] for h in free)
        next_ones = [h for h in free if (taken[h] + 1) / weight[h] == level]
        if len(next_ones) > count:
            seats.room, seats.spare = dict.fromkeys(next_ones, 1), count
            break
        for host in next_ones:
            seats.certain[host] += 1
            taken[host] += 1
        count -= len(next_ones)
    return seats


def _trade(places: dict[int, str | None], worth: Mapping[int, Mapping[str, int]], seats: Seats) -> None:
    """Containers move to a free spare seat, or two exchange hosts, where that is worth more; repeated until nothing improves.

    To have no seat is worth nothing, so one without a seat takes another's where it finds more.

    It ends, because each change raises the total worth.
    """
    free = [host for host, room in seats.room.items() if host is not None and room]
    given = [host for host, room in seats.room.items() if not room]
    improved = True
    while improved:
        improved = False
        # Move one: only out of a spare seat, because certain seats must all stay taken.
        for c, host in places.items():
            if host is None or host not in given or not free:
                continue
            better = max(free, key=lambda h: worth[c].get(h, 0))
            if worth[c].get(better, 0) > worth[c].get(host, 0):
                places[c] = better
                free[free.index(better)], given[given.index(host)] = host, better
                improved = True
        # Exchange two: any two, because every seat stays taken; one of them may have none yet.
        for one, other in combinations(places, 2):
            here, there = places[one], places[other]
            if here == there:
                continue
            now = _worth_at(worth[one], here) + _worth_at(worth[other], there)
            if _worth_at(worth[one], there) + _worth_at(worth[other], here) > now:
                places[one], places[other] = there, here
                improved = True


def _worth_at(worth: Mapping[str, int], host: str | None) -> int:
    return 0 if host is None else worth.get(host, 0)
