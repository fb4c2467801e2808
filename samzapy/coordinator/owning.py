"""Writes ownership: the steps of "Owning" in PROTOCOL.md, over the coordinator topic.

A task's next owner is named only after its last one has released it, or was ended in the topic (a), that was read back (b), and its
transactional.id was fenced at the broker (c). Every record is transactional, so a coordinator that was replaced writes nothing more. A
write that is in doubt is never guessed about: the topic is read again, after a new init has decided it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from samzapy import failpoints
from samzapy.api.errors import Fenced, LogError
from samzapy.coordinator.coordinator_log import CoordinatorLog
from samzapy.model.ownership import ContainerRecord, Ledger, container_key, locality_key, locality_to_bytes
from samzapy.ports import Clock

HOSTS_PER_TASK = 4


@dataclass(frozen=True, slots=True)
class Named:
    """A container's next owner: incarnation, host, tasks."""

    container: int
    incarnation: str
    tasks: tuple[str, ...]
    host: str
    pid: int


class Owning:
    """Writes which container owns which tasks.

    Attributes:
        epoch: of the newest record.
        locality: by task, the hosts that have state of it, with the epoch of its last owner there (the highest is the newest).
        is_in_doubt: a write failed; `read` says what holds.
    """

    def __init__(self, topic: CoordinatorLog, run_id: str, clock: Clock) -> None:
        self._topic = topic
        self._run_id = run_id
        self._clock = clock
        self.epoch = 0
        self.locality: dict[str, dict[str, int]] = {}
        self.is_in_doubt = False
        self._replaces = ""  # the run whose lease was there when this one began

    def read(self) -> Ledger:
        """The topic's current content; a write that was in doubt is decided first."""
        if self.is_in_doubt:
            self._topic.renew_producer()
        ledger = self._topic.read()
        self.epoch = max(self.epoch, ledger.epoch)
        self.is_in_doubt = False
        return ledger

    def take_over(self) -> Ledger:
        """The start of a coordinator: fence every earlier one, then end every container of earlier runs."""
        self._topic.take_over()
        was_in_doubt, self.is_in_doubt = self.is_in_doubt, False  # that init has decided it
        ledger = self.read()
        holder = ledger.lease.run_id if ledger.lease else ""
        if not was_in_doubt:
            self._replaces = holder
        elif holder not in ("", self._run_id, self._replaces):
            self.is_in_doubt = True
            raise Fenced(f"run {holder} has taken over.", "")
        if not ledger.containers:
            self._learn_from_checkpoints(ledger)
        self.locality = {task: dict(hosts) for task, hosts in ledger.locality.items()}
        return ledger

    def _learn_from_checkpoints(self, ledger: Ledger) -> None:
        """A job that never ran, or whose coordinator topic was deleted: epochs go on above what checkpoints and barriers name."""
        tasks, self.epoch = self._topic.owners_by_checkpoints()
        ledger.epoch = self.epoch
        ledger.containers.update({n: ContainerRecord(n, self.epoch, "", names, "", "", 0) for n, names in tasks.items()})

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
        self.write(*records, *((locality_key(task), locality_to_bytes(hosts)) for task, hosts in locality.items()))
        self.epoch = epoch
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
        self.write(*((container_key(r.container), r.to_bytes()) for r in ended))  # (a)
        failpoints.hit("coordinator.end.a")
        self.epoch = epoch
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
            raise

    def confirm(self, host: str, holds: Collection[str]) -> None:
        """A host reported the tasks whose state it has: any other state noted for it is gone."""
        for task, hosts in self.locality.items():
            if task not in holds:
                hosts.pop(host, None)

    def close(self) -> None:
        self._topic.close()

    def _await_visible(self, epochs: Mapping[int, int]) -> None:
        while True:
            there = self._topic.read().containers
            if all(n in there and there[n].epoch >= epoch for n, epoch in epochs.items()):
                return
            self._clock.sleep(0.02)

    def _moved(self, task: str, host: str, epoch: int) -> dict[str, int] | None:
        """The task's hosts with this one as its newest; None if it is already."""
        before = self.locality.get(task, {})
        if not host or (before and max(before, key=lambda h: before[h]) == host):
            return None
        newest = sorted({**before, host: epoch}.items(), key=lambda item: -item[1])[:HOSTS_PER_TASK]
        return dict(newest)
