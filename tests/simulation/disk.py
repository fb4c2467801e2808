"""Local stores on a disk in memory, with what a crash leaves of them: ports.StoreEngine and ports.StoreDirectory without RocksDB.

What was written and what was flushed are kept apart, as RocksDB without a log keeps them: a crash leaves what was flushed and, of the
batches written since, a prefix of whole ones, as long as chance says. A generation is locked by the process that has it open until
that closes it or ends, so one that is merely stopped keeps its lock. Directories keep the rules of `samzapy.store.directory`: new generations
get new names, one is set aside under its lock, and what is set aside and unlocked can be removed. Failpoints stand where they stand there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable

from samzapy import failpoints
from samzapy.api.errors import check
from samzapy.model.stamp import StoreStamp
from samzapy.ports import Change, Claim, Scan
from samzapy.store.memory import MemoryScan
from samzapy.store.order import KeyOrder
from samzapy.store.problems import StoreCorrupt, StoreLocked

Place = tuple[str, str, str]  # host, task, store


class Generation:
    """One store's directory.

    Attributes:
        durable: what a crash leaves for certain, with `durable_stamp`.
        unflushed: the batches written since, in order.
        set_aside: why it is not to be used again; "" otherwise.
        damage: why it cannot be opened; "" otherwise.
        engine: who has it open.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.durable: dict[bytes, bytes] = {}
        self.durable_stamp: StoreStamp | None = None
        self.unflushed: list[tuple[list[Change], StoreStamp]] = []
        self.set_aside = ""
        self.damage = ""
        self.engine: DiskEngine | None = None

    def flush(self, batches: int | None = None) -> None:
        """Make the first so many unflushed batches durable (None: all of them) and forget the rest."""
        for changes, stamp in self.unflushed[:batches]:
            _apply(self.durable, changes)
            self.durable_stamp = stamp
        self.unflushed = []

    def copy(self, name: str) -> Generation:
        """Another one with what is durable in this one."""
        made = Generation(name)
        made.durable, made.durable_stamp, made.set_aside, made.damage = dict(self.durable), self.durable_stamp, self.set_aside, self.damage
        return made


class DiskEngine:
    """A StoreEngine over a generation; `holder` is the process that has it open.

    Raises:
        StoreLocked, StoreCorrupt: when it cannot be opened.
    """

    def __init__(self, generation: Generation, holder: Hashable = None) -> None:
        if generation.engine is not None:
            raise StoreLocked(f"local store {generation.name}: opening: another process has it open.", "")
        if generation.damage:
            raise StoreCorrupt(f"local store {generation.name}: opening: {generation.damage}", "")
        generation.engine = self
        self.holder = holder
        self._generation = generation
        self._entries = dict(generation.durable)
        self._stamp = generation.durable_stamp
        self._order = KeyOrder(lambda: self._entries)
        self._scans: weakref.WeakSet[MemoryScan] = weakref.WeakSet()
        self.is_open = True
        self.get: Callable[[bytes], bytes | None] = self._entries.get

    def scan(self, from_key: bytes | None = None, to_key: bytes | None = None) -> Scan:
        self._check_open()
        scan = MemoryScan(self._order.between(from_key, to_key), self._entries)
        self._scans.add(scan)
        return scan

    def write(self, changes: Iterable[Change], stamp: StoreStamp) -> None:
        self._check_open()
        for scan in self._scans:
            scan.take_along()
        self._scans.clear()
        batch = list(changes)
        _apply(self._entries, batch)
        self._order.forget()
        self._generation.unflushed.append((batch, stamp))
        self._stamp = stamp

    def stamp(self) -> StoreStamp | None:
        return self._stamp

    def flush(self, wait: bool = True) -> None:
        """Without `wait` it is left to chance whether a crash finds it done: what a crash leaves is a prefix of any length."""
        self._check_open()
        failpoints.hit("store.flush.before")
        if wait:
            self._generation.flush()
        failpoints.hit("store.flush.after")

    def close(self) -> None:
        """Flushes. Closing twice, or after a crash, does nothing."""
        if self.is_open:
            self.let_go(None)

    def let_go(self, batches: int | None) -> None:
        """Closed, with so many of the batches that were not flushed (None: all of them)."""
        self._generation.flush(batches)
        self._generation.engine = None
        self.is_open = False
        self.get = self._refuse
        for scan in self._scans:
            scan.close()

    def _check_open(self) -> None:
        check(self.is_open, "a store is used only while it is open")

    def _refuse(self, key: bytes) -> None:
        self._check_open()


