"""Which connections a listener keeps. Facts in, a decision out: no socket, no clock.

A new connection is always accepted; if that exceeds the limit, an idle one is closed. So idle connections, however many, never block new
requests. The address with the most connections loses one first. A connection whose token may do something is never closed for that reason.
Connections whose token may only read have a limit of their own: whoever has such a token cannot take the files that the job needs.
"""

from __future__ import annotations

import functools
import ipaddress
from collections import Counter
from dataclasses import dataclass

GRACE_S = 2.0  # so long a request is answered before its connection may be given up for another one
MAX_TRUSTED = 4096


@dataclass(eq=False, slots=True)
class Guest:
    """A connection.

    Attributes:
        peer: the address it comes from, as `peer_of` gives it.
        since_s: when it came, by the monotonic clock.
        has_asked: the head of its request is there.
        is_known: its request has a token of the run, or is signed with it.
        only_reads: that token gives the right to read, and nothing else.
    """

    peer: str
    since_s: float
    has_asked: bool = False
    is_known: bool = False
    only_reads: bool = False


class Door:
    """The connections of one listener: at most `limit` without a token, at most half of them from one peer that never had one; and at most `limit`
    whose token only reads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.per_peer = max(1, limit // 2)
        self._guests: dict[Guest, None] = {}  # in the order in which they came
        self._trusted: dict[str, None] = {}

    def enter(self, peer: str, now_s: float) -> tuple[Guest, Guest | None]:
        """Add a connection; returns it, and one to close for it, if any."""
        leaves = self._in_excess(peer, now_s)
        if leaves is not None:
            self.leave(leaves)
        guest = Guest(peer, now_s)
        self._guests[guest] = None
        return guest, leaves

    def leave(self, guest: Guest) -> None:
        """The connection is closed; a second call does nothing."""
        self._guests.pop(guest, None)

    def knows(self, guest: Guest, now_s: float, *, only_reads: bool = False) -> Guest | None:
        """It sent a request that has a token of the run, or is signed with it. Returns a connection to close for it, if any."""
        guest.only_reads = only_reads and (guest.only_reads or not guest.is_known)
        guest.is_known = True
        if not guest.only_reads:
            self._trusted[guest.peer] = None
            if len(self._trusted) > MAX_TRUSTED:
                del self._trusted[next(iter(self._trusted))]
            return None
        readers = self._readers()
        if len(readers) <= self.limit:
            return None
        count = Counter(reader.peer for reader in readers)
        crowd = max(count, key=lambda peer: count[peer])
        leaves = _longest([r for r in readers if r.peer == crowd and r is not guest], now_s)
        if leaves is not None:
            self.leave(leaves)
        return leaves

    def longest(self, now_s: float) -> Guest | None:
        """The connection to close next: one without a token, else one whose token only reads."""
        return _longest(self._strangers() or self._readers(), now_s)

    def _in_excess(self, peer: str, now_s: float) -> Guest | None:
        strangers = self._strangers()
        count = Counter(guest.peer for guest in strangers)
        if peer not in self._trusted and count[peer] >= self.per_peer:
            crowd = peer
        elif len(strangers) >= self.limit:
            crowd = max(count, key=lambda p: (p not in self._trusted, count[p]))
        else:
            return None
        return _longest([g for g in strangers if g.peer == crowd], now_s)

    def _strangers(self) -> list[Guest]:
        return [guest for guest in self._guests if not guest.is_known]

    def _readers(self) -> list[Guest]:
        return [guest for guest in self._guests if guest.only_reads]


def _longest(guests: list[Guest], now_s: float) -> Guest | None:
    """The oldest of those that are idle, or whose response has taken too long; else the oldest of all."""
    idle = (g for g in guests if not g.has_asked or now_s - g.since_s > GRACE_S)
    return next(idle, guests[0] if guests else None)


@functools.lru_cache(1024)
def peer_of(address: str) -> str:
    """What counts as one peer: an IPv4 address, or a 64-bit IPv6 network, which a single host can have to itself."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.version == 4:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))


def connections_taken(wanted: int, open_files: int) -> int:
    """How many connections a listener accepts: at most `wanted`, and at most a quarter of this process's file limit, so that enough is left
    for Kafka's clients, the other listener and local files."""
    return max(8, min(wanted, open_files // 4))
