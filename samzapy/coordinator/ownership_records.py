"""Writes ownership: the steps of "Owning" in PROTOCOL.md, over the coordinator topic.

A task's next owner is named only after its last one has released it, or was ended in the topic (a), that was read back (b), and its
transactional.id was fenced at the broker (c). Every record is transactional, so a coordinator that was replaced writes nothing more. A
write that is in doubt is never guessed about: the topic is read again, after a new init has decided it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from samzapy import failpoints
from samzapy.api.errors import Fenced, LogError
from samzapy.coordinator.coordinator_log import CoordinatorLog
from samzapy.model.bounded_json import brief
from samzapy.model.ownership import (
    FIRST_RUN_KEY,
    ContainerRecord,
    Ledger,
    container_key,
    input_key,
    locality_key,
    locality_to_bytes,
    startpoint_key,
)
from samzapy.ports import Clock

LOG = logging.getLogger("samzapy.coordinator")
HOSTS_PER_TASK = 4
MAX_TOLD = 5  # records
TOLD_AFTER_S, TOLD_EVERY_S = 5.0, 60.0  # that what was written cannot be read yet


@dataclass(frozen=True, slots=True)
class Named:
    """A container's next owner: incarnation, host, tasks."""

    container: int
    incarnation: str
    tasks: tuple[str, ...]
    host: str
    pid: int


def needed_keys(containers: int, tasks: Iterable[str], inputs: Iterable[str]) -> Iterator[bytes]:
    """The keys of the records that a run is not exact without: who had its tasks, where they go on, what the first run found. `inputs`: topic ids."""
    yield from (container_key(number) for number in range(containers))
    yield from (startpoint_key(task) for task in tasks)
    yield from (input_key(topic_id) for topic_id in inputs)
    yield FIRST_RUN_KEY