class MemoryDisk:
    """The disks of all hosts. `new_name` gives names to generations."""

    def __init__(self, new_name: Callable[[], str]) -> None:
        self.new_name = new_name
        self.places: dict[Place, dict[str, Generation]] = {}

    def directory(self, place: Place, holder: Hashable) -> DiskDirectory:
        return DiskDirectory(self.places.setdefault(place, {}), self.new_name, holder)

    def crash(self, holder: Hashable, kept: Callable[[int], int]) -> None:
        """A process ends at once; of n batches that were not flushed the first kept(n) are found later."""
        for generations in self.places.values():
            for generation in generations.values():
                if generation.engine is not None and generation.engine.holder == holder:
                    generation.engine.let_go(kept(len(generation.unflushed)))

    def is_used(self, host: str) -> bool:
        """Whether somebody has a store open there."""
        return any(g.engine is not None for place, found in self.places.items() if place[0] == host for g in found.values())

    def delete(self, host: str) -> None:
        """All that is there is gone. For a host on which nothing is open."""
        for place in [p for p in self.places if p[0] == host]:
            del self.places[place]

    def copy(self, host: str) -> dict[Place, dict[str, Generation]]:
        """A copy of what is there, as a backup would be."""
        return {p: {n: g.copy(n) for n, g in found.items()} for p, found in self.places.items() if p[0] == host}

    def bring_back(self, host: str, copy: dict[Place, dict[str, Generation]]) -> None:
        """What is there is an older copy now, under names of its own. For a host on which nothing is open."""
        self.delete(host)
        for place, found in copy.items():
            self.places[place] = {g.name: g for g in (old.copy(self.new_name()) for old in found.values())}


class DiskDirectory:
    """The generations of one store of one task on one host (ports.StoreDirectory), as a process there sees them."""

    def __init__(self, generations: dict[str, Generation], new_name: Callable[[], str], holder: Hashable) -> None:
        self._generations = generations
        self._new_name = new_name
        self._holder = holder

    def claims(self) -> list[Claim]:
        return [self._claim(g) for g in sorted(self._generations.values(), key=lambda g: g.name) if not g.set_aside]

    def create(self) -> tuple[str, DiskEngine]:
        name = self._new_name()
        generation = self._generations[name] = Generation(name)
        failpoints.hit("store.create.made")
        return name, DiskEngine(generation, self._holder)

    def set_aside(self, claim: Claim, reason: str) -> None:
        generation = self._generations[claim.generation]
        if claim.engine is None and generation.engine is not None:
            return  # in use elsewhere
        generation.set_aside = reason
        failpoints.hit("store.set_aside.marked")
        if claim.engine is not None:
            claim.engine.close()

    def clean(self) -> None:
        for generation in list(self._generations.values()):
            if generation.set_aside and generation.engine is None:
                generation.durable, generation.durable_stamp = {}, None
                failpoints.hit("store.delete.emptied")
                self._generations.pop(generation.name, None)

    def _claim(self, generation: Generation) -> Claim:
        name = generation.name
        try:
            engine = DiskEngine(generation, self._holder)
        except StoreLocked as error:
            return Claim(name, name, None, None, locked=True, problem=error.message)
        except StoreCorrupt as error:
            return Claim(name, name, None, None, problem=error.message)
        return Claim(name, name, engine, engine.stamp())


def _apply(entries: dict[bytes, bytes], changes: Iterable[Change]) -> None:
    for key, value in changes:
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = value