class OwnershipRecords:
    """Writes which container owns which tasks.

    Attributes:
        epoch: of the newest record.
        locality: by task, the hosts that have state of it, with the epoch of its last owner there (the highest is the newest).
        is_in_doubt: a write failed; `read` says what holds.
        replaces: the run whose lease was there when this one began; "": there was none; None: it is not known yet.
        is_replaced: the lease of a run that began later was found.
    """

    def __init__(self, topic: CoordinatorLog, run_id: str, clock: Clock) -> None:
        self._topic = topic
        self._run_id = run_id
        self._clock = clock
        self.epoch = 0
        self.locality: dict[str, dict[str, int]] = {}
        self.is_in_doubt = self.is_replaced = False
        self._known: dict[bytes, bytes | None] = {}  # what holds, as this one read or wrote it
        self._doubted: set[bytes] = set()  # keys of writes that are in doubt
        self.replaces: str | None = None

    def read(self) -> Ledger:
        """The topic's current content; a write that was in doubt is decided first."""
        if self.is_in_doubt:
            self._topic.renew_producer()
        ledger = self._topic.read()
        self.epoch = max(self.epoch, ledger.epoch)
        kept = {key: self._known[key] for key in ledger.unreadable.keys() - self._doubted if key in self._known}
        self._known = {**ledger.values, **kept}
        self._doubted = set()
        self.is_in_doubt = False
        return ledger

    def take_over(self) -> Ledger:
        """The start of a coordinator: fence every earlier one, then end every container of earlier runs.

        Raises:
            Fenced: another coordinator has taken over. LogError: it is not known.
        """
        if self.is_in_doubt:
            self._refuse_a_later_run(self._topic.read())  # before the init, which would fence that run
        self._topic.take_over()
        was_in_doubt, self.is_in_doubt = self.is_in_doubt, False  # that init has decided it
        ledger = self.read()
        if was_in_doubt:
            self._refuse_a_later_run(ledger)
        else:
            self.replaces = ledger.lease.run_id if ledger.lease else ""
        unreadable = getattr(ledger.containers, "unreadable", {})
        if unreadable or not ledger.containers:
            self._learn_from_checkpoints(ledger, unreadable)
        self.locality = {task: dict(hosts) for task, hosts in ledger.locality.items()}
        return ledger

    def _refuse_a_later_run(self, ledger: Ledger) -> None:
        holder = ledger.lease.run_id if ledger.lease else ""
        if holder not in ("", self._run_id, self.replaces):
            self.is_in_doubt = self.is_replaced = True
            raise Fenced(f"run {holder} has taken over.", "")

    def _learn_from_checkpoints(self, ledger: Ledger, unreadable: Mapping[int, Exception]) -> None:
        """A job that never ran, or whose coordinator topic was deleted, or has records of containers that cannot be read: epochs go on above what
        checkpoints and barriers name. A container that no checkpoint names has nothing; it is only fenced.

        Raises:
            StateRefused: a checkpoint was written by a container whose record cannot be read.
        """
        tasks, epoch = self._topic.owners_by_checkpoints()
        for number in sorted(unreadable.keys() & tasks.keys()):
            raise unreadable[number]
        self.epoch = ledger.epoch = max(epoch, ledger.epoch)
        learned = unreadable if ledger.containers else {**tasks, **unreadable}
        ledger.containers.update({n: ContainerRecord(n, self.epoch, "", tasks.get(n, ()), "", "", 0) for n in learned})

    def name(self, owners: Iterable[Named]) -> dict[int, int]:
        """Write these owners, in one transaction; the epoch of each.

        Raises:
            Fenced: another coordinator has taken over. LogError: perhaps not written; `read` before anything else is decided.
        """
        records: list[tuple[bytes, bytes | None]] = []
        epochs: dict[int, int] = {}
        locality: dict[str, dict[str, int]] = {}
        epoch = self.epoch
        for one in owners:
            epoch += 1
            epochs[one.container] = epoch
            record = ContainerRecord(one.container, epoch, one.incarnation, one.tasks, self._run_id, one.host, one.pid)
            records.append((container_key(one.container), record.to_bytes()))
            locality.update({task: hosts for task in one.tasks if (hosts := self._moved(task, one.host, epoch)) is not None})
        self.epoch = epoch  # before it is written: one that is in doubt is not given again
        self.write(*records, *((locality_key(task), locality_to_bytes(hosts)) for task, hosts in locality.items()))
        self.locality.update(locality)
        return epochs

    def end(self, owners: Iterable[ContainerRecord]) -> None:
        """Take everything from these owners by force: (a) to (c). May be called again if it did not return.

        Raises:
            Fenced, LogError: as `name`. ClusterUnreachable: could not be fenced yet.
        """
        ended = []
        epoch = self.epoch
        for r in owners:
            epoch += 1
            ended.append(ContainerRecord(r.container, epoch, "", r.tasks, r.run_id, r.host, r.pid))
        if not ended:
            return
        self.epoch = epoch
        self.write(*((container_key(r.container), r.to_bytes()) for r in ended))  # (a)
        failpoints.hit("coordinator.end.a")
        self._await_visible({r.container: r.epoch for r in ended})  # (b): a commit that returned is not yet visible
        failpoints.hit("coordinator.end.b")
        for r in ended:
            self.fence(r.container)  # (c)
            failpoints.hit("coordinator.end.c")

    def end_all(self, ledger: Ledger, numbers: Iterable[int]) -> None:
        """End every container of earlier runs; fence their ids and these, which may have been launched and never named.

        Raises:
            Fenced, LogError, ClusterUnreachable: as `end`.
        """
        earlier = [r for r in ledger.containers.values() if r.incarnation]
        self.end(earlier)
        for number in sorted(({*ledger.containers} | set(numbers)) - {r.container for r in earlier}):
            self.fence(number)

    def fence(self, container: int) -> None:
        """Make every producer of this container's id dead at the broker."""
        self._topic.fence(container)

    def write(self, *records: tuple[bytes, bytes | None]) -> None:
        """Write all of these records or none.

        Raises:
            Fenced, LogError: as `name`.
        """
        try:
            self._topic.write(*records)
        except LogError:
            self.is_in_doubt = True
            self._doubted.update(key for key, _ in records)
            raise
        self._known.update(records)

    def confirm(self, host: str, holds: Collection[str]) -> None:
        """A host reported the tasks whose state it has: any other state noted for it is gone."""
        for task, hosts in self.locality.items():
            if task not in holds:
                hosts.pop(host, None)

    def close(self) -> None:
        self._topic.close()

    def _await_visible(self, epochs: Mapping[int, int]) -> None:
        tell_at = self._clock.monotonic() + TOLD_AFTER_S
        while True:
            ledger = self._topic.read()
            self._repair(ledger)
            there = {n: r.epoch for n, r in ledger.containers.items()}  # without those that cannot be read
            if all(there.get(n, 0) >= epoch for n, epoch in epochs.items()):
                return
            if self._clock.monotonic() >= tell_at:
                tell_at += TOLD_EVERY_S
                LOG.warning(*self._topic.hidden())
            self._clock.sleep(0.02)

    def _repair(self, ledger: Ledger) -> None:
        """Only this coordinator writes there: of what it knows it writes again what somebody has written over and cannot be read."""
        broken = [(key, self._known[key]) for key in ledger.unreadable if key in self._known]
        if broken:
            names = ", ".join(brief(key.decode("utf-8", "replace")) for key, _ in broken[:MAX_TOLD])
            LOG.warning("another application wrote unreadable records to the coordinator topic, in place of this job's; written again: %s", names)
            self.write(*broken)

    def _moved(self, task: str, host: str, epoch: int) -> dict[str, int] | None:
        """The task's hosts with this one as its newest; None if it is already."""
        before = self.locality.get(task, {})
        if not host or (before and max(before, key=lambda h: before[h]) == host):
            return None
        newest = sorted({**before, host: epoch}.items(), key=lambda item: -item[1])[:HOSTS_PER_TASK]
        return dict(newest)
